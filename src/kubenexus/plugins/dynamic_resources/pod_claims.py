"""The claims of a pod as its class has them: what each asks for or where it is available, without their names.

Claims of one template differ in their names only, so their pods are one class. What names a claim (`claim_name`) is
put into messages for the pod alone (`framework.object_names`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubenexus.api.core import Container, NodeSelector, Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.api.devices.resource_claim import (
    MAX_ALTERNATIVES,
    AllocationResult,
    DeviceAllocation,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubenexus.api.resource_names import is_extended
from kubenexus.api.resources import demand
from kubenexus.base.errors import Malformed, truncated
from kubenexus.framework.verdict import Code
from kubenexus.state.claims.pod_groups import is_for_pod_group
from kubenexus.state.claims.store import IMPLICIT_RESOURCE, ClaimStore, StoredClaim


class ClaimState(msgspec.Struct, frozen=True, gc=False):
    """A claim of a pod, by its position in the pod.

    An allocated claim is available on the nodes of its selector (None: all), or on none if its devices failed. A claim
    that is to be allocated has the number of its spec, else -1. `shared_with` is the UID of a claim that another member
    of the same gang brings.
    """

    position: int
    spec: int = -1
    selector: NodeSelector | None = None
    failed: bool = False
    optional_operations: bool = False
    score: int = 0
    shared_with: str = ""


class PodClaims(msgspec.Struct, frozen=True, gc=False):
    """All claims of a pod. `problem` refuses the pod as a whole. `resources` are its extended resources, if a class
    backs one of them; `stale`: the claim for these is left from an earlier attempt."""

    claims: tuple[ClaimState, ...] = ()
    problem: str = ""
    code: Code = Code.UNRESOLVABLE
    resources: tuple[tuple[str, int], ...] = ()
    stale: bool = False

    @property
    def wanted(self) -> tuple[ClaimState, ...]:
        return tuple(each for each in self.claims if each.spec >= 0)

    @property
    def any_wanted(self) -> bool:
        for each in self.claims:  # noqa: SIM110  # here and below: generators take longer, on the path of each pod
            if each.spec >= 0:
                return True
        return False

    @property
    def all_wanted(self) -> bool:
        for each in self.claims:  # noqa: SIM110
            if each.spec < 0:
                return False
        return True

    @property
    def allocated(self) -> tuple[ClaimState, ...]:
        return tuple(each for each in self.claims if each.spec < 0)


_MAX_TEMPLATES: Final = 1024  # sets of specs whose claims are remembered


class _Refused(Exception):
    """Why a pod cannot be scheduled now."""

    def __init__(self, problem: str, code: Code = Code.UNRESOLVABLE) -> None:
        super().__init__(problem)
        self.code = code


def pod_claims(pod: Pod, store: ClaimStore) -> PodClaims | None:
    """Returns the claims of a pod, or None if it has none and needs none."""
    resources = _extended_resources(pod, store)
    if not pod.spec.resource_claims and not resources:
        return None
    specs = None if resources else _specs_to_allocate(pod, store)
    if specs is None:
        return _read_claims(pod, resources, store)
    known: PodClaims | None = store.by_specs.get(specs)
    if known is None:
        known = _read_claims(pod, resources, store)
        if known is not None and not known.problem:
            if len(store.by_specs) >= _MAX_TEMPLATES:
                store.by_specs.clear()
            store.by_specs[specs] = known
    return known


def _specs_to_allocate(pod: Pod, store: ClaimStore) -> tuple[int, ...] | None:
    """Returns the specs of a pod's claims if each of them is there, is the pod's, and is to be allocated: then the rest
    follows from the specs and the classes. None if the claims have to be read one by one."""
    if store.unlisted:
        return None
    meta, claims, pending = pod.metadata, store.claims, store.pending
    found = []
    for each in pod.spec.resource_claims:
        name = claim_name(pod, each)
        stored = claims.get(f"{meta.namespace}/{name}") if name else None
        if stored is None:
            return None
        claim = stored.claim
        own = claim.metadata
        if claim.status.allocation is not None or own.uid in pending or own.deletion_timestamp:
            return None
        if not each.resource_claim_name and not (
            own.owner_references and own.owner_references[0].controller and own.owner_references[0].uid == meta.uid
        ):
            return None
        found.append(stored.spec)
    return tuple(found)


def _read_claims(pod: Pod, resources: tuple[tuple[str, int], ...], store: ClaimStore) -> PodClaims | None:
    if store.unlisted:
        return PodClaims(problem="the API server does not list resource claims: it is not known which devices are free")
    try:
        existing = list(_existing(pod, store))  # all of them, before the content of any matters
        claims = tuple([_state(position, found, store) for position, found in existing])
    except _Refused as refused:
        return PodClaims(problem=str(refused), code=refused.code)
    if not claims and not resources:
        return None
    stale = bool(resources) and store.extended_claim(pod.metadata.uid) is not None
    return PodClaims(claims=claims, resources=resources, stale=stale)


def _existing(pod: Pod, store: ClaimStore) -> Iterator[tuple[int, StoredClaim]]:
    """Yields the claims of a pod with their positions. Raises _Refused if one is missing or is going away."""
    namespace = pod.metadata.namespace
    for position, each in enumerate(pod.spec.resource_claims):
        if not each.resource_claim_name and not each.resource_claim_template_name:
            unset = f'spec.resourceClaim "{truncated(each.name)}": none of the supported fields are set'
            raise _Refused(f'pod "{namespace}/{pod.metadata.name}", {unset}')
        name = claim_name(pod, each)
        if name is None:
            raise _Refused(f'pod "{namespace}/{pod.metadata.name}": ResourceClaim not created yet')
        if not name:
            continue  # none is needed
        stored = store.claims.get(f"{namespace}/{name}")
        if stored is None:
            raise _Refused(f'could not find ResourceClaim "{namespace}/{truncated(name)}"')
        if stored.claim.metadata.deletion_timestamp:
            raise _Refused(f'resourceclaim "{name}" is being deleted')
        if each.resource_claim_template_name and not each.resource_claim_name:
            _check_owner(stored.claim, pod, store)
        yield position, stored


def _check_owner(claim: ResourceClaim, pod: Pod, store: ClaimStore) -> None:
    """Raises _Refused unless a claim was made for the pod, or for its PodGroup if that has claims."""
    if any(each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references):
        return
    group = store.pod_groups.user(pod)
    if group is not None and is_for_pod_group(claim, group):
        return
    owners = "Pod is not owner" if group is None else f"neither Pod nor PodGroup {group.name} is the owner"
    raise _Refused(f"ResourceClaim {claim.metadata.key} was not created for Pod {pod.key} ({owners})")


def _state(position: int, stored: StoredClaim, store: ClaimStore) -> ClaimState:
    claim = stored.claim
    if claim.status.allocation is not None:
        return _available(position, claim, claim.status.allocation)
    pending = store.pending.get(claim.metadata.uid)
    if pending is not None and not pending.trial:
        raise _Refused(f"resource claim {claim.metadata.key} is in the process of being allocated")
    if pending is not None:
        return msgspec.structs.replace(_available(position, claim, pending.allocation), shared_with=claim.metadata.uid)
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            _check_class(request.name, request.exactly.device_class_name, store)
        elif request.first_available:
            for each in request.first_available:
                _check_class(f"{request.name}/{each.name}", each.device_class_name, store)
        else:
            raise _Refused(f"resource claim {claim.metadata.key}, request {request.name}: unknown request type")
    return ClaimState(position, stored.spec)


def _check_class(request: str, name: str, store: ClaimStore) -> None:
    if not name:
        raise _Refused(f"request {request}: unsupported request type", Code.ERROR)
    if name not in store.classes:
        raise _Refused(f"request {request}: device class {truncated(name)} does not exist")


def _available(position: int, claim: ResourceClaim, allocation: AllocationResult) -> ClaimState:
    results = allocation.devices.results
    return ClaimState(
        position,
        selector=allocation.node_selector,
        failed=any(_has_failed(claim, each) for each in results if each.binding_conditions),
        optional_operations=any(each.skip_node_operations for each in results),
        score=score_of(claim.spec, {each.request for each in results}),
    )


def _has_failed(claim: ResourceClaim, device: DeviceAllocation) -> bool:
    """Whether the driver reports that the device cannot be bound."""
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == (device.driver, device.pool, device.device):
            true = {each.type for each in status.conditions if each.status == "True"}
            return not true.isdisjoint(device.binding_failure_conditions or ())
    return False


def score_of(spec: ResourceClaimSpec, taken: set[str]) -> int:
    """Returns the score of a claim: more for each alternative that comes earlier in its request."""
    return sum(
        MAX_ALTERNATIVES - i
        for request in spec.devices.requests
        if request.exactly is None
        for i, each in enumerate(request.first_available)
        if f"{request.name}/{each.name}" in taken
    )


def _extended_resources(pod: Pod, store: ClaimStore) -> tuple[tuple[str, int], ...]:
    """Returns the extended resources of a pod if a device class backs one of them, else ()."""
    known = store.class_of_resource
    if not known or not (_name_domains(pod.spec.containers) or _name_domains(pod.spec.init_containers)):
        return ()
    try:
        asked = [(name, amount) for name, amount in demand(pod).amounts if amount and "/" in name]
    except Malformed:  # the class of the pod reports it
        return ()
    if not any(name in known for name, _ in asked):
        return ()
    return tuple((name, amount) for name, amount in asked if is_extended(name) or name.startswith(IMPLICIT_RESOURCE))


def _name_domains(containers: Sequence[Container]) -> bool:
    """Whether a container requests a resource with a domain in its name, as extended ones have it."""
    for each in containers:
        for named in (each.resources.requests, each.resources.limits):
            for name in named or ():
                if "/" in name:
                    return True
    return False
