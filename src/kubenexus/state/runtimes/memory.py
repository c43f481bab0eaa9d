"""Learns runtimes from earlier runs, by workload identity. Bounded, and never shared between namespaces.

    namespace ── identity ── the last runs: seconds, and for runs with a declared runtime how many times it they took
              └─ the last runs of all identities with a declared runtime

A pod that runs longer than it declared is not stopped. The runtimes that later pods of its identity declare count as
many times longer; those of a new identity as those of its namespace, so a new name does not help.

Nor do a few short pods that keep their word. The seconds by which pods outlived what was expected of them are owed by
their namespace, and runs that end in time pay them off, second by second. Until all is paid, such runs are no evidence:
the factors stay as they are, of the namespace and of each identity. So a record is washed only by as much time as it
cost others. Runs that are expected to take longer than they declare, and do, owe nothing.
"""

import math
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kubenexus.api.runtimes import DeclaredRuntime, WorkloadIdentity
from kubenexus.state.runtimes.estimate import RuntimeEstimate
from kubenexus.state.runtimes.untried import ASSUMED

MAX_NAMESPACES: Final = 1000
MAX_IDENTITIES: Final = 64  # of a namespace; the one whose last run is the longest ago is forgotten first
RUNS: Final = 24  # of an identity
MIN_RUNS: Final = 3  # fewer tell nothing
TYPICAL_IDENTITIES, TYPICAL_RUNS, TYPICAL = 8, 6, 120  # of a namespace, of an identity, and in all
MAX_FACTOR: Final = 1e6  # twelve days of a declared second
MAX_OWED: Final = 7 * 86_400.0  # seconds; a mistake is forgiven after a week of runs
_LOW, _MEDIAN, _HIGH = 0.1, 0.5, 0.9


class LastRuns:
    """The last values of a measure, and their quantiles."""

    __slots__ = ("_sorted", "_values")

    def __init__(self) -> None:
        self._values = array("f")
        self._sorted: list[float] | None = None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[float]:
        return iter(self._values)

    def add(self, value: float) -> None:
        if len(self._values) == RUNS:
            del self._values[0]
        self._values.append(value)
        self._sorted = None

    def quantile(self, part: float) -> float:
        """Returns the smallest value that is not below `part` of the values. There must be some."""
        if self._sorted is None:
            self._sorted = sorted(self._values)
        return self._sorted[min(int(part * len(self._sorted)), len(self._sorted) - 1)]


class KnownRuns(NamedTuple):
    """How long earlier runs took, or would have taken if they had declared the same: seconds, sorted. `limit`: when the
    kubelet stops the pod."""

    seconds: tuple[float, ...]
    limit: float = math.inf


class IdentityRuns:
    """The runs of one identity: seconds, and how many times the declared runtime they took. `factors` also has runs
    that are under way, several times as they grow, so that decisions are cautious; `ended` has those that ended."""

    __slots__ = ("ended", "factors", "seconds")

    def __init__(self) -> None:
        self.seconds = LastRuns()
        self.factors = LastRuns()
        self.ended = LastRuns()


class NamespaceRuns:
    """The runs of one namespace. `owed`: the seconds that its pods outlived what was expected of them, less those of
    runs that ended in time since."""

    __slots__ = ("ended", "factors", "identities", "owed")

    def __init__(self) -> None:
        self.owed = 0.0
        self.factors = LastRuns()
        self.ended = LastRuns()
        self.identities: OrderedDict[tuple[str, str], IdentityRuns] = OrderedDict()

    def open(self, identity: WorkloadIdentity) -> IdentityRuns:
        key = identity[1:]
        runs = self.identities.get(key)
        if runs is None:
            runs = self.identities[key] = IdentityRuns()
            if len(self.identities) > MAX_IDENTITIES:
                self.identities.popitem(last=False)
        self.identities.move_to_end(key)
        return runs


class RuntimeMemory:
    """The runs of all namespaces. Only the ledger writes to it. `version` grows with every run."""

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, NamespaceRuns] = OrderedDict()
        self.version = 0

    def __len__(self) -> int:
        """The number of identities."""
        return sum(len(each.identities) for each in self._namespaces.values())

    def observe(self, identity: WorkloadIdentity, seconds: float, declared: DeclaredRuntime | None) -> None:
        """Records a run that has ended."""
        self._open(identity).seconds.add(seconds)
        self._count_factor(identity, seconds, declared, seconds)
        if declared is not None:
            factor = min(seconds / declared.seconds, MAX_FACTOR)
            self._open(identity).ended.add(factor)
            self._namespaces[identity.namespace].ended.add(factor)
        self.version += 1

    def outlived(self, identity: WorkloadIdentity, seconds: float, declared: DeclaredRuntime | None) -> None:
        """Records that a pod still runs after the time that it declared. Called when that time is over, and each time
        that the pod has run twice as long."""
        self._count_factor(identity, seconds, declared, seconds / 2)
        self.version += 1

    def estimate(self, identity: WorkloadIdentity, declared: DeclaredRuntime | None) -> RuntimeEstimate | None:
        """Returns how long the next run takes, or None if nothing tells."""
        namespace = self._namespaces.get(identity.namespace)
        runs = None if namespace is None else namespace.identities.get(identity[1:])
        if declared is None:
            return None if runs is None or len(runs.seconds) < MIN_RUNS else _learned(identity, runs.seconds)
        factors = _LAST_NONE
        if runs is not None and len(runs.factors) >= MIN_RUNS:
            factors = runs.factors
        elif namespace is not None:
            factors = namespace.factors
        return _declared(identity, declared, factors)

    def runs(
        self, identity: WorkloadIdentity, declared: DeclaredRuntime | None, untried: Sequence[float] = ASSUMED
    ) -> KnownRuns | None:
        """Returns what `estimate` is based on, run by run; None if nothing tells. `untried`: how many times its
        declared runtime a workload takes of which no run is known."""
        namespace = self._namespaces.get(identity.namespace)
        runs = None if namespace is None else namespace.identities.get(identity[1:])
        if declared is None:
            known = None if runs is None or len(runs.seconds) < MIN_RUNS else runs.seconds
            return None if known is None else KnownRuns(tuple(sorted(known)))
        times = untried
        for each in (runs, namespace):
            if each is not None and len(each.ended) >= MIN_RUNS:
                times = sorted(each.ended)
                break
        return KnownRuns(tuple([declared.seconds * each for each in times]), declared.limit)

    def typical(self) -> KnownRuns | None:
        """Returns runs of all namespaces, for workloads of which nothing is known; None if there are too few. Of each
        namespace few identities count, and of each few runs, so that no tenant decides alone."""
        found: list[float] = []
        for namespace in self._namespaces.values():
            for runs in list(namespace.identities.values())[-TYPICAL_IDENTITIES:]:
                found += sorted(runs.seconds)[:: max(-(-len(runs.seconds) // TYPICAL_RUNS), 1)]
        found.sort()
        return KnownRuns(tuple(found[:: max(-(-len(found) // TYPICAL), 1)])) if len(found) >= MIN_RUNS else None

    def factors(self) -> list[float]:
        """Returns how many times their declared runtime the last runs of all namespaces took, few of each."""
        return [each for namespace in self._namespaces.values() for each in list(namespace.ended)[-TYPICAL_RUNS:]]

    def __iter__(self) -> Iterator[tuple[WorkloadIdentity, IdentityRuns]]:
        for name, namespace in self._namespaces.items():
            for (kind, stem), runs in namespace.identities.items():
                yield WorkloadIdentity(name, kind, stem), runs

    def _open(self, identity: WorkloadIdentity) -> IdentityRuns:
        name = identity.namespace
        namespace = self._namespaces.get(name)
        if namespace is None:
            namespace = self._namespaces[name] = NamespaceRuns()
            if len(self._namespaces) > MAX_NAMESPACES:
                self._namespaces.popitem(last=False)
        self._namespaces.move_to_end(name)
        return namespace.open(identity)

    def _count_factor(
        self, identity: WorkloadIdentity, seconds: float, declared: DeclaredRuntime | None, since_counted: float
    ) -> None:
        """Counts a run of so many seconds, of which the last `since_counted` were not counted before."""
        if declared is None or declared.enforced:
            return
        expected = self.estimate(identity, declared)
        runs, namespace = self._open(identity), self._namespaces[identity.namespace]
        if seconds > declared.seconds:
            late = seconds - (declared.seconds if expected is None else expected.high)
            namespace.owed = min(namespace.owed + max(min(late, since_counted), 0.0), MAX_OWED)
        else:
            namespace.owed = max(namespace.owed - seconds, 0.0)
            if namespace.owed:
                return
        factor = min(seconds / declared.seconds, MAX_FACTOR)
        runs.factors.add(factor)
        namespace.factors.add(factor)


_LAST_NONE: Final = LastRuns()


def _learned(identity: WorkloadIdentity, seconds: LastRuns) -> RuntimeEstimate:
    low, median, high = (seconds.quantile(part) for part in (_LOW, _MEDIAN, _HIGH))
    return RuntimeEstimate(low, median, high, identity, len(seconds))


def _declared(identity: WorkloadIdentity, declared: DeclaredRuntime, factors: LastRuns) -> RuntimeEstimate:
    """A declared runtime is a limit, so it counts in full, and more if earlier runs outlived theirs."""
    said = declared.seconds
    if len(factors) < MIN_RUNS:
        return RuntimeEstimate(0.0, said, said, identity, 0, declared)
    low, median, high = (factors.quantile(part) for part in (_LOW, _MEDIAN, _HIGH))
    factor = max(high, 1.0) if not declared.enforced else 1.0
    most = min(said * factor, declared.limit)
    return RuntimeEstimate(
        min(said * low, most), min(said * median, most), most, identity, len(factors), declared, factor
    )
