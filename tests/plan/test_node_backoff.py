"""A node that refused a pod is left alone by its class, for longer each time, and not for ever."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.base.clock import VirtualClock
from kubenexus.plan.node_backoff import (
    LEAST,
    MOST,
    PER_NAMESPACE,
    REMEMBERED,
    NodeBackoff,
    exclude_nodes,
    is_kubelet_rejection,
)
from kubenexus.plugins.node_affinity import NodeAffinity
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import run


@pytest.mark.parametrize(
    "reason",
    ["OutOfcpu", "OutOfpods", "OutOfnvidia.com/gpu", "TopologyAffinityError", "SMTAlignmentError", "NodeAffinity"],
)
def test_reasons_of_kubelets(reason: str) -> None:
    assert is_kubelet_rejection(reason)


@pytest.mark.parametrize("reason", ["", "Evicted", "DeadlineExceeded", "NodeLost", "Preempting"])
def test_other_ends_are_no_refusals(reason: str) -> None:
    assert not is_kubelet_rejection(reason)


def test_longer_each_time_and_never_for_ever() -> None:
    clock = VirtualClock(0.0)
    node_backoff = NodeBackoff(clock)
    pauses = []
    for _ in range(6):
        until = node_backoff.add("default", b"class", "n")
        pauses.append(until - clock.now())
        assert node_backoff.nodes("default", b"class") == ["n"]
        assert node_backoff.nodes("other", b"class") == []
        assert node_backoff.nodes("default", b"other") == []
        clock.advance_to(until)
        assert node_backoff.expire()
        assert not node_backoff
    assert pauses == [LEAST, 120.0, 240.0, 480.0, MOST, MOST]
    clock.advance(MOST)
    node_backoff.expire()
    assert node_backoff.add("default", b"class", "n") - clock.now() == LEAST, "long ago is forgotten"


def test_memory_is_bounded_and_a_namespace_has_the_first_to_forget_of_its_own() -> None:
    node_backoff = NodeBackoff(VirtualClock(0.0))
    node_backoff.add("good", b"class", "n")
    for i in range(2 * PER_NAMESPACE):
        node_backoff.add("evil", b"class %d" % i, "n")
    assert len(node_backoff._nodes) == node_backoff._count == PER_NAMESPACE + 1
    for i in range(2 * REMEMBERED):
        node_backoff.add(f"evil-{i % 16}", b"class %d" % i, "n")
    assert len(node_backoff._nodes) == node_backoff._count == sum(map(len, node_backoff._times.values())) == REMEMBERED
    assert node_backoff.nodes("good", b"class") == ["n"]


@pytest.mark.parametrize(
    ("pod", "where"),
    [
        pytest.param(a_pod(), "b", id="no affinity of its own"),
        pytest.param(a_pod(requires=["disk In ssd"]), "c", id="one term"),
        pytest.param(a_pod(requires=["disk In ssd", "metadata.name In a"]), "c", id="two, one of them names the node"),
        pytest.param(a_pod(requires=["metadata.name In a"]), None, id="made for the node"),
        pytest.param(a_pod(requires=[]), None, id="no term matches nothing"),
    ],
)
def test_a_pod_is_kept_from_nodes_whatever_else_it_wants(pod: Pod, where: str | None) -> None:
    nodes = [a_node("a", cpu=64), a_node("b", cpu=4), a_node("c", cpu=2, labels={"disk": "ssd"})]
    assert run(nodes=nodes, pods=[exclude_nodes(pod, ["a"])]).placements.get("pod") == where


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        pytest.param(a_pod(), f"3 {NodeAffinity.REFUSING.text}.", id="no affinity of its own"),
        pytest.param(
            a_pod(requires=["disk In ssd"]),
            f"1 {NodeAffinity.REFUSING.text}, 2 {NodeAffinity.MISMATCH.text}.",
            id="a node that the pod does not want is not said to have refused it",
        ),
        pytest.param(
            a_pod(requires=["metadata.name NotIn a"]),
            f"1 {NodeAffinity.MISMATCH.text}, 2 {NodeAffinity.REFUSING.text}.",
            id="the pod itself keeps away from one of them",
        ),
        pytest.param(
            a_pod(selects={"disk": "ssd"}),
            f"1 {NodeAffinity.REFUSING.text}, 2 {NodeAffinity.MISMATCH.text}.",
            id="a node selector",
        ),
    ],
)
def test_a_pod_kept_from_nodes_says_which_of_them_refused_its_like(pod: Pod, why: str) -> None:
    nodes = [a_node("a"), a_node("b"), a_node("c", labels={"disk": "ssd"})]
    done = run(nodes=nodes, pods=[exclude_nodes(pod, ["a", "b", "c"])])
    assert done.refusals == {"pod": f"0/3 nodes are available: {why}"}
