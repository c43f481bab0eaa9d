"""What a pod mounts, as far as the scheduler has a say in it: claims, and disks that stand in the pod itself.

Most pods mount nothing of the kind, and have no `Mounts` at all. Pods that mount the same share one.
"""

from operator import attrgetter
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kubenexus.api.core import Pod, Volume
from kubenexus.base.errors import Malformed
from kubenexus.state.volumes.translate import Attachment, of_inline

MOST_MOUNTED = 1_000


class Use(NamedTuple):
    """A claim as one of the pod's volumes, the one at `position`. An ephemeral volume's claim is made for the pod."""

    position: int
    claim: str
    ephemeral: bool


class Disk(NamedTuple):
    """A disk that must not be mounted by two pods of a node, unless both only read it (`shareable`)."""

    kind: str
    name: str
    shareable: bool
    monitors: tuple[str, ...] = ()

    def clashes(self, other: "Disk") -> bool:
        """Both have the same kind and name; images of Ceph are the same if they share a monitor, too."""
        met = not self.monitors or not set(self.monitors).isdisjoint(other.monitors)
        return met and not (self.shareable and other.shareable)


class Pick(NamedTuple):
    """What was decided for the claim of the pod's volume at `position`: the persistent volume it is to be bound to, or
    "" for one that is to be made."""

    position: int
    volume: str


class Mounts(msgspec.Struct, frozen=True, weakref=True):
    """`drivers` says whether some volume may concern a driver's limit, even if none is counted."""

    claims: tuple[Use, ...] = ()
    disks: tuple[Disk, ...] = ()
    inline: tuple[Attachment, ...] = ()
    problem: str = ""
    drivers: bool = False


_shared: "WeakValueDictionary[Mounts, Mounts]" = WeakValueDictionary()


def mounting(pod: Pod) -> bool:
    """Whether it mounts anything that concerns us. Every pod is asked: this has to be quick."""
    for volume in pod.spec.volumes:  # noqa: SIM110  # a generator would take longer
        if _all(volume) != _NONE:
            return True
    return False


def mounted(pod: Pod) -> int:
    """How many of its volumes concern us."""
    return sum([_all(volume) != _NONE for volume in pod.spec.volumes])


def mounts_of(pod: Pod) -> Mounts | None:
    """None if it mounts nothing that concerns us. Of thousands of volumes the first count: no node attaches so many,
    and no pod with so many is placed (`framework.limits`)."""
    if not mounting(pod):
        return None
    claims: list[Use] = []
    disks: list[Disk] = []
    own: list[Volume] = []
    for position, volume in enumerate(pod.spec.volumes):
        if len(claims) + max(len(disks), len(own)) >= MOST_MOUNTED:
            break
        if volume.persistent_volume_claim is not None:
            claims.append(Use(position, volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None:
            claims.append(Use(position, f"{pod.metadata.name}-{volume.name}", True))
        elif _taken_over(volume) != _NOT_TAKEN_OVER:
            own.append(volume)
        _add_disks(disks, volume)
    inline, problem = _inline(own) if own else ((), "")
    mounts = Mounts((*claims,), (*disks,), inline, problem, bool(claims or own))
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


def _add_disks(found: list[Disk], volume: Volume) -> None:
    """AWS disks are never shared, the others by readers."""
    if volume.gce_persistent_disk is not None:
        found.append(Disk("gce", volume.gce_persistent_disk.pd_name, volume.gce_persistent_disk.read_only))
    if volume.aws_elastic_block_store is not None:
        found.append(Disk("aws", volume.aws_elastic_block_store.volume_id, False))
    if volume.iscsi is not None:
        found.append(Disk("iscsi", volume.iscsi.iqn, volume.iscsi.read_only))
    if volume.rbd is not None and volume.rbd.monitors:
        image = volume.rbd
        found.append(Disk("rbd", f"{image.pool}/{image.image}", image.read_only, tuple(image.monitors)))


def _inline(volumes: list[Volume]) -> tuple[tuple[Attachment, ...], str]:
    """The in-tree disks that a driver attaches, each once, and why one of them cannot be read."""
    attached: dict[Attachment, None] = {}
    problem = ""
    for volume in volumes:
        try:
            attachment = of_inline(volume)
        except Malformed as found:
            problem = problem or f"converting volume({volume.name}) from inline to csi: {found}"
            continue
        if attachment is not None:
            attached[attachment] = None
    return tuple(attached), problem
