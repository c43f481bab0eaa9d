"""In-tree disks as the CSI drivers that took them over know them.

Kubernetes moved its built-in disks to drivers without changing the objects: a `gcePersistentDisk` is attached by
`pd.csi.storage.gke.io`, counts against that driver's limit, and is reached by that driver's topology label.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from kubenexus.api.core import AWSDisk, GCEDisk, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Volume
from kubenexus.api.storage import PersistentVolume
from kubenexus.base.errors import Malformed, truncated

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
SEVERAL_ZONES: Final = "__"  # between the zones of one label

AWS, GCE, AZURE = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"
CINDER, PORTWORX = "kubernetes.io/cinder", "kubernetes.io/portworx-volume"

DRIVERS: Final = {
    AWS: "ebs.csi.aws.com",
    GCE: "pd.csi.storage.gke.io",
    AZURE: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
# These have a driver, too, but the scheduler does not count what they attach.
_UNCOUNTED: Final = {"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"}
_ZONE_LABELS: Final = {
    AWS: "topology.ebs.csi.aws.com/zone",
    GCE: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
_AWS_VOLUME: Final = re.compile(r"vol-[^/]*")


class AttachedVolume(NamedTuple):
    """A volume as its driver knows it: what is attached to a node, however many pods there use it."""

    driver: str
    handle: str


def driver_of(provisioner: str) -> str:
    """The driver that will attach what a provisioner makes, "" if nobody counts it."""
    return "" if provisioner in _UNCOUNTED else DRIVERS.get(provisioner, provisioner)


def csi_volume_of_inline(volume: Volume) -> AttachedVolume | None:
    """A disk that stands in the pod itself. Raises Malformed if its name cannot be read."""
    if volume.aws_elastic_block_store is not None:
        return AttachedVolume(DRIVERS[AWS], _aws_handle(volume.aws_elastic_block_store))
    if volume.gce_persistent_disk is not None:
        return AttachedVolume(DRIVERS[GCE], _gce_handle(volume.gce_persistent_disk, []))
    if volume.azure_disk is not None:
        return AttachedVolume(DRIVERS[AZURE], volume.azure_disk.disk_uri)
    if volume.cinder is not None:
        return AttachedVolume(DRIVERS[CINDER], volume.cinder.volume_id)
    if volume.portworx_volume is not None:
        return AttachedVolume(DRIVERS[PORTWORX], volume.portworx_volume.volume_id)
    return None


def plugin_of(volume: PersistentVolume) -> str:
    """The in-tree plugin a persistent volume belongs to, "" if to none that was taken over."""
    spec = volume.spec
    sources = {
        AWS: spec.aws_elastic_block_store,
        GCE: spec.gce_persistent_disk,
        AZURE: spec.azure_disk,
        CINDER: spec.cinder,
        PORTWORX: spec.portworx_volume,
    }
    return next((plugin for plugin, source in sources.items() if source is not None), "")


def csi_volume_of_pv(volume: PersistentVolume) -> AttachedVolume | None:
    """What attaching a persistent volume means, None if no driver counts it. Raises Malformed as
    `csi_volume_of_inline`."""
    spec = volume.spec
    if spec.csi is not None:
        return AttachedVolume(spec.csi.driver, spec.csi.volume_handle)
    if spec.gce_persistent_disk is not None:
        labels = volume.metadata.labels
        zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(SEVERAL_ZONES)
        return AttachedVolume(DRIVERS[GCE], _gce_handle(spec.gce_persistent_disk, zones))
    disk = Volume(
        aws_elastic_block_store=spec.aws_elastic_block_store,
        azure_disk=spec.azure_disk,
        cinder=spec.cinder,
        portworx_volume=spec.portworx_volume,
    )
    return csi_volume_of_inline(disk)


def translated_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """The node affinity of an in-tree volume in its driver's words: zones by the driver's own label."""
    affinity = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    label = _ZONE_LABELS.get(plugin_of(volume))
    if label is None:
        return affinity
    zone, region = _zone_and_region(affinity, volume.metadata.labels)
    noted = volume.metadata.labels.get(zone)
    if _values(affinity, zone):
        affinity = _renamed(affinity, zone, label)
    elif noted is not None:
        affinity = _added(affinity, label, [name.strip() for name in noted.split(SEVERAL_ZONES)])
    return _renamed(affinity, BETA_REGION, REGION) if region == BETA_REGION else affinity


def _aws_handle(disk: AWSDisk) -> str:
    """`vol-1`, `aws:///vol-1` and `aws://zone/vol-1` are the same volume."""
    name = disk.volume_id
    if not name.startswith("aws://"):
        return name
    handle = urlsplit(name).path.strip("/")
    if not _AWS_VOLUME.fullmatch(handle):
        problem = f"Invalid format for AWS volume ({truncated(name)})"
        raise Malformed(f"failed to translate Kubernetes ID to EBS Volume ID {problem}")
    return handle


def _gce_handle(disk: GCEDisk, zones: list[str]) -> str:
    if len(zones) > 1:
        return f"projects/UNSPECIFIED/regions/{_region(zones)}/disks/{disk.pd_name}"
    zone = zones[0] if zones and zones[0] else "UNSPECIFIED"
    return f"projects/UNSPECIFIED/zones/{zone}/disks/{disk.pd_name}"


def _region(zones: list[str]) -> str:
    """`europe-west1` of `europe-west1-b`; the zones of one disk lie in one region."""
    regions = {zone.rpartition("-")[0] for zone in zones}
    if any(zone.count("-") != 2 for zone in zones) or len(regions) != 1:
        raise Malformed(f"failed to get region from zones: {truncated(SEVERAL_ZONES.join(zones))}")
    return regions.pop()


def _zone_and_region(affinity: NodeSelector | None, labels: dict[str, str]) -> tuple[str, str]:
    """The labels this volume speaks of zones and regions by: its affinity's first, then its own."""
    for known in ({e.key for e in _expressions(affinity)}, labels.keys()):
        for zone, region in ((ZONE, REGION), (BETA_ZONE, BETA_REGION)):
            if zone in known:
                return zone, region
    return ZONE, REGION


def _expressions(affinity: NodeSelector | None) -> list[NodeSelectorRequirement]:
    terms = affinity.node_selector_terms if affinity is not None else []
    return [expression for term in terms for expression in term.match_expressions]


def _values(affinity: NodeSelector | None, key: str) -> set[str]:
    return {value for expression in _expressions(affinity) if expression.key == key for value in expression.values}


def _renamed(affinity: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    if affinity is None or not _values(affinity, old):
        return affinity
    return _mapped(affinity, lambda each: [msgspec.structs.replace(e, key=new) if e.key == old else e for e in each])


def _added(affinity: NodeSelector | None, key: str, zones: list[str]) -> NodeSelector | None:
    named = sorted({zone for zone in zones if zone})
    if not named:
        return affinity
    wanted = NodeSelectorRequirement(key=key, operator="In", values=named)
    terms = affinity.node_selector_terms if affinity is not None else []
    grown = NodeSelector(node_selector_terms=terms or [NodeSelectorTerm()])
    return _mapped(grown, lambda each: [*each, wanted])


_Expressions = list[NodeSelectorRequirement]


def _mapped(affinity: NodeSelector, change: Callable[[_Expressions], _Expressions]) -> NodeSelector:
    terms = [
        NodeSelectorTerm(match_expressions=change(term.match_expressions), match_fields=term.match_fields)
        for term in affinity.node_selector_terms
    ]
    return NodeSelector(node_selector_terms=terms)
