"""The allocations of a placed pod, by the key of each claim instead of its position in the pod."""

import hashlib
import uuid

from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.api.devices.resource_claim import AllocationResult
from kubenexus.state.claims.store import ClaimAllocation, ClaimChoice, ClaimStore


def claim_allocations(pod: Pod, choices: tuple[ClaimChoice, ...], store: ClaimStore) -> tuple[ClaimAllocation, ...]:
    """Returns the allocations of a pod's claims. A claim that is gone since has none."""
    found = []
    for choice in choices:
        if choice.position < 0:
            key, uid = "", f"{pod.metadata.uid}/extended-resources"
        else:
            name = claim_name(pod, pod.spec.resource_claims[choice.position])
            key = f"{pod.metadata.namespace}/{name}"
            if key not in store.claims:
                continue
            uid = store.claims[key].claim.metadata.uid
        found.append(ClaimAllocation(key, uid, with_share_ids(choice.allocation, uid), choice.spec, choice.mappings))
    return tuple(found)


def with_share_ids(allocation: AllocationResult, uid: str) -> AllocationResult:
    """Returns the allocation with an ID for each share of a device. They follow from the claim, so that a replay of the
    decision has the same ones."""
    results = [
        each if each.share_id is None else replace(each, share_id=_share_id(uid, i))
        for i, each in enumerate(allocation.devices.results)
    ]
    return replace(allocation, devices=replace(allocation.devices, results=results))


def _share_id(uid: str, position: int) -> str:
    return str(uuid.UUID(bytes=hashlib.blake2b(f"{uid} {position}".encode(), digest_size=16).digest(), version=4))
