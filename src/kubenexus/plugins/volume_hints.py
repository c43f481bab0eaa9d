"""Queueing hints of the volume plugins: events that may help a pod that one of them rejected.

Each function takes one event and one waiting pod, and returns False only if the event cannot have made a difference.
These are upstream's hints and a few more. Upstream ignores that a driver may be installed, lose its limit or no longer
be required, and that a volume may become free which was assumed for a pod that failed.
"""

from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.quantity import to_units
from kubenexus.api.storage import MIGRATED_PLUGINS, WAIT_FOR_FIRST_CONSUMER, CSINode, CSIStorageCapacity
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.state.volumes.pod_volumes import PodVolumes, pod_volumes
from kubenexus.state.volumes.records import zones_of

_UNLIMITED = 1 << 31


def own_claim(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether the claim is one of this pod's."""
    claim = event.new.metadata
    return claim.namespace == pod.metadata.namespace and any(u.claim == claim.name for u in _mounts(pod).claims)


def disk_left(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a pod is gone that mounted a disk of this one, or used one of its claims."""
    ours, theirs = _mounts(pod), _mounts(event.old)
    if pod.metadata.namespace == event.old.metadata.namespace:
        used = {use.claim for use in theirs.claims if not use.ephemeral}
        if any(use.claim in used for use in ours.claims if not use.ephemeral):
            return True
    return any((d.kind, d.name) == (e.kind, e.name) and d.clashes(e) for d in ours.disks for e in theirs.disks)


def volume_left(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a pod is gone whose volumes may be detached, or were assumed for it."""
    left = event.old
    return bool(left.spec.node_name or left.status.nominated_node_name) and _mounts(left).drivers


def detached(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a volume was detached by a driver that may have to attach one of this pod's."""
    mounts = _mounts(pod)
    claimed = any(not use.ephemeral for use in mounts.claims)
    return claimed or any(attachment.driver == event.old.spec.attacher for attachment in mounts.inline)


def class_came(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a class is new whose claims wait for their pods."""
    return bool(event.new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def class_opened(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a class is new, or has other allowed topologies."""
    return event.old is None or event.old.allowed_topologies != event.new.allowed_topologies


def volume_moved(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a volume is new, or has other zones."""
    return event.old is None or zones_of(event.old.metadata.labels) != zones_of(event.new.metadata.labels)


def driver_took_over(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a CSINode is new, or has other migrated in-tree plugins."""
    return event.old is None or _migrated(event.old) != _migrated(event.new)


def limit_rose(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a driver attaches more volumes to a node than before, or was installed there."""
    before = {} if event.old is None else _limits(event.old)
    return any(limit > before.get(driver, -1) for driver, limit in _limits(event.new).items())


def driver_yields(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether a driver is gone, no longer required on nodes, or no longer tracks storage capacity."""
    old, new = event.old.spec, None if event.new is None else event.new.spec
    if new is None:
        return True
    insists = old.prevent_pod_scheduling_if_missing and not new.prevent_pod_scheduling_if_missing
    return insists or (old.storage_capacity and not new.storage_capacity)


def capacity_rose(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Returns whether larger volumes can be provisioned somewhere than before."""
    return event.old is None or _largest(event.new) > _largest(event.old)


def _mounts(pod: Pod) -> PodVolumes:
    return pod_volumes(pod) or PodVolumes()


def _migrated(node: CSINode) -> str:
    return node.metadata.annotations.get(MIGRATED_PLUGINS, "")


def _limits(node: CSINode) -> dict[str, int]:
    counts = {d.name: None if d.allocatable is None else d.allocatable.count for d in node.spec.drivers}
    return {driver: _UNLIMITED if count is None else count for driver, count in counts.items()}


def _largest(capacity: CSIStorageCapacity) -> int:
    text = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return -1 if text is None else to_units(text)
