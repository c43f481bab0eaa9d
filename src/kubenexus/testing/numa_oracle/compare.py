"""Predicts every recorded admission in two ways, and counts what agrees.

From the state of the managers everything must be equal that is determined: admitted or not, the reason, where it gave
up, and for each container the NUMA nodes, CPUs, memory and devices. From what a scheduler sees, it is the share of
right answers that counts, and which way the others are wrong.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.numa.admission import Admission, Allocation, admit
from kubenexus.api.numa.machine import Machine, NumaNode, each_bit
from kubenexus.testing.numa_oracle.cases import Case, RecordedAllocation, Verdict, recordings
from kubenexus.testing.numa_oracle.from_nrt import node_from_nrt
from kubenexus.testing.numa_oracle.from_state import cpu_set, node_from_state, zone_set

BY_TOTALS = "predicates"


class Group(msgspec.Struct):
    """How often a prediction was right, for one kind of node."""

    verdicts: int = 0
    admitted: int = 0
    false_accepts: int = 0
    false_rejects: int = 0

    def count(self, predicted: bool, admitted: bool) -> None:
        self.verdicts += 1
        self.admitted += admitted
        self.false_accepts += predicted and not admitted
        self.false_rejects += admitted and not predicted

    @property
    def different(self) -> int:
        return self.false_accepts + self.false_rejects

    @property
    def agreement(self) -> float:
        return 1 - self.different / self.verdicts if self.verdicts else 1.0


class VerdictCounts(msgspec.Struct):
    """All counts. `held` are the answers of the files; those that depend on chance are not compared."""

    held: int = 0
    compared: int = 0
    differences: list[str] = []
    from_nrt: dict[str, Group] = {}
    by_totals: dict[str, Group] = {}
    affinities: Group = msgspec.field(default_factory=Group)
    reasons: Counter[str] = msgspec.field(default_factory=Counter)


def judge(paths: Iterable[str | Path], cases: Iterable[str] = ()) -> VerdictCounts:
    """Compares all recorded verdicts of these files or folders, or those of some cases. Raises UnusableRecording."""
    tally, only = VerdictCounts(), set(cases)
    for _, entries in recordings(paths):
        for entry in entries:
            if not only or entry.case.id in only:
                _judge_case(tally, entry.case, entry.expected)
    return tally


def _judge_case(tally: VerdictCounts, case: Case, expected: dict[str, Verdict]) -> None:
    exact, seen = node_from_state(case), node_from_nrt(case)
    for pod in case.incoming:
        verdict = expected[pod.metadata.name]
        said = admit(pod, exact)
        for what, ours, theirs in _answers(exact.machine, said, verdict):
            tally.held += 1
            if _by_chance(verdict, what):
                continue
            tally.compared += 1
            if ours != theirs:
                tally.differences.append(f"{case.id} {pod.metadata.name}: {what}: {ours}, recorded {theirs}")
        if not _by_chance(verdict, "admitted"):
            _judge_sight(tally, exact, seen, pod, verdict)


def _judge_sight(tally: VerdictCounts, exact: NumaNode, seen: NumaNode | None, pod: Pod, verdict: Verdict) -> None:
    said = admit(pod, seen) if seen else Admission()
    for name in _groups(exact):
        tally.from_nrt.setdefault(name, Group()).count(said.admitted, verdict.admitted)
        tally.by_totals.setdefault(name, Group()).count(verdict.fit.fits, verdict.admitted)
    if said.admitted != verdict.admitted:
        tally.reasons[verdict.reason or f"not refused, but predicted {said.reason}"] += 1
    elif said.admitted:
        same = all(
            _zones(said.containers.get(name)) == _recorded_zones(each)
            for name, each in (verdict.containers or {}).items()
        )
        tally.affinities.count(same, True)


def _groups(node: NumaNode) -> Iterator[str]:
    """Yields the groups that a node counts in."""
    kubelet = node.kubelet
    yield "all"
    yield f"policy {kubelet.policy}"
    cpu, memory = "static" if kubelet.static_cpus else "none", "Static" if kubelet.static_memory else "None"
    yield f"CPU Manager {cpu}, Memory Manager {memory}"
    if kubelet.static_cpus and kubelet.static_memory:
        yield f"both static, policy {kubelet.policy}"


def _by_chance(verdict: Verdict, what: str) -> bool:
    """Returns whether runs of the same admission differ here: the kubelet takes devices for reuse at random."""
    if not verdict.others:
        return False
    return what != "admitted" or any(other.admitted != verdict.admitted for other in verdict.others)


def _answers(machine: Machine, said: Admission, verdict: Verdict) -> Iterator[tuple[str, object, object]]:
    """Yields what is compared: its name, our answer and the recorded one."""
    yield "admitted", said.admitted, verdict.admitted
    if not verdict.admitted or not said.admitted:
        yield "reason", said.reason, verdict.reason
        yield "by", said.by_totals, verdict.by == BY_TOTALS
        yield "container", said.container, verdict.container
        return
    for name, theirs in (verdict.containers or {}).items():
        ours = said.containers.get(name, Allocation())
        yield f"affinity of {name}", _zones(ours), _recorded_zones(theirs)
        yield f"CPUs of {name}", ours.cpus, cpu_set(theirs.cpus)
        memory = sorted((block.type, zone_set(block.numa)) for block in theirs.memory or ())
        yield f"memory of {name}", sorted((block.type, block.zones) for block in ours.memory), memory
        if theirs.affinity is not None and len(theirs.affinity) == 1:
            yield f"devices of {name}", _devices_by_numa(machine, ours), theirs.devices_per_numa or {}


def _zones(allocation: Allocation | None) -> tuple[int | None, bool]:
    affinity = allocation.affinity if allocation else None
    return (affinity.zones, affinity.preferred) if affinity else (None, False)


def _recorded_zones(allocation: RecordedAllocation) -> tuple[int | None, bool]:
    return (zone_set(allocation.affinity) if allocation.affinity is not None else None), allocation.preferred


def _devices_by_numa(machine: Machine, allocation: Allocation) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for resource, chosen in allocation.devices.items():
        counts = found.setdefault(resource, {})
        for index in each_bit(chosen):
            where = ",".join(map(str, each_bit(machine.devices[resource][index].numa)))
            counts[where] = counts.get(where, 0) + 1
    return found
