"""Would a kubelet admit this pod? The Topology Manager and its managers first, then the totals.

    for each container (scope `container`), or once for the pod (scope `pod`)
        hints of devices, CPUs and memory  ─>  merge  ─>  TopologyAffinityError
    for each container
        allocate devices, CPUs, memory     ─>  UnexpectedAdmissionError, SMTAlignmentError
    totals                                 ─>  OutOfcpu, OutOfmemory, ...

It is the code of Kubernetes 1.37 that is followed, with its default feature gates: without dynamic resources, resize,
eviction and preemption of critical pods.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.numa.cpu_manager import CpuManager
from kubenexus.api.numa.device_manager import DeviceManager
from kubenexus.api.numa.machine import BEST_EFFORT, NONE, Kubelet, Machine, NumaNode, Usage
from kubenexus.api.numa.memory_manager import Block, MemoryManager
from kubenexus.api.numa.merge import Affinity, Hints, merge, merge_preferred
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand, pod_demand
from kubenexus.api.numa.refusal import TOPOLOGY, Refused
from kubenexus.api.numa.totals import check_totals

_ANYWHERE = Affinity()


class Allocation(msgspec.Struct, frozen=True):
    """What one container gets. `affinity` None: the Topology Manager was not asked."""

    affinity: Affinity | None = None
    cpus: int = 0
    memory: tuple[Block, ...] = ()
    devices: dict[str, int] = {}


class Admission(msgspec.Struct, frozen=True):
    """What the kubelet says. `container` is where it gave up; empty for the pod as a whole."""

    reason: str = ""
    message: str = ""
    by_totals: bool = False
    container: str = ""
    containers: dict[str, Allocation] = {}

    @property
    def admitted(self) -> bool:
        return not self.reason


def admit(pod: Pod, on: NumaNode) -> Admission:
    """Returns what the kubelet of a node would say to a pod. Changes nothing."""
    said = admit_to_managers(pod_demand(pod), on.kubelet, on.machine, on.usage.copy())
    if not said.admitted:
        return said
    try:
        check_totals(pod, on.node, on.used, on.pods, on.machine.devices)
    except Refused as refused:
        return Admission(refused.reason, refused.message, True, containers=said.containers)
    return said


def admit_to_managers(demand: PodDemand, kubelet: Kubelet, machine: Machine, usage: Usage) -> Admission:
    """Returns what the Topology Manager says; `usage` then holds the allocations that were made until it gave up."""
    deciding = _Deciding(kubelet, machine, usage)
    made: dict[str, Allocation] = {}
    common: Affinity | None = None
    if kubelet.pod_scope and kubelet.policy != NONE:
        common = deciding.merged(partial(deciding.hints_of_pod, demand))
        if common is None:
            return _no_affinity("", made)
    for container in demand.containers:
        affinity = common
        if affinity is None and kubelet.policy != NONE:
            affinity = deciding.merged(partial(deciding.hints, container))
            if affinity is None:
                return _no_affinity(container.name, made)
        made[container.name] = Allocation(affinity)
        try:
            made[container.name] = deciding.allocate(container, affinity)
        except Refused as refused:
            return Admission(refused.reason, refused.message, container=container.name, containers=made)
    return Admission(containers=made)


class _Deciding:
    """The three managers during one admission, in the order in which the kubelet asks them."""

    def __init__(self, kubelet: Kubelet, machine: Machine, usage: Usage) -> None:
        self.kubelet, self.machine = kubelet, machine
        self.devices = DeviceManager(machine, usage)
        self.cpus = CpuManager(kubelet, machine, usage) if kubelet.static_cpus else None
        self.memory = MemoryManager(machine, usage) if kubelet.static_memory else None

    def merged(self, ask: Callable[[bool], list[Hints]]) -> Affinity | None:
        """Returns the NUMA nodes by the hints that `ask` returns: of those that are preferred, which mostly are few; of
        all only where a policy makes do with others."""
        found = merge_preferred(ask(True), self.kubelet, self.machine)
        if found is None and self.kubelet.policy == BEST_EFFORT:
            return merge(ask(False), self.kubelet, self.machine)
        return found

    def hints(self, container: ContainerDemand, preferred_only: bool = False) -> list[Hints]:
        return [
            *self.devices.hints(container.devices, reuse=True, preferred_only=preferred_only),
            self.cpus.hints(container.cpus, preferred_only=preferred_only) if self.cpus else None,
            *(self.memory.hints(container.memory, preferred_only=preferred_only) if self.memory else ()),
        ]

    def hints_of_pod(self, demand: PodDemand, preferred_only: bool = False) -> list[Hints]:
        return [
            *self.devices.hints(demand.devices, reuse=False, preferred_only=preferred_only),
            self.cpus.hints(demand.cpus, preferred_only=preferred_only) if self.cpus else None,
            *(self.memory.hints(demand.memory, preferred_only=preferred_only) if self.memory else ()),
        ]

    def allocate(self, container: ContainerDemand, affinity: Affinity | None) -> Allocation:
        told = affinity or _ANYWHERE
        devices = self.devices.allocate(container, told.zones)
        cpus = self.cpus.allocate(container, told.zones) if self.cpus else 0
        blocks = self.memory.allocate(container, told) if self.memory else ()
        return Allocation(affinity, cpus, tuple(blocks), devices)


def _no_affinity(container: str, made: dict[str, Allocation]) -> Admission:
    message = "Resources cannot be allocated with Topology locality"
    return Admission(TOPOLOGY, message, container=container, containers=made)
