"""After a gap in the watch: whatever was missed, the ledger is what the API server has, and keeps its own promises."""

import pytest

from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, a_ledger, on_node, relist

BEFORE = [a_pod("stays", node="n1", cpu=1), a_pod("goes", node="n1", cpu=1), a_pod("waits", nominated="n1")]
NODES = [a_node("n1"), a_node("n2")]


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        pytest.param(NODES, BEFORE[:1], id="deletes were missed"),
        pytest.param(NODES, [*BEFORE, a_pod("new", node="n2", cpu=2)], id="an add was missed"),
        pytest.param(NODES[1:], BEFORE, id="a node was deleted, its pods not yet"),
        pytest.param([*NODES, a_node("n3")], BEFORE, id="a node was added"),
        pytest.param([a_node("n1", uid="new", cpu=1)], BEFORE[:1], id="a node was made again"),
        pytest.param(NODES, [a_pod("stays", node="n2", cpu=1, uid="new")], id="a pod was made again elsewhere"),
        pytest.param([], [], id="everything is gone"),
    ],
)
def test_the_ledger_is_what_a_fresh_one_would_be_when(nodes: list, pods: list) -> None:
    ledger = a_ledger(NODES, BEFORE)
    assert relist(ledger, nodes, pods) == []
    assert digest(ledger) == digest(a_ledger(nodes, pods))


def test_what_we_assumed_and_the_list_shows_unbound_stays_assumed() -> None:
    ledger = a_ledger(NODES, BEFORE)
    promised = a_pod("promised", cpu=2)
    ledger.assume(promised, "n2", 0.0)
    relist(ledger, NODES, [*BEFORE, promised])
    assert [record.key for record in ledger.on_node("n2")] == ["default/promised"]


def test_what_we_assumed_and_the_list_no_longer_has_is_gone() -> None:
    ledger = a_ledger(NODES, BEFORE)
    ledger.assume(a_pod("promised", cpu=2), "n2", 0.0)
    relist(ledger, NODES, BEFORE)
    assert ledger.on_node("n2") == []


def test_an_unreadable_pod_stops_nothing_and_closes_its_node() -> None:
    ledger = a_ledger(NODES, BEFORE)
    problems = relist(ledger, NODES, [a_pod("odd", node="n2", cpu="a lot"), *BEFORE[:1]])
    (problem,) = problems
    assert (problem.subject, problem.field) == ("Pod default/odd", "spec.containers[0].resources.requests[cpu]")
    assert ledger.blocked_nodes == {"n2": ["default/odd"]}
    assert ledger.pods.keys() == {"default/stays"}


def test_an_unreadable_node_stays_as_it_was() -> None:
    ledger = a_ledger(NODES, BEFORE)
    assert len(relist(ledger, [a_node("n1", cpu="plenty"), NODES[1]], BEFORE)) == 1
    assert ledger.nodes.row_of.keys() == {"n1", "n2"}


def test_listing_twice_changes_nothing() -> None:
    cluster = CheckedCluster.of(NODES, BEFORE)
    cluster.ledger.assume(a_pod("promised"), "n2", 0.0)
    listed = [*BEFORE, a_pod("promised")]
    relist(cluster.ledger, NODES, listed)
    before = (cluster.ledger.generation, digest(cluster.ledger))
    relist(cluster.ledger, NODES, listed)
    assert (cluster.ledger.generation, digest(cluster.ledger)) == before


def test_a_pod_bound_during_the_gap_confirms_the_promise() -> None:
    ledger = a_ledger(NODES)
    ledger.assume(a_pod("promised", cpu=2), "n2", 0.0)
    relist(ledger, NODES, [on_node(a_pod("promised", cpu=2), "n2")])
    assert digest(ledger) == digest(a_ledger(NODES, [on_node(a_pod("promised", cpu=2), "n2")]))
