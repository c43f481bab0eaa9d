"""Claims of PodGroups on a real API server, whose gates for them are on."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object, Objects
from tests.e2e.scheduling import Starter, a_node, a_pod, condition, make_nodes, placed, pods
from tests.e2e.test_claims import claims_of, device_class, gpu_slice, held, template

GATES = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"
SERVED = (GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true")
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups"
CONTROLLERS = ("resourceclaim-controller", "garbage-collector-controller", "podgroup-protection-controller")
CLAIM = {"name": "fabric", "resourceClaimTemplateName": "fabric"}
PATIENCE = 120.0


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[ControlPlane]:
    """A server that keeps the claims of PodGroups, the controllers that make and remove claims, and the scheduler."""
    with (
        tempfile.TemporaryDirectory(prefix="kubenexus-e2e-group-claims-") as folder,
        ControlPlane(assets, Path(folder), apiserver_flags=SERVED) as running,
    ):
        running.start_controllers(GATES, f"--controllers={','.join(CONTROLLERS)}")
        cluster = running.cluster()
        cluster.create(device_class())
        for name in ("n1", "n2"):
            make_nodes(cluster, a_node(name, cpu="2"))
            cluster.create(gpu_slice(name, 2))
        with Starter(running) as start:
            start()
            yield running


@pytest.fixture
def cluster(plane: ControlPlane) -> ClusterClient:
    return plane.cluster()


def furnish(cluster: ClusterClient, namespace: str, least: int, policy: str = "gang") -> Object:
    """A namespace with a template for two GPUs, and the PodGroup `training` with a claim of it."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.create(template("fabric", 2), namespace)
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "training"}}
    policies = {"gang": {"gang": {"minCount": least}}, "basic": {"basic": {}}}
    spec = {"schedulingPolicy": policies[policy], "resourceClaims": [CLAIM]}
    return cluster.create({**kind, "spec": spec}, namespace)


def a_member(cluster: ClusterClient, namespace: str, number: int) -> None:
    named: Object = {"schedulingGroup": {"podGroupName": "training"}, "resourceClaims": [CLAIM]}
    cluster.create(a_pod(f"training-{number}", "1", **named), namespace)


def is_free(claims: Objects) -> bool:
    """Whether one claim is there, which nothing uses and which has no devices."""
    (claim,) = claims.values()
    return not claim.get("status", {}).get("reservedFor") and not held(claims)


@pytest.mark.parametrize(
    "policy", [pytest.param("gang", id="a gang"), pytest.param("basic", id="pods that start one by one")]
)
def test_members_share_the_claim_which_is_reserved_for_their_group_until_that_is_deleted(
    cluster: ClusterClient, policy: str
) -> None:
    namespace = f"shared-{policy}"
    group = furnish(cluster, namespace, 2, policy)
    for i in range(2):
        a_member(cluster, namespace, i)
    found = cluster.until(pods(namespace), lambda all: len(placed(all)) == 2, "both are bound", seconds=PATIENCE)
    (claim,) = cluster.objects(claims_of(namespace)).values()
    assert len(set(placed(found).values())) == 1  # both where the devices are
    assert {pool for pool, _ in held({"": claim})} == set(placed(found).values())
    assert claim["status"]["reservedFor"] == [
        {
            "apiGroup": "scheduling.k8s.io",
            "resource": "podgroups",
            "name": "training",
            "uid": group["metadata"]["uid"],
        }
    ]
    assert claim["metadata"]["ownerReferences"][0]["uid"] == group["metadata"]["uid"]

    cluster.delete(pods(namespace), grace=0)
    cluster.delete(f"{GROUPS.format(namespace)}/training")
    cluster.until(claims_of(namespace), lambda all: not all, "the claim is gone, too", seconds=PATIENCE)
    cluster.until(GROUPS.format(namespace), lambda all: not all, "the group is gone", seconds=PATIENCE)


def test_a_gang_that_does_not_fit_beside_the_devices_of_its_claim_gets_none(cluster: ClusterClient) -> None:
    namespace = "too-large"
    furnish(cluster, namespace, 3)
    for i in range(3):
        a_member(cluster, namespace, i)
    seen = cluster.until(
        pods(namespace),
        lambda seen: len(seen) == 3 and all(condition(seen, each)["reason"] == "Unschedulable" for each in seen),
        "all are told that they wait",
        seconds=PATIENCE,
    )
    assert placed(seen) == {}
    cluster.until(claims_of(namespace), is_free, "the claim holds no devices", seconds=PATIENCE)
    cluster.delete(pods(namespace), grace=0)
    cluster.delete(f"{GROUPS.format(namespace)}/training")
