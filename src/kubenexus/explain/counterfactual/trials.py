"""Decides about a job on a changed cluster, a counted number of times, and leaves the cluster as it was."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.base.errors import Malformed
from kubenexus.framework.decision import Decision, Shortage
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.state.ledger import Ledger

MAX_DECISIONS = 96  # of one explanation
MAX_PER_KIND = 16  # of these for one kind of suggestion
_MAX_ALONE = 6  # changes that are tried one by one before several together
T = TypeVar("T")


class OutOfTrials(Exception):
    """No more decisions may be made for this kind of suggestion."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """A changed cluster: nodes that replace those of the same name or are new, pods that are gone, and the job."""

    job: Job
    nodes: tuple[Node, ...] = ()
    gone: tuple[str, ...] = ()


class Suggestion(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What would make the job start, as a text and as data. `kind` says which of the other fields are set.

        node        `nodes` uncordoned, or without the taints that their kubelets' state causes
        topology    the required level `level` only preferred
        constraint  `constraints` of the pods dropped
        toleration  `constraints`, the taints, tolerated
        minimum     the gang starts with `number` members
        priority    the priority is `number`; the jobs `evicts` have to go, and `hidden_jobs` that may not be named
        capacity    `amounts` more on the node of `nodes`
        new_nodes   `number` more nodes that are as the one of `nodes` but empty

    `minimal`: less of the same does not make the job start. It is false if there were too few trials to find out.
    """

    kind: str
    text: str
    nodes: tuple[str, ...] = ()
    amounts: tuple[Shortage, ...] = ()
    number: int = 0
    level: str = ""
    constraints: tuple[str, ...] = ()
    evicts: tuple[str, ...] = ()
    hidden_jobs: int = 0
    minimal: bool = True


class Found(msgspec.Struct, frozen=True, gc=False):
    """A suggestion and the change that it stands for."""

    suggestion: Suggestion
    change: Change


class Trials:
    """Makes the decisions. `ledger` must belong to the caller alone: it is changed for each trial and changed back.
    `nodes` and `pods` are the objects that it was made of. `reserved` is what a job must leave to a gang before it."""

    def __init__(
        self,
        ledger: Ledger,
        planner: Planner,
        nodes: Mapping[str, Node],
        pods: Mapping[str, Pod],
        reserved: Callable[[Job], Reservation | None] = lambda job: None,
        now: float = 0.0,
    ) -> None:
        self.ledger, self.planner, self.nodes, self.pods = ledger, planner, nodes, pods
        self.made = 0
        self.exhausted = False
        self._reserved, self._now = reserved, now
        self._limit = 0

    def begin_kind(self) -> None:
        """Begins another kind of suggestion, which gets its own part of the decisions."""
        self._limit = min(self.made + MAX_PER_KIND, MAX_DECISIONS)

    def decide(self, change: Change) -> Decision:
        """Returns the decision about the changed job in the changed cluster. Raises OutOfTrials."""
        if self.made >= self._limit:
            self.exhausted = True
            raise OutOfTrials
        self.made += 1
        with self.changed(change):
            return self.planner.decide(change.job, self.ledger.snapshot(), self._now, self._reserved(change.job))

    def places(self, change: Change) -> bool:
        """Whether the job starts then. A change that cannot be made is one that does not help."""
        try:
            return self.decide(change).placed
        except Malformed:
            return False

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """Changes the ledger within the block."""
        gone = [self.ledger.pods[key] for key in change.gone if key in self.ledger.pods]
        try:
            for node in change.nodes:
                self.ledger.upsert_node(node)
            for record in gone:
                self.ledger.remove_pod(record.key)
            yield
        finally:
            for record in gone:
                self.ledger.put_back(record)
            for name in (node.metadata.name for node in change.nodes):
                if name in self.nodes:
                    self.ledger.upsert_node(self.nodes[name])
                else:
                    self.ledger.remove_node(name)
            self.ledger.read_devices()


def smallest_number(low: int, high: int, works: Callable[[int], bool]) -> tuple[int, bool]:
    """Returns a number in (low, high] that works while the number below does not, and True. `high` is known to work,
    `low` not to. With False: no more trials were left, and smaller ones may work. The number below `high` is tried
    first: a computed shortage is mostly exact."""
    try:
        if high - low > 1 and not works(high - 1):
            return high, True
        high = max(high - 1, low + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if works(middle) else (middle, high)
    except OutOfTrials:
        return high, False
    return high, True


def smallest_subset(every: Sequence[T], works: Callable[[Sequence[T]], bool]) -> tuple[list[T], bool]:
    """Returns some of `every` that work together while none of them can be left out, and True; [] if all together do
    not work. With False: no more trials were left, and some may not be needed. The first come first."""
    try:
        if not every or not works(every):
            return [], True
    except OutOfTrials:
        return [], True
    chosen = list(every)
    try:
        for each in every[:_MAX_ALONE] if len(every) > 1 else ():
            if works([each]):
                return [each], True
        length, known = smallest_number(0, len(chosen), lambda number: works(chosen[:number]))
        chosen = chosen[:length]
        for each in list(chosen[:-1]):  # without the last one it does not work
            rest = [other for other in chosen if other is not each]
            chosen = rest if works(rest) else chosen
    except OutOfTrials:
        return chosen, False
    return chosen, known


def listed(texts: Iterable[str], most: int = 5) -> str:
    """Returns the first texts and the number of the others."""
    named = list(texts)
    more = [f"{len(named) - most} more"] if len(named) > most else []
    return ", ".join([*named[:most], *more])
