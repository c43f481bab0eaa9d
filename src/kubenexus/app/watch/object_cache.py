"""The last state of each watched object, to find out what an update changed and what a deleted object was.

Pods are stored in reduced form. A hundred thousand pods come from a few hundred templates, so equal parts are shared.
Fields of a running pod that no rule reads are dropped.
"""

import hashlib
from typing import Any

import msgspec

from kubenexus.api.codec import encode
from kubenexus.api.core import Node, Pod, PodStatus, Volume
from kubenexus.api.meta import ObjectMeta

SHARED = 2048  # parts of a few kilobytes; beyond that the table is cleared
USUAL = 32 << 10  # bytes; larger parts are not shared: two thousand of a megabyte each would be too much
# Of these only a fingerprint is cached: the ledger has what is read of them, and they are the largest objects.
FINGERPRINTED = frozenset({"ResourceSlice", "NodeResourceTopology"})

_encode = msgspec.json.encode  # JSON has numbers of any size, and a quantity may be one


class ObjectCache:
    """`pods` and `nodes` by key, and in `objects` all other kinds, by kind and key."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.objects: dict[str, dict[str, Any]] = {}
        self._parts: dict[bytes, Any] = {}

    def of(self, kind: str) -> dict[str, Any]:
        return self.objects.setdefault(kind, {})

    def stripped_pod(self, pod: Pod) -> Pod:
        """Returns the pod with only the fields that events and queueing hints read, and with shared parts."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        owners: Any = self._shared(meta.owner_references) if meta.owner_references else []
        template = msgspec.structs.replace(spec, node_name="", volumes=[v for v in spec.volumes if _is_read(v)])
        template = self._shared(template)
        if spec.node_name:
            template = msgspec.structs.replace(template, node_name=spec.node_name)
        metadata = msgspec.structs.replace(
            meta, annotations={}, owner_references=owners, resource_version="", generation=0, creation_timestamp=""
        )
        reduced_status = msgspec.structs.replace(status, conditions=[], start_time="")
        return Pod(
            metadata=metadata, spec=template, status=_NEW if reduced_status == _NEW else self._shared(reduced_status)
        )

    def _shared(self, part: Any) -> Any:
        if len(self._parts) > SHARED:
            self._parts.clear()
        encoded = _encode(part)
        return self._parts.setdefault(encoded, part) if len(encoded) <= USUAL else part


_NEW = PodStatus(phase="Pending")


def with_shared_parts(pod: Pod, slim: Pod) -> Pod:
    """Returns a waiting pod in full, with the shared parts of `slim` where they are equal. Members of a gang can then
    mostly be compared by identity. The spec of `slim` is used only if all volumes were dropped or none, because
    decisions name volumes by index."""
    spec, status = slim.spec, slim.status
    if spec.volumes and len(spec.volumes) != len(pod.spec.volumes):
        spec = pod.spec
    return Pod(metadata=pod.metadata, spec=spec, status=status if status == pod.status else pod.status)


def stripped_node(node: Node) -> Node:
    """Returns the node without its images: no event depends on them, and they are most of its size."""
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, images=[]))


def fingerprint(thing: Any) -> bytes:
    """Returns a hash of what is read of an object, besides its metadata."""
    bare = msgspec.structs.replace(thing, metadata=ObjectMeta())
    return hashlib.blake2b(encode(bare), digest_size=16).digest()


def _is_read(volume: Volume) -> bool:
    """Returns whether any rule reads the volume: not if it is an emptyDir, a ConfigMap, a Secret and the like."""
    return volume != Volume(name=volume.name)
