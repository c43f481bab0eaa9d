"""A pod's claims for VolumeBinding: those that are bound, and those that wait for the pod.

Pods whose claims differ only by name are one class.
"""

from collections.abc import Sequence

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.storage import WAIT_FOR_FIRST_CONSUMER
from kubenexus.framework.verdict import Code
from kubenexus.plugins.volume_binding.matching import UnboundClaim, unbound_claim
from kubenexus.state.volumes.claim_users import not_owned_by
from kubenexus.state.volumes.pod_volumes import ClaimUse
from kubenexus.state.volumes.records import ClaimRecord
from kubenexus.state.volumes.store import VolumeStore
from kubenexus.state.volumes.volume_topology import VolumeTopology


class BoundClaim(msgspec.Struct, frozen=True, array_like=True):
    """The nodes from which a bound claim's volume can be used (`reach`). For an in-tree `plugin`, `moved` replaces
    `reach` on nodes where the plugin is migrated to a CSI driver."""

    missing: bool = False
    reach: VolumeTopology | None = None
    plugin: str = ""
    moved: VolumeTopology | None = None
    problem: str = ""


class PodClaims(msgspec.Struct, frozen=True, array_like=True):
    """The parts of a pod's claims that results depend on; or why the pod cannot be placed."""

    held: tuple[BoundClaim, ...] = ()
    wanted: tuple[UnboundClaim, ...] = ()
    problem: str = ""
    code: int = Code.UNRESOLVABLE


def pod_claims(pod: Pod, uses: Sequence[ClaimUse], store: VolumeStore) -> PodClaims:
    """Returns a pod's claims as of now."""
    claims = []
    for use in uses:
        claim = store.claims.get(f"{pod.metadata.namespace}/{use.claim}")
        problem = _problem(use, claim, pod)
        if claim is None or problem:
            return PodClaims(problem=problem)
        claims.append((use, claim))
    held, waiting, immediate = [], [], False
    for use, claim in claims:
        known = store.classes.get(claim.class_name) if claim.class_name else None
        if claim.bound:
            held.append(_held(claim, store))
        elif known is not None and known.mode is None:
            return PodClaims(problem=f'VolumeBindingMode not set for StorageClass "{known.name}"', code=Code.ERROR)
        elif known is None or known.mode != WAIT_FOR_FIRST_CONSUMER or claim.volume:
            immediate = True
        elif claim.problem:
            return PodClaims(problem=claim.problem, code=Code.ERROR)
        else:
            waiting.append(unbound_claim(use.position, claim, store))
    if immediate:
        return PodClaims(problem="pod has unbound immediate PersistentVolumeClaims")
    return PodClaims(tuple(each for each in held if each != _ANYWHERE), tuple(waiting))


def _problem(use: ClaimUse, claim: ClaimRecord | None, pod: Pod) -> str:
    """Returns why a claim cannot be used on any node, or ""."""
    named = f'persistentvolumeclaim "{use.claim}"'
    if claim is None and use.ephemeral:
        return f"waiting for ephemeral volume controller to create the {named}"
    if claim is None:
        return f"{named} not found"
    if claim.lost:
        return f'{named} bound to non-existent persistentvolume "{claim.volume}"'
    if claim.deleting:
        return f"{named} is being deleted"
    if use.ephemeral and claim.owner != pod.metadata.uid:
        return not_owned_by(claim, pod.key)
    return ""


_ANYWHERE = BoundClaim()


def _held(claim: ClaimRecord, store: VolumeStore) -> BoundClaim:
    volume = store.volumes.get(claim.volume)
    if volume is None:
        return BoundClaim(missing=True)
    if not volume.plugin:
        return BoundClaim(reach=volume.reach)
    return BoundClaim(False, volume.reach, volume.plugin, volume.moved, volume.problem)
