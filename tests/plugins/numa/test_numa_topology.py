"""NUMATopology: nodes whose kubelet would refuse a pod are refused, and a pod's own policy is kept."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.api.numa.builders import GPU, Row, a_numa_pod, an_nrt, guaranteed
from tests.plugins.numa.numa_cluster import EIGHT, GI, PROFILE, a_run

NO_ALIGNMENT = "node(s) didn't have NUMA nodes that the kubelet could align the pod on"
NOT_KEPT = "node(s) couldn't keep the pod's NUMA policy"


def pod(name: str, cpu: str = "1", memory: str = "1Gi", gpu: int = 0, **annotations: str) -> Pod:
    said = {f"numa.scheduling.kubenexus.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return a_numa_pod(guaranteed("main", cpu, memory, gpu), name=name, annotations=said)


def free_cpus(ledger: Ledger, node: str = "n") -> list[int]:
    here = ledger.nodes.numa.of_row(ledger.nodes.row_of[node])
    assert here is not None
    return [(cpus & here.usage.cpus).bit_count() for cpus in here.reported.machine.cpus.numa]


@pytest.mark.parametrize(
    ("policy", "cpu", "placed"),
    [
        pytest.param("single-numa-node", "6", True, id="single: one NUMA node has six"),
        pytest.param("single-numa-node", "7", False, id="single: none has seven, though eleven are free"),
        pytest.param("restricted", "7", False, id="restricted: seven would do on one empty NUMA node"),
        pytest.param("restricted", "9", True, id="restricted: nine need two in any case"),
        pytest.param("best-effort", "7", True, id="best-effort: any"),
        pytest.param("none", "11", True, id="none: any"),
        pytest.param("single-numa-node", "7500m", True, id="a fraction of a CPU is not pinned"),
    ],
)
def test_a_node_is_refused_if_its_kubelet_would_refuse(policy: str, cpu: str, placed: bool) -> None:
    run = a_run(an_nrt([{"cpu": (8, 8, 5)}, {"cpu": (8, 8, 6)}], policy)).then([pod("p", cpu)])
    assert ("p" in run.placements) is placed
    if not placed:
        assert run.refusals["p"].startswith(f"0/1 nodes are available: 1 {NO_ALIGNMENT}.")


def test_nodes_without_a_report_are_not_refused() -> None:
    run = a_run(an_nrt([{"cpu": (8, 8, 1)}] * 2), others=1).then([pod("p", "8")])
    assert run.placements == {"p": "other-0"}


def test_pods_that_the_report_has_not_seen_are_counted() -> None:
    run = a_run(an_nrt([{"cpu": EIGHT}] * 2))
    first = run.then([pod("a", "5"), pod("b", "5"), pod("c", "5")])
    assert first.placements == {"a": "n", "b": "n"}
    assert free_cpus(run.ledger) == [3, 3]
    assert list(first.refusals) == ["c"]
    run.ledger.remove_pod("default/a")
    assert free_cpus(run.ledger) == [8, 3]
    assert run.then([pod("d", "5")]).placements == {"d": "n"}


def test_a_pod_that_fails_to_bind_leaves_nothing_taken() -> None:
    run = a_run(an_nrt([{"cpu": EIGHT}] * 2))
    run.then([pod("a", "5")])
    run.ledger.forget("default/a")
    assert free_cpus(run.ledger) == [8, 8]


def started(of: Pod, node: str = "n") -> Pod:
    spec = msgspec.structs.replace(of.spec, node_name=node)
    status = msgspec.structs.replace(of.status, start_time="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(of, spec=spec, status=status)


def test_the_next_report_counts_pods_that_have_started() -> None:
    run = a_run(an_nrt([{"cpu": EIGHT}] * 2))
    run.then([pod("a", "5"), pod("b", "5")])
    run.ledger.upsert_pod(started(pod("a", "5")))
    assert free_cpus(run.ledger) == [3, 3]
    run.ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 3)}, {"cpu": EIGHT}]))
    run.ledger.read_devices()
    assert free_cpus(run.ledger) == [3, 3]  # b is not in the report yet
    run.ledger.remove_pod("default/a")  # what it held is known, since it explains the report
    assert free_cpus(run.ledger) == [8, 3]
    run.ledger.remove_node_topology("n")
    run.ledger.read_devices()
    assert not run.ledger.nodes.numa.any


def test_pods_that_do_not_explain_the_report_stay_counted_until_the_next() -> None:
    run = a_run(an_nrt([{"cpu": EIGHT}] * 2))
    run.ledger.upsert_pod(started(pod("a", "5")))
    run.ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 1)}, {"cpu": EIGHT}]))
    run.ledger.read_devices()
    run.ledger.remove_pod("default/a")
    assert free_cpus(run.ledger) == [1, 8]


def test_containers_are_judged_one_after_the_other_on_the_chosen_node() -> None:
    two = a_numa_pod(guaranteed("a", "5"), guaranteed("b", "5"), name="two")
    run = a_run(an_nrt([{"cpu": EIGHT}, {"cpu": (8, 8, 4)}]), others=1)
    assert run.then([two]).placements == {"two": "other-0"}


def test_devices_and_memory_count() -> None:
    zone: dict[str, Row] = {"cpu": EIGHT, "memory": (32 * GI, 32 * GI, 4 * GI), GPU: (2, 2, 1)}
    run = a_run(an_nrt([zone, zone]), gpus=4)
    found = run.then([pod("gpus", "2", "1Gi", 2), pod("memory", "2", "9Gi"), pod("both", "2", "3Gi", 1)])
    assert found.placements == {"both": "n"}
    assert NO_ALIGNMENT in found.refusals["gpus"]
    assert "node(s) didn't have the exclusive CPUs, memory or devices" in found.refusals["memory"]


@pytest.mark.parametrize(
    ("policy", "cpu", "zones", "placed"),
    [
        ("single-numa", "6", [(8, 8, 6), (8, 8, 2)], True),
        ("SingleNUMANodePodLevel", "7", [(8, 8, 6), (8, 8, 6)], False),
        ("preferred", "7", [(8, 8, 6), (8, 8, 6)], True),
        ("restricted", "7", [(8, 8, 6), (8, 8, 6)], False),
        ("restricted", "10", [(8, 8, 6), (8, 8, 6)], True),
        ("exclusive", "2", [(8, 8, 7), (8, 8, 7)], False),
        ("isolated", "2", [(8, 8, 7), (8, 7, 7)], True),
        ("disabled", "7", [(8, 8, 6), (8, 8, 6)], True),
    ],
)
def test_the_policy_of_a_pod_is_kept_where_the_kubelet_has_none(
    policy: str, cpu: str, zones: list[Row], placed: bool
) -> None:
    run = a_run(an_nrt([{"cpu": zone} for zone in zones], "none")).then([pod("p", cpu, policy=policy)])
    assert ("p" in run.placements) is placed
    assert placed or NOT_KEPT in run.refusals["p"]


def test_numa_nodes_to_avoid_are_refused_under_a_strict_policy() -> None:
    avoiding = a_numa_pod(
        guaranteed("main", "6"),
        name="p",
        annotations={
            "scheduling.kubenexus.io/numa-policy": "single-numa-node",
            "scheduling.kubenexus.io/numa-anti-affinity-node-id": "0, x, 7",
        },
    )
    assert "p" in a_run(an_nrt([{"cpu": EIGHT}, {"cpu": EIGHT}], "none")).then([avoiding]).placements
    assert "p" in a_run(an_nrt([{"cpu": EIGHT}, {"cpu": (8, 8, 5)}], "none")).then([avoiding]).refusals


def test_only_the_resources_that_are_named_are_bound_together() -> None:
    zones: list[dict[str, Row]] = [{"cpu": (8, 8, 2), GPU: (2, 2, 2)}, {"cpu": EIGHT, GPU: (2, 2, 0)}]
    all_of_them = pod("all", "6", gpu=2, policy="single-numa-node")
    devices = pod("gpus", "6", gpu=2, policy="single-numa-node", resources=GPU)
    run = a_run(an_nrt(zones, "none"), gpus=4).then([all_of_them, devices])
    assert run.placements == {"gpus": "n"}


def test_a_batch_job_is_kept_on_one_numa_node_unless_it_is_larger_than_any() -> None:
    labels = {"workload.kubenexus.io/type": "batch"}
    small, large = (a_numa_pod(guaranteed("main", cpu), name=f"cpu-{cpu}", labels=labels) for cpu in ("7", "10"))
    run = a_run(an_nrt([{"cpu": (8, 8, 6)}] * 2, "none")).then([small, large])
    assert list(run.placements) == ["cpu-10"]


def test_of_two_nodes_the_one_is_chosen_where_one_numa_node_is_enough() -> None:
    split = an_nrt([{"cpu": (8, 8, 5)}, {"cpu": (8, 8, 6)}], "best-effort", name="split")
    whole = an_nrt([{"cpu": EIGHT}, {"cpu": (8, 8, 3)}], "best-effort", name="whole")
    assert a_run(split, whole).then([pod("p", "7")]).placements == {"p": "whole"}


def test_a_gang_is_counted_by_numa_node() -> None:
    zones: list[dict[str, Row]] = [{"cpu": EIGHT, GPU: (4, 4, 3)}, {"cpu": EIGHT, GPU: (4, 4, 2)}]
    run = a_run(*(an_nrt(zones, name=f"n{number}") for number in range(4)), gpus=8)
    members = tuple(pod(f"m{number}", "4", gpu=1) for number in range(16))
    found = run.then([Job("default/gang", members, minimum=16)])
    assert sorted(found.placements.values()) == sorted(f"n{number % 4}" for number in range(16))
    assert free_cpus(run.ledger, "n0") == [0, 0]


def test_pods_that_ask_nothing_are_not_signed() -> None:
    plugin = next(each for each in profile_plugins(PROFILE).signs if each.name == "NUMATopology")
    without, having = a_run(others=1).ledger.nodes, a_run(an_nrt([{"cpu": EIGHT}])).ledger.nodes
    assert plugin.sign(pod("p", "2"), without) is None
    assert plugin.sign(pod("p", "2"), having) is not None
    assert plugin.sign(a_pod("web", cpu="500m"), having) is None


def test_a_ledger_that_no_plugin_needs_numa_nodes_of_reads_none() -> None:
    ledger = Ledger(reads_numa=False)
    ledger.upsert_node(a_node("n", cpu=16, memory="64Gi"))
    ledger.upsert_node_topology(an_nrt([{"cpu": EIGHT}]))
    ledger.read_devices()
    assert not ledger.nodes.numa.any
