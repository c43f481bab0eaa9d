"""The node of a case as its own managers see it."""

from kubenexus.api.numa.machine import CpuLayout, Device, Kubelet, Machine, NumaNode, Usage, union
from kubenexus.api.resources import footprint
from kubenexus.testing.numa_oracle.cases import Case, RecordedKubelet, RecordedMachine

_TRUE = "true"


def node_from_state(case: Case) -> NumaNode:
    """Returns the node with the exact state of its managers."""
    kubelet = kubelet_of(case.kubelet)
    machine = _machine(case, kubelet)
    state = case.state.numa
    usage = Usage(
        union(cpu_set(zone.free_cpus) for zone in state),
        {kind: [zone.memory[kind].free if kind in zone.memory else 0 for zone in state] for kind in machine.memory},
        [zone_set(zone.group) if zone.group else 1 << index for index, zone in enumerate(state)],
        [zone.assignments for zone in state],
        _free_devices(case),
    )
    return NumaNode(kubelet, machine, usage, case.node, used_by_pods(case), len(case.pods or ()))


def used_by_pods(case: Case) -> dict[str, int]:
    """Returns what the pods of the node request, in the units of a scheduler."""
    used: dict[str, int] = {}
    for pod in case.pods or ():
        for name, amount in footprint(pod).amounts:
            used[name] = used.get(name, 0) + amount
    return used


def kubelet_of(recorded: RecordedKubelet) -> Kubelet:
    topology = recorded.topology_manager_policy_options or {}
    cpu = recorded.cpu_manager_policy_options or {}
    return Kubelet(
        policy=recorded.topology_manager_policy,
        pod_scope=recorded.topology_manager_scope == "pod",
        prefer_closest=topology.get("prefer-closest-numa-nodes") == _TRUE,
        static_cpus=recorded.cpu_manager_policy == "static",
        full_cores_only=cpu.get("full-pcpus-only") == _TRUE,
        spread_cpus=cpu.get("distribute-cpus-across-numa") == _TRUE,
        align_caches=cpu.get("prefer-align-cpus-by-uncorecache") == _TRUE,
        static_memory=recorded.memory_manager_policy == "Static",
    )


def cpu_set(text: str) -> int:
    """Returns the CPUs of a list such as `0-3,8`."""
    total = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        total |= sum(1 << cpu for cpu in range(int(first), int(last or first) + 1))
    return total


def zone_set(zones: list[int]) -> int:
    return sum(1 << zone for zone in zones)


def _machine(case: Case, kubelet: Kubelet) -> Machine:
    state = case.state.numa
    types = sorted({kind for zone in state for kind in zone.memory})
    return Machine(
        cpu_layout(case.machine),
        union(cpu_set(zone.reserved_cpus) for zone in state),
        tuple(tuple(zone.distances) for zone in case.machine.numa),
        {
            kind: tuple(zone.memory[kind].allocatable if kind in zone.memory else 0 for zone in state)
            for kind in types
            if kubelet.static_memory
        },
        {
            resource: tuple(Device(zone_set(each.numa or []), not each.unhealthy) for each in devices)
            for resource, devices in case.machine.devices.items()
        },
    )


def cpu_layout(machine: RecordedMachine) -> CpuLayout:
    sockets: dict[int, int] = {}
    caches: dict[int, int] = {}
    cores: list[int] = []
    numa: list[int] = []
    for zone in machine.numa:
        inside = [sum(1 << cpu for cpu in core) for core in zone.cores or ()]
        cores += inside
        numa.append(union(inside))
        sockets[zone.socket] = sockets.get(zone.socket, 0) | numa[-1]
        for cache, core in zip(zone.uncore or (), inside, strict=False):
            caches[cache] = caches.get(cache, 0) | core
    cores.sort(key=lambda core: core & -core)
    by_id = (tuple(places[number] for number in sorted(places)) for places in (sockets, caches))
    return CpuLayout(tuple(numa), next(by_id), tuple(cores), next(by_id))


def _free_devices(case: Case) -> dict[str, int]:
    """Returns the healthy devices that no container has. The zones of the state leave out devices without topology."""
    taken = {
        (resource, name)
        for containers in (case.state.containers or {}).values()
        for allocation in containers.values()
        for resource, names in (allocation.devices or {}).items()
        for name in names
    }
    return {
        resource: sum(
            1 << index for index, each in enumerate(devices) if not each.unhealthy and (resource, each.id) not in taken
        )
        for resource, devices in case.machine.devices.items()
    }
