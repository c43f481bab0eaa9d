"""Writes what was found on the node's own objects, and touches nothing that is not discovery's.

A key that is on the node already, in any spelling, and that discovery did not write belongs to a person or to another
agent: it stays. So does a NodeResourceTopology without discovery's mark.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubenexus.api.codec import decode, from_json
from kubenexus.api.core import Node
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.keys import KeyEntry, read_key, scheduler
from kubenexus.api.keys.entry import pattern
from kubenexus.api.quantity import to_units
from kubenexus.base.errors import Malformed
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Api, ApiError
from kubenexus.discovery.kubelet_config import UNKNOWN_KUBELET, KubeletSettings
from kubenexus.discovery.machine import Machine
from kubenexus.discovery.node_patch import ANNOTATIONS, LABELS, NodePatch, node_patch
from kubenexus.discovery.topology_object import MANAGED_BY, PUBLISHER, topology_object

_ENTRIES: Final = {entry.key: entry for entry in (*LABELS, *ANNOTATIONS)}
_COMPARED: Final = ("attributes", "zones")


class NodeChange(msgspec.Struct, frozen=True):
    """A merge patch of a node's metadata, empty if nothing changes; and the keys that others keep."""

    body: dict[str, Any] = {}
    left_alone: tuple[str, ...] = ()


class Published(msgspec.Struct, frozen=True):
    """What became of the objects, as words for a log: `updated`, `unchanged`, `kept by another agent`..."""

    node: str
    topology: str
    left_alone: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def publish(
    api: Api, name: str, machine: Machine | None, kubelet: KubeletSettings = UNKNOWN_KUBELET, *, topologies: bool = True
) -> Published:
    """Brings the Node and the NodeResourceTopology up to date. Without a machine, all that discovery wrote goes away.
    Raises the errors of calls."""
    node = decode(await api.send(verbs.get(kinds.NODES, "", name)), Node)
    wanted = NodePatch() if machine is None else node_patch(machine, kubelet)
    change = node_change(node, wanted)
    if change.body:
        body = {"metadata": {"uid": node.metadata.uid, **change.body}}
        await api.send(verbs.patch(kinds.NODES, "", name, body))
    told = "not wanted"
    if topologies:
        report = machine and topology_object(machine, name, node.metadata.uid, kubelet, _offered(node))
        told = await _publish_topology(api, name, report or None)
    return Published("updated" if change.body else "unchanged", told, change.left_alone, wanted.warnings)


def node_change(node: Node, wanted: NodePatch) -> NodeChange:
    """Returns how the node gets what it should have, and loses what discovery wrote before and no longer does."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    written = {key for key in read_key(scheduler.DISCOVERED, {}, annotations).value if _entry(key) is not None}
    left = {key for key in (*wanted.labels, *wanted.annotations) if _is_kept_by_others(key, node, written)}
    parts = {
        "labels": _changed(labels, wanted.labels, written, left),
        "annotations": _changed(annotations, wanted.annotations, written, left),
    }
    keys = sorted({*wanted.labels, *wanted.annotations} - left)
    note = ",".join(keys) or None
    if annotations.get(scheduler.DISCOVERED.key) != note:
        parts["annotations"][scheduler.DISCOVERED.key] = note
    return NodeChange({part: keys for part, keys in parts.items() if keys}, tuple(sorted(left)))


def _entry(key: str) -> KeyEntry[Any] | None:
    """Returns the entry of a key that discovery writes. A note that names others does not make it remove these."""
    return next((entry for shape, entry in _ENTRIES.items() if pattern(shape).fullmatch(key)), None)


def _is_kept_by_others(key: str, node: Node, written: set[str]) -> bool:
    """Returns whether a spelling of the key is there, as a label or an annotation, that discovery did not write."""
    entry = _entry(key)
    match = pattern(entry.key).fullmatch(key) if entry is not None else None
    spellings = entry.at(*match.groups()).keys if entry is not None and match is not None else {key}
    return any(
        each in texts and each not in written
        for each in spellings
        for texts in (node.metadata.labels, node.metadata.annotations)
    )


def _changed(
    now: Mapping[str, str], wanted: Mapping[str, str], written: set[str], left: set[str]
) -> dict[str, str | None]:
    kept = wanted.keys() - left
    changes: dict[str, str | None] = {key: None for key in sorted(written) if key in now and key not in kept}
    return changes | {key: wanted[key] for key in sorted(kept) if now.get(key) != wanted[key]}


def _offered(node: Node) -> dict[str, int]:
    """Returns how many of each device resource the kubelet offers; -1 where some of its devices are not healthy."""
    found = {}
    for name, text in node.status.allocatable.items():
        if is_device_resource(name):
            try:
                amount = to_units(text)
                found[name] = amount if to_units(node.status.capacity.get(name, text)) == amount else -1
            except Malformed:
                found[name] = -1
    return found


async def _publish_topology(api: Api, name: str, wanted: dict[str, Any] | None) -> str:
    """Returns what became of the NodeResourceTopology."""
    there = await _find(api, name)
    metadata = there.get("metadata", {}) if there is not None else {}
    if there is not None and (metadata.get("labels") or {}).get(MANAGED_BY) != PUBLISHER:
        return "kept by another agent"
    if wanted is None:
        if there is None:
            return "nothing to tell"
        await api.send(verbs.delete(kinds.NODE_RESOURCE_TOPOLOGIES, "", name, metadata.get("uid", "")))
        return "deleted"
    if there is None:
        try:
            await api.send(verbs.create(kinds.NODE_RESOURCE_TOPOLOGIES, wanted))
        except ApiError as error:
            if error.code == 404:
                return "the cluster has no such kind (examples/numa/crd.yaml)"
            raise
        return "created"
    if all(there.get(field, []) == wanted[field] for field in _COMPARED):
        return "unchanged"
    # Another agent may have taken the object over since: then this is a Conflict.
    wanted = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": metadata.get("resourceVersion", "")}}
    await api.send(verbs.patch(kinds.NODE_RESOURCE_TOPOLOGIES, "", name, wanted))
    return "updated"


async def _find(api: Api, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = from_json(
            await api.send(verbs.get(kinds.NODE_RESOURCE_TOPOLOGIES, "", name)), dict[str, Any]
        )
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    return found
