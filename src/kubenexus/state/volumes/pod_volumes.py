"""The volumes of a pod that concern scheduling: claims and inline disks.

Most pods have none, and no `PodVolumes`. Pods with equal volumes share one object.
"""

from operator import attrgetter
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kubenexus.api.core import Pod, Volume
from kubenexus.base.errors import Malformed, truncated
from kubenexus.state.volumes.csi_translation import AttachedVolume, csi_volume_of_inline

MAX_MOUNTED = 1_000


class ClaimUse(NamedTuple):
    """A claim used by the pod's volume at `position`. The claim of an ephemeral volume is created for the pod."""

    position: int
    claim: str
    ephemeral: bool


class InlineDisk(NamedTuple):
    """A disk that two pods of a node must not both mount, unless both only read it (`shareable`)."""

    kind: str
    name: str
    shareable: bool
    monitors: tuple[str, ...] = ()

    def clashes(self, other: "InlineDisk") -> bool:
        """Returns whether two disks of the same kind and name exclude each other. Ceph images are the same only if they
        share a monitor."""
        met = not self.monitors or not set(self.monitors).isdisjoint(other.monitors)
        return met and not (self.shareable and other.shareable)


class VolumeChoice(NamedTuple):
    """The volume chosen for the claim of the pod's volume at `position`: a persistent volume, or "" for one that is to
    be provisioned."""

    position: int
    volume: str


class PodVolumes(msgspec.Struct, frozen=True, weakref=True):
    """The volumes of a pod. `drivers`: some volume may concern a driver's limit, even if none is counted."""

    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[InlineDisk, ...] = ()
    inline: tuple[AttachedVolume, ...] = ()
    problem: str = ""
    drivers: bool = False


_shared: "WeakValueDictionary[PodVolumes, PodVolumes]" = WeakValueDictionary()


def has_scheduled_volumes(pod: Pod) -> bool:
    """Returns whether the pod has any volume that concerns scheduling. Called for every pod: must be fast."""
    for volume in pod.spec.volumes:  # noqa: SIM110  # a generator would take longer
        if _all(volume) != _NONE:
            return True
    return False


def mounted(pod: Pod) -> int:
    """Returns the number of the pod's volumes that concern scheduling."""
    return sum([_all(volume) != _NONE for volume in pod.spec.volumes])


def pod_volumes(pod: Pod) -> PodVolumes | None:
    """Returns the pod's volumes, or None if none concern scheduling. At most MOST_MOUNTED are read: no node attaches as
    many, and no pod with more is placed (`framework.pod_limits`)."""
    if not has_scheduled_volumes(pod):
        return None
    claims: list[ClaimUse] = []
    disks: list[InlineDisk] = []
    own: list[Volume] = []
    for position, volume in enumerate(pod.spec.volumes):
        if len(claims) + max(len(disks), len(own)) >= MAX_MOUNTED:
            break
        if volume.persistent_volume_claim is not None:
            claims.append(ClaimUse(position, volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None:
            claims.append(ClaimUse(position, f"{pod.metadata.name}-{volume.name}", True))
        elif _taken_over(volume) != _NOT_TAKEN_OVER:
            own.append(volume)
        _add_disks(disks, volume)
    inline, problem = _inline(own) if own else ((), "")
    mounts = PodVolumes((*claims,), (*disks,), inline, problem, bool(claims or own))
    return _shared.setdefault(mounts, mounts)


# The sources that concern scheduling, and of them those that were migrated to a CSI driver.
_TAKEN_OVER = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "azure_disk",
    "azure_file",
    "cinder",
    "portworx_volume",
    "vsphere_volume",
)
_taken_over = attrgetter(*_TAKEN_OVER)
_all = attrgetter("persistent_volume_claim", "ephemeral", "iscsi", "rbd", *_TAKEN_OVER)
_NOT_TAKEN_OVER, _NONE = (None,) * 7, (None,) * 11


def _add_disks(found: list[InlineDisk], volume: Volume) -> None:
    """Adds the exclusive disks of a volume. AWS disks are never shared; readers share the others."""
    if volume.gce_persistent_disk is not None:
        found.append(InlineDisk("gce", volume.gce_persistent_disk.pd_name, volume.gce_persistent_disk.read_only))
    if volume.aws_elastic_block_store is not None:
        found.append(InlineDisk("aws", volume.aws_elastic_block_store.volume_id, False))
    if volume.iscsi is not None:
        found.append(InlineDisk("iscsi", volume.iscsi.iqn, volume.iscsi.read_only))
    if volume.rbd is not None and volume.rbd.monitors:
        image = volume.rbd
        found.append(InlineDisk("rbd", f"{image.pool}/{image.image}", image.read_only, tuple(image.monitors)))


def _inline(volumes: list[Volume]) -> tuple[tuple[AttachedVolume, ...], str]:
    """Returns the CSI volumes of in-tree disks, each once, and the problem of the first that cannot be translated."""
    attached: dict[AttachedVolume, None] = {}
    problem = ""
    for volume in volumes:
        try:
            attachment = csi_volume_of_inline(volume)
        except Malformed as found:
            problem = problem or f"converting volume({truncated(volume.name)}) from inline to csi: {found}"
            continue
        if attachment is not None:
            attached[attachment] = None
    return tuple(attached), problem
