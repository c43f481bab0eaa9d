"""A kubelet that refuses a pod which was placed there: other nodes are preferred until its next report."""

import pytest

from kubenexus.state.ledger import Ledger
from tests.api.numa.builders import a_numa_pod, an_nrt, guaranteed
from tests.plugins.numa.numa_cluster import EIGHT, a_run
from tests.plugins.numa.test_numa_topology import pod, started

FREE = {"cpu": EIGHT}
BUSY = {"cpu": (8, 8, 2)}


def test_other_nodes_are_preferred_until_the_next_report() -> None:
    half = {"cpu": (8, 8, 6)}
    run = a_run(an_nrt([half, half], name="good"), an_nrt([FREE, FREE], name="other"))
    assert run.then([pod("a", "2", policy="best-effort")]).placements == {"a": "good"}
    assert run.ledger.contradict_numa("good") == "since_report"
    assert run.then([pod("b", "2", policy="best-effort")]).placements == {"b": "other"}
    assert run.ledger.nodes.numa.contradicted
    run.ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 4)}, half], name="good"))
    run.ledger.read_devices()
    assert not run.ledger.nodes.numa.contradicted


def a_ledger(*, placed: bool = False, unexplained: bool = False) -> Ledger:
    run = a_run(an_nrt([FREE, FREE]), others=1)
    if unexplained:
        run.ledger.upsert_pod(started(a_numa_pod(guaranteed("main", "5"), name="old")))
        run.ledger.upsert_node_topology(an_nrt([{"cpu": (8, 8, 1)}, BUSY]))
        run.ledger.read_devices()
    if placed:
        run.then([pod("new", "1", policy="single-numa-node")])
    return run.ledger


@pytest.mark.parametrize(
    ("node", "state", "cause"),
    [
        pytest.param("other-0", {}, "no_report", id="the node reports nothing"),
        pytest.param("gone", {}, "no_report", id="the node is gone"),
        pytest.param("n", {}, "report", id="nothing was placed since the report"),
        pytest.param("n", {"placed": True}, "since_report", id="pods were placed since the report"),
        pytest.param("n", {"unexplained": True}, "unexplained", id="it is not known what pods there hold"),
    ],
)
def test_the_likely_cause(node: str, state: dict[str, bool], cause: str) -> None:
    assert a_ledger(**state).contradict_numa(node) == cause
