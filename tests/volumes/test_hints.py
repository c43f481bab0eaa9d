"""Which events wake a pod that a rule about volumes refused."""

from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource, events_to_register
from kubenexus.plugins import BUILT_IN
from kubenexus.testing.builders import ZONE, a_node, a_pod
from tests.volumes.builders import (
    DRIVER,
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_mounting_pod,
    a_volume,
    an_attachment,
    mounting,
)

POD = a_mounting_pod("new", "data", {"gcePersistentDisk": {"pdName": "d"}})
PLAIN_DISK = a_mounting_pod("new", {"gcePersistentDisk": {"pdName": "d"}})
OWN = a_mounting_pod("new", {"ephemeral": {}})
LIMITS, BINDING, ZONES, RESTRICTIONS = "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "VolumeRestrictions"


def woken(plugin: str, pod: Pod, event: ClusterEvent) -> bool:
    wakes = events_to_register([BUILT_IN[plugin]({})])[plugin]
    return any(wake.matches(event) and (wake.hint is None or wake.hint(pod, event)) for wake in wakes)


def came(resource: EventResource, new: Any) -> ClusterEvent:
    return ClusterEvent(resource, ActionType.ADD, None, new)


def changed(resource: EventResource, old: Any, new: Any) -> ClusterEvent:
    return ClusterEvent(resource, ActionType.UPDATE, old, new)


def left(resource: EventResource, old: Any) -> ClusterEvent:
    return ClusterEvent(resource, ActionType.DELETE, old)


CLAIM, VOLUME, CLASS = (
    EventResource.PERSISTENT_VOLUME_CLAIM,
    EventResource.PERSISTENT_VOLUME,
    EventResource.STORAGE_CLASS,
)
CSI_NODE, CSI_DRIVER, CAPACITY = EventResource.CSI_NODE, EventResource.CSI_DRIVER, EventResource.CSI_STORAGE_CAPACITY
ATTACHED, GONE = EventResource.VOLUME_ATTACHMENT, EventResource.ASSIGNED_POD


def case(plugins: str | list[str], pod: Pod, event: ClusterEvent, expected: bool, name: str) -> Any:
    return pytest.param([plugins] if isinstance(plugins, str) else plugins, pod, event, expected, id=name)


@pytest.mark.parametrize(
    ("plugins", "pod", "event", "expected"),
    [
        case([RESTRICTIONS, LIMITS, BINDING, ZONES], POD, came(CLAIM, a_claim("data")), True, "its claim is there"),
        case([RESTRICTIONS, LIMITS, BINDING, ZONES], POD, came(CLAIM, a_claim("other")), False, "another claim is"),
        case(BINDING, OWN, came(CLAIM, a_claim("new-v0")), True, "the claim of its ephemeral volume is there"),
        case(
            [BINDING, ZONES], POD, came(CLAIM, a_claim("data", namespace="far")), False, "a claim in another namespace"
        ),
        case([BINDING, ZONES], POD, changed(CLAIM, a_claim("data"), a_claim("data", volume="v")), True, "it was bound"),
        case(RESTRICTIONS, POD, changed(CLAIM, a_claim("data"), a_claim("data", volume="v")), False, "that is no help"),
        case([RESTRICTIONS, LIMITS, BINDING, ZONES], POD, came(EventResource.NODE, a_node("n")), True, "a new node"),
        case(RESTRICTIONS, POD, left(GONE, PLAIN_DISK), True, "a pod with its disk is gone"),
        case(RESTRICTIONS, POD, left(GONE, a_mounting_pod("x", "data")), True, "a pod with its claim is gone"),
        case(RESTRICTIONS, POD, left(GONE, a_mounting_pod("x", "other")), False, "a pod with another claim is gone"),
        case(
            RESTRICTIONS,
            POD,
            left(GONE, mounting(a_pod("x", namespace="far"), "data")),
            False,
            "a pod with a claim of that name in another namespace is gone",
        ),
        case(
            [LIMITS, BINDING], POD, left(GONE, a_mounting_pod("x", "c", node="n")), True, "a pod with volumes is gone"
        ),
        case([LIMITS, BINDING], POD, left(GONE, a_pod("x", node="n")), False, "a pod without volumes is gone"),
        case(LIMITS, POD, came(CSI_NODE, a_csi_node("n", {DRIVER: 1})), True, "a node's drivers are known"),
        case(
            LIMITS, POD, changed(CSI_NODE, a_csi_node("n", {DRIVER: 1}), a_csi_node("n", {DRIVER: 2})), True, "more fit"
        ),
        case(
            LIMITS,
            POD,
            changed(CSI_NODE, a_csi_node("n", {DRIVER: 2}), a_csi_node("n", {DRIVER: 1})),
            False,
            "fewer do",
        ),
        case(
            LIMITS,
            POD,
            changed(CSI_NODE, a_csi_node("n", {DRIVER: 2}), a_csi_node("n", {DRIVER: None})),
            True,
            "any do",
        ),
        case(
            LIMITS, POD, changed(CSI_NODE, a_csi_node("n"), a_csi_node("n", {DRIVER: 0})), True, "a driver is installed"
        ),
        case(
            BINDING, POD, changed(CSI_NODE, a_csi_node("n"), a_csi_node("n", {}, "x")), True, "a plugin is taken over"
        ),
        case(BINDING, POD, changed(CSI_NODE, a_csi_node("n"), a_csi_node("n", {DRIVER: 1})), False, "limits are not"),
        case(LIMITS, POD, left(ATTACHED, an_attachment("a", "v", "n")), True, "something was detached"),
        case(LIMITS, PLAIN_DISK, left(ATTACHED, an_attachment("a", "v", "n")), False, "by a driver it does not need"),
        case(
            [LIMITS, BINDING], POD, changed(CSI_DRIVER, a_driver(needed=True), a_driver()), True, "a driver is optional"
        ),
        case(
            BINDING, POD, changed(CSI_DRIVER, a_driver(capacity=True), a_driver()), True, "space is no longer counted"
        ),
        case(BINDING, POD, changed(CSI_DRIVER, a_driver(), a_driver(capacity=True)), False, "space is counted now"),
        case([LIMITS, BINDING], POD, left(CSI_DRIVER, a_driver(needed=True)), True, "a driver is gone"),
        case(BINDING, POD, came(VOLUME, a_volume("v")), True, "a volume is there"),
        case(BINDING, POD, changed(VOLUME, a_volume("v"), a_volume("v", claim="c")), True, "a volume changed"),
        case(ZONES, POD, changed(VOLUME, a_volume("v"), a_volume("v", claim="c")), False, "its zones did not"),
        case(ZONES, POD, changed(VOLUME, a_volume("v"), a_volume("v", labels={ZONE: "a"})), True, "its zones did"),
        case(ZONES, POD, came(CLASS, a_class()), True, "a class whose claims wait"),
        case(ZONES, POD, came(CLASS, a_class(mode="Immediate")), False, "a class whose claims do not"),
        case(BINDING, POD, came(CLASS, a_class(mode="Immediate")), True, "any class"),
        case(BINDING, POD, changed(CLASS, a_class(), a_class(zones=["a"])), True, "a class opens a zone"),
        case(BINDING, POD, changed(CLASS, a_class(), a_class(by="other")), False, "a class changes otherwise"),
        case(BINDING, POD, came(CAPACITY, a_capacity("k")), True, "there is capacity"),
        case(BINDING, POD, changed(CAPACITY, a_capacity("k", "1Gi"), a_capacity("k", "2Gi")), True, "more of it"),
        case(BINDING, POD, changed(CAPACITY, a_capacity("k", "2Gi"), a_capacity("k", "1Gi")), False, "less of it"),
        case(BINDING, POD, changed(CAPACITY, a_capacity("k", None), a_capacity("k", "0")), True, "it is known now"),
    ],
)
def test_what_wakes_whom(plugins: list[str], pod: Pod, event: ClusterEvent, expected: bool) -> None:
    assert {plugin: woken(plugin, pod, event) for plugin in plugins} == dict.fromkeys(plugins, expected)
