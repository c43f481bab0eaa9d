"""Ownership of children: the reference to the controller, and the calls that adopt, release, create and delete
children."""

from collections.abc import Mapping
from typing import Any

from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import ApiResource
from kubenexus.sim.controllers.types import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Item,
    Owned,
    Pod,
)

RESOURCES = {
    DEPLOYMENTS: ApiResource("Deployment", "deployments", group="apps"),
    REPLICA_SETS: kinds.REPLICA_SETS,
    STATEFUL_SETS: kinds.STATEFUL_SETS,
    DAEMON_SETS: ApiResource("DaemonSet", "daemonsets", group="apps"),
    JOBS: ApiResource("Job", "jobs", group="batch"),
}


def reference(resource: str, item: Item) -> dict[str, Any]:
    """Returns the owner reference of a child to its controller."""
    kind, meta = RESOURCES[resource], item["metadata"]
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}
    return {**owner, "controller": True, "blockOwnerDeletion": True}


def adopt(resource: str, item: Item, child: Owned) -> Call:
    """Returns the call that makes the child ours. The uid protects a later child of the same name."""
    return _owned_by(child, [*_others(child), reference(resource, item)])


def release(child: Owned) -> Call:
    """Returns the call that removes the controller of a child that no longer matches."""
    return _owned_by(child, _others(child))


def _others(child: Owned) -> list[dict[str, Any]]:
    return [
        {"apiVersion": each.api_version, "kind": each.kind, "name": each.name, "uid": each.uid}
        for each in child.metadata.owner_references
        if not each.controller
    ]


def _owned_by(child: Owned, owners: list[dict[str, Any]]) -> Call:
    meta = child.metadata
    kind = kinds.PODS if isinstance(child, Pod) else kinds.REPLICA_SETS
    body = {"metadata": {"uid": meta.uid, "ownerReferences": owners or None}}
    return verbs.patch(kind, meta.namespace, meta.name, body)


def pod_of(
    resource: str, item: Item, *, name: str = "", prefix: str = "", labels: Mapping[str, str], **meta: Any
) -> Item:
    """Returns a pod of the workload's template. Its spec is a shallow copy: replace lists, do not change them."""
    template = item["spec"]["template"]
    head = {key: template["metadata"][key] for key in ("annotations", "finalizers") if key in template["metadata"]}
    named = {"name": name} if name else {"generateName": prefix or f"{item['metadata']['name']}-"}
    all_labels = {**template["metadata"].get("labels", {}), **labels}
    owners = [reference(resource, item)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**head, **named, "labels": all_labels, "ownerReferences": owners, **meta},
        "spec": dict(template["spec"]),
    }


def create_child(item: Item, pod: Item) -> Call:
    return verbs.create(kinds.PODS, pod, item["metadata"]["namespace"])


def delete_child(pod: Pod) -> Call:
    meta = pod.metadata
    return verbs.delete(kinds.PODS, meta.namespace, meta.name, meta.uid)
