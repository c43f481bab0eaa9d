"""`allocResourceClaims`: allocates the claims of a namespace before any pod uses them, as scheduler_perf does.

The devices are found by the scheduler's own search, on the nodes in a random order, without a scheduler.
"""

import random
from collections.abc import Iterator
from typing import TypeVar

from kubenexus.api.codec import decode
from kubenexus.api.core import Node
from kubenexus.api.devices.resource_claim import FINALIZER, AllocationResult, DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.plugins.dynamic_resources.claim_requests import ClaimError, compile_claims
from kubenexus.plugins.dynamic_resources.outcomes import ClaimOutcomes
from kubenexus.sim.apiserver.store import Store
from kubenexus.state.claims.assigned import with_share_ids
from kubenexus.state.ledger import Ledger

T = TypeVar("T", Node, ResourceSlice, DeviceClass, ResourceClaim)
_GROUP = "resource.k8s.io"


def allocation_calls(store: Store, namespace: str, rng: random.Random) -> Iterator[Call]:
    """Yields the calls that allocate the claims of a namespace, two for each. A claim that no node can serve has none.

    Each claim is found after the calls for the one before it were sent.
    """
    ledger = _ledger(store)
    columns = ledger.nodes
    for claim in list(_objects(store, f"resourceclaims.{_GROUP}", ResourceClaim)):
        if claim.metadata.namespace != namespace or claim.status.allocation is not None:
            continue
        allocation = _allocation(claim, ledger, rng.sample(sorted(columns.row_of), len(columns.row_of)))
        if allocation is None:
            continue
        meta = claim.metadata
        yield verbs.patch(kinds.RESOURCE_CLAIMS, namespace, meta.name, {"metadata": {"finalizers": [FINALIZER]}})
        status = {"status": {"allocation": allocation}}
        yield verbs.patch(kinds.RESOURCE_CLAIMS, namespace, meta.name, status, part="status")
        stored = store.get(f"resourceclaims.{_GROUP}", meta.key)
        if stored is not None:
            ledger.upsert_resource_claim(decode(stored, ResourceClaim))


def _ledger(store: Store) -> Ledger:
    """Returns the nodes and devices of a server."""
    ledger = Ledger()
    for node in _objects(store, "nodes", Node):
        ledger.upsert_node(node)
    for each in _objects(store, f"deviceclasses.{_GROUP}", DeviceClass):
        ledger.upsert_device_class(each)
    for found in _objects(store, f"resourceslices.{_GROUP}", ResourceSlice):
        ledger.upsert_resource_slice(found)
    for claim in _objects(store, f"resourceclaims.{_GROUP}", ResourceClaim):
        ledger.upsert_resource_claim(claim)
    return ledger


def _allocation(claim: ResourceClaim, ledger: Ledger, nodes: list[str]) -> AllocationResult | None:
    columns = ledger.nodes
    try:
        outcomes = ClaimOutcomes(compile_claims([(claim.metadata.key, claim.spec)], columns.claims.classes))
    except ClaimError:
        return None
    for node in nodes:
        given = outcomes.allocations(columns.row_of[node], columns)
        if not isinstance(given, str):
            return with_share_ids(given[0], claim.metadata.uid)
    return None


def _objects(store: Store, resource: str, kind: type[T]) -> Iterator[T]:
    for data in list(store.collection(resource).objects.values()):
        yield decode(data, kind)
