"""Many nodes at once give what each gives alone: on recorded nodes, and on made-up ones."""

from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.numa.admission import admit_to_managers
from kubenexus.api.numa.machine import (
    POLICIES,
    CpuLayout,
    Device,
    Kubelet,
    Machine,
    NumaNode,
    Usage,
    idle,
    union,
)
from kubenexus.api.numa.many_nodes import (
    FITS,
    NO_AFFINITY,
    NO_WHOLE_CORES,
    NumaTable,
    countable,
    judge_rows,
    numa_table,
)
from kubenexus.api.numa.pod_demand import ContainerDemand, PodDemand, pod_demand
from kubenexus.api.numa.quick_judgement import refusals
from kubenexus.api.numa.refusal import SMT, TOPOLOGY, UNEXPECTED
from kubenexus.testing.numa_oracle.cases import recordings
from kubenexus.testing.numa_oracle.from_nrt import node_from_nrt
from tests.api.numa.builders import GPU

DATA = Path(__file__).parents[2] / "numa_oracle" / "data"
Nodes = list[tuple[Machine, Usage]]


def alone(container: ContainerDemand, kubelet: Kubelet, machine: Machine, usage: Usage) -> tuple[str, int | None]:
    pod = PodDemand((container,), container.cpus, container.memory, container.devices)
    said = admit_to_managers(pod, kubelet, machine, usage.copy())
    placed = said.containers.get(container.name)
    return said.reason, (placed.affinity.zones or 0) if placed and placed.affinity and said.admitted else 0


def reason_of(refusal: int) -> str:
    return {FITS: "", NO_AFFINITY: TOPOLOGY, NO_WHOLE_CORES: SMT}.get(refusal, UNEXPECTED)


def check(table: NumaTable, container: ContainerDemand, kubelet: Kubelet, nodes: Nodes) -> None:
    judged = judge_rows(container, table)
    assert refusals(container, table).tolist() == judged.refusals.tolist()
    for row, (machine, usage) in enumerate(nodes):
        reason, zones = alone(container, kubelet, machine, usage)
        assert reason_of(judged.refusals.item(row)) == reason
        if not reason:
            assert judged.affinity.item(row) == zones


def recorded() -> Iterator[tuple[NumaNode, list[ContainerDemand]]]:
    for _, entries in recordings([DATA]):
        for entry in entries[::4]:
            node = node_from_nrt(entry.case)
            if node is not None and countable(node.machine):
                yield node, [each for pod in entry.case.incoming for each in pod_demand(pod).containers]


def test_on_recorded_nodes() -> None:
    compared = 0
    for node, containers in recorded():
        nodes = [(node.machine, node.usage)]
        table = numa_table(node.kubelet, nodes)
        for container in containers:
            plain = ContainerDemand(container.name, False, False, container.cpus, container.memory, container.devices)
            check(table, plain, node.kubelet, nodes)
            compared += 1
    assert compared > 300


GI = 1 << 30
BLOCKS = [([1, 2, 4], [0, 0, 0]), ([1, 2, 4], [1, 0, 2]), ([3, 3, 4], [1, 1, 0]), ([1, 6, 6], [2, 1, 1])]
ZONES = 3


@st.composite
def machines(draw: st.DrawFn) -> tuple[Machine, Usage]:
    """A machine with three NUMA nodes of four CPUs and 8 GiB, partly in use."""
    numa = tuple(0xF << 4 * zone for zone in range(ZONES))
    cores = tuple(0x3 << cpu for cpu in range(0, 4 * ZONES, 2))
    reserved = draw(st.sampled_from([0, 1, 0x11]))
    devices = draw(st.lists(st.sampled_from([Device(1), Device(2), Device(4), Device(), Device(2, False)]), max_size=5))
    machine = Machine(
        CpuLayout(numa, numa, cores),
        reserved,
        draw(st.sampled_from([((10, 20, 20), (20, 10, 11), (20, 11, 10)), ((10,) * ZONES,) * ZONES])),
        {"memory": (8 * GI, 8 * GI, draw(st.sampled_from([8, 4])) * GI)},
        {GPU: tuple(devices)},
    )
    usage = idle(machine)
    usage.cpus &= draw(st.integers(0, 0xFFF))
    usage.memory["memory"] = [draw(st.integers(0, 8)) * GI for _ in range(ZONES)]
    usage.groups, usage.blocks = draw(
        st.sampled_from(
            [([1, 2, 4], [0, 0, 0]), ([1, 2, 4], [1, 0, 2]), ([3, 3, 4], [1, 1, 0]), ([1, 6, 6], [2, 1, 1])]
        )
    )
    usage.devices[GPU] &= draw(st.integers(0, 31))
    return machine, usage


@given(
    st.lists(machines(), min_size=1, max_size=4),
    st.sampled_from(POLICIES),
    st.tuples(*[st.booleans()] * 4),
    st.integers(0, 9),
    st.integers(0, 20),
    st.integers(0, 3),
)
def test_on_made_up_nodes(
    nodes: Nodes, policy: str, options: tuple[bool, ...], cpus: int, memory: int, gpus: int
) -> None:
    closest, static_cpus, full, static_memory = options
    kubelet = Kubelet(policy, False, closest, static_cpus, full, static_memory=static_memory)
    container = ContainerDemand(
        "main", cpus=cpus, memory=(("memory", memory * GI),) if memory else (), devices=((GPU, gpus),) if gpus else ()
    )
    check(numa_table(kubelet, nodes), container, kubelet, nodes)


@given(machines(), st.sampled_from(POLICIES), st.booleans(), st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_no_numa_node_gives_more_than_it_has(
    node: tuple[Machine, Usage], policy: str, pod_scope: bool, sizes: list[int]
) -> None:
    machine, usage = node
    kubelet = Kubelet(policy, pod_scope, static_cpus=True, static_memory=True)
    for size in sizes:
        before = usage.copy()
        containers = tuple(
            ContainerDemand(f"{part}", part == 0, False, cpus, (("memory", size % 7 * GI),), ((GPU, size % 2),))
            for part, cpus in enumerate((size % 3, size % 5, size // 10))
        )
        total = sum(each.cpus for each in containers[1:])
        pod = PodDemand(containers, max(total, containers[0].cpus), (("memory", 2 * (size % 7) * GI),), ((GPU, 2),))
        said = admit_to_managers(pod, kubelet, machine, usage)
        if not said.admitted:
            usage = before
            continue
        lasting = [said.containers[each.name] for each in containers[1:]]
        assert usage.cpus & union(each.cpus for each in said.containers.values()) == 0
        assert all(each.cpus & ~before.cpus == 0 for each in lasting)
        assert (
            sum(each.cpus.bit_count() for each in lasting) == union(each.cpus for each in lasting).bit_count() == total
        )
        assert all(0 <= left <= had for left, had in zip(usage.memory["memory"], before.memory["memory"], strict=True))
        assert usage.devices[GPU] & ~before.devices[GPU] == 0
