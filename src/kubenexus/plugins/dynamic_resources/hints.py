"""Queueing hints of DynamicResources: which changes of a claim may help a waiting pod."""

from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.framework.cluster_events import ClusterEvent


def claim_changed(plugin: Any, pod: Pod, event: ClusterEvent) -> bool:
    """Whether devices became free, or a claim of the pod itself was made or changed."""
    old: ResourceClaim | None = event.old
    new: ResourceClaim | None = event.new
    held = old is not None and old.status.allocation is not None
    if new is None:
        return held or old is None
    if held and new.status.allocation is None:
        return True
    if not _uses(pod, new):
        return False
    return old is None or old.status != new.status or old.metadata.uid != new.metadata.uid


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    if any(each.uid == pod.metadata.uid for each in claim.metadata.owner_references):
        return True
    return any(claim_name(pod, each) == claim.metadata.name for each in pod.spec.resource_claims)
