"""In-tree disks as their CSI drivers know them."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import Volume
from kubenexus.base.errors import Malformed
from kubenexus.state.volumes.csi_translation import (
    csi_volume_of_inline,
    csi_volume_of_pv,
    driver_of,
    plugin_of,
    translated_affinity,
)
from kubenexus.testing.builders import ZONE
from tests.volumes.builders import a_volume

BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
REGION = "topology.kubernetes.io/region"
GCE, EBS = "pd.csi.storage.gke.io", "ebs.csi.aws.com"
GCE_ZONE, EBS_ZONE = "topology.gke.io/zone", "topology.ebs.csi.aws.com/zone"
AWS_DISK: Any = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
GCE_DISK: Any = {"gcePersistentDisk": {"pdName": "d"}}


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        (AWS_DISK, EBS, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-2"}}, EBS, "vol-2"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-3"}}, EBS, "vol-3"),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a//vol-4/?a=/b#c"}}, EBS, "vol-4"),
        (GCE_DISK, GCE, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({"azureDisk": {"diskName": "d", "diskURI": "uri"}}, "disk.csi.azure.com", "uri"),
        ({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p"),
    ],
)
def test_a_disk_has_a_driver_and_a_handle_there(source: Any, driver: str, handle: str) -> None:
    assert csi_volume_of_inline(from_data(source, Volume)) == (driver, handle)
    assert csi_volume_of_pv(a_volume("pv", source=source)) == (driver, handle)


@pytest.mark.parametrize("source", [{"azureFile": {}}, {"vsphereVolume": {}}, {"rbd": {"image": "i"}}, {"nfs": {}}])
def test_other_volumes_are_attached_by_nobody_we_count(source: Any) -> None:
    assert csi_volume_of_inline(from_data(source, Volume)) is None
    assert csi_volume_of_pv(a_volume("pv", source={"local": {}})) is None
    assert plugin_of(a_volume("pv", source={"local": {}})) == ""


@pytest.mark.parametrize(
    "name",
    [
        "aws://zone/disk-1",
        "aws://",
        "aws://zone/vol-1/more",
        "aws://[",
        "aws://\u2100/x",
        "aws://?/vol-1",
        "aws://vol-1",
    ],
)
def test_a_name_that_is_no_volume_cannot_be_translated(name: str) -> None:
    with pytest.raises(Malformed, match="Invalid format for AWS volume"):
        csi_volume_of_inline(from_data({"awsElasticBlockStore": {"volumeID": name}}, Volume))


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ({ZONE: "us-central1-a"}, "zones/us-central1-a"),
        ({BETA_ZONE: "us-central1-b", ZONE: "us-central1-a"}, "zones/us-central1-b"),
        ({ZONE: "us-central1-a__us-central1-b"}, "regions/us-central1"),
        ({}, "zones/UNSPECIFIED"),
    ],
)
def test_a_gce_volume_is_known_by_its_zone_or_region(labels: dict[str, str], handle: str) -> None:
    assert csi_volume_of_pv(a_volume("pv", source=GCE_DISK, labels=labels)) == (
        GCE,
        f"projects/UNSPECIFIED/{handle}/disks/d",
    )


@pytest.mark.parametrize("zones", ["a__b", "us-east1-a__us-west1-a"])
def test_zones_of_no_one_region_cannot_be_translated(zones: str) -> None:
    with pytest.raises(Malformed, match="failed to get region from zones"):
        csi_volume_of_pv(a_volume("pv", source=GCE_DISK, labels={ZONE: zones}))


def terms(*each: dict[str, list[str]]) -> list[Any]:
    return [{"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in t.items()]} for t in each]


@pytest.mark.parametrize(
    ("source", "affinity", "labels", "moved"),
    [
        pytest.param(AWS_DISK, [{ZONE: ["a"]}], {}, [{EBS_ZONE: ["a"]}], id="a zone by the driver's label"),
        pytest.param(AWS_DISK, [{BETA_ZONE: ["a"]}], {}, [{EBS_ZONE: ["a"]}], id="an old zone, too"),
        pytest.param(
            AWS_DISK, [{BETA_ZONE: ["a"], BETA_REGION: ["r"]}], {}, [{EBS_ZONE: ["a"], REGION: ["r"]}], id="its region"
        ),
        pytest.param(AWS_DISK, None, {ZONE: "b__a"}, [{EBS_ZONE: ["a", "b"]}], id="zones that only a label names"),
        pytest.param(AWS_DISK, [{"x": ["1"]}], {ZONE: "a"}, [{"x": ["1"], EBS_ZONE: ["a"]}], id="added to each term"),
        pytest.param(AWS_DISK, [{ZONE: ["a"]}], {ZONE: "b"}, [{EBS_ZONE: ["a"]}], id="the affinity speaks first"),
        pytest.param(AWS_DISK, None, {}, None, id="nothing known, nothing said"),
        pytest.param(AWS_DISK, None, {ZONE: "__"}, None, id="empty names are no zones"),
        pytest.param(GCE_DISK, [{ZONE: ["a"]}], {}, [{GCE_ZONE: ["a"]}], id="another driver, another label"),
        pytest.param(
            {"portworxVolume": {"volumeID": "p"}}, [{ZONE: ["a"]}], {}, [{ZONE: ["a"]}], id="no label of its own"
        ),
    ],
)
def test_the_affinity_in_the_drivers_words(source: Any, affinity: Any, labels: Any, moved: Any) -> None:
    volume = a_volume("pv", source=source, labels=labels, terms=None if affinity is None else terms(*affinity))
    found = translated_affinity(volume)
    if moved is None:
        assert found is None
        return
    assert found is not None
    plain = [{e.key: e.values for e in term.match_expressions} for term in found.node_selector_terms]
    assert plain == moved
    assert msgspec.to_builtins(volume) == msgspec.to_builtins(
        a_volume("pv", source=source, labels=labels, terms=None if affinity is None else terms(*affinity))
    )


def test_a_provisioner_that_was_taken_over_is_its_driver() -> None:
    assert driver_of("kubernetes.io/aws-ebs") == EBS
    assert driver_of("csi.example.com") == "csi.example.com"
    assert driver_of("kubernetes.io/azure-file") == ""
