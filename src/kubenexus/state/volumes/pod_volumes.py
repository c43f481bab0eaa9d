"""What a pod mounts, as far as the scheduler has a say in it: claims, and disks that stand in the pod itself.

Most pods mount nothing of the kind, and have no `PodVolumes` at all. Pods that mount the same share one.
"""

from operator import attrgetter
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kubenexus.api.core import Pod, Volume
from kubenexus.base.errors import Malformed
from kubenexus.state.volumes.csi_translation import AttachedVolume, csi_volume_of_inline

MOST_MOUNTED = 1_000


class ClaimUse(NamedTuple):
    """A claim as one of the pod's volumes, the one at `position`. An ephemeral volume's claim is made for the pod."""

    position: int
    claim: str
    ephemeral: bool


class InlineDisk(NamedTuple):
    """A disk that must not be mounted by two pods of a node, unless both only read it (`shareable`)."""

    kind: str
    name: str
    shareable: bool
    monitors: tuple[str, ...] = ()

    def clashes(self, other: "InlineDisk") -> bool:
        """Both have the same kind and name; images of Ceph are the same if they share a monitor, too."""
        met = not self.monitors or not set(self.monitors).isdisjoint(other.monitors)
        return met and not (self.shareable and other.shareable)


class VolumeChoice(NamedTuple):
    """What was decided for the claim of the pod's volume at `position`: the persistent volume it is to be bound to, or
    "" for one that is to be made."""

    position: int
    volume: str


class PodVolumes(msgspec.Struct, frozen=True, weakref=True):
    """`drivers` says whether some volume may concern a driver's limit, even if none is counted."""

    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[InlineDisk, ...] = ()
    inline: tuple[AttachedVolume, ...] = ()
    problem: str = ""
    drivers: bool = False


_shared: "WeakValueDictionary[PodVolumes, PodVolumes]" = WeakValueDictionary()


def has_scheduled_volumes(pod: Pod) -> bool:
    """Whether it mounts anything that concerns us. Every pod is asked: this has to be quick."""
    for volume in pod.spec.volumes:  # noqa: SIM110  # a generator would take longer
        if _all(volume) != _NONE:
            return True
    return False


def mounted(pod: Pod) -> int:
    """How many of its volumes concern us."""
    return sum([_all(volume) != _NONE for volume in pod.spec.volumes])


def pod_volumes(pod: Pod) -> PodVolumes | None:
    """None if it mounts nothing that concerns us. Of thousands of volumes the first count: no node attaches so many,
    and no pod with so many is placed (`framework.pod_limits`)."""
    if not has_scheduled_volumes(pod):
        return None
    claims: list[ClaimUse] = []
    disks: list[InlineDisk] = []
    own: list[Volume] = []
    for position, volume in enumerate(pod.spec.volumes):
        if len(claims) + max(len(disks), len(own)) >= MOST_MOUNTED:
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


# The sources that matter, and of them those that a CSI driver took over.
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
    """AWS disks are never shared, the others by readers."""
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
    """The in-tree disks that a driver attaches, each once, and why one of them cannot be read."""
    attached: dict[AttachedVolume, None] = {}
    problem = ""
    for volume in volumes:
        try:
            attachment = csi_volume_of_inline(volume)
        except Malformed as found:
            problem = problem or f"converting volume({volume.name}) from inline to csi: {found}"
            continue
        if attachment is not None:
            attached[attachment] = None
    return tuple(attached), problem
