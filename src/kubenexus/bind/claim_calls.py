"""The calls for device claims as data. Each write has the resourceVersion of the claim that it was made from."""

from collections.abc import Callable
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
from kubenexus.client.kinds import ApiResource
from kubenexus.client.verbs import create, delete, get, patch
from kubenexus.state.claims.store import ClaimAllocation


def pod_user(pod: Pod) -> ConsumerReference:
    """Returns a pod as a user of claims."""
    return ConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


class ClaimCalls:
    """Calls to one server. `served` returns the version of claims that it has; their fields are the same in all."""

    def __init__(self, served: Callable[[], ApiResource]) -> None:
        self._served = served

    def read(self, claim: ResourceClaim) -> Call:
        return get(self._served(), claim.metadata.namespace, claim.metadata.name)

    def add_finalizer(self, claim: ResourceClaim) -> Call:
        """Keeps a claim from going away while it holds devices."""
        return self._patch(claim, {}, finalizers=[*claim.metadata.finalizers, FINALIZER])

    def remove_finalizer(self, claim: ResourceClaim) -> Call:
        """Lets a claim go away."""
        return self._patch(claim, {}, finalizers=[each for each in claim.metadata.finalizers if each != FINALIZER])

    def allocate(
        self, claim: ResourceClaim, allocation: AllocationResult | None, user: ConsumerReference, now: float
    ) -> Call:
        """Writes that a pod or a PodGroup uses a claim, and the allocation if the claim has none."""
        status: dict[str, Any] = {"reservedFor": [*claim.status.reserved_for, user]}
        if claim.status.allocation is None and allocation is not None:
            status["allocation"] = replace(allocation, allocation_timestamp=format_time(now))
        return self._patch(claim, {"status": status}, part="status")

    def deallocate(self, claim: ResourceClaim, *uids: str) -> Call:
        """Takes back that these use a claim, by UID, and the allocation if no other pod does."""
        users = [each for each in claim.status.reserved_for if each.uid not in uids]
        status: dict[str, Any] = {"reservedFor": users or None}
        if not users:
            status |= {"allocation": None, "devices": None}
        return self._patch(claim, {"status": status}, part="status")

    def create_extended(self, pod: Pod, given: ClaimAllocation) -> Call:
        """Makes the claim for the extended resources of a pod."""
        meta, served = pod.metadata, self._served()
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
        metadata = {
            "generateName": f"{meta.name}-extended-resources-",
            "namespace": meta.namespace,
            "ownerReferences": [owner],
            "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
        }
        body = {"apiVersion": served.api_version, "kind": served.kind, "metadata": metadata, "spec": given.spec}
        return create(served, body, meta.namespace)

    def delete(self, claim: ResourceClaim) -> Call:
        return delete(self._served(), claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)

    def _patch(self, claim: ResourceClaim, body: dict[str, Any], *, part: str = "", **metadata: Any) -> Call:
        meta = claim.metadata
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version, **metadata}
        return patch(self._served(), meta.namespace, meta.name, {"metadata": same, **body}, part=part)
