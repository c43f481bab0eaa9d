"""The calls a scheduler makes, byte for byte as the API server wants them."""

import json

import pytest

from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import ApiResource

UID = "0b9d"
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": UID}}


@pytest.mark.parametrize(
    ("call", "method", "path", "body"),
    [
        pytest.param(
            verbs.bind("ns", "p", UID, "n1"),
            "POST",
            "/api/v1/namespaces/ns/pods/p/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p", "namespace": "ns", "uid": UID},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
            id="bind",
        ),
        pytest.param(
            verbs.evict("ns", "p", UID, grace_seconds=5),
            "POST",
            "/api/v1/namespaces/ns/pods/p/eviction",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "p", "namespace": "ns"},
                "deleteOptions": OPTIONS | {"gracePeriodSeconds": 5},
            },
            id="evict",
        ),
        pytest.param(
            verbs.delete(kinds.PODS, "ns", "p", UID), "DELETE", "/api/v1/namespaces/ns/pods/p", OPTIONS, id="delete"
        ),
        pytest.param(
            verbs.delete(kinds.NODES, "", "n", UID, version="7", grace_seconds=0),
            "DELETE",
            "/api/v1/nodes/n",
            OPTIONS | {"preconditions": {"uid": UID, "resourceVersion": "7"}, "gracePeriodSeconds": 0},
            id="delete this very state",
        ),
        pytest.param(
            verbs.patch_pod_status("ns", "p", UID, {"nominatedNodeName": None}),
            "PATCH",
            "/api/v1/namespaces/ns/pods/p/status",
            {"metadata": {"uid": UID}, "status": {"nominatedNodeName": None}},
            id="patch a pod's status",
        ),
        pytest.param(
            verbs.patch(kinds.PERSISTENT_VOLUME_CLAIMS, "ns", "c", {"a": 1}),
            "PATCH",
            "/api/v1/namespaces/ns/persistentvolumeclaims/c",
            {"a": 1},
            id="patch anything",
        ),
        pytest.param(
            verbs.update(kinds.LEASES, "ns", "l", {"metadata": {"resourceVersion": "5"}}),
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l",
            {"metadata": {"resourceVersion": "5"}},
            id="replace anything",
        ),
        pytest.param(
            verbs.create_event("ns", {"reason": "Scheduled"}),
            "POST",
            "/apis/events.k8s.io/v1/namespaces/ns/events",
            {"reason": "Scheduled"},
            id="an event",
        ),
    ],
)
def test_a_call(call: Call, method: str, path: str, body: dict) -> None:
    assert (call.method, call.path, json.loads(call.body)) == (method, path, body)


def test_patches_say_what_kind_of_patch_they_are() -> None:
    assert verbs.patch_pod_status("ns", "p", UID, {}).content_type == "application/strategic-merge-patch+json"
    assert verbs.patch(kinds.PODS, "ns", "p", {}).content_type == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (verbs.get(kinds.LEASES, "ns", "l").path, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"),
        (verbs.get(kinds.NODES, "", "n").path, "/api/v1/nodes/n"),
        (verbs.list_call(kinds.PODS).path, "/api/v1/pods"),
        (verbs.list_call(kinds.PODS, namespace="ns", limit=1).path, "/api/v1/namespaces/ns/pods?limit=1"),
        (
            verbs.list_call(kinds.PODS, more="a+/=", fields=kinds.LIVE_PODS_FIELD_SELECTOR).path,
            "/api/v1/pods?continue=a%2B%2F%3D&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
        ),
        (
            verbs.watch_path(kinds.STORAGE_CLASSES, "7", seconds=300),
            "/apis/storage.k8s.io/v1/storageclasses"
            "?watch=1&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=300",
        ),
    ],
)
def test_a_path(path: str, expected: str) -> None:
    assert path == expected


def test_names_cannot_break_out_of_a_path() -> None:
    call = verbs.bind("a/b", "../x y?z#\r\n", UID, "n")
    assert call.path == "/api/v1/namespaces/a%2Fb/pods/..%2Fx%20y%3Fz%23%0D%0A/binding"


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (kinds.POD_GROUPS, "/apis/scheduling.k8s.io/v1beta1/podgroups"),
        (kinds.POD_GROUPS_ALPHA, "/apis/scheduling.k8s.io/v1alpha3/podgroups"),
        (kinds.REPLICA_SETS, "/apis/apps/v1/replicasets"),
        (kinds.POD_DISRUPTION_BUDGETS, "/apis/policy/v1/poddisruptionbudgets"),
        (kinds.CSI_STORAGE_CAPACITIES, "/apis/storage.k8s.io/v1/csistoragecapacities"),
        (kinds.PRIORITY_CLASSES, "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ],
)
def test_where_a_kind_is(resource: ApiResource, path: str) -> None:
    assert resource.all == path


def test_what_a_kind_is_called() -> None:
    assert str(kinds.REPLICA_SETS) == "replicasets.apps"
    assert kinds.POD_GROUPS.api_version == "scheduling.k8s.io/v1beta1"
