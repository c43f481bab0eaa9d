"""What deploy/ installs is accepted by a server with RBAC, and gives the scheduler all that it asks for and no more."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubenexus.app.watch.informers import WATCHED_KINDS
from kubenexus.base.clock import WallClock
from kubenexus.testing.controlplane import ClusterClient, ControlPlane
from tests.e2e.conftest import MANIFEST

HOME = "kubenexus-system"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{HOME}/deployments"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CLOCK = WallClock()


class Deed(NamedTuple):
    """Something that one may be allowed to do."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""


# Every write of the scheduler, and what it reads by name.
NEEDED = [
    Deed("create", "pods/binding", namespace="any"),
    Deed("patch", "pods/status", namespace="any"),
    Deed("create", "pods/eviction", namespace="any"),
    Deed("delete", "pods", namespace="any"),
    Deed("create", "events", "events.k8s.io", "any"),
    Deed("patch", "events", "events.k8s.io", "any"),
    Deed("patch", "persistentvolumeclaims", namespace="any"),
    Deed("patch", "persistentvolumes"),
    Deed("create", "leases", "coordination.k8s.io", HOME),
    Deed("update", "leases", "coordination.k8s.io", HOME, "kubenexus-scheduler"),
    Deed("get", "leases", "coordination.k8s.io", HOME, "kubenexus-scheduler"),
    Deed("create", "tokenreviews", "authentication.k8s.io"),
    Deed("create", "subjectaccessreviews", "authorization.k8s.io"),
    Deed("get", "configmaps", "", "kube-system", "extension-apiserver-authentication"),
    *(Deed(verb, kind.plural, kind.group) for kind in WATCHED_KINDS for verb in ("list", "watch")),
]
FORBIDDEN = [
    Deed("get", "secrets", namespace=HOME),
    Deed("create", "pods", namespace="any"),
    Deed("patch", "pods", namespace="any"),
    Deed("delete", "nodes"),
    Deed("patch", "nodes"),
    Deed("update", "configmaps", namespace=HOME),
    Deed("update", "leases", "coordination.k8s.io", HOME, "another"),
    Deed("create", "clusterrolebindings", "rbac.authorization.k8s.io"),
]


def test_kustomize_gives_the_same_objects(plane: ControlPlane) -> None:
    folder = MANIFEST.parent
    built = list(yaml.safe_load_all(plane.kubectl("kustomize", str(folder))))
    files = [MANIFEST, folder / "resourcereservations.yaml", folder / "queues.yaml"]
    given = [each for file in files for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]

    def key(each: dict[str, Any]) -> tuple[str, str]:
        return each["kind"], each["metadata"]["name"]

    assert sorted(built, key=key) == sorted(given, key=key)


def denied(cluster: ClusterClient, deeds: Iterable[Deed]) -> list[Deed]:
    return [deed for deed in deeds if not _allowed(cluster, deed)]


def _allowed(cluster: ClusterClient, deed: Deed) -> bool:
    resource, _, part = deed.resource.partition("/")
    asked = {**deed._asdict(), "resource": resource, "subresource": part}
    account = {"user": f"system:serviceaccount:{HOME}:kubenexus-scheduler", "groups": ["system:serviceaccounts"]}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = cluster.send("POST", REVIEWS, {**review, "spec": {**account, "resourceAttributes": asked}})
    return bool(answer["status"]["allowed"])


def test_the_server_accepts_all_of_it(installed: Path, cluster: ClusterClient) -> None:
    deployment = cluster.get(f"{DEPLOYMENTS}/kubenexus-scheduler")
    assert deployment["spec"]["replicas"] == 2
    assert cluster.get(f"/api/v1/namespaces/{HOME}/configmaps/kubenexus-scheduler")["data"]["config.yaml"]
    assert installed.exists()


def test_the_scheduler_may_do_what_it_does_and_nothing_else(installed: Path, cluster: ClusterClient) -> None:
    deadline = CLOCK.now() + 10
    left = denied(cluster, NEEDED)
    while left and CLOCK.now() < deadline:  # a role that was just made is not yet known to whoever answers
        left = denied(cluster, left)
    assert left == []
    assert denied(cluster, FORBIDDEN) == FORBIDDEN
    assert installed.exists()
