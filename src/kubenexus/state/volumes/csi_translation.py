"""Translates in-tree disks to the CSI drivers that replaced them.

Kubernetes moved its in-tree disks to drivers without changing the objects. A `gcePersistentDisk` is attached by
`pd.csi.storage.gke.io`, counts against that driver's limit, and is reachable by that driver's topology label.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import AWSDisk, GCEDisk, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Volume
from kubenexus.api.storage import PersistentVolume
from kubenexus.base.errors import Malformed, truncated

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
SEVERAL_ZONES: Final = "__"  # separates the zones in one label

AWS, GCE, AZURE = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"
CINDER, PORTWORX = "kubernetes.io/cinder", "kubernetes.io/portworx-volume"

DRIVERS: Final = {
    AWS: "ebs.csi.aws.com",
    GCE: "pd.csi.storage.gke.io",
    AZURE: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
# These have a driver, too, but upstream's scheduler does not count what they attach.
_UNCOUNTED: Final = {"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"}
_ZONE_LABELS: Final = {
    AWS: "topology.ebs.csi.aws.com/zone",
    GCE: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
# No URL parser: it raises for `aws://[`, and a URL's query and fragment are not part of the ID.
_AWS_VOLUME: Final = re.compile(r"aws://[^/?#]*/+(vol-[^/?#]*)/*(?:[?#].*)?", re.DOTALL)


class AttachedVolume(NamedTuple):
    """A volume as its driver identifies it. It is attached once to a node for any number of pods there."""

    driver: str
    handle: str


def driver_of(provisioner: str) -> str:
    """Returns the driver that attaches the volumes of a provisioner, "" if they are not counted."""
    return "" if provisioner in _UNCOUNTED else DRIVERS.get(provisioner, provisioner)


def csi_volume_of_inline(volume: Volume) -> AttachedVolume | None:
    """Returns the CSI volume of an inline disk of a pod, or None. Raises Malformed if the disk's name is invalid."""
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
    """Returns the in-tree plugin of a persistent volume, "" if it has none that was migrated."""
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
    """Returns the CSI volume of a persistent volume, None if no driver counts it. Raises Malformed as
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
    """Returns the node affinity of a volume; for an in-tree volume, zones are matched by the driver's own label."""
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
    """Returns the volume's ID: `vol-1`, `aws:///vol-1` and `aws://zone/vol-1` are the same volume."""
    name = disk.volume_id
    if not name.startswith("aws://"):
        return name
    found = _AWS_VOLUME.fullmatch(name)
    if found is None:
        problem = f"Invalid format for AWS volume ({truncated(name)})"
        raise Malformed(f"failed to translate Kubernetes ID to EBS Volume ID {problem}")
    return found[1]


def _gce_handle(disk: GCEDisk, zones: list[str]) -> str:
    if len(zones) > 1:
        return f"projects/UNSPECIFIED/regions/{_region(zones)}/disks/{disk.pd_name}"
    zone = zones[0] if zones and zones[0] else "UNSPECIFIED"
    return f"projects/UNSPECIFIED/zones/{zone}/disks/{disk.pd_name}"


def _region(zones: list[str]) -> str:
    """Returns `europe-west1` for `europe-west1-b`. The zones of one disk are in one region."""
    regions = {zone.rpartition("-")[0] for zone in zones}
    if any(zone.count("-") != 2 for zone in zones) or len(regions) != 1:
        raise Malformed(f"failed to get region from zones: {truncated(SEVERAL_ZONES.join(zones))}")
    return regions.pop()


def _zone_and_region(affinity: NodeSelector | None, labels: dict[str, str]) -> tuple[str, str]:
    """Returns the labels by which this volume names zones and regions: first its affinity's, then its own."""
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
