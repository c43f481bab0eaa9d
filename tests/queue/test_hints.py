"""Which event wakes a pod that a built-in plugin refused: kube-scheduler's queueing hints, case by case."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod, RestartRule
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource, events_to_register
from kubenexus.plugins import BUILT_IN, profile_plugins
from kubenexus.queue.object_events import (
    node_added,
    node_changed,
    node_gone,
    nomination_ended,
    pod_bound,
    pod_changed,
    pod_forgotten,
    pod_gone,
)
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.testing.builders import a_container, a_device_class, a_node, a_pod
from tests.queue.queue_fixture import by_image

CORDON = "node.kubernetes.io/unschedulable:NoSchedule"


def woken(plugin: str, pod: Pod, events: ClusterEvent | list[ClusterEvent], **args: Any) -> bool:
    """Whether any of the events wakes a pod refused by this plugin."""
    profile = QueueProfile(by_image, events_to_register([BUILT_IN[plugin](args)]))
    return any(
        profile.may_help((plugin,), event, [pod]) for event in (events if isinstance(events, list) else [events])
    )


def case(pod: Pod, events: ClusterEvent | list[ClusterEvent], expected: bool, name: str) -> Any:
    return pytest.param(pod, events, expected, id=name)


def changed(pod: Pod, new: Pod) -> list[ClusterEvent]:
    return pod_changed(pod, new, target=True)


def device_class(new: Any, old: Any = None) -> ClusterEvent:
    return ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD if old is None else ActionType.UPDATE, old, new)


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(a_pod(gates=["g"]), changed(a_pod(gates=["g"]), a_pod()), True, "the last gate is taken away"),
        case(a_pod(gates=["g"]), changed(a_pod(gates=["g", "h"]), a_pod(gates=["g"])), False, "a gate stays"),
        case(a_pod(gates=["g"]), node_added(a_node()), False, "a node is no help"),
    ],
)
def test_scheduling_gates(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("SchedulingGates", pod, events) is expected


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(a_pod(), node_added(a_node()), True, "any new node"),
        case(a_pod(), node_gone(a_node()), False, "not one that went away"),
        case(a_pod(), node_changed(a_node(), a_node(cpu=99)), False, "not one that changed: its name did not"),
    ],
)
def test_node_name(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("NodeName", pod, events) is expected


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(a_pod(), node_added(a_node()), True, "a node that is open"),
        case(a_pod(), node_added(a_node(cordoned=True)), False, "not one that is cordoned"),
        case(a_pod(), node_changed(a_node(cordoned=True), a_node()), True, "a node is uncordoned"),
        case(
            a_pod(),
            node_changed(a_node(cordoned=True), a_node(cordoned=True, taints=["a:NoSchedule"])),
            False,
            "a cordoned node is tainted",
        ),
        case(a_pod(), node_changed(a_node(), a_node(taints=["a:NoSchedule"])), False, "an open node is tainted"),
        case(a_pod(), node_changed(a_node(), a_node(labels={"a": "b"})), False, "a node is labelled"),
        case(a_pod(), changed(a_pod(), a_pod(tolerates=[CORDON])), True, "the pod tolerates the cordon now"),
        case(
            a_pod(), changed(a_pod(), a_pod(tolerates=["other:NoSchedule"])), False, "the pod tolerates another taint"
        ),
    ],
)
def test_node_unschedulable(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("NodeUnschedulable", pod, events) is expected


TAINTED, TOLERANT = a_node(taints=["k=v:NoSchedule"]), a_pod(tolerates=["k=v:NoSchedule"])


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(a_pod(), node_added(a_node()), True, "a node without taints"),
        case(a_pod(), node_added(TAINTED), False, "not one with a taint the pod does not tolerate"),
        case(TOLERANT, node_added(TAINTED), True, "one with a taint the pod tolerates"),
        case(a_pod(), node_added(a_node(taints=["k=v:PreferNoSchedule"])), True, "a taint that only advises"),
        case(a_pod(), node_changed(TAINTED, a_node()), True, "a taint is taken away"),
        case(
            a_pod(),
            node_changed(TAINTED, a_node(taints=["k=w:NoExecute"])),
            False,
            "a taint is replaced by one the pod does not tolerate either",
        ),
        case(TOLERANT, node_changed(TAINTED, a_node()), False, "a taint is taken away that never kept the pod out"),
        case(
            TOLERANT,
            node_changed(a_node(taints=["x:NoSchedule"]), TAINTED),
            True,
            "a taint is replaced by one the pod tolerates",
        ),
        case(a_pod(), node_changed(a_node(), a_node(cpu=99)), False, "a node grows"),
        case(a_pod(), changed(a_pod(), TOLERANT), True, "the pod tolerates more"),
        case(a_pod(), changed(a_pod(), a_pod(labels={"a": "b"})), False, "the pod is labelled"),
    ],
)
def test_taint_toleration(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("TaintToleration", pod, events) is expected


PICKY = a_pod(requires=["disk In ssd"])
BAD_TERMS = a_pod(requires=["disk In ssd", "cores Gt many"])
SSD = a_node(labels={"disk": "ssd"})


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(PICKY, node_added(SSD), True, "a node that matches"),
        case(PICKY, node_added(a_node()), False, "not one that does not"),
        case(PICKY, node_changed(a_node(), SSD), True, "a node is labelled so that it matches"),
        case(PICKY, node_changed(SSD, a_node(labels={"disk": "ssd", "x": "y"})), False, "a node that matched already"),
        case(PICKY, node_changed(SSD, a_node()), False, "a node no longer matches"),
        case(a_pod(selects={"disk": "ssd"}), node_added(SSD), True, "the node selector counts, too"),
        case(a_pod(selects={"disk": "hdd"}), node_added(SSD), False, "and another value does not match it"),
        case(
            a_pod(selects={"disk": "ssd"}, requires=["x In y"]),
            node_added(SSD),
            False,
            "selector and affinity must hold",
        ),
        case(a_pod(requires=["metadata.name In n1"]), node_added(a_node("n1")), True, "the node it is made for"),
        case(a_pod(requires=["metadata.name In n1"]), node_added(a_node("n2")), False, "not another one"),
        case(PICKY, node_changed(a_node(), a_node(cpu=99)), False, "a node grows"),
        case(BAD_TERMS, node_added(a_node()), True, "a term nobody can read: better to try"),
        case(BAD_TERMS, node_added(SSD), True, "and another term matches"),
    ],
)
def test_node_affinity(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("NodeAffinity", pod, events) is expected


def test_node_affinity_that_the_scheduler_adds_must_match_as_well() -> None:
    term = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["ours"]}]}]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": term}
    ours = a_node(labels={"disk": "ssd", "pool": "ours"})
    assert woken("NodeAffinity", PICKY, node_added(ours), addedAffinity=added)
    assert not woken("NodeAffinity", PICKY, node_added(SSD), addedAffinity=added)


WEB = a_pod(ports=[80])


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(WEB, pod_gone(a_pod(ports=[80], node="n")), True, "a pod with that port is gone"),
        case(WEB, pod_gone(a_pod(ports=[81], node="n")), False, "not one with another port"),
        case(WEB, pod_gone(a_pod(ports=["80/UDP"], node="n")), False, "nor another protocol"),
        case(WEB, pod_gone(a_pod(node="n")), False, "nor without any port"),
        case(WEB, pod_gone(a_pod(ports=[80])), False, "nor one that never had a node"),
        case(WEB, pod_gone(a_pod(ports=[80], nominated="n")), True, "one that was promised a node had the port"),
        case(WEB, pod_gone(a_pod(ports=["10.0.0.1:80"], node="n")), True, "every address clashes with one"),
        case(a_pod(ports=["10.0.0.2:80"]), pod_gone(a_pod(ports=["10.0.0.1:80"], node="n")), False, "other addresses"),
        case(WEB, pod_gone(a_pod(node="n", sidecars=[a_container(ports=[80])])), True, "a sidecar's port counts"),
        case(WEB, pod_gone(a_pod(node="n", init=[a_container(ports=[80])])), False, "an init container's does not"),
        case(WEB, pod_forgotten(a_pod(ports=[80]), "n"), True, "a pod was assumed and did not get its node"),
        case(WEB, pod_bound(a_pod(ports=[80], node="n")), False, "a pod that came is no help"),
        case(WEB, node_added(a_node()), True, "any new node"),
        case(WEB, node_changed(a_node(), a_node(cpu=9)), False, "not one that changed"),
    ],
)
def test_node_ports(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("NodePorts", pod, events) is expected


SMALL = a_pod(cpu=1, memory="1Gi")
GPUS = a_pod(cpu=1, gpu=2)
GPU = "nvidia.com/gpu"


def delegated(event: ClusterEvent, *resources: str) -> ClusterEvent:
    return msgspec.structs.replace(event, delegated=frozenset(resources))


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(SMALL, pod_gone(a_pod(cpu=1, node="n")), True, "any pod that leaves a node"),
        case(SMALL, pod_gone(a_pod(node="n")), True, "even one that asked for nothing: it counted as a pod"),
        case(SMALL, pod_gone(a_pod(cpu=1)), False, "not one that never had a node"),
        case(SMALL, pod_gone(a_pod(cpu=1, nominated="n")), True, "one that was promised a node"),
        case(SMALL, nomination_ended(a_pod(cpu=1, nominated="n")), True, "a promise ended"),
        case(SMALL, pod_bound(a_pod(cpu=1, node="n")), False, "a pod that came is no help"),
        case(
            SMALL,
            pod_changed(a_pod(cpu=2, node="n"), a_pod(cpu=1, node="n")),
            True,
            "a pod on a node shrinks in what this one asks for",
        ),
        case(
            SMALL,
            pod_changed(a_pod(gpu=2, node="n"), a_pod(gpu=1, node="n")),
            False,
            "a pod on a node shrinks in something else",
        ),
        case(SMALL, pod_changed(a_pod(cpu=1, node="n"), a_pod(cpu=2, node="n")), False, "a pod on a node grows"),
        case(SMALL, pod_changed(a_pod("x", cpu=2), a_pod("x", cpu=1)), False, "a pod that waits shrinks"),
        case(SMALL, changed(SMALL, a_pod(cpu="500m", memory="1Gi")), True, "the pod itself asks for less"),
        case(SMALL, changed(SMALL, a_pod(cpu=2, memory="1Gi")), False, "the pod itself asks for more"),
        case(SMALL, node_added(a_node(cpu=2)), True, "a new node that could hold it"),
        case(SMALL, node_added(a_node(cpu="500m")), False, "not one that is too small"),
        case(SMALL, node_added(a_node(cpu=2, pods=0)), False, "nor one that takes no pods"),
        case(GPUS, node_added(a_node()), False, "nor one without GPUs"),
        case(GPUS, node_added(a_node(gpu=2)), True, "one with enough GPUs"),
        case(GPUS, delegated(node_added(a_node()), GPU), True, "one where a device class stands in for them"),
        case(
            GPUS, delegated(node_added(a_node(gpu=1)), GPU), False, "not where a device plugin offers some, but too few"
        ),
        case(SMALL, node_changed(a_node(cpu=1), a_node(cpu=2)), True, "a node grows in what it asks for"),
        case(
            SMALL,
            node_changed(a_node(cpu=2), a_node(cpu=2, resources={"example.com/fpga": 1})),
            False,
            "a node grows in something else",
        ),
        case(SMALL, node_changed(a_node(cpu=4), a_node(cpu=2)), False, "a node shrinks"),
        case(SMALL, node_changed(a_node(cpu=2, pods=1), a_node(cpu=2, pods=2)), True, "a node takes more pods"),
        case(
            SMALL, node_changed(a_node(cpu="100m"), a_node(cpu="200m")), False, "a node grows, and is still too small"
        ),
        case(a_pod(), node_changed(a_node(cpu=1), a_node(cpu=2)), False, "a pod that asks for nothing minds only pods"),
        case(SMALL, node_changed(a_node(), a_node(labels={"a": "b"})), False, "a node is labelled"),
        case(GPUS, device_class(a_device_class("d", resource=GPU)), True, "a device class backs what it asks for"),
        case(GPUS, device_class(a_device_class("d", resource="x.com/y")), False, "or something else"),
        case(GPUS, device_class(a_device_class("d")), False, "or nothing"),
        case(
            GPUS,
            device_class(a_device_class("d", resource=GPU), a_device_class("d", resource=GPU)),
            False,
            "a device class changes in something else",
        ),
        case(
            GPUS,
            device_class(a_device_class("d", resource=GPU), a_device_class("d")),
            True,
            "a device class comes to back it",
        ),
        case(
            a_pod(requests={"deviceclass.resource.kubernetes.io/d": 1}),
            device_class(a_device_class("d")),
            True,
            "the device class it names appears",
        ),
    ],
)
def test_node_resources_fit(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("NodeResourcesFit", pod, events) is expected


def test_a_resource_that_the_filter_ignores_does_not_stand_in_the_way_of_waking() -> None:
    """Here kube-scheduler's hint forgets its own setting, and such a pod waits for the flush."""
    assert not woken("NodeResourcesFit", GPUS, node_added(a_node()))
    assert woken("NodeResourcesFit", GPUS, node_added(a_node()), ignoredResources=[GPU])
    assert woken("NodeResourcesFit", GPUS, node_added(a_node()), ignoredResourceGroups=["nvidia.com"])


RESTARTS = a_pod(containers=[a_container(restart_policy_rules=[RestartRule(action="RestartAllContainers")])])


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(RESTARTS, node_added(a_node()), True, "any new node"),
        case(RESTARTS, node_changed(a_node(), a_node(features=["X"])), True, "a node declares otherwise"),
        case(RESTARTS, node_changed(a_node(), a_node(cpu=9)), False, "a node changes in something else"),
        case(RESTARTS, changed(RESTARTS, a_pod()), True, "the pod needs otherwise"),
        case(RESTARTS, changed(RESTARTS, RESTARTS), False, "the pod needs the same"),
        case(RESTARTS, pod_gone(a_pod(node="n")), False, "a pod that leaves"),
    ],
)
def test_node_declared_features(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("NodeDeclaredFeatures", pod, events) is expected


def test_every_plugin_that_can_refuse_is_in_the_table_and_those_that_only_score_are_not() -> None:
    table = events_to_register(profile_plugins().plugins)
    assert {"SchedulingGates", "NodeName", "NodeAffinity", "NodeResourcesFit"} <= table.keys()
    assert not {"PrioritySort", "ImageLocality", "NodeResourcesBalancedAllocation"} & table.keys()


def test_a_plugin_that_names_no_events_may_be_helped_by_anything() -> None:
    class Strange:
        name = "Strange"
        reads = ()

        def filter(self, pod: Any, nodes: Any, verdict: Any) -> None: ...

    profile = QueueProfile(by_image, events_to_register([Strange()]))
    assert profile.may_help(("Strange",), node_added(a_node()), [a_pod()])
