"""Which pods are alike: a signature made of just the fields that enabled plugins declare they read.

Two pods with equal signatures are one class and share everything computed for it. So what differs between pods of one
template must stay out: names, UIDs, labels nobody selects by, and the node a DaemonSet's pod is made for (that is a
pin, kept with the pod).
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from kubenexus.api import core
from kubenexus.api.core import Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.base.errors import KubeNexusError

LABELS = "metadata.labels"
_AFFINITY = "spec.affinity.nodeAffinity"
_AT_REST = core.PodStatus()


class Field(NamedTuple):
    """How a field is taken from a pod (an attribute's path, or a function), and where it goes in the specimen that
    stands for the class."""

    take: str | Callable[[Pod], Any]
    into: tuple[str, str]


def _resize(pod: Pod) -> core.PodStatus | None:
    """What of the status bears on requests: present only while a pod is resized in place."""
    status = pod.status
    pending = [c for c in status.conditions if c.type == "PodResizePending"] if status.conditions else []
    reported = status.container_statuses or status.init_container_statuses or pending
    if not reported and status.allocated_resources is None and status.resources is None:
        return None
    return core.PodStatus(
        container_statuses=status.container_statuses,
        init_container_statuses=status.init_container_statuses,
        allocated_resources=status.allocated_resources,
        resources=status.resources,
        conditions=pending,
    )


def _image_volumes(pod: Pod) -> list[core.Volume]:
    return [core.Volume(image=v.image) for v in pod.spec.volumes if v.image is not None]


def _node_affinity(pod: Pod) -> core.NodeAffinity | None:
    return None if pod.spec.affinity is None else pod.spec.affinity.node_affinity


def _pod_affinity(pod: Pod) -> core.PodAffinity | None:
    return None if pod.spec.affinity is None else pod.spec.affinity.pod_affinity


def _pod_anti_affinity(pod: Pod) -> core.PodAffinity | None:
    return None if pod.spec.affinity is None else pod.spec.affinity.pod_anti_affinity


def _bind_mounts(pod: Pod) -> list[core.Container]:
    if not pod.spec.ephemeral_containers:
        return []
    mounts = [m for c in pod.spec.ephemeral_containers for m in c.volume_mounts if m.bind_mount_options]
    return [core.Container(volume_mounts=mounts)] if mounts else []


FIELDS: dict[str, Field] = {
    "metadata.namespace": Field("metadata.namespace", ("metadata", "namespace")),
    "spec.nodeName": Field("spec.node_name", ("spec", "node_name")),
    "spec.priority": Field("spec.priority", ("spec", "priority")),
    "spec.containers": Field("spec.containers", ("spec", "containers")),
    "spec.initContainers": Field("spec.init_containers", ("spec", "init_containers")),
    "spec.ephemeralContainers": Field(_bind_mounts, ("spec", "ephemeral_containers")),
    "spec.overhead": Field("spec.overhead", ("spec", "overhead")),
    "spec.resources": Field("spec.resources", ("spec", "resources")),
    "spec.nodeSelector": Field("spec.node_selector", ("spec", "node_selector")),
    _AFFINITY: Field(_node_affinity, ("affinity", "node_affinity")),
    "spec.affinity.podAffinity": Field(_pod_affinity, ("affinity", "pod_affinity")),
    "spec.affinity.podAntiAffinity": Field(_pod_anti_affinity, ("affinity", "pod_anti_affinity")),
    "spec.topologySpreadConstraints": Field(
        "spec.topology_spread_constraints", ("spec", "topology_spread_constraints")
    ),
    "spec.tolerations": Field("spec.tolerations", ("spec", "tolerations")),
    "spec.volumes.image": Field(_image_volumes, ("spec", "volumes")),
    "spec.hostNetwork": Field("spec.host_network", ("spec", "host_network")),
    "spec.hostUsers": Field("spec.host_users", ("spec", "host_users")),
    "status.resize": Field(_resize, ("", "status")),
}

# What every class needs whichever plugins are on: the ledger counts a pod by these.
FOOTPRINT = (
    "spec.containers",
    "spec.initContainers",
    "spec.overhead",
    "spec.resources",
    "status.resize",
)


class Signer:
    """Made once for a lineup of plugins. `project` changes which labels matter; earlier signatures then differ."""

    def __init__(self, reads: Iterable[str]) -> None:
        wanted = {*FOOTPRINT, *reads}
        self._labels = {name[len(LABELS) + 1 : -1] for name in wanted if name.startswith(LABELS + "[")}
        unknown = sorted(n for n in wanted if n not in FIELDS and not n.startswith(LABELS))
        if unknown:
            raise KubeNexusError(f"unknown pod field {unknown[0]!r}; known: {', '.join([*FIELDS, LABELS])}")
        # Plain attributes first: they are all taken in one go, for every pod that is looked at.
        names = sorted(wanted & FIELDS.keys(), key=lambda name: (not isinstance(FIELDS[name].take, str), name))
        fields = [FIELDS[name] for name in names]
        self._plain = attrgetter(*(field.take for field in fields if isinstance(field.take, str)))
        self._takes = [field.take for field in fields if not isinstance(field.take, str)]
        self._into: dict[str, list[tuple[str, int]]] = {"metadata": [], "spec": [], "affinity": [], "": []}
        for i, field in enumerate(fields):
            self._into[field.into[0]].append((field.into[1], i))
        self._affinity = names.index(_AFFINITY) if _AFFINITY in names else -1
        self._projected: tuple[str, ...] = tuple(sorted(self._labels))
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def project(self, keys: Iterable[str]) -> None:
        """The label keys that some live selector asks for, besides those that plugins named themselves."""
        self._projected = tuple(sorted({*self._labels, *keys}))

    def sign(self, pod: Pod, unpinned: core.NodeAffinity | None = None, signed: Any = None) -> bytes:
        """`unpinned` is the pod's node affinity without the node names that only this pod is made for, `signed` what
        plugins add of their own (see `framework.points.Sign`)."""
        return self.seal(self.read(pod, unpinned), signed)

    def specimen(self, pod: Pod, unpinned: core.NodeAffinity | None = None) -> Pod:
        """A pod with the signed fields of this one and nothing else: what plugins are shown of the class."""
        return self.model(self.read(pod, unpinned))

    def read(self, pod: Pod, unpinned: core.NodeAffinity | None) -> list[Any]:
        """What is signed of a pod: its fields, the labels that matter, and whether pins were left out."""
        parts = [*self._plain(pod), *[take(pod) for take in self._takes], self._project(pod), unpinned is not None]
        if unpinned is not None and self._affinity >= 0:
            parts[self._affinity] = unpinned
        return parts

    def seal(self, read: list[Any], signed: Any) -> bytes:
        """The signature, from what was read."""
        return self._encode((*read, signed))

    def model(self, read: list[Any]) -> Pod:
        """The specimen, from what was read."""
        spec = {name: read[i] for name, i in self._into["spec"]}
        affinity = {name: read[i] for name, i in self._into["affinity"] if read[i] is not None}
        if affinity:
            spec["affinity"] = core.Affinity(**affinity)
        meta = {name: read[i] for name, i in self._into["metadata"]}
        status = next((read[i] for _, i in self._into[""]), None) or _AT_REST
        return Pod(metadata=ObjectMeta(labels=read[-2], **meta), spec=core.PodSpec(**spec), status=status)

    def _project(self, pod: Pod) -> dict[str, str]:
        labels = pod.metadata.labels
        return {key: labels[key] for key in self._projected if key in labels} if self._projected else {}


def unpinned(pod: Pod) -> core.NodeAffinity | None:
    """The affinity without its node names, if every required term pins the pod to the same nodes; else None.

    That is how the DaemonSet controller writes its pods: five thousand of them differ in nothing else.
    """
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None or pod.spec.topology_spread_constraints:
        return None  # spreading counts only nodes the affinity admits: there the names belong to the class
    terms = affinity.required.node_selector_terms
    if not terms or not terms[0].match_fields:
        return None
    pinned = {_names(term) for term in terms}
    if len(pinned) != 1 or None in pinned:
        return None
    rest = [core.NodeSelectorTerm(match_expressions=term.match_expressions) for term in terms]
    required = core.NodeSelector(node_selector_terms=rest)
    return core.NodeAffinity(required=required, preferred=affinity.preferred)


def _names(term: core.NodeSelectorTerm) -> tuple[str, ...] | None:
    """The name of a term whose only field requirement is `metadata.name In [one]`; several are invalid upstream."""
    fields = term.match_fields
    if len(fields) == 1 and (fields[0].key, fields[0].operator, len(fields[0].values)) == ("metadata.name", "In", 1):
        return tuple(fields[0].values)
    return None
