"""Live or told anew, the books come to the same: what is gone leaves no trace that a fresh ledger would not have."""

from typing import Any

import pytest

from kubenexus.state.digest import digest
from tests.fuzz.path import Loop, a_node, a_pod

ASKS = a_pod("b", requests={"example.com/x": 1}, node="n2")


def infeasible(pod: Any) -> Any:
    return {**pod, "status": {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}}


def allocated(pod: Any) -> Any:
    amounts = {"cpu": "3", "memory": "1Gi"}
    return {**pod, "status": {"allocatedResources": amounts, "resources": {"requests": amounts}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([a_node("n1", **{"example.com/x": 1})], [a_node("n1")], id="a node offers it no longer"),
        pytest.param([a_node("n1", **{"example.com/x": 1}), None], [], id="the only node that offered it is gone"),
    ],
)
def test_a_resource_that_no_node_offers_any_more_is_as_if_none_ever_had(before: list[Any], after: list[Any]) -> None:
    live = Loop(a_node("n2"))
    for node in before:
        if node is None:
            live.ledger.remove_node("n1")
        else:
            live.node(node)
    live.pod(ASKS)
    for node in after:
        live.node(node)
    fresh = Loop(a_node("n2"), *after)
    fresh.pod(ASKS)
    assert digest(live.ledger) == digest(fresh.ledger)


@pytest.mark.parametrize("said", [infeasible, allocated], ids=["an infeasible resize", "a status that says more"])
def test_a_pod_that_was_assumed_counts_as_it_will_when_it_is_bound(said: Any) -> None:
    """A pending pod should have no such status, but counting it twice, in two ways, would be worse than either."""
    loop = Loop()
    loop.pod(said(a_pod()))
    assert loop.decide().placed
    assumed = loop.used("cpu")
    loop.pod(said(a_pod(node="n1")))
    assert loop.used("cpu") == assumed


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [a_pod("b", requests={"cpu": 10**30}, node="n1"), a_pod("b", node="n1")], id="beyond all counters"
        ),
        pytest.param([a_pod("b", requests={"cpu": "x"}, node="n1"), a_pod("b", node="n1")], id="unreadable"),
        pytest.param([a_pod("b", node="n1", priority="x"), a_pod("b", node="n1")], id="badly shaped"),
        pytest.param([a_pod("b", node="nowhere"), a_pod("b", node="n1")], id="on a node nobody knows"),
    ],
)
def test_what_was_wrong_once_leaves_no_trace_when_it_is_put_right(events: list[Any]) -> None:
    live, fresh = Loop(), Loop()
    for event in events:
        live.pod(event)
    fresh.pod(events[-1])
    assert digest(live.ledger) == digest(fresh.ledger)
