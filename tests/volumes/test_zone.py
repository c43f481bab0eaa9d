"""VolumeZone: a volume that is labelled with a zone is used in that zone."""

import pytest

from kubenexus.testing.builders import ZONE, a_node
from tests.volumes.builders import a_claim, a_class, a_mounting_pod, a_volume
from tests.volumes.plugin_fixture import SKIPPED, cluster, says

RULE = "VolumeZone"
ELSEWHERE = "UnschedulableAndUnresolvable: node(s) had no available volume zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
POD = a_mounting_pod("new", "data")


@pytest.mark.parametrize(
    ("volume", "node", "agrees"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: "a"}, {}, True, id="a node without any such label is in a cluster of one zone"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="a node that has only a region is not in the zone"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="all labels have to agree"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="an old label on the volume, a new one on the node"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the node's old label speaks first"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="a new label is not found among the old"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="old and new labels of regions"),
    ],
)
def test_labels_of_volume_and_node(volume: dict[str, str], node: dict[str, str], agrees: bool) -> None:
    bound = [a_claim("data", volume="pv"), a_volume("pv", claim="data", labels=volume)]
    ledger = cluster([a_node("n", labels=node)], *bound)
    assert says(RULE, POD, ledger) == {"n": "" if agrees else ELSEWHERE}


@pytest.mark.parametrize("zones", ["", "a__", "__", " __a"])
def test_a_label_with_an_empty_zone_is_ignored(zones: str) -> None:
    ledger = cluster([a_node("n", zone="b")], a_claim("data", volume="pv"), a_volume("pv", labels={ZONE: zones}))
    assert says(RULE, POD, ledger) == SKIPPED


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        pytest.param(None, 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(a_claim("data", volume="gone"), 'persistentvolume "gone" not found', id="no volume"),
        pytest.param(a_claim("data", of="nobody"), 'storageclass.storage.k8s.io "nobody" not found', id="no class"),
        pytest.param(
            a_claim("data", of=None), "PersistentVolumeClaim had no pv name and storageClass name", id="neither"
        ),
        pytest.param(a_claim("data", of="now"), "PersistentVolume had no name", id="not bound, though at once"),
        pytest.param(a_claim("data", of="odd"), 'VolumeBindingMode not set for StorageClass "odd"', id="no mode"),
    ],
)
def test_a_pod_that_cannot_be_judged_is_refused(claim: object, said: str) -> None:
    known = [a_class("now", mode="Immediate"), a_class("odd", mode=None)]
    ledger = cluster([a_node("n")], *known, *([claim] if claim is not None else []))
    assert says(RULE, POD, ledger) == f"UnschedulableAndUnresolvable: {said}"


def test_a_claim_that_waits_for_its_pod_may_go_anywhere() -> None:
    assert says(RULE, POD, cluster([a_node("n", zone="a")], a_class(), a_claim("data"))) == SKIPPED
