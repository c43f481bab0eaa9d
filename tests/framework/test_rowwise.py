"""A rule written for one node at a time gives the same answers as one written for all of them."""

from collections.abc import Iterable

import numpy as np
import pytest

from kubenexus.api.core import Taint
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.framework.extension_points import LOWER_IS_BETTER, Depends, Filter, Score
from kubenexus.framework.job import SINGLE_POD_VIEW
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.framework.registry import check_plugin
from kubenexus.framework.rowwise import NodeRow, ResourceAmounts, RowFilter, RowScore, rows
from kubenexus.framework.verdict import Code, NodeVerdict, Reason, ReasonTable
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import filtering, lineup_with, scheduled, scoring

OLD = Reason("node(s) ran an old kernel", Code.UNRESOLVABLE)
TIGHT = Reason("node(s) had under two cpus left")


class Careful(RowFilter):
    name = "Careful"

    def filter_one(self, pod: PodClass, node: NodeRow) -> Iterable[Reason]:
        if node.labels.get("kernel") == "old":
            yield OLD
        if node.free("cpu") < 2000:
            yield TIGHT


class Quiet(RowScore):
    name = "Quiet"
    normalize = LOWER_IS_BETTER

    def score_one(self, pod: PodClass, node: NodeRow) -> float:
        return node.used["pods"] + 0.5


class Both(RowFilter, RowScore):
    name = "Both"
    reads = ("spec.tolerations",)
    depends = Depends.NODE

    def filter_one(self, pod: PodClass, node: NodeRow) -> Reason | None:
        return OLD if node.cordoned and not pod.spec.tolerations else None

    def score_one(self, pod: PodClass, node: NodeRow) -> int:
        return len(node.labels)


CLUSTER = [a_node("n1", cpu=4, labels={"kernel": "old"}), a_node("n2", cpu=1), a_node("n3", cpu=8), a_node("n4", cpu=8)]


def a_class(reads: tuple[str, ...] = ()) -> PodClass:
    signer = PodSigner(reads)
    return PodClass(signer.sign(a_pod("a")), signer.class_pod_of(a_pod("a")))


@pytest.mark.parametrize(
    ("rule", "filters", "scores"),
    [
        pytest.param(Careful, True, False, id="a filter only"),
        pytest.param(Quiet, False, True, id="a score only"),
        pytest.param(Both, True, True, id="both"),
    ],
)
def test_a_rule_is_asked_at_the_points_it_was_written_for(rule: type, filters: bool, scores: bool) -> None:
    made = rule({})
    assert (isinstance(made, Filter), isinstance(made, Score)) == (filters, scores)
    check_plugin(rule.name, rule)  # type: ignore[attr-defined]


def test_reasons_one_several_or_none() -> None:
    ledger = a_ledger([*CLUSTER, a_node("n5", cpu=1, labels={"kernel": "old"})])
    verdict = NodeVerdict(ReasonTable())
    Careful({}).filter(a_class(), Nodes(ledger.nodes), verdict)
    found = {name: set(verdict.table.read(int(verdict.bits[row]))) for name, row in ledger.nodes.row_of.items()}
    assert found == {"n1": {OLD}, "n2": {TIGHT}, "n3": set(), "n4": set(), "n5": {OLD, TIGHT}}


def test_some_rows_in_any_order_and_rows_whose_node_is_gone() -> None:
    ledger = a_ledger(CLUSTER)
    ledger.remove_node("n2")
    some = Nodes(ledger.nodes, np.array([3, 1, 0]))
    assert [(i, node.name) for i, node in rows(some)] == [(0, "n4"), (2, "n1")]
    verdict = NodeVerdict(ReasonTable())
    Careful({}).filter(a_class(), some, verdict)
    assert (verdict.bits != 0).tolist() == [False, False, True]
    assert Quiet({}).score(a_class(), some, SINGLE_POD_VIEW).tolist() == [0.5, 0, 0.5]


def test_what_a_rule_sees_of_a_node() -> None:
    node = a_node(
        "n1", cpu="1500m", memory="1Gi", gpu=2, zone="a", taints=["x=y:NoSchedule"], cordoned=True, features=["F"]
    )
    ledger = a_ledger([node, a_node("n2")], [a_pod("b", cpu=1, gpu=1, node="n1"), a_pod("c", node="n1")])
    ledger.set_devices("n1", NodeDevices((Device(name="gpu0"),)))
    [(_, seen)] = rows(Nodes(ledger.nodes, np.array([0])))
    assert seen == NodeRow(
        name="n1",
        labels=node.metadata.labels,
        taints=(Taint(key="x", value="y", effect="NoSchedule"),),
        alloc=ResourceAmounts({"cpu": 1500, "memory": 1 << 30, "pods": 110, "nvidia.com/gpu": 2}),
        used=ResourceAmounts({"cpu": 1000, "pods": 2, "nvidia.com/gpu": 1}),
        cordoned=True,
        features=frozenset({"F"}),
        devices=(Device(name="gpu0"),),
    )
    assert (seen.free("cpu"), seen.free("nvidia.com/gpu"), seen.alloc["unheard-of"]) == (500, 1, 0)


def test_a_node_for_a_unit_test_is_made_by_hand() -> None:
    node = NodeRow("n1", labels={"kernel": "old"}, alloc=ResourceAmounts(cpu=4000))
    assert list(Careful({}).filter_one(a_class(), node)) == [OLD]


def test_it_places_as_its_fast_twin_does_while_the_cluster_fills() -> None:
    """Through caches and repairs: the answers are asked for again where something changed, and only there."""
    pods = [a_pod(f"p{i}", cpu=1) for i in range(16)]
    slow = scheduled(Quiet, CLUSTER, pods)
    fast = scheduled(scoring(lambda nodes: nodes.used("pods"), LOWER_IS_BETTER), CLUSTER, pods)
    assert slow.placements == fast.placements

    careful = scheduled(Careful, CLUSTER, pods)
    twin = filtering(lambda nodes, verdict: verdict.reject(nodes.alloc("cpu") - nodes.used("cpu") < 2000, TIGHT))
    assert {name: node for name, node in careful.placements.items() if node == "n1"} == {}
    assert set(careful.placements.values()) == set(scheduled(twin, CLUSTER[2:], pods).placements.values())
    assert careful.refusals["p15"] == (
        "0/4 nodes are available: 1 node(s) ran an old kernel, 3 node(s) had under two cpus left."
    )


def test_a_rule_that_depends_on_the_node_alone_is_not_asked_after_a_placement() -> None:
    asked: list[str] = []

    class Counting(Both):
        name = "Counting"

        def score_one(self, pod: PodClass, node: NodeRow) -> int:
            asked.append(node.name)
            return 1

    done = scheduled(Counting, CLUSTER, [a_pod("a", cpu=1), a_pod("b", cpu=1)])
    assert sorted(asked) == ["n1", "n2", "n3", "n4"]
    done.ledger.upsert_node(a_node("n1", cpu=16))
    done.then([a_pod("c", cpu=1)])
    assert sorted(asked) == ["n1", "n1", "n2", "n3", "n4"]


def test_an_exception_for_one_node_names_the_rule() -> None:
    class Fragile(RowScore):
        name = "Fragile"

        def score_one(self, pod: PodClass, node: NodeRow) -> int:
            return 1 // len(node.taints)

    done = scheduled(Fragile, CLUSTER, [a_pod("a")])
    assert "Fragile" in done.refusals["a"]


def test_it_can_be_lined_up_beside_the_built_in_rules() -> None:
    rules = lineup_with(Careful, Quiet, Both)
    assert [rule.name for rule in rules.filters][-2:] == ["Careful", "Both"]
    assert [rule.name for rule in rules.scores][-2:] == ["Quiet", "Both"]
