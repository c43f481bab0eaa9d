"""The calls of a scheduler as data: pure functions from names to a `Call`. Nothing is sent here."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from kubenexus.api.codec import encode
from kubenexus.client import kinds
from kubenexus.client.calls import JSON, MERGE_PATCH, STRATEGIC_PATCH, Call
from kubenexus.client.kinds import ApiResource

Body = Mapping[str, Any] | Any


def bind(namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None) -> Call:
    """Binds a pod to a node. The UID makes sure that it is the pod of the decision, not a later one of its name. The
    API server merges the annotations into the pod's in the same write."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = _named("v1", "Binding", namespace, name, uid, target=target)
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    return create(kinds.PODS, body, namespace, name, "binding")


def evict(namespace: str, name: str, uid: str, *, grace_seconds: int | None = None) -> Call:
    """Evicts a pod, within its disruption budget; a 429 means not now."""
    options = _delete_options(uid, grace_seconds)
    body = _named("policy/v1", "Eviction", namespace, name, "", deleteOptions=options)
    return create(kinds.PODS, body, namespace, name, "eviction")


def delete(
    resource: ApiResource, namespace: str, name: str, uid: str, *, grace_seconds: int | None = None, version: str = ""
) -> Call:
    """Deletes just this object: another of the same name, or (given `version`) a later state of it, is a Conflict."""
    options = _delete_options(uid, grace_seconds, version)
    return Call("DELETE", resource.at(namespace, name), encode(options))


def patch_pod_status(namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Call:
    """Merges into a pod's status: conditions by their type, other fields as they are; None removes one. A later pod of
    the same name is left alone: Invalid, since a UID cannot be changed."""
    body = {"metadata": {"uid": uid}, "status": status}
    return patch(kinds.PODS, namespace, name, body, part="status", content_type=STRATEGIC_PATCH)


def patch(
    resource: ApiResource, namespace: str, name: str, body: Body, *, part: str = "", content_type: str = MERGE_PATCH
) -> Call:
    """Merges into an object. Another `metadata.resourceVersion` than the one in the body is a Conflict, another
    `metadata.uid` a Conflict or Invalid."""
    return Call("PATCH", resource.at(namespace, name, part), encode(body), content_type)


def create(resource: ApiResource, body: Body, namespace: str = "", name: str = "", part: str = "") -> Call:
    """Creates an object, or (with a name and a part) a part of one."""
    return Call("POST", resource.at(namespace, name, part), encode(body), JSON)


def update(resource: ApiResource, namespace: str, name: str, body: Body, *, part: str = "") -> Call:
    """Replaces an object. With its `resourceVersion` in the body, a change by another client is a Conflict."""
    return Call("PUT", resource.at(namespace, name, part), encode(body), JSON)


def get(resource: ApiResource, namespace: str, name: str) -> Call:
    """Reads one object."""
    return Call("GET", resource.at(namespace, name))


def list_call(
    resource: ApiResource, *, namespace: str = "", limit: int = 0, more: str = "", fields: str = "", labels: str = ""
) -> Call:
    """Reads a page of a list, as of now (no resourceVersion: never an old state). `more` continues the last page."""
    asked = {"limit": limit or "", "continue": more, "fieldSelector": fields, "labelSelector": labels}
    return Call("GET", _asking(resource.at(namespace) if namespace else resource.all, asked))


def reaching(resource: ApiResource, version: str) -> Call:
    """Lists one object, from a server that has reached a resourceVersion. Any other answers 504, too large."""
    asked = {"limit": 1, "resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
    return Call("GET", _asking(resource.all, asked))


def watch_path(resource: ApiResource, version: str, *, seconds: int, fields: str = "", labels: str = "") -> str:
    """Returns the path of a watch that continues from a resourceVersion."""
    asked = {
        "watch": "1",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": seconds,
        "fieldSelector": fields,
        "labelSelector": labels,
    }
    return _asking(resource.all, asked)


def create_event(namespace: str, body: Body) -> Call:
    """Creates an `events.k8s.io/v1` Event."""
    return create(kinds.EVENTS, body, namespace)


def _named(version: str, kind: str, namespace: str, name: str, uid: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} | ({"uid": uid} if uid else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata} | more


def _delete_options(uid: str, grace_seconds: int | None, version: str = "") -> dict[str, Any]:
    conditions = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
    return options if grace_seconds is None else options | {"gracePeriodSeconds": grace_seconds}


def _asking(path: str, asked: Mapping[str, object]) -> str:
    query = urlencode([(key, value) for key, value in asked.items() if value != ""])
    return f"{path}?{query}" if query else path
