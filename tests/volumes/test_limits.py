"""NodeVolumeLimits: how many volumes a driver attaches to a node, and whose they are."""

from typing import Any

import pytest

from kubenexus.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node
from tests.volumes.builders import (
    DRIVER,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_mounting_pod,
    a_volume,
    an_attachment,
    told,
)
from tests.volumes.plugin_fixture import SKIPPED, allowed, cluster, says

RULE = "NodeVolumeLimits"
FULL = "Unschedulable: node(s) exceed max volume count"
MISSING = f"Unschedulable: {DRIVER} CSI driver is not installed on the node"
EBS_DRIVER = "ebs.csi.aws.com"
POD = a_mounting_pod("new", "mine")


def bound(name: str) -> list[PersistentVolume | PersistentVolumeClaim]:
    return [a_claim(name, volume=f"pv-{name}"), a_volume(f"pv-{name}", claim=name)]


def full(limit: int | None = 1) -> Ledger:
    """One node, where a pod uses a volume already."""
    there = a_mounting_pod("there", "theirs", node="n")
    return cluster([a_node("n")], a_csi_node("n", {DRIVER: limit}), *bound("theirs"), *bound("mine"), pods=[there])


@pytest.mark.parametrize(
    ("limit", "fits"),
    [
        pytest.param(2, True, id="the second of two fits"),
        pytest.param(1, False, id="the second of one does not"),
        pytest.param(0, False, id="a limit of none is a limit"),
        pytest.param(None, True, id="no limit is none"),
    ],
)
def test_a_limit_counts_the_volumes_of_all_pods_on_the_node(limit: int | None, fits: bool) -> None:
    assert says(RULE, POD, full(limit)) == {"n": "" if fits else FULL}


def test_a_volume_that_is_attached_already_takes_no_more_room() -> None:
    assert says(RULE, a_mounting_pod("new", "theirs"), full()) == {"n": ""}


def test_a_volume_that_two_pods_use_counts_once() -> None:
    ledger = full(2)
    ledger.upsert_pod(a_mounting_pod("also", "theirs", node="n"))
    assert says(RULE, POD, ledger) == {"n": ""}
    ledger.remove_pod("default/there")
    told(ledger, a_csi_node("n", {DRIVER: 1}))
    assert says(RULE, POD, ledger) == {"n": FULL}
    ledger.remove_pod("default/also")
    assert says(RULE, POD, ledger) == {"n": ""}


def test_a_volume_counts_while_it_is_attached_even_if_no_pod_uses_it() -> None:
    ledger = full()
    told(ledger, an_attachment("a", "pv-theirs", "n"))
    ledger.remove_pod("default/there")
    assert says(RULE, POD, ledger) == {"n": FULL}
    ledger.remove_storage(VolumeAttachment, "a")
    assert says(RULE, POD, ledger) == {"n": ""}


def test_an_attachment_of_a_volume_that_is_in_use_counts_once() -> None:
    assert says(RULE, POD, told(full(2), an_attachment("a", "pv-theirs", "n"))) == {"n": ""}


def test_an_attachment_is_counted_when_its_node_and_its_volume_are_known() -> None:
    ledger = cluster([], an_attachment("a", "pv-x", "n"), a_csi_node("n", {DRIVER: 1}), *bound("mine"))
    ledger.upsert_node(a_node("n"))
    assert says(RULE, POD, ledger) == {"n": ""}
    told(ledger, a_volume("pv-x"))
    assert says(RULE, POD, ledger) == {"n": FULL}
    ledger.remove_node("n")
    ledger.upsert_node(a_node("m"))  # takes over the row
    assert says(RULE, POD, ledger) == {"m": ""}


def test_a_volume_that_is_still_to_be_made_counts_for_its_class() -> None:
    there = a_mounting_pod("there", "theirs", node="n")
    waiting = [a_class(), a_claim("theirs"), a_claim("mine")]
    ledger = cluster([a_node("n")], a_csi_node("n", {DRIVER: 1}), *waiting, pods=[there])
    assert says(RULE, POD, ledger) == {"n": FULL}
    told(ledger, a_claim("theirs", volume="pv"), a_volume("pv", claim="theirs", source={"local": {"path": "/x"}}))
    assert says(RULE, POD, ledger) == {"n": ""}  # it turned out to be nobody's to attach


def test_a_claim_that_becomes_bound_is_still_one_volume() -> None:
    there = a_mounting_pod("there", "theirs", node="n")
    waiting = [a_class(), a_claim("theirs"), *bound("mine")]
    ledger = cluster([a_node("n")], a_csi_node("n", {DRIVER: 2}), *waiting, pods=[there])
    told(ledger, *bound("theirs"))
    assert ledger.nodes.volumes.drivers.of(DRIVER).count.tolist()[:1] == [1]
    assert says(RULE, POD, ledger) == {"n": ""}


def test_a_disk_in_the_pod_counts_for_the_driver_that_took_it_over() -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
    there = a_mounting_pod("there", {"awsElasticBlockStore": {"volumeID": "vol-2"}}, node="n")
    ledger = cluster([a_node("n"), a_node("bare")], a_csi_node("n", {EBS_DRIVER: 1}), pods=[there])
    assert says(RULE, a_mounting_pod("new", disk), ledger) == {"n": FULL, "bare": ""}
    ledger.remove_pod("default/there")
    ledger.upsert_pod(a_mounting_pod("same", {"awsElasticBlockStore": {"volumeID": "vol-1"}}, node="n"))
    assert says(RULE, a_mounting_pod("new", disk), ledger) == {"n": "", "bare": ""}


def test_pods_stay_away_from_nodes_that_lack_a_driver_which_says_so() -> None:
    nodes = [a_node(name) for name in ("has", "lacks", "bare")]
    known = [a_csi_node("has", {DRIVER: None}), a_csi_node("lacks", {}), *bound("mine")]
    ledger = cluster(nodes, *known)
    assert allowed(RULE, POD, ledger) == ["bare", "has", "lacks"]
    told(ledger, a_driver(needed=True))
    assert says(RULE, POD, ledger) == {"has": "", "lacks": MISSING, "bare": MISSING}


def test_an_in_tree_disk_needs_its_driver_only_where_there_are_drivers() -> None:
    nodes = [a_node("lacks"), a_node("bare")]
    ledger = cluster(nodes, a_csi_node("lacks", {}), a_driver(EBS_DRIVER, needed=True))
    pod = a_mounting_pod("new", {"awsElasticBlockStore": {"volumeID": "vol-1"}})
    said = f"Unschedulable: {EBS_DRIVER} CSI driver is not installed on the node"
    assert says(RULE, pod, ledger) == {"lacks": said, "bare": ""}


def test_a_claim_that_does_not_exist_is_hopeless() -> None:
    said = 'looking up PVC default/mine: persistentvolumeclaim "mine" not found'
    assert says(RULE, POD, cluster([a_node("n")])) == {"n": f"UnschedulableAndUnresolvable: {said}"}


def test_an_ephemeral_volume_whose_claim_is_not_the_pods_own_is_an_error() -> None:
    pod = a_mounting_pod("new", {"ephemeral": {}}, uid="mine")
    said = "Error: PVC default/new-v0 was not created for pod default/new (pod is not owner)"
    ledger = cluster([a_node("n")], a_claim("new-v0", owner="theirs"), a_class())
    assert says(RULE, pod, ledger) == {"n": said}
    told(ledger, a_claim("new-v0", owner="mine"))
    assert says(RULE, pod, ledger) == {"n": ""}


BAD_DISK = {"awsElasticBlockStore": {"volumeID": "aws://zone/bad"}}


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param([{"ephemeral": {}}], id="an ephemeral volume whose claim is another pod's"),
        pytest.param([BAD_DISK], id="a disk whose name is no volume"),
        pytest.param([{"persistentVolumeClaim": {"claimName": ""}}], id="a claim without a name"),
        pytest.param([{"ephemeral": {}}, BAD_DISK], id="two of them"),
    ],
)
def test_what_a_running_pod_has_wrong_refuses_no_other_pod(volumes: list[Any]) -> None:
    there = a_mounting_pod("there", *volumes, node="n", uid="mine")
    claims = (*bound("mine"), *bound("used"), a_claim("there-v0", owner="theirs"))
    ledger = cluster([a_node("n"), a_node("free")], *claims, pods=[there])
    told(ledger, a_csi_node("n", {DRIVER: 1}), a_csi_node("free", {DRIVER: 1}))
    assert says(RULE, POD, ledger) == {"n": "", "free": ""}
    good = {"persistentVolumeClaim": {"claimName": "used"}}
    ledger.upsert_pod(a_mounting_pod("there", *volumes, good, node="n", uid="mine"))
    assert says(RULE, POD, ledger) == {"n": FULL, "free": ""}, "its other volumes count"
    told(ledger, a_claim("there-v0", owner="mine"))
    assert says(RULE, POD, ledger) == {"n": FULL, "free": ""}
    ledger.remove_pod("default/there")
    assert says(RULE, POD, ledger) == {"n": "", "free": ""}


def test_limits_follow_the_csi_node() -> None:
    ledger = full(2)
    told(ledger, a_csi_node("n", {DRIVER: 1}))
    assert says(RULE, POD, ledger) == {"n": FULL}
    ledger.remove_storage(CSINode, "n")
    assert says(RULE, POD, ledger) == {"n": ""}


def test_a_pod_without_such_volumes_is_not_looked_at() -> None:
    assert says(RULE, a_mounting_pod("new", {"configMap": {}}, {"iscsi": {"iqn": "q"}}), full()) == SKIPPED
