"""Counters that pods do not change: each is brought up to date when it is read, from the pods moved since then.

A pod changes a bounded number of counters (`pod_queries.MAX_CHECKED`). A tenant may have thousands of queries that
select all pods, and the counters beyond that number are lazy. So the cost of a move does not depend on the queries that
exist: the class that reads a lazy counter pays for it, as part of the work that its limits count.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kubenexus.base.arrays import grow
from kubenexus.state.pod_counter import PodCounter

MAX_LOGGED: Final = 16  # moves; to count all pods again costs less than to check more of them
_MAX_STEPS: Final = 32  # rows that differ after a count of all pods; more of them replace all rows
_NEVER: Final = -1

# A pod as far as queries distinguish it: namespace, terminating, nominated, and pairs of label and value.
PodKey = tuple[Any, ...]


class NamespaceChange(NamedTuple):
    """A namespace with its labels before and after an event; None: the namespace is not known."""

    name: str
    before: Mapping[str, str] | None
    after: Mapping[str, str] | None


class PodMoves:
    """The last pods that were added to a row or removed from it, and namespaces whose labels changed in between.
    `mark` is the number of these so far.

    While `logging` is False only `mark` changes. `oldest` is the mark before which rows had other labels: a counter
    that is older counts all pods again, and all its domains.
    """

    def __init__(self) -> None:
        self.mark = self.oldest = 0
        self.logging = False
        self._log: deque[tuple[PodKey | NamespaceChange, int, int]] = deque(maxlen=MAX_LOGGED)

    def start(self) -> None:
        if not self.logging:
            self._log.clear()
            self.logging = True

    def append(self, key: PodKey | NamespaceChange, row: int = 0, delta: int = 0) -> None:
        self._log.append((key, row, delta))

    def since(self, mark: int) -> list[tuple[PodKey | NamespaceChange, int, int]] | None:
        """Returns the moves since `mark`, or None if the log does not reach that far back."""
        missed = self.mark - mark
        return None if missed > len(self._log) else [self._log[i] for i in range(-missed, 0)]


class LazySource(Protocol):
    """What a lazy counter is brought up to date from."""

    @property
    def moves(self) -> PodMoves: ...

    def selects(self, question: Any, key: PodKey) -> bool:
        """Returns whether the query selects a pod of this key."""
        ...

    def concerns(self, question: Any, change: NamespaceChange) -> bool:
        """Returns whether the change adds the namespace's pods to those that the query selects, or removes them."""
        ...

    def count(self, question: Any) -> NDArray[np.int64]:
        """Returns the number of selected pods by row, counted over all pods."""
        ...

    def make_eager(self, question: Any) -> None:
        """Makes pods change the counter of this query again."""
        ...


class MissedMoves:
    """The moves that one lazy counter has not counted: those since `mark`. `once`: the counter is lazy only until it is
    read."""

    __slots__ = ("mark", "once", "question", "source")

    def __init__(self, question: Any, source: LazySource, once: bool) -> None:
        self.question = question
        self.source = source
        self.mark = source.moves.mark
        self.once = once


class LazyCounter(PodCounter):
    """A `PodCounter` that is brought up to date when one of its values is read.

    `make_lazy` turns a counter into one of these, since classes already refer to it. The slots are those of
    `PodCounter`.
    """

    __slots__ = ()

    def catch_up(self) -> None:
        missed = self.missed
        moves = missed.source.moves
        if missed.mark == moves.mark:
            return
        mark, missed.mark = missed.mark, moves.mark  # first: the methods called below read the values as well
        steps = moves.since(mark) if mark >= moves.oldest else None
        if mark < moves.oldest:
            self.set(missed.source.count(missed.question))
        elif steps is None or self._namespaces_changed(steps):
            self._recount(missed.source.count(missed.question))
        else:
            self._follow(steps)
        if missed.once:
            missed.source.make_eager(missed.question)

    def _namespaces_changed(self, steps: list[tuple[PodKey | NamespaceChange, int, int]]) -> bool:
        missed = self.missed
        return any(isinstance(k, NamespaceChange) and missed.source.concerns(missed.question, k) for k, _, _ in steps)

    def _follow(self, steps: list[tuple[PodKey | NamespaceChange, int, int]]) -> None:
        missed, answers = self.missed, dict[PodKey, bool]()
        for key, row, delta in steps:
            if isinstance(key, NamespaceChange):
                continue
            if key not in answers:
                answers[key] = missed.source.selects(missed.question, key)
            if answers[key]:
                self.add(row, delta)

    def _recount(self, rows: NDArray[np.int64]) -> None:
        """Changes the rows that differ from this count, so that readers learn which these are."""
        size = max(len(self.rows), len(rows))
        change = grow(rows, size) - grow(self.rows, size)
        differing = np.flatnonzero(change).tolist()
        if len(differing) > _MAX_STEPS:
            self.set(rows)
            return
        for row in differing:
            self.add(row, change.item(row))

    def set(self, rows: NDArray[np.int64]) -> None:
        self.missed.mark = self.missed.source.moves.mark
        super().set(rows)

    def relabelled(self) -> None:
        if self.missed.mark == self.missed.source.moves.mark:
            super().relabelled()
        else:
            self.recount_when_read()

    def recount_when_read(self) -> None:
        """Makes the next reader count all pods again."""
        self.missed.mark = _NEVER


def _read_up_to_date(name: str) -> Any:
    slot = getattr(PodCounter, name)

    def read(counter: LazyCounter) -> Any:
        counter.catch_up()
        return slot.__get__(counter)

    return property(read, slot.__set__)


for _name in ("rows", "total", "max_per_row", "version", "presence_version", "_domains", "_log", "_flipped"):
    setattr(LazyCounter, _name, _read_up_to_date(_name))


def make_lazy(counter: PodCounter, question: Any, source: LazySource, *, once: bool = False) -> None:
    """Makes the counter lazy. The caller no longer adds pods to it. `once`: only until the counter is read."""
    source.moves.start()
    counter.missed = MissedMoves(question, source, once)
    counter.__class__ = LazyCounter


def make_eager(counter: PodCounter) -> None:
    """Undoes `make_lazy` for a counter that is up to date. The caller adds pods to it again."""
    counter.__class__ = PodCounter
    del counter.missed
