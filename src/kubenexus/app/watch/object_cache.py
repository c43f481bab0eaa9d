"""What the watches last said: needed to tell what an update changed, and what a deleted object was.

Pods are kept slim. A hundred thousand of them come from a few hundred templates, so their parts are shared, and what no
rule asks about a pod that runs is dropped.
"""

from typing import Any

import msgspec

from kubenexus.api.core import Node, Pod, PodStatus, Volume

SHARED = 2048  # parts of a few kilobytes; beyond that sharing begins again
USUAL = 32 << 10  # bytes; two thousand parts of a megabyte each would be too many to hold

_encode = msgspec.json.encode  # which has numbers of any size: a quantity may be one


class ObjectCache:
    """`objects` are all other kinds, by kind and key."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.objects: dict[str, dict[str, Any]] = {}
        self._parts: dict[bytes, Any] = {}

    def of(self, kind: str) -> dict[str, Any]:
        return self.objects.setdefault(kind, {})

    def stripped_pod(self, pod: Pod) -> Pod:
        """The pod as far as events and hints look at it."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        owners: Any = self._shared(meta.owner_references) if meta.owner_references else []
        template = msgspec.structs.replace(spec, node_name="", volumes=[v for v in spec.volumes if _matters(v)])
        template = self._shared(template)
        if spec.node_name:
            template = msgspec.structs.replace(template, node_name=spec.node_name)
        slight = msgspec.structs.replace(
            meta, annotations={}, owner_references=owners, resource_version="", generation=0, creation_timestamp=""
        )
        short = msgspec.structs.replace(status, conditions=[], start_time="")
        return Pod(metadata=slight, spec=template, status=_NEW if short == _NEW else self._shared(short))

    def _shared(self, part: Any) -> Any:
        if len(self._parts) > SHARED:
            self._parts.clear()
        encoded = _encode(part)
        return self._parts.setdefault(encoded, part) if len(encoded) <= USUAL else part


_NEW = PodStatus(phase="Pending")


def with_shared_parts(pod: Pod, slim: Pod) -> Pod:
    """The whole pod, for one that waits, with what is slim of it where that says the same: members of a gang, held
    against each other, are then mostly told apart at a glance. Of its volumes all go or none: decisions name them by
    their places."""
    spec, status = slim.spec, slim.status
    if spec.volumes and len(spec.volumes) != len(pod.spec.volumes):
        spec = pod.spec
    return Pod(metadata=pod.metadata, spec=spec, status=status if status == pod.status else pod.status)


def stripped_node(node: Node) -> Node:
    """Without its images: no event is about them, and they are most of a node."""
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, images=[]))


def _matters(volume: Volume) -> bool:
    """Not one of the many that only mount something from the pod's own namespace."""
    return volume != Volume(name=volume.name)
