"""VolumeRestrictions: who may mount what beside whom."""

from typing import Any

import pytest

from kubenexus.api.storage import PersistentVolumeClaim
from kubenexus.testing.builders import a_node, a_pod
from tests.volumes.builders import a_claim, a_mounting_pod, mounting
from tests.volumes.plugin_fixture import SKIPPED, cluster, says

RULE = "VolumeRestrictions"
NO_DISK = "Unschedulable: node(s) had no available disk"
TAKEN = (
    "Unschedulable: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
    "by another pod"
)
NODES = [a_node("n1"), a_node("n2")]


def gce(name: str, **more: Any) -> Any:
    return {"gcePersistentDisk": {"pdName": name, **more}}


def rbd(*monitors: str, **more: Any) -> Any:
    return {"rbd": {"monitors": list(monitors), "image": "i", "pool": "p", **more}}


@pytest.mark.parametrize(
    ("mounted", "wanted", "clash"),
    [
        pytest.param(gce("d"), gce("d"), True, id="a GCE disk is mounted by one pod of a node"),
        pytest.param(gce("d", readOnly=True), gce("d", readOnly=True), False, id="readers share a GCE disk"),
        pytest.param(gce("d", readOnly=True), gce("d"), True, id="a writer does not join a reader"),
        pytest.param(gce("d"), gce("d", readOnly=True), True, id="a reader does not join a writer"),
        pytest.param(gce("d"), gce("e"), False, id="different disks do not clash"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            True,
            id="an AWS disk is not even shared by readers",
        ),
        pytest.param({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "q"}}, True, id="an iSCSI disk has one writer"),
        pytest.param(rbd("a", "b"), rbd("b"), True, id="images of Ceph with a common monitor are one image"),
        pytest.param(rbd("a"), rbd("b"), False, id="images of Ceph without a common monitor are two images"),
        pytest.param(rbd("a"), rbd("a", pool="q"), False, id="images in different pools are different"),
        pytest.param(rbd("a", readOnly=True), rbd("a", readOnly=True), False, id="readers share an image"),
        pytest.param(gce("x"), {"awsElasticBlockStore": {"volumeID": "x"}}, False, id="kinds of disks do not mix"),
    ],
)
def test_a_disk_of_the_pod_itself(mounted: Any, wanted: Any, clash: bool) -> None:
    ledger = cluster(NODES, pods=[a_mounting_pod("there", mounted, node="n1")])
    assert says(RULE, a_mounting_pod("new", wanted), ledger) == {"n1": NO_DISK if clash else "", "n2": ""}


def test_a_disk_is_free_again_when_its_pod_is_gone() -> None:
    ledger = cluster(NODES, pods=[a_mounting_pod("there", gce("d"), node="n1")])
    ledger.remove_pod("default/there")
    assert says(RULE, a_mounting_pod("new", gce("d")), ledger) == {"n1": "", "n2": ""}


ONCE = a_claim("once", modes=["ReadWriteOncePod"])


def test_a_claim_for_one_pod_that_is_in_use_refuses_all_nodes() -> None:
    ledger = cluster(NODES, ONCE, pods=[a_mounting_pod("there", "once", node="n1")])
    assert says(RULE, a_mounting_pod("new", "once"), ledger) == {"n1": TAKEN, "n2": TAKEN}


def test_it_refuses_none_once_its_pod_is_gone() -> None:
    ledger = cluster(NODES, ONCE, pods=[a_mounting_pod("there", "once", node="n1")])
    ledger.remove_pod("default/there")
    assert says(RULE, a_mounting_pod("new", "once"), ledger) == SKIPPED


def test_a_pod_on_a_node_that_is_gone_does_not_use_its_claims() -> None:
    ledger = cluster(NODES, ONCE, pods=[a_mounting_pod("there", "once", node="n1")])
    ledger.remove_node("n1")
    assert says(RULE, a_mounting_pod("new", "once"), ledger) == SKIPPED
    ledger.upsert_node(a_node("n1"))
    assert says(RULE, a_mounting_pod("new", "once"), ledger) == {"n1": TAKEN, "n2": TAKEN}


def test_a_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    elsewhere = mounting(a_pod("there", namespace="other", node="n1"), "once")
    ledger = cluster(NODES, ONCE, pods=[elsewhere])
    assert says(RULE, a_mounting_pod("new", "once"), ledger) == SKIPPED


def test_a_claim_that_was_made_for_a_pod_is_not_in_use_by_it() -> None:
    there = a_mounting_pod("there", {"ephemeral": {}}, node="n1")
    ledger = cluster(NODES, a_claim("there-v0", modes=["ReadWriteOncePod"]), pods=[there])
    assert says(RULE, a_mounting_pod("new", "there-v0"), ledger) == SKIPPED  # upstream looks at named claims only


def test_of_two_reasons_a_node_is_told_the_disk() -> None:
    ledger = cluster(NODES, ONCE, pods=[a_mounting_pod("there", "once", gce("d"), node="n1")])
    assert says(RULE, a_mounting_pod("new", "once", gce("d")), ledger) == {"n1": NO_DISK, "n2": TAKEN}


def test_a_claim_that_many_pods_may_use_concerns_nobody() -> None:
    ledger = cluster(NODES, a_claim("many"), pods=[a_mounting_pod("there", "many", node="n1")])
    assert says(RULE, a_mounting_pod("new", "many"), ledger) == SKIPPED


def test_a_claim_that_does_not_exist_refuses_the_pod() -> None:
    ledger = cluster(NODES, ONCE)
    ledger.remove_storage(PersistentVolumeClaim, "default/once")
    said = 'UnschedulableAndUnresolvable: persistentvolumeclaim "once" not found'
    assert says(RULE, a_mounting_pod("new", "once"), ledger) == said
