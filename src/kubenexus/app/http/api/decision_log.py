"""The last decisions, for readers that follow them."""

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from kubenexus.api.gangs.job_key import display_name, namespace_of
from kubenexus.app.http.api.documents import DecisionDocument, as_time
from kubenexus.framework.decision import Decision

KEPT: Final = 1_000  # decisions
MAX_PODS: Final = 1_000  # of one decision whose nodes are listed


class NumberedDecision(NamedTuple):
    number: int
    decision: Decision


class DecisionLog:
    """The last decisions, with numbers from 1. The loop calls `add`, which costs it less than a microsecond. Readers
    keep their own positions, so a slow reader holds nothing back."""

    def __init__(self) -> None:
        self._kept: deque[NumberedDecision] = deque(maxlen=KEPT)
        self._changed = asyncio.Event()
        self.last = 0
        self.closed = False

    def add(self, decision: Decision) -> None:
        self.last += 1
        self._kept.append(NumberedDecision(self.last, decision))
        if not self._changed.is_set():
            self._changed.set()

    def close(self) -> None:
        """Ends what follows the decisions."""
        self.closed = True
        self._changed.set()

    def after(self, number: int, most: int) -> list[NumberedDecision]:
        """Returns the oldest `most` decisions after this number that are kept."""
        if not self._kept or number >= self.last:
            return []
        start = max(0, number + 1 - self._kept[0].number)
        return list(islice(self._kept, start, start + most))

    @property
    def first(self) -> int:
        """The number of the oldest decision that is kept, 0 without any."""
        return self._kept[0].number if self._kept else 0

    async def wait(self, number: int) -> None:
        """Returns when there is a decision after this number, or none will come."""
        while self.last <= number and not self.closed:
            self._changed.clear()
            await self._changed.wait()


def documents(some: list[NumberedDecision], namespace: str) -> Iterator[DecisionDocument]:
    """Yields those of a namespace, "" for all."""
    for number, decision in some:
        if namespace in ("", namespace_of(decision.job)):
            yield _document(number, decision, everything=not namespace)


def _document(number: int, decision: Decision, *, everything: bool) -> DecisionDocument:
    namespace = namespace_of(decision.job)
    victims = () if decision.preemption is None else tuple([each.pod for each in decision.preemption.victims])
    named = victims if everything else tuple([each for each in victims if namespace_of(each) == namespace])
    outcome = "placed" if decision.placed else "error" if decision.error else "waits"
    return DecisionDocument(
        number,
        as_time(decision.decided_at),
        display_name(decision.job),
        namespace,
        outcome,
        "" if decision.placed else decision.sentence(namespace),
        {each.pod: each.node for each in decision.placements[:MAX_PODS]},
        named,
        len(victims) - len(named),
    )
