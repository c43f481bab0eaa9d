"""NUMA nodes by the labels and annotations of a node that has no NodeResourceTopology."""

import pytest

from kubenexus.api.numa.labelled_node import labelled_bandwidths, labelled_topology
from kubenexus.testing.builders import a_node
from kubenexus.testing.harness import Run, a_ledger
from tests.api.numa.builders import GPU, a_numa_pod, an_nrt, guaranteed
from tests.plugins.numa.numa_cluster import a_run

PREFIX = "numa.kubenexus.io/"
POLICY = "numa.scheduling.kubenexus.io/policy"


def named(labels: dict[str, str], annotations: dict[str, str] | None = None) -> list[dict[str, str]]:
    """What each NUMA node has."""
    ours = [{f"{PREFIX}{key}": text for key, text in texts.items()} for texts in (labels, annotations or {})]
    return [{each.name: str(each.available) for each in zone.resources} for zone in labelled_topology(*ours).zones]


@pytest.mark.parametrize(
    ("labels", "annotations", "zones"),
    [
        pytest.param({"node-count": "1", "node-0-cpus": "0-15_32-47"}, {}, [{"cpu": "32"}], id="a list in a label"),
        pytest.param({"node-count": "1"}, {"node-0-cpus": "0-15,32-47"}, [{"cpu": "32"}], id="a list, an annotation"),
        pytest.param({"node-count": "1", "node-0-cpu-count": "48"}, {}, [{"cpu": "48"}], id="only the number"),
        pytest.param(
            {"node-count": "1", "node-0-cpus": "0-7", "node-0-memory": "64Gi"},
            {},
            [{"cpu": "8", "memory": str(64 << 30)}],
            id="memory is a quantity",
        ),
        pytest.param({"node-count": "2", "node-0-cpus": "0-7"}, {}, [], id="one of two is not named: nothing is known"),
        pytest.param({"node-count": "9"}, {}, [], id="more than a kubelet can align"),
        pytest.param({"node-0-cpus": "0-7"}, {}, [], id="their number is not named"),
        pytest.param({"node-count": "1", "node-0-cpus": "many"}, {}, [], id="no list"),
    ],
)
def test_what_labels_and_annotations_name(
    labels: dict[str, str], annotations: dict[str, str], zones: list[dict[str, str]]
) -> None:
    assert named(labels, annotations) == zones


def labelled_run(**more: str) -> Run:
    """A node of two NUMA nodes with eight CPUs, 32 GiB and two GPUs each."""
    labels = {f"{PREFIX}node-count": "2", **{f"gpu.kubenexus.io/numa-node-{gpu}": str(gpu // 2) for gpu in range(4)}}
    for zone in (0, 1):
        labels |= {f"{PREFIX}node-{zone}-cpus": f"{8 * zone}-{8 * zone + 7}", f"{PREFIX}node-{zone}-memory": "32Gi"}
    node = a_node("n", cpu=16, memory="64Gi", resources={GPU: 4}, labels=labels | more)
    ledger = a_ledger([node])
    ledger.read_devices()
    return Run(ledger, a_run(an_nrt([{"cpu": (8, 8, 8)}])).planner, {})


def placed(run: Run, name: str, cpu: str, memory: str = "1Gi", gpus: int = 0, policy: str = "") -> bool:
    notes = {POLICY: policy} if policy else {}
    pod = a_numa_pod(guaranteed("main", cpu, memory, gpus), name=name, annotations=notes)
    return name in run.then([pod]).placements


def test_they_count_for_the_policy_of_a_pod_but_predict_no_kubelet() -> None:
    run = labelled_run()
    assert not placed(run, "wide", "9", policy="single-numa-node")
    assert placed(run, "anywhere", "9")


def test_pods_on_the_node_are_subtracted() -> None:
    run = labelled_run()
    assert placed(run, "a", "5", policy="single-numa-node")
    assert placed(run, "b", "5", policy="single-numa-node")
    assert not placed(run, "c", "5", policy="single-numa-node")
    run.ledger.remove_pod("default/a")
    assert placed(run, "d", "5", policy="single-numa-node")


def test_gpus_in_use_do_not_count() -> None:
    run = labelled_run()
    assert placed(run, "a", "1", gpus=1, policy="single-numa-node")
    assert placed(run, "b", "1", gpus=2, policy="single-numa-node")
    assert not placed(run, "c", "1", gpus=2, policy="single-numa-node")


def test_a_report_goes_before_labels_and_they_count_again_without_it() -> None:
    run = labelled_run()
    run.ledger.upsert_node_topology(an_nrt([{"cpu": (16, 16, 16)}], "none"))
    run.ledger.read_devices()
    assert placed(run, "wide", "9", policy="single-numa-node")
    run.ledger.remove_pod("default/wide")
    run.ledger.remove_node_topology("n")
    run.ledger.read_devices()
    assert not placed(run, "again", "9", policy="single-numa-node")


def test_labels_that_change_count_at_once() -> None:
    run = labelled_run()
    node = a_node("n", cpu=16, memory="64Gi", resources={GPU: 4})
    run.ledger.upsert_node(node)
    run.ledger.read_devices()
    assert placed(run, "wide", "9", policy="single-numa-node")


@pytest.mark.parametrize(
    ("text", "report", "reading"),
    [
        pytest.param("102400", True, 102400, id="beside a report, which never has it"),
        pytest.param("102400", False, 102400, id="on a node that has only labels"),
        pytest.param("0", True, 0, id="0 is not known"),
        pytest.param("-5", True, 0, id="a negative one is not known"),
        pytest.param("fast", True, 0, id="what is no number is not known"),
        pytest.param("9" * 19, True, 0, id="one beyond int64 is not known"),
    ],
)
def test_the_memory_bandwidth_of_a_numa_node_is_read_from_the_labels_of_its_node(
    text: str, report: bool, reading: int
) -> None:
    labels = {f"{PREFIX}node-count": "1", f"{PREFIX}node-0-cpus": "0-7", f"{PREFIX}node-0-bandwidth": text}
    ledger = a_ledger([a_node("n", cpu=8)])
    if report:
        ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 8)}], name="n"))
    ledger.read_devices()
    ledger.upsert_node(a_node("n", cpu=8, labels=labels))
    numa = ledger.nodes.numa
    (code,) = numa.codes_of(ledger.nodes.row_of["n"])
    assert numa.states.states[code].bandwidth == reading


def test_bandwidths_that_too_many_keys_name_are_not_read() -> None:
    assert labelled_bandwidths({f"{PREFIX}node-{zone}-bandwidth": "1" for zone in range(300)}, {}) == {}
