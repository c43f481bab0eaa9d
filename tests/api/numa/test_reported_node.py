"""What is read from a NodeResourceTopology, and what is found that it hides."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.api.numa.admission import admit
from kubenexus.api.numa.machine import NumaNode
from kubenexus.api.numa.pod_demand import pod_demand, qos_class
from kubenexus.api.numa.reported_node import KubeletOptions, ReportedNode, Totals, reported_node
from kubenexus.base.errors import Malformed
from tests.api.numa.builders import GPU, Row, a_numa_node, a_numa_pod, an_nrt, guaranteed

GI = 1 << 30
EIGHT: Row = (8, 8, 8)


def seen(
    *args: object, pods: tuple[Pod, ...] = (), options: KubeletOptions | None = None, **nrt: object
) -> ReportedNode:
    demands = [pod_demand(pod) for pod in pods]
    found = reported_node(an_nrt(*args, **nrt), Totals(), demands, options or KubeletOptions())  # type: ignore[arg-type]
    assert found is not None
    return found


def free_cpus(found: ReportedNode) -> list[int]:
    return [(cpus & found.usage.cpus).bit_count() for cpus in found.machine.cpus.numa]


def test_amounts_become_a_machine() -> None:
    found = seen([{"cpu": (8, 7, 5), "memory": (16 * GI, 15 * GI, 9 * GI), GPU: (4, 4, 1)}, {"cpu": EIGHT}])
    assert free_cpus(found) == [5, 8]
    assert found.machine.reserved.bit_count() == 1
    assert found.usage.memory == {"memory": [9 * GI, 0]}
    assert found.machine.memory == {"memory": (15 * GI, 0)}
    assert found.usage.devices[GPU].bit_count() == 1
    assert found.kubelet.static_cpus
    assert found.kubelet.static_memory
    assert found.machine.distances == ((10, 21), (21, 10))


def test_without_allocatable_cpu_no_cpu_is_pinned() -> None:
    found = seen([{"cpu": (8, 0, 0)}, {"cpu": (8, 0, 0)}])
    assert not found.kubelet.static_cpus
    assert not found.kubelet.static_memory


@pytest.mark.parametrize(
    ("policy", "scope", "old", "expected"),
    [
        pytest.param("restricted", "pod", [], ("restricted", True), id="attributes"),
        pytest.param("", "", ["SingleNUMANodePodLevel"], ("single-numa-node", True), id="the deprecated list"),
        pytest.param("best-effort", "container", ["RestrictedPodLevel"], ("best-effort", False), id="attributes first"),
        pytest.param("sideways", "", ["BestEffort"], ("best-effort", False), id="an unknown attribute is no policy"),
        pytest.param("", "", ["Sideways"], ("none", False), id="nothing known is none"),
    ],
)
def test_the_policy_of_the_kubelet(policy: str, scope: str, old: list[str], expected: tuple[str, bool]) -> None:
    nrt = an_nrt([{"cpu": EIGHT}], policy, scope, topology_policies=old)
    if not scope:
        nrt = msgspec.structs.replace(nrt, attributes=nrt.attributes[:1])
    found = reported_node(nrt, Totals())
    assert found is not None
    assert (found.kubelet.policy, found.kubelet.pod_scope) == expected


@pytest.mark.parametrize("count", [0, 9])
def test_no_zones_or_more_than_a_kubelet_handles_tell_nothing(count: int) -> None:
    assert reported_node(an_nrt([{"cpu": EIGHT}] * count), Totals()) is None


@pytest.mark.parametrize("zone", [{"cpu": (5000, 5000, 1)}, {GPU: (600, 600, 1)}], ids=["CPUs", "devices"])
def test_a_zone_beyond_any_machine_is_refused(zone: dict[str, Row]) -> None:
    with pytest.raises(Malformed):
        reported_node(an_nrt([zone]), Totals())


FULL = KubeletOptions(full_cores_only=True)


@pytest.mark.parametrize(
    ("zones", "pods", "threads"),
    [
        pytest.param([{"cpu": (8, 8, 6)}] * 2, (), 2, id="even numbers in use"),
        pytest.param([{"cpu": (8, 8, 5)}] * 2, (), 1, id="an odd number in use"),
        pytest.param([{"cpu": (8, 7, 7)}] * 2, (), 1, id="single CPUs reserved on two NUMA nodes"),
        pytest.param([{"cpu": (8, 7, 7)}, {"cpu": EIGHT}], (), 2, id="a single CPU reserved"),
        pytest.param(
            [{"cpu": (8, 8, 2)}, {"cpu": EIGHT}],
            (a_numa_pod(guaranteed("a", "3"), guaranteed("b", "3")),),
            1,
            id="containers of three CPUs",
        ),
    ],
)
def test_the_size_of_cores_is_concluded(zones: list[dict[str, Row]], pods: tuple[Pod, ...], threads: int) -> None:
    assert seen(zones, pods=pods, options=FULL).machine.cpus.threads == threads


def test_what_is_told_about_cores_goes_first() -> None:
    options = KubeletOptions(full_cores_only=True, threads=4)
    assert seen([{"cpu": (8, 8, 5)}], options=options).machine.cpus.threads == 4


def test_unhealthy_devices_and_devices_without_a_numa_node_are_counted() -> None:
    totals = Totals({GPU: 6}, {GPU: 5}, {GPU: 2})
    found = reported_node(an_nrt([{GPU: (2, 2, 1)}, {GPU: (1, 1, 1)}]), totals)
    assert found is not None
    assert [(device.numa, device.healthy) for device in found.machine.devices[GPU]] == [
        (1, True),
        (1, True),
        (2, True),
        (0, True),
        (0, True),
        (2, False),
    ]
    assert found.usage.devices[GPU] == 0b010110  # one of those without a NUMA node is in use, too


INIT = a_numa_pod(guaranteed("app", "2", "2Gi"), init=[guaranteed("init", "6", "4Gi")])


def test_cpus_of_a_finished_init_container_stay_taken() -> None:
    found = seen([{"cpu": (8, 8, 6)}, {"cpu": EIGHT}], pods=(INIT,))
    assert free_cpus(found) == [2, 8]


def test_they_are_found_where_the_pod_went_because_of_pods_that_have_left() -> None:
    found = seen([{"cpu": EIGHT}, {"cpu": (8, 8, 6)}], pods=(INIT,))
    assert free_cpus(found) == [8, 2]


WIDE = a_numa_pod(guaranteed("app", "2", "20Gi"))


def test_memory_over_two_numa_nodes_ties_them_together() -> None:
    amounts: list[dict[str, Row]] = [{"memory": (16 * GI, 16 * GI, 0)}, {"memory": (16 * GI, 16 * GI, 12 * GI)}]
    found = seen([*amounts, {"memory": (16 * GI, 16 * GI, 16 * GI)}], "restricted", pods=(WIDE,))
    assert found.usage.groups == [3, 3, 4]
    assert [bool(blocks) for blocks in found.usage.blocks] == [True, True, False]
    node = NumaNode(found.kubelet, found.machine, found.usage, a_numa_node(cpu=64, memory="96Gi"))
    assert not admit(a_numa_pod(guaranteed("app", "1", "18Gi")), node).admitted  # 1 and 2 cannot be a group
    assert admit(a_numa_pod(guaranteed("app", "1", "12Gi")), node).admitted


def test_what_no_pods_explain_is_taken_for_memory_of_single_numa_nodes() -> None:
    found = seen([{"memory": (16 * GI, 16 * GI, 9 * GI)}] * 2, "restricted", pods=(WIDE,))
    assert found.usage.groups == [1, 2]
    assert found.usage.blocks == [1, 1]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_numa_pod(guaranteed()), "Guaranteed"),
        (a_numa_pod(guaranteed(cpu="0")), "Burstable"),
        (a_numa_pod(msgspec.structs.replace(guaranteed(), resources=type(guaranteed().resources)())), "BestEffort"),
    ],
)
def test_the_qos_class(pod: Pod, expected: str) -> None:
    assert qos_class(pod) == expected
