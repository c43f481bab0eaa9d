"""The writes of device claims as data. Each has the resourceVersion of the claim that it was made from."""

from typing import Any

from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.api.devices.resource_claim import (
    EXTENDED_RESOURCE_CLAIM,
    FINALIZER,
    AllocationResult,
    ConsumerReference,
    ResourceClaim,
)
from kubenexus.base.timestamps import format_time
from kubenexus.client.calls import Call
from kubenexus.client.kinds import RESOURCE_CLAIMS
from kubenexus.client.verbs import create, delete, patch
from kubenexus.state.claims.store import ClaimAllocation


def finalizer_call(claim: ResourceClaim) -> Call:
    """Keeps a claim from going away while it holds devices."""
    return _patch(claim, {}, finalizers=[*claim.metadata.finalizers, FINALIZER])


def unfinalized_call(claim: ResourceClaim) -> Call:
    """Lets a claim go away."""
    return _patch(claim, {}, finalizers=[each for each in claim.metadata.finalizers if each != FINALIZER])


def allocate_call(claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod, now: float) -> Call:
    """Writes that a pod uses a claim, and the allocation if the claim has none."""
    meta = pod.metadata
    users = [*claim.status.reserved_for, ConsumerReference(resource="pods", name=meta.name, uid=meta.uid)]
    status: dict[str, Any] = {"reservedFor": users}
    if claim.status.allocation is None and allocation is not None:
        status["allocation"] = replace(allocation, allocation_timestamp=format_time(now))
    return _patch(claim, {"status": status}, part="status")


def deallocate_call(claim: ResourceClaim, pod_uid: str) -> Call:
    """Takes back that a pod uses a claim, and the allocation if no other pod does."""
    users = [each for each in claim.status.reserved_for if each.uid != pod_uid]
    status: dict[str, Any] = {"reservedFor": users or None}
    if not users:
        status |= {"allocation": None, "devices": None}
    return _patch(claim, {"status": status}, part="status")


def create_extended_call(pod: Pod, given: ClaimAllocation) -> Call:
    """Makes the claim for the extended resources of a pod."""
    meta = pod.metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
    metadata = {
        "generateName": f"{meta.name}-extended-resources-",
        "namespace": meta.namespace,
        "ownerReferences": [owner],
        "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
    }
    body = {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": given.spec,
    }
    return create(RESOURCE_CLAIMS, body, meta.namespace)


def delete_call(claim: ResourceClaim) -> Call:
    return delete(RESOURCE_CLAIMS, claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)


def _patch(claim: ResourceClaim, body: dict[str, Any], *, part: str = "", **metadata: Any) -> Call:
    meta = claim.metadata
    same = {"uid": meta.uid, "resourceVersion": meta.resource_version, **metadata}
    return patch(RESOURCE_CLAIMS, meta.namespace, meta.name, {"metadata": same, **body}, part=part)
