"""Admits the pods of a node again, to find out what each holds: the report of the node has only sums.

Pods are tried in the order that is likely, then in others: binds overtake each other on their way to a kubelet. An
order is the right one if all that a report lists of the pods is what the report has in use.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kubenexus.api.numa.admission import Admission, Allocation, admit_to_managers
from kubenexus.api.numa.machine import Kubelet, Machine, Usage, each_bit, idle, members
from kubenexus.api.numa.pod_demand import PodDemand

_MAX_TRIES: Final = 24  # of other orders; an admission takes about 0.1 ms
_REORDERED: Final = 8  # the last pods, of which other orders are tried

Amounts = dict[str, list[int]]  # by resource and NUMA node; `cpu` are the exclusive CPUs


class Step(msgspec.Struct, frozen=True):
    """A pod that was admitted again: its position, the usage before and after it, and what a report lists of it."""

    pod: int
    before: Usage
    after: Usage
    listed: tuple[Allocation, ...]


def in_use(machine: Machine, usage: Usage) -> Amounts:
    """Returns what is in use on each NUMA node, by resource."""
    allocatable = idle(machine)
    used: Amounts = {"cpu": [(cpus & allocatable.cpus & ~usage.cpus).bit_count() for cpus in machine.cpus.numa]}
    for kind, whole in allocatable.memory.items():
        used[kind] = [total - left for total, left in zip(whole, usage.memory[kind], strict=True)]
    for resource, whole_set in allocatable.devices.items():
        used[resource] = _by_zone(machine, resource, whole_set & ~usage.devices[resource])
    return used


def listed(demand: PodDemand, admission: Admission) -> tuple[Allocation, ...]:
    """Returns what a report lists of a pod: containers that run as long as the pod, not what init containers keep."""
    return tuple(admission.containers[each.name] for each in demand.containers if not each.leaves_for_reuse)


def deduct(machine: Machine, left: Amounts, allocation: Allocation) -> bool:
    """Takes an allocation off the amounts that are left to explain. Returns False if it is too much."""
    if allocation.cpus:
        _subtract(left["cpu"], [(cpus & allocation.cpus).bit_count() for cpus in machine.cpus.numa])
    for resource, chosen in allocation.devices.items():
        if chosen:
            _subtract(left[resource], _by_zone(machine, resource, chosen))
    for block in allocation.memory:
        size = take_off(left[block.type], members(block.zones), block.size) if block.type in left else block.size
        if size:
            return False
    # No generators: a report has this checked for each pod of its node.
    return min([min(amounts) for amounts in left.values()]) >= 0


def _subtract(row: list[int], numbers: Sequence[int]) -> None:
    for zone, number in enumerate(numbers):
        row[zone] -= number


def take_off(row: list[int], zones: Sequence[int], amount: int) -> int:
    """Takes an amount off the NUMA nodes, from the first on. Returns what is more than they have."""
    for zone in zones:
        part = min(row[zone], amount)
        row[zone] -= part
        amount -= part
    return amount


def replay(
    kubelet: Kubelet, machine: Machine, start: Usage, left: Amounts, pods: Sequence[PodDemand]
) -> list[Step] | None:
    """Returns the pods in an order in which they can have been admitted, or None if none was found. `left` is what a
    report lists of them."""
    search = _Replay(kubelet, machine, pods)
    return search.steps if search.run(start, left) else None


class _Replay:
    """The search: pod after pod, and back where the sums exclude it. Equal pods are tried once."""

    def __init__(self, kubelet: Kubelet, machine: Machine, pods: Sequence[PodDemand]) -> None:
        self.kubelet, self.machine, self.pods = kubelet, machine, pods
        self.most = _REORDERED + _MAX_TRIES
        self.tries = 0
        self.steps: list[Step] = []

    def run(self, usage: Usage, left: Amounts) -> bool:
        left = {name: amounts.copy() for name, amounts in left.items()}
        first = max(len(self.pods) - _REORDERED, 0)
        for number in range(first):
            step = self._admit(number, usage, left)
            if step is None:
                return False
            self.steps.append(step)
            usage = step.after
        return self._search(usage, left, tuple(range(first, len(self.pods))))

    def _search(self, usage: Usage, left: Amounts, waiting: tuple[int, ...]) -> bool:
        if not waiting:
            return not any(amount for amounts in left.values() for amount in amounts)
        tried: list[PodDemand] = []
        for number in waiting:
            pod = self.pods[number]
            if pod in tried:
                continue
            if self.tries >= self.most:
                return False
            self.tries += 1
            tried.append(pod)
            rest = {name: amounts.copy() for name, amounts in left.items()}
            step = self._admit(number, usage, rest)
            if step is None:
                continue
            self.steps.append(step)
            if self._search(step.after, rest, tuple(other for other in waiting if other != number)):
                return True
            self.steps.pop()
        return False

    def _admit(self, number: int, usage: Usage, left: Amounts) -> Step | None:
        pod, after = self.pods[number], usage.copy()
        said = admit_to_managers(pod, self.kubelet, self.machine, after)
        if not said.admitted:
            return None
        shown = listed(pod, said)
        fits = all([deduct(self.machine, left, each) for each in shown])  # noqa: C419
        return Step(number, usage, after, shown) if fits else None


def _by_zone(machine: Machine, resource: str, chosen: int) -> list[int]:
    devices, counts = machine.devices[resource], [0] * machine.zones
    for index in each_bit(chosen):
        for zone in members(devices[index].numa):
            counts[zone] += 1
    return counts
