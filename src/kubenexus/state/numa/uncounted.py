"""Finds the pods on a node that its report has not counted yet.

Watches of pods and of reports are not ordered among each other, and a report is some seconds old. So the
sums decide: all that the counted pods hold must be what the report has in use.
"""

from collections.abc import Sequence
from typing import Final

from kubenexus.api.numa.machine import Machine, Usage
from kubenexus.api.numa.many_nodes import devices_by_zone
from kubenexus.api.numa.pod_demand import PodDemand
from kubenexus.state.numa.holdings import in_all

_MAX_STEPS: Final = 4096
Amounts = tuple[int, ...]


def uncounted(machine: Machine, report: Usage, pods: Sequence[PodDemand], started: int) -> frozenset[int]:
    """Returns the positions of the pods that a report has not counted. `pods` are in order, `started` of them are known
    to run. If no choice of pods gives the sums, too many are returned rather than too few."""
    if not pods:
        return frozenset()
    names = ["cpu", *machine.memory, *machine.devices]
    in_use = tuple(in_all(machine, name) - _free(machine, report, name) for name in names)
    wanted = [_lasting(pod, names) for pod in pods]
    missing = tuple(sum(amounts) - used for *amounts, used in zip(*wanted, in_use, strict=True))
    if any(amount < 0 for amount in missing):
        return frozenset(range(started, len(pods)))  # it counts pods that are gone, or of which nothing is known
    by_time = frozenset(range(started, len(pods)))
    if _sum(wanted, by_time, len(names)) == missing:
        return by_time
    found = _Search(wanted).run(missing)
    return _at_least(wanted, missing) if found is None else found


def _free(machine: Machine, report: Usage, name: str) -> int:
    if name == "cpu":
        return report.cpus.bit_count()
    if name in machine.memory:
        return sum(report.memory[name])
    return sum(devices_by_zone(machine, name, report.devices[name]))


def _lasting(pod: PodDemand, names: Sequence[str]) -> Amounts:
    """Returns what the containers want that run as long as the pod, by resource."""
    sums = dict.fromkeys(names, 0)
    for each in pod.containers:
        if not each.leaves_for_reuse:
            sums["cpu"] += each.cpus
            for name, amount in (*(each.memory or ()), *each.devices):
                if name in sums:
                    sums[name] += amount
    return tuple(sums.values())


def _sum(wanted: Sequence[Amounts], which: frozenset[int], size: int) -> Amounts:
    return tuple(sum(wanted[number][part] for number in which) for part in range(size))


def _at_least(wanted: Sequence[Amounts], missing: Amounts) -> frozenset[int]:
    """Returns the last pods that are together as large as what is missing."""
    found = set[int]()
    left = list(missing)
    for number in range(len(wanted) - 1, -1, -1):
        if all(amount <= 0 for amount in left):
            break
        if any(wanted[number]):
            found.add(number)
            left = [amount - part for amount, part in zip(left, wanted[number], strict=True)]
    return frozenset(found)


class _Search:
    """Looks for pods, the last ones first, that are together as large as what is missing."""

    def __init__(self, wanted: Sequence[Amounts]) -> None:
        self.wanted = wanted
        self.steps = 0
        self.chosen: list[int] = []

    def run(self, missing: Amounts) -> frozenset[int] | None:
        return frozenset(self.chosen) if self._choose(len(self.wanted) - 1, missing) else None

    def _choose(self, number: int, missing: Amounts) -> bool:
        if not any(missing):
            return True
        self.steps += 1
        if number < 0 or self.steps > _MAX_STEPS:
            return False
        amounts = self.wanted[number]
        if any(amounts) and all(part <= left for part, left in zip(amounts, missing, strict=True)):
            self.chosen.append(number)
            if self._choose(number - 1, tuple(left - part for part, left in zip(amounts, missing, strict=True))):
                return True
            self.chosen.pop()
        return self._choose(number - 1, missing)
