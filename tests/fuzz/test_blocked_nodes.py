"""A bound pod that cannot be read does not vanish: its node takes nothing new until the pod can be read or is gone."""

from typing import Any

import pytest

from kubenexus.api.codec import decode_list
from kubenexus.api.core import Node, Pod
from kubenexus.testing.harness import relist
from tests.fuzz.path import Loop, a_node, a_pod, dumped

BAD = a_pod("bad", requests={"cpu": "NaN"}, node="n1")
BADLY_SHAPED = a_pod("bad", node="n1", priority="high")
REBORN = {**a_pod("bad"), "metadata": {**BAD["metadata"], "uid": "another"}}
FENCED = "0/1 nodes are available: 1 node(s) ran a pod that could not be read."


def sentence(loop: Loop, name: str = "p") -> str:
    loop.pod(a_pod(name))
    return loop.decide(name).sentence()


@pytest.mark.parametrize("bad", [pytest.param(BAD, id="uncountable"), pytest.param(BADLY_SHAPED, id="undecodable")])
@pytest.mark.parametrize(
    ("end", "used"),
    [
        pytest.param(lambda loop: loop.pod(a_pod("bad", node="n1")), 1000, id="it can be read again"),
        pytest.param(lambda loop: loop.ledger.remove_pod("ns/bad"), 0, id="it was deleted"),
        pytest.param(lambda loop: loop.pod({**BAD, "status": {"phase": "Failed"}}), 0, id="it has finished"),
        pytest.param(lambda loop: loop.pod(REBORN), 0, id="it was made anew"),
    ],
)  # fmt: skip
def test_the_fence_comes_and_goes(bad: Any, end: Any, used: int) -> None:
    loop = Loop()
    loop.pod(bad)
    assert sentence(loop) == FENCED
    assert loop.ledger.blocked_nodes == {"n1": ["ns/bad"]}
    end(loop)
    assert loop.ledger.blocked_nodes == {}
    assert loop.used("cpu") == used
    assert sentence(loop) == "ns/p to n1"


def test_two_unreadable_pods_on_one_node_must_both_go() -> None:
    loop = Loop()
    loop.pod(BAD)
    loop.pod(a_pod("worse", node="n1", containers=5))
    loop.ledger.remove_pod("ns/bad")
    assert sentence(loop) == FENCED
    loop.ledger.remove_pod("ns/worse")
    assert sentence(loop) == "ns/p to n1"


def test_a_node_that_comes_back_is_still_fenced() -> None:
    loop = Loop()
    loop.pod(BAD)
    loop.ledger.remove_node("n1")
    loop.node(a_node("n1"))
    assert sentence(loop) == FENCED


def test_a_pod_heard_of_before_its_node_fences_it_when_it_appears() -> None:
    loop = Loop(a_node("n2"))
    loop.pod(BAD)
    loop.node(a_node("n1"))
    for i in range(4):
        assert sentence(loop, f"p{i}") == f"ns/p{i} to n2"


def test_what_was_known_of_a_pod_before_it_became_unreadable_counts_no_more() -> None:
    """The fence stands for it, as it would after a restart."""
    loop = Loop()
    loop.pod(a_pod("bad", requests={"cpu": "3"}, node="n1"))
    loop.pod(BAD)
    assert loop.used("cpu") == 0
    assert sentence(loop) == FENCED


@pytest.mark.parametrize(
    "unbound",
    [
        pytest.param({**a_pod("mine"), "status": {"nominatedNodeName": "n2", "phase": 5}}, id="undecodable"),
        pytest.param({**a_pod("mine", {"cpu": "x"}), "status": {"nominatedNodeName": "n2"}}, id="uncountable"),
    ],
)
def test_what_we_placed_keeps_its_room_though_it_becomes_unreadable_before_it_is_bound(unbound: Any) -> None:
    """The bind is on its way: forgetting the pod now would give its room away a second time."""
    loop = Loop()
    loop.pod(a_pod("mine", requests={"cpu": "8"}))
    assert loop.decide("mine").sentence() == "ns/mine to n1"
    loop.pod(unbound)
    assert not sentence(loop).startswith("ns/p to")


def test_a_fence_refuses_even_the_pod_that_is_nominated_or_pinned_there() -> None:
    loop = Loop()
    loop.pod(BAD)
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pinned]}}
    loop.pod({**a_pod("p", affinity={"nodeAffinity": required}), "status": {"nominatedNodeName": "n1"}})
    assert loop.decide().sentence() == FENCED


def test_a_class_that_was_decided_before_learns_of_the_fence() -> None:
    loop = Loop()
    assert sentence(loop, "p1") == "ns/p1 to n1"
    loop.pod(BAD)
    assert sentence(loop, "p2") == FENCED
    loop.ledger.remove_pod("ns/bad")
    assert sentence(loop, "p3") == "ns/p3 to n1"


def test_in_a_list_the_bad_ones_are_named_and_the_good_ones_kept() -> None:
    loop = Loop(a_node("n1"), a_node("n2"))
    loop.pods(a_pod("a", node="n2"), BADLY_SHAPED, a_pod("b", node="n2"), {"metadata": 5}, a_pod("bad-2", requests=5))
    begins = ["Pod ns/bad: spec.priority: ", "Pod: metadata: ", "Pod ns/bad-2: spec.containers"]
    assert [message.startswith(begin) for message, begin in zip(loop.refused, begins, strict=True)] == [True] * 3
    assert loop.used("cpu", "n2") == 2000
    assert sentence(loop) == "ns/p to n2"


def test_after_a_gap_an_unreadable_bound_pod_of_the_list_still_fences_its_node() -> None:
    """`relist` is told what was readable; what was not has to be told, too, or the list would lift the fence."""
    loop = Loop()
    loop.pod(BADLY_SHAPED)
    body = b'{"kind":"PodList","items":[%s,%s]}' % (dumped(BADLY_SHAPED), dumped(a_pod("b", node="n1")))
    pods, nodes = decode_list(body, Pod), decode_list(b'{"items":[%s]}' % dumped(a_node()), Node)
    relist(loop.ledger, nodes.items, pods.items)
    for lost in pods.unreadable:
        loop.ledger.block_unreadable_pod(f"{lost.namespace}/{lost.name}", lost.node)
    assert loop.ledger.blocked_nodes == {"n1": ["ns/bad"]}
    assert sentence(loop) == FENCED
