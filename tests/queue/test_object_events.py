"""What an update amounts to: the events of kube-scheduler, and no event where nothing changed that matters."""

import pytest

from kubenexus.api.core import Node, Pod
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.queue.object_events import (
    WILDCARD_EVENT,
    node_added,
    node_changed,
    node_gone,
    nomination_ended,
    pod_bound,
    pod_changed,
    pod_forgotten,
    pod_gone,
)
from kubenexus.testing.builders import a_node, a_pod


def labels(events: list[ClusterEvent]) -> list[str]:
    return [event.label for event in events]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(a_node(), a_node(), [], id="a heartbeat is no event"),
        pytest.param(a_node(cpu=1), a_node(cpu=2), ["NodeUpdateNodeAllocatable"], id="it offers more"),
        pytest.param(a_node(cpu="1"), a_node(cpu="1000m"), [], id="the same amount in other words is no event"),
        pytest.param(a_node(), a_node(labels={"a": "b"}), ["NodeUpdateNodeLabel"], id="a label is new"),
        pytest.param(a_node(), a_node(taints=["a:NoSchedule"]), ["NodeUpdateNodeTaint"], id="a taint is new"),
        pytest.param(a_node(cordoned=True), a_node(), ["NodeUpdateNodeTaint"], id="uncordoned counts as a taint gone"),
        pytest.param(a_node(), a_node(cordoned=True), [], id="cordoned helps nobody"),
        pytest.param(a_node(), a_node(features=["X"]), ["NodeUpdateNodeDeclaredFeature"], id="a feature is declared"),
        pytest.param(
            a_node(taints=["a:NoSchedule"], cordoned=True),
            a_node(cpu=9, labels={"a": "b"}),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint"],
            id="several changes are several events",
        ),
        pytest.param(a_node(cpu="x"), a_node(cpu="y"), ["NodeUpdateNodeAllocatable"], id="amounts nobody can read"),
    ],
)
def test_what_a_change_of_a_node_amounts_to(old: Node, new: Node, said: list[str]) -> None:
    assert labels(node_changed(old, new)) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param(a_pod(), a_pod(), ["TargetPodUpdate"], id="nothing that has a name"),
        pytest.param(a_pod(), a_pod(labels={"a": "b"}), ["TargetPodUpdatePodLabel"], id="a label"),
        pytest.param(a_pod(cpu=2), a_pod(cpu=1), ["TargetPodUpdatePodScaleDown"], id="it asks for less"),
        pytest.param(a_pod(cpu=1, memory=1), a_pod(cpu=1), ["TargetPodUpdatePodScaleDown"], id="for one thing less"),
        pytest.param(a_pod(cpu=1), a_pod(cpu=2), ["TargetPodUpdatePodScaleUp"], id="it asks for more"),
        pytest.param(
            a_pod(cpu=1, memory=2),
            a_pod(cpu=2, memory=1),
            ["TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"],
            id="more of this and less of that",
        ),
        pytest.param(a_pod(), a_pod(tolerates=["a"]), ["TargetPodUpdatePodToleration"], id="a toleration"),
        pytest.param(
            a_pod(gates=["g"]), a_pod(), ["TargetPodUpdatePodSchedulingGatesEliminated"], id="the last gate is gone"
        ),
        pytest.param(a_pod(gates=["g", "h"]), a_pod(gates=["g"]), ["TargetPodUpdate"], id="a gate is gone, one stays"),
        pytest.param(a_pod(cpu="x"), a_pod(cpu="y"), ["TargetPodUpdate"], id="amounts nobody can read"),
    ],
)
def test_what_a_change_of_a_waiting_pod_amounts_to(old: Pod, new: Pod, said: list[str]) -> None:
    assert labels(pod_changed(old, new, target=True)) == said
    others = [label.replace("TargetPod", "UnscheduledPod") for label in said]
    assert labels(pod_changed(old, new)) == others


def test_a_pod_on_a_node_is_an_assigned_one() -> None:
    assert labels(pod_changed(a_pod(node="n", cpu=2), a_pod(node="n", cpu=1))) == ["AssignedPodUpdatePodScaleDown"]


def test_the_other_events_and_their_labels() -> None:
    node, pod = a_node(), a_pod(node="n")
    events = [node_added(node), node_gone(node), pod_bound(pod), pod_gone(pod), WILDCARD_EVENT]
    assert labels(events) == ["NodeAdd", "NodeDelete", "AssignedPodAdd", "AssignedPodDelete", "ForceActivate"]
    assert [(event.old, event.new) for event in events[:4]] == [(None, node), (node, None), (None, pod), (pod, None)]


def test_a_pod_that_was_assumed_and_forgotten_left_a_node() -> None:
    event = pod_forgotten(a_pod("p"), "n1")
    assert (event.label, event.old.spec.node_name, event.old.metadata.name) == ("AssignedPodDelete", "n1", "p")


def test_a_nomination_that_ended_concerns_only_those_who_had_to_respect_it() -> None:
    event = nomination_ended(a_pod(nominated="n", priority=7))
    assert (event.label, event.max_priority) == ("AssignedPodDelete", 7)


def test_a_nomination_that_ended_names_the_node_that_the_status_does_not_have_yet() -> None:
    """Hints of capacity, ports and volumes look for it."""
    assert nomination_ended(a_pod(), "n").old.status.nominated_node_name == "n"


@pytest.mark.parametrize(
    ("wake", "event", "matches"),
    [
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT),
            ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
            True,
            id="one of several actions",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE),
            ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
            True,
            id="a narrower one",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
            ClusterEvent(EventResource.NODE, ActionType.UPDATE),
            False,
            id="a wider one",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
            ClusterEvent(EventResource.CSI_NODE, ActionType.ADD),
            False,
            id="another resource",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.POD, ActionType.DELETE),
            ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE),
            True,
            id="Pod means any pod",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.ALL),
            ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE),
            False,
            id="an assigned pod is not the target",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.ANYTHING, ActionType.ALL),
            ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD),
            True,
            id="anything at all",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.ALL),
            WILDCARD_EVENT,
            False,
            id="what wakes all asks nobody's wakes",
        ),
    ],
)
def test_which_events_a_wake_means(wake: ClusterEventWithHint, event: ClusterEvent, matches: bool) -> None:
    assert wake.matches(event) is matches
