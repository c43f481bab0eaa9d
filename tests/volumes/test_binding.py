"""VolumeBinding: a pod goes where its volumes are, or where they can be had; and which of these nodes is better."""

from typing import Any

import pytest

from kubenexus.api.storage import BETA_STORAGE_CLASS, PersistentVolume, StorageObject
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node
from tests.volumes.builders import (
    DRIVER,
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_mounting_pod,
    a_volume,
    only,
    told,
)
from tests.volumes.plugin_fixture import SKIPPED, allowed, cluster, points, says

RULE = "VolumeBinding"
HOPELESS = "UnschedulableAndUnresolvable: "
AWAY = HOPELESS + "node(s) didn't match PersistentVolume's node affinity"
NONE = HOPELESS + "node(s) didn't find available persistent volumes to bind"
SPACE = HOPELESS + "node(s) did not have enough free storage"
GONE = HOPELESS + "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
LOCAL = a_class("local", by="kubernetes.io/no-provisioner")
POD = a_mounting_pod("new", "data")
A, B = a_node("a1", zone="a"), a_node("b1", zone="b")


def free(name: str, **more: Any) -> PersistentVolume:
    return a_volume(name, of="local", **more)


# --- bound claims -----------------------------------------------------------------------------------------------------


def test_a_bound_claim_is_used_where_its_volume_is() -> None:
    ledger = cluster([A, B], a_claim("data", volume="pv"), a_volume("pv", claim="data", on={ZONE: "b"}))
    assert says(RULE, POD, ledger) == {"a1": AWAY, "b1": ""}


def test_a_volume_that_is_gone_can_be_used_nowhere() -> None:
    assert says(RULE, POD, cluster([A], a_claim("data", volume="gone"))) == {"a1": GONE}


def test_of_several_claims_that_fail_the_first_is_told() -> None:
    bound = [a_claim("here", volume="pv"), a_volume("pv", on={ZONE: "b"}), a_claim("lost", volume="gone")]
    ledger = cluster([A, B], *bound)
    assert says(RULE, a_mounting_pod("new", "here", "lost"), ledger) == {"a1": AWAY, "b1": GONE}
    assert says(RULE, a_mounting_pod("new", "lost", "here"), ledger) == {"a1": GONE, "b1": GONE}


def test_a_claim_is_bound_only_when_the_binding_is_complete() -> None:
    ledger = cluster([A], a_class(), a_claim("data", volume="pv", bound=False), a_volume("pv"))
    assert says(RULE, POD, ledger) == HOPELESS + "pod has unbound immediate PersistentVolumeClaims"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        pytest.param(a_claim("other"), 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(a_claim("data", deleting=True), 'persistentvolumeclaim "data" is being deleted', id="deleted"),
        pytest.param(
            a_claim("data", volume="pv", lost=True),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            id="its volume was lost",
        ),
        pytest.param(a_claim("data", of="now"), "pod has unbound immediate PersistentVolumeClaims", id="immediate"),
        pytest.param(a_claim("data", of="nobody"), "pod has unbound immediate PersistentVolumeClaims", id="no class"),
        pytest.param(a_claim("data", of=None), "pod has unbound immediate PersistentVolumeClaims", id="of no class"),
    ],
)
def test_a_claim_that_cannot_be_used_refuses_the_pod(claim: StorageObject, said: str) -> None:
    assert says(RULE, POD, cluster([A], a_class(), a_class("now", mode="Immediate"), claim)) == HOPELESS + said


def test_a_class_without_a_mode_is_an_error() -> None:
    said = 'Error: VolumeBindingMode not set for StorageClass "wait"'
    assert says(RULE, POD, cluster([A], a_class(mode=None), a_claim("data"))) == said


def test_an_ephemeral_volume_waits_for_its_claim() -> None:
    pod = a_mounting_pod("new", {"ephemeral": {}}, uid="u")
    ledger = cluster([A], a_class())
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-v0"'
    assert says(RULE, pod, ledger) == HOPELESS + waiting
    told(ledger, a_claim("new-v0", owner="somebody"))
    said = "PVC default/new-v0 was not created for pod default/new (pod is not owner)"
    assert says(RULE, pod, ledger) == HOPELESS + said
    told(ledger, a_claim("new-v0", owner="u"))
    assert says(RULE, pod, ledger) == {"a1": ""}


def test_a_pod_without_claims_is_not_looked_at_and_scores_nothing() -> None:
    ledger, pod = cluster([A]), a_mounting_pod("new", {"gcePersistentDisk": {"pdName": "d"}})
    assert says(RULE, pod, ledger) == SKIPPED
    assert points(pod, ledger) == {"a1": 0}


# --- existing volumes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "volume", "fits"),
    [
        pytest.param({}, {}, True, id="equal"),
        pytest.param({"size": "2Gi"}, {"size": "1Gi"}, False, id="too small"),
        pytest.param({"size": "1Gi"}, {"size": "2Gi"}, True, id="larger"),
        pytest.param({"size": "1073741824"}, {"size": "1Gi"}, True, id="the same size, written otherwise"),
        pytest.param({"size": "1073741824001m"}, {"size": "1Gi"}, False, id="too small by a thousandth of a byte"),
        pytest.param({"modes": ["ReadWriteMany"]}, {}, False, id="an access mode that it lacks"),
        pytest.param({}, {"modes": ["ReadWriteOnce", "ReadWriteMany"]}, True, id="more access modes"),
        pytest.param({"volumeMode": "Block"}, {}, False, id="block, not a file system"),
        pytest.param({"selector": {"matchLabels": {"x": "1"}}}, {}, False, id="not selected"),
        pytest.param({"selector": {"matchLabels": {"x": "1"}}}, {"labels": {"x": "1"}}, True, id="selected"),
        pytest.param({"volumeAttributesClassName": "fast"}, {}, False, id="of other attributes"),
        pytest.param({}, {"phase": "Released"}, False, id="released, not available"),
        pytest.param({}, {"deleting": True}, False, id="being deleted"),
        pytest.param({}, {"claim": "other"}, False, id="bound to another claim"),
        pytest.param({}, {"claim": "data", "phase": "Bound"}, True, id="reserved for this claim"),
        pytest.param({}, {"claim": "data", "claim_uid": ""}, True, id="reserved for the claim's name"),
        pytest.param({}, {"claim": "data", "claim_uid": "x"}, False, id="reserved for an earlier claim of that name"),
        pytest.param({}, {"claim": "data", "modes": []}, True, id="what is reserved need not have the modes"),
        pytest.param({"size": "2Gi"}, {"claim": "data", "size": "1Gi"}, False, id="but the size"),
        pytest.param({}, {"on": {ZONE: "a"}}, True, id="within reach"),
        pytest.param({}, {"on": {ZONE: "b"}}, False, id="out of reach"),
        pytest.param({}, {"terms": []}, False, id="within nobody's reach"),
        pytest.param({}, {"of": "other"}, False, id="of another class"),
    ],
)
def test_a_claim_takes_an_existing_volume_if_it_fits(claim: Any, volume: Any, fits: bool) -> None:
    ledger = cluster([A], LOCAL, a_claim("data", of="local", **claim), a_volume("pv", **{"of": "local", **volume}))
    assert says(RULE, POD, ledger) == {"a1": "" if fits else NONE}


def test_a_class_in_the_annotation_is_the_class() -> None:
    noted: Any = a_volume("pv", of="other")
    noted.metadata.annotations[BETA_STORAGE_CLASS] = "local"
    assert allowed(RULE, POD, cluster([A], LOCAL, a_claim("data", of="local"), noted)) == ["a1"]


def test_two_claims_of_a_pod_need_two_volumes() -> None:
    pod = a_mounting_pod("new", "data", "more")
    ledger = cluster([A], LOCAL, a_claim("data", of="local"), a_claim("more", of="local"), free("one"))
    assert says(RULE, pod, ledger) == {"a1": NONE}
    assert says(RULE, pod, told(ledger, free("two"))) == {"a1": ""}


def test_the_smallest_volume_is_taken_wherever_it_can_be_used_from() -> None:
    volumes = [free("anywhere", size="2Gi"), free("here", size="1Gi", on={ZONE: "a"})]
    assert points(POD, cluster([A, B], LOCAL, a_claim("data", of="local"), *volumes)) == {"a1": 0, "b1": 50}
    volumes = [free("anywhere", size="1Gi"), free("here", size="2Gi", on={ZONE: "a"})]
    assert points(POD, cluster([A, B], LOCAL, a_claim("data", of="local"), *volumes)) == {"a1": 0, "b1": 0}


def test_small_claims_choose_first_so_that_large_ones_find_something() -> None:
    pod = a_mounting_pod("new", "large", "small")
    claims = [a_claim("large", of="local", size="4Gi"), a_claim("small", of="local", size="1Gi")]
    assert allowed(RULE, pod, cluster([A], LOCAL, *claims, free("v4", size="4Gi"), free("v5", size="5Gi"))) == ["a1"]


def test_a_reserved_volume_out_of_reach_is_not_replaced_by_another() -> None:
    known = [LOCAL, a_claim("data", of="local"), free("mine", claim="data", on={ZONE: "b"}), free("any")]
    assert says(RULE, POD, cluster([A, B], *known)) == {"a1": NONE, "b1": ""}


def test_bound_and_unbound_claims_give_both_reasons() -> None:
    known = [LOCAL, a_claim("data", of="local"), a_claim("bound", volume="pv"), a_volume("pv", on={ZONE: "b"})]
    both = f"{NONE}, {AWAY.removeprefix(HOPELESS)}"
    assert says(RULE, a_mounting_pod("new", "data", "bound"), cluster([A, B], *known)) == {"a1": both, "b1": NONE}


# --- new volumes ------------------------------------------------------------------------------------------------------


def test_a_claim_gets_a_new_volume_where_none_exists() -> None:
    assert allowed(RULE, POD, cluster([A, B], a_class(), a_claim("data"))) == ["a1", "b1"]


def test_a_class_makes_volumes_only_in_its_topologies() -> None:
    assert says(RULE, POD, cluster([A, B], a_class(zones=["b"]), a_claim("data"))) == {"a1": NONE, "b1": ""}


def test_a_claim_whose_volume_is_being_made_for_a_node_goes_there() -> None:
    assert says(RULE, POD, cluster([A, B], a_class(), a_claim("data", selected="b1"))) == {"a1": NONE, "b1": ""}


def test_a_volume_that_is_being_made_is_not_replaced_by_an_existing_one() -> None:
    known = [LOCAL, a_claim("data", of="local", selected="a1"), free("pv")]
    assert says(RULE, POD, cluster([A], *known)) == {"a1": NONE}


COUNTING = (a_class(), a_claim("data", size="3Gi"), a_driver(capacity=True))


@pytest.mark.parametrize(
    ("capacity", "enough"),
    [
        pytest.param(a_capacity("k", "3Gi"), True, id="just enough"),
        pytest.param(a_capacity("k", "2Gi"), False, id="too little"),
        pytest.param(a_capacity("k", "9Gi", largest="2Gi"), False, id="the largest volume is too small"),
        pytest.param(a_capacity("k", "1Gi", largest="4Gi"), True, id="the largest volume is what counts"),
        pytest.param(a_capacity("k", None, largest="4Gi"), True, id="only the largest volume is known"),
        pytest.param(a_capacity("k", None), False, id="nothing is known"),
        pytest.param(a_capacity("k", "9Gi", nowhere=True), False, id="nowhere"),
        pytest.param(a_capacity("k", "9Gi", on={ZONE: "b"}), False, id="elsewhere"),
        pytest.param(a_capacity("k", "9Gi", on={ZONE: "a"}), True, id="here"),
        pytest.param(a_capacity("k", "9Gi", of="other"), False, id="of another class"),
    ],
)
def test_a_driver_that_counts_its_storage_must_have_enough(capacity: StorageObject, enough: bool) -> None:
    assert says(RULE, POD, cluster([A], *COUNTING, capacity)) == {"a1": "" if enough else SPACE}


def test_a_driver_that_does_not_count_is_believed() -> None:
    ledger = cluster([A], *COUNTING)
    assert says(RULE, POD, ledger) == {"a1": SPACE}
    assert says(RULE, POD, told(ledger, a_driver(capacity=False))) == {"a1": ""}


def test_a_claim_that_names_no_size_needs_no_space() -> None:
    assert says(RULE, POD, cluster([A], *COUNTING, a_claim("data", size=None))) == {"a1": ""}


# --- points -----------------------------------------------------------------------------------------------------------


def test_the_tighter_an_existing_volume_fits_the_fewer_points() -> None:
    volumes = [free("small", size="2Gi", on={ZONE: "a"}), free("large", size="10Gi", on={ZONE: "b"})]
    assert points(POD, cluster([A, B], LOCAL, a_claim("data", of="local"), *volumes)) == {"a1": 50, "b1": 90}


def test_the_more_room_is_left_the_more_points() -> None:
    room = [a_capacity("k1", "4Gi", on={ZONE: "a"}), a_capacity("k2", "30Gi", on={ZONE: "b"})]
    assert points(POD, cluster([A, B], *COUNTING, *room)) == {"a1": 25, "b1": 90}


def test_where_only_the_largest_volume_is_known_there_are_no_points_and_no_panic() -> None:
    room = [a_capacity("k1", None, largest="4Gi", on={ZONE: "a"}), a_capacity("k2", "30Gi", on={ZONE: "b"})]
    assert points(POD, cluster([A, B], *COUNTING, *room)) == {"a1": 0, "b1": 90}


def test_new_volumes_do_not_count_where_an_existing_one_is_used() -> None:
    known = [*COUNTING, a_capacity("k", "30Gi"), LOCAL, a_claim("also", of="local"), free("pv", size="4Gi")]
    assert points(a_mounting_pod("new", "data", "also"), cluster([A], *known)) == {"a1": 75}


def test_classes_count_alike_however_many_claims_they_have() -> None:
    other = a_class("other", by="kubernetes.io/no-provisioner")
    claims = [a_claim("c1", of="local"), a_claim("c2", of="local"), a_claim("c3", of="other")]
    volumes = [free("v1", size="2Gi"), free("v2", size="2Gi"), a_volume("v3", of="other", size="10Gi")]
    pod = a_mounting_pod("new", "c1", "c2", "c3")
    assert points(pod, cluster([A], LOCAL, other, *claims, *volumes)) == {"a1": 70}  # (50 + 90) / 2


def test_the_line_can_be_drawn_otherwise() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 10}, {"utilization": 100, "score": 0}]
    volumes = [free("half", size="2Gi", on={ZONE: "a"}), free("most", size="1250Mi", on={ZONE: "b"})]
    ledger = cluster([A, B], LOCAL, a_claim("data", of="local"), *volumes)
    assert points(POD, ledger, only(RULE, shape=shape)) == {"a1": 100, "b1": 38}


# --- in-tree volumes --------------------------------------------------------------------------------------------------


def test_an_in_tree_volume_is_reached_by_its_drivers_label_where_that_took_over() -> None:
    own = "topology.ebs.csi.aws.com/zone"
    nodes = [a_node("old", zone="a"), a_node("new", zone="a", labels={own: "b"}), a_node("moved", labels={own: "a"})]
    disk = a_volume("pv", claim="data", on={ZONE: "a"}, source={"awsElasticBlockStore": {"volumeID": "vol-1"}})
    migrated = [a_csi_node(name, {}, "kubernetes.io/aws-ebs") for name in ("new", "moved")]
    ledger = cluster(nodes, a_claim("data", volume="pv"), disk, *migrated)
    assert says(RULE, POD, ledger) == {"old": "", "new": AWAY, "moved": ""}


def test_a_volume_whose_name_cannot_be_read_is_an_error_where_its_driver_took_over() -> None:
    disk = a_volume("pv", claim="data", source={"awsElasticBlockStore": {"volumeID": "aws://a/b"}}, on={HOSTNAME: "a1"})
    known = [a_claim("data", volume="pv"), disk, a_csi_node("b1", {DRIVER: 1}, "kubernetes.io/aws-ebs")]
    said = says(RULE, POD, cluster([A, B], *known))
    assert isinstance(said, dict)
    assert said["a1"] == ""
    assert said["b1"].startswith("Error: could not translate pv: failed to translate")
