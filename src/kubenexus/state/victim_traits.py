"""What preemption reads of a running pod besides priority and requests. Pods of one template share the result."""

from typing import Final

import msgspec

from kubenexus.api.classification.driver import is_driver
from kubenexus.api.classification.workload import is_preemptible
from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GroupRef
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.api.keys import tenant, workload
from kubenexus.base.errors import Malformed
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.state.tenants import own_tiers

SYSTEM_CRITICAL: Final = 2_000_000_000  # priorities from here on are the system's
_CRITICAL_CLASSES: Final = frozenset({"system-node-critical", "system-cluster-critical"})
_MIRROR: Final = "kubernetes.io/config.mirror"
# By kind and API version: owners of pods that are never victims. A kind of another group may be any tenant's.
_EXEMPT_OWNERS: Final = frozenset({("Node", "v1"), ("DaemonSet", "apps/v1")})
_AGREES: Final = tenant.PREEMPTIBLE.keys  # by which a pod agrees to be evicted
_MAX_INTERNED: Final = 10_000


class GangClaim(msgspec.Struct, frozen=True, gc=False):
    """The gang of a pod: its key, and its minimum, or the object that has it."""

    key: str
    minimum: int
    ref: GroupRef | None


class VictimTraits(msgspec.Struct, frozen=True, gc=False):
    """`exempt`: never a victim (a pod of a DaemonSet, a static pod, or one that the system needs). `driver`: the other
    members of its gang cannot start without it. `movable`: it agrees to be evicted, its controller makes another one,
    and that one may run on another node. The last three name the tenant of the pod."""

    exempt: bool = False
    driver: bool = False
    gang: GangClaim | None = None
    class_tier: str | None = None
    pod_tier: str | None = None
    scheduler: str = ""
    movable: bool = False


NO_TRAITS: Final = VictimTraits()
_interned: dict[VictimTraits, VictimTraits] = {}


def victim_traits(pod: Pod) -> VictimTraits:
    """Returns the traits of a pod. Equal traits are one object."""
    spec = pod.spec
    class_tier, pod_tier = own_tiers(pod)
    exempt, gang = _exempt(pod), _gang(pod)
    movable = not exempt and gang is None and _movable(pod)
    traits = VictimTraits(
        exempt, is_driver(pod.metadata.labels), gang, class_tier, pod_tier, spec.scheduler_name, movable
    )
    if len(_interned) >= _MAX_INTERNED:
        _interned.clear()
    return _interned.setdefault(traits, traits)


def saved_at(pod: Pod) -> float:
    """Returns when the pod last saved its work, 0 if no annotation states it."""
    stated = pod.metadata.annotations.get(workload.LAST_CHECKPOINT.key)
    return parse_timestamp(stated, 0.0) if stated else 0.0


def _exempt(pod: Pod) -> bool:
    """What a tenant can write does not count: the API server rejects a mirror annotation on a pod without a node, and
    the garbage collector deletes a pod whose owner of these kinds does not exist."""
    spec = pod.spec
    if spec.priority >= SYSTEM_CRITICAL or spec.priority_class_name in _CRITICAL_CLASSES:
        return True
    for owner in pod.metadata.owner_references:
        if owner.controller and (owner.kind, owner.api_version) in _EXEMPT_OWNERS:
            return True
    return _MIRROR in pod.metadata.annotations


def _movable(pod: Pod) -> bool:
    """A claim of a pod's own is made again with it, and the devices of the old one are free only after its end."""
    meta, spec = pod.metadata, pod.spec
    if spec.priority >= 0 and meta.labels.keys().isdisjoint(_AGREES) and meta.annotations.keys().isdisjoint(_AGREES):
        return False
    controlled = any(owner.controller and owner.uid for owner in meta.owner_references)
    return controlled and not spec.resource_claims and is_preemptible(pod)


def _gang(pod: Pod) -> GangClaim | None:
    try:
        claim = declared_gang(pod)
    except Malformed:
        return None
    return None if claim is None else GangClaim(claim.key, claim.minimum, claim.ref)
