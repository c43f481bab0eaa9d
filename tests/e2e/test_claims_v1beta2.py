"""Device claims on a real API server that has them as `resource.k8s.io/v1beta2` only, as Kubernetes 1.33 does."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubenexus.testing.controlplane import ClusterClient, ControlPlane, Object
from tests.e2e.scheduling import Starter, a_node, a_pod, condition, make_nodes, placed, pods
from tests.e2e.test_claims import DRIVER, device_class, gpu_slice, held

BETA = "resource.k8s.io/v1beta2"
SERVED = f"--runtime-config=resource.k8s.io/v1=false,{BETA}=true"
CLAIMS = f"/apis/{BETA}/namespaces/default/resourceclaims"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def cluster(assets: Path) -> Iterator[ClusterClient]:
    """Two nodes with two GPUs each, and the scheduler."""
    with (
        tempfile.TemporaryDirectory(prefix="kubenexus-e2e-v1beta2-") as folder,
        ControlPlane(assets, Path(folder), apiserver_flags=(SERVED,)) as running,
    ):
        made = running.cluster()
        made.create({**device_class(), "apiVersion": BETA})
        for name in ("n1", "n2"):
            make_nodes(made, a_node(name))
            made.create({**gpu_slice(name, 2), "apiVersion": BETA})
        with Starter(running) as start:
            start()
            yield made


def claim(name: str) -> Object:
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"apiVersion": BETA, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def a_claiming_pod(name: str) -> Object:
    return a_pod(name, "10m", resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


def test_claims_are_read_and_written_in_the_version_that_is_served(cluster: ClusterClient) -> None:
    groups = cluster.get("/apis/resource.k8s.io")["versions"]
    assert "resource.k8s.io/v1" not in [each["groupVersion"] for each in groups]
    names = [f"p-{i}" for i in range(4)]
    for each in names:
        cluster.create(claim(each), "default")
        cluster.create(a_claiming_pod(each), "default")
    found = cluster.until(pods("default"), lambda all: len(placed(all)) == 4, "all are bound", seconds=PATIENCE)
    claims = cluster.objects(CLAIMS)
    assert len(held(claims)) == 4  # each device once
    for each in names:
        ((pool, _),) = held({each: claims[each]})
        assert pool == placed(found)[each]
        assert [user["name"] for user in claims[each]["status"]["reservedFor"]] == [each]

    cluster.create(claim("late"), "default")
    cluster.create(a_claiming_pod("late"), "default")
    cluster.until(
        pods("default"),
        lambda all: "cannot allocate all claims" in condition(all, "late")["message"],
        "the fifth waits",
        seconds=PATIENCE,
    )
    cluster.delete(f"{pods('default')}/p-0", grace=0)
    freed = {"status": {"allocation": None, "reservedFor": None}}  # as the claim controller does
    cluster.patch(f"{CLAIMS}/p-0/status", freed)
    cluster.until(pods("default"), lambda all: bool(placed(all)["late"]), "it gets what is free now", seconds=PATIENCE)
