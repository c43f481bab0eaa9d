"""What `kubenexus explain` says about NUMA nodes."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.explain.explanation import explain, render_text
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.api.numa.builders import GPU, Row, a_numa_pod, an_nrt, guaranteed

GI = 1 << 30


def a_cluster(*zones: dict[str, Row], policy: str = "single-numa-node", gpus: int = 4) -> Ledger:
    ledger = a_ledger([a_node("n", cpu=32, memory="64Gi", resources={GPU: gpus} if gpus else {})])
    ledger.upsert_node_topology(an_nrt(zones, policy))
    ledger.read_devices()
    return ledger


def lines(pod: Pod, ledger: Ledger) -> list[str]:
    found = explain(pod, {pod.key: pod}, ledger, Planner(profile_plugins(shipped_profile())), 0.0)
    text = render_text(found).splitlines()
    assert msgspec.json.encode(found)
    return [line for line in text if line.startswith(("NUMA ", "         "))]


SIX: dict[str, Row] = {"cpu": (8, 8, 6), GPU: (2, 2, 2)}
EIGHT: dict[str, Row] = {"cpu": (8, 8, 8), GPU: (2, 2, 1)}


@pytest.mark.parametrize(
    ("pod", "ledger", "said"),
    [
        pytest.param(
            a_numa_pod(guaranteed("main", "8", "1Gi", 2)),
            a_cluster(SIX, EIGHT),
            [
                "NUMA     n (single-numa-node, container scope): TopologyAffinityError: "
                "8 cores and 2 GPUs: NUMA 0 has 6 cores, NUMA 1 has 1 GPU",
                "         NUMA 0: 6 cores of 8, 2 GPUs of 2",
                "         NUMA 1: 8 cores of 8, 1 GPU of 2",
            ],
            id="why not: what each NUMA node lacks",
        ),
        pytest.param(
            a_numa_pod(guaranteed("main", "7", "1Gi", 1)),
            a_cluster(SIX, EIGHT),
            [
                "NUMA     n (single-numa-node, container scope): would get NUMA 1",
                "         NUMA 0: 6 cores of 8, 2 GPUs of 2",
                "         NUMA 1: 8 cores of 8, 1 GPU of 2",
            ],
            id="what it would get",
        ),
        pytest.param(
            a_numa_pod(guaranteed("main", "1", "9Gi")),
            a_cluster({"memory": (16 * GI, 16 * GI, 4 * GI)}, {"memory": (16 * GI, 16 * GI, 8 * GI)}, gpus=0),
            [
                "NUMA     n (single-numa-node, container scope): TopologyAffinityError: "
                "9Gi of memory: NUMA 0 has 4Gi of memory, NUMA 1 has 8Gi of memory",
                "         NUMA 0: 4Gi of memory of 16Gi",
                "         NUMA 1: 8Gi of memory of 16Gi",
            ],
            id="memory",
        ),
        pytest.param(
            a_numa_pod(guaranteed("main", "2")),
            a_cluster({"cpu": (8, 8, 8)}, {"cpu": (8, 8, 8)}, policy="none", gpus=0),
            [
                "NUMA     n (none, container scope): any NUMA nodes",
                "         NUMA 0: 8 cores of 8",
                "         NUMA 1: 8 cores of 8",
            ],
            id="a kubelet that aligns nothing",
        ),
    ],
)
def test_the_lines_about_numa(pod: Pod, ledger: Ledger, said: list[str]) -> None:
    assert lines(pod, ledger) == said


def test_nothing_is_said_for_pods_that_ask_nothing_and_nodes_that_report_nothing() -> None:
    assert lines(a_pod("p", cpu=1), a_cluster(SIX, EIGHT)) == []
    assert lines(a_numa_pod(guaranteed("main", "2")), a_ledger([a_node("n", cpu=8)])) == []


@pytest.mark.parametrize(
    ("zones", "problem"),
    [
        pytest.param([SIX] * 300, "300 zones, of at most 256", id="more zones than are read"),
        pytest.param([SIX] * 9, "9 NUMA nodes, of at most 8", id="more NUMA nodes than a kubelet aligns"),
        pytest.param([{"cpu": (5000, 5000, 5000)}], "5000 CPUs, of at most 4096", id="more CPUs than any machine has"),
        pytest.param([{GPU: (600, 600, 600)}], f"600 devices of {GPU}, of at most 512", id="too many of one device"),
        pytest.param(
            [{f"x.io/{number}": (500, 500, 500) for number in range(5)}],
            "more than 2048 devices",
            id="too many devices in all",
        ),
        pytest.param([], "no NUMA nodes", id="no zones"),
    ],
)
def test_a_report_that_tells_nothing_is_named(zones: list[dict[str, Row]], problem: str) -> None:
    ledger = a_cluster(*zones, gpus=0)
    assert lines(a_numa_pod(guaranteed("main", "2")), ledger) == [
        "NUMA     n: unknown",
        f"         its NodeResourceTopology cannot be used ({problem}): its kubelet is not predicted",
    ]
    ledger.upsert_node_topology(an_nrt([SIX, SIX]))
    ledger.read_devices()
    assert lines(a_numa_pod(guaranteed("main", "2")), ledger)[0].endswith("would get NUMA 0")


def test_two_zones_of_one_number_tell_nothing() -> None:
    nrt = an_nrt([SIX, SIX])
    ledger = a_ledger([a_node("n", cpu=32)])
    ledger.upsert_node_topology(msgspec.structs.replace(nrt, zones=[nrt.zones[0], nrt.zones[0]]))
    ledger.read_devices()
    assert "several zones for one NUMA node" in lines(a_numa_pod(guaranteed("main", "2")), ledger)[-1]


def test_a_node_without_a_report_among_others_is_unknown() -> None:
    ledger = a_ledger([a_node("n", cpu=1), a_node("other", cpu=32)])
    ledger.upsert_node_topology(an_nrt([{"cpu": (1, 1, 1)}]))
    ledger.read_devices()
    assert lines(a_numa_pod(guaranteed("main", "2")), ledger) == [
        "NUMA     other: unknown",
        "         it has no NodeResourceTopology: its kubelet is not predicted",
    ]


def test_it_is_said_when_a_kubelet_has_disagreed() -> None:
    ledger = a_cluster(SIX, EIGHT)
    ledger.contradict_numa("n")
    assert lines(a_numa_pod(guaranteed("main", "2")), ledger)[-1] == (
        "         its kubelet has refused a pod that was expected to fit: not certain until its next report"
    )


def test_numa_nodes_by_labels_predict_no_kubelet() -> None:
    labels = {"numa.kubenexus.io/node-count": "2"} | {
        f"numa.kubenexus.io/node-{zone}-cpu-count": "8" for zone in (0, 1)
    }
    ledger = a_ledger([a_node("n", cpu=16, labels=labels)])
    ledger.read_devices()
    assert lines(a_numa_pod(guaranteed("main", "4")), ledger) == [
        "NUMA     n (by its labels): any NUMA nodes",
        "         NUMA 0: 8 cores of 8",
        "         NUMA 1: 8 cores of 8",
        "         it has no NodeResourceTopology: its kubelet is not predicted",
    ]
