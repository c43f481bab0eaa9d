"""Events that may help a pod which lacked devices."""

from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.api.devices.inventory import NO_FACTS, node_facts
from kubenexus.api.devices.pod_needs import requests_devices
from kubenexus.api.keys import tenant
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource


def devices_freed(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether the pod that is gone held a device: by name, or by the number that it requests."""
    return event.held_devices or requests_devices(event.old)


def node_devices_changed(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether the node states something else about its devices, or about the tenants that it is for."""
    old, new = event.old, event.new
    if old is None:
        return node_facts(new) != NO_FACTS
    return node_facts(old) != node_facts(new) or old.metadata.labels.get(_TIER) != new.metadata.labels.get(_TIER)


_TIER: Final = tenant.RESERVED_TIER.key
DEVICE_EVENTS: Final = (
    ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, devices_freed),
    ClusterEventWithHint(
        EventResource.NODE,
        ActionType.ADD
        | ActionType.UPDATE_NODE_ALLOCATABLE
        | ActionType.UPDATE_NODE_LABEL
        | ActionType.UPDATE_NODE_ANNOTATION,
        node_devices_changed,
    ),
    ClusterEventWithHint(EventResource.RESOURCE_SLICE, ActionType.ALL),
    ClusterEventWithHint(EventResource.NODE_RESOURCE_TOPOLOGY, ActionType.ALL),
    ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
)
