"""The sentence of the event and the condition, byte for byte as kube-scheduler writes it."""

import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import run

FIVE = [
    a_node("n1", cpu=1),
    a_node("n2", cpu=1, memory="1Gi"),
    a_node("n3", cordoned=True),
    a_node("n4", taints=["gpu=yes:NoSchedule"]),
    a_node("n5", pods=0),
]
PINNED = "metadata.name In"


@pytest.mark.parametrize(
    ("nodes", "pod", "sentence"),
    [
        pytest.param([], a_pod("p"), "no nodes available to schedule pods", id="an empty cluster"),
        pytest.param(
            FIVE,
            a_pod("p", cpu=2, memory="2Gi"),
            "0/5 nodes are available: 1 Insufficient memory, 1 Too many pods, 1 node(s) had untolerated taint(s), "
            "1 node(s) were unschedulable, 2 Insufficient cpu.",
            id="one of everything, sorted as text; a node that lacks two things counts twice",
        ),
        pytest.param(
            [
                a_node("n1", cordoned=True),
                a_node("n2", cordoned=True, taints=["gpu=yes:NoSchedule"]),
                a_node("n3", taints=["gpu=yes:NoSchedule"]),
                *(a_node(f"n{i}") for i in range(4, 7)),
                a_node("n7", labels={"disk": "ssd"}, cordoned=True),
            ],
            a_pod("p", selects={"disk": "ssd"}),
            "0/7 nodes are available: 1 node(s) had untolerated taint(s), "
            "3 node(s) didn't match Pod's node affinity/selector, 3 node(s) were unschedulable.",
            id="of several plugins with a reason each the first counts",
        ),
        pytest.param(
            [a_node("n1"), a_node("n2")],
            a_pod("p", selects={"disk": "ssd"}),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            id="no node matches",
        ),
        pytest.param(
            [a_node(f"n{i}", cpu=1) for i in range(10)] + [a_node("m", cordoned=True)],
            a_pod("p", cpu=2),
            "0/11 nodes are available: 1 node(s) were unschedulable, 10 Insufficient cpu.",
            id="sorted as text: 1 before 10",
        ),
        pytest.param(
            [a_node("n1", resources={"example.com/gpu": 1})],
            a_pod("p", requests={"example.com/gpu": 2, "hugepages-2Mi": "2Mi", "ephemeral-storage": 1}),
            "0/1 nodes are available: 1 Insufficient ephemeral-storage, 1 Insufficient example.com/gpu, "
            "1 Insufficient hugepages-2Mi.",
            id="each resource by its name",
        ),
        pytest.param(
            [a_node("n1"), a_node("n2"), a_node("n3")],
            a_pod("p", requires=[f"{PINNED} n9"]),
            "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="pinned to a node that is not there",
        ),
        pytest.param(
            [a_node("n1", cpu=1), a_node("n2"), a_node("n3")],
            a_pod("p", cpu=4, requires=[f"{PINNED} n1"]),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="pinned to a node that is too small",
        ),
        pytest.param(
            [a_node("n1"), a_node("n2")],
            a_pod("p", requires=[f"{PINNED} n1 and {PINNED} n2"]),
            "0/2 nodes are available: pod affinity terms conflict.",
            id="pinned to two nodes at once",
        ),
        pytest.param(
            [a_node("n1"), a_node("n2")],
            a_pod("p", requires=[f"{PINNED} n1", f"{PINNED} n2"], cpu=99),
            "0/2 nodes are available: 2 Insufficient cpu.",
            id="pinned to either of two",
        ),
        pytest.param(
            [a_node("n1", cordoned=True), a_node("n2")],
            a_pod("p", requires=[f"{PINNED} n1 and disk In ssd"]),
            "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable.",
            id="the first rule that refuses is the one that is told",
        ),
    ],
)
def test_a_refusal_is_told(nodes: list[Node], pod: Pod, sentence: str) -> None:
    assert run(nodes, [pod]).refusals == {"p": sentence}


def test_two_plugins_that_leave_no_node_between_them_are_both_named() -> None:
    pod = a_pod("p", node="n1", requires=[f"{PINNED} n2"])
    done = run([a_node("n1"), a_node("n2")], [Job.of(pod)])
    assert done.refusals == {
        "p": "0/2 nodes are available: node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously."
    }


def test_a_node_with_a_pod_nobody_can_read_is_told_as_such() -> None:
    done = run([a_node("n1"), a_node("n2", cpu=1)], [])
    done.ledger.block_unreadable_pod("default/odd", "n1")
    refused = done.then([a_pod("p", cpu=2)])
    assert refused.refusals == {
        "p": "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) ran a pod that could not be read."
    }


def test_a_pod_that_cannot_be_read_is_told_with_its_field() -> None:
    decision = run([a_node("n1")], []).then([a_pod("p", cpu="a lot")]).decisions["p"]
    assert not decision.placed
    assert "Pod default/p: spec.containers[0].resources.requests[cpu]" in decision.sentence()


def test_a_preference_that_cannot_be_parsed_fails_the_attempt_if_there_is_anything_to_prefer() -> None:
    odd = a_pod("p", prefers={"cores Gt many": 1})
    decision = run([a_node("n1"), a_node("n2")], [odd]).decisions["p"]
    assert decision.code is Code.ERROR
    assert decision.sentence() == (
        'running PreScore plugin "NodeAffinity": [0].matchExpressions[0].values[0]: Invalid value: "many": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )
    assert run([a_node("n1")], [odd]).placements == {"p": "n1"}


def test_a_gated_pod_waits_outside() -> None:
    assert run([a_node("n1")], [a_pod("p", gates=["a", "b"])]).refusals == {"p": "waiting for scheduling gates: [a b]"}


def test_a_placement_is_told_too() -> None:
    done = run([a_node("n1")], [Job("default/gang", (a_pod("a"), a_pod("b")), minimum=2)])
    assert done.decisions["gang"].sentence() == "default/a to n1, default/b to n1"
