"""The signature of a pod: the fields that enabled plugins declare in `reads`, as bytes.

Pods with equal signatures are one class and share all that is computed for it. So what differs between pods of one
template stays out: names, UIDs, labels that no plugin reads, and the node that a DaemonSet's pod is made for (the
class cache keeps that with the pod, see `extension_points.PinsNodes`).
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api import core
from kubenexus.api.core import Pod
from kubenexus.api.meta import ObjectMeta
from kubenexus.base.errors import KubeNexusError
from kubenexus.base.identity_memo import IdentityMemo

_LABEL = "metadata.labels["
LABELS = f"{_LABEL}KEY]"
_AFFINITY = "spec.affinity.nodeAffinity"
_AT_REST = core.PodStatus()
MAX_CLAIMS = 5  # device claims that a reason names


class Field(NamedTuple):
    """An attribute of a pod's spec, and where it goes in the pod of the class.

    `matters` reduces a value that is not empty to the part that plugins may read.
    """

    name: str
    into: tuple[str, str]
    matters: Callable[[Any], Any] | None = None


def _of_spec(name: str, matters: Callable[[Any], Any] | None = None) -> Field:
    return Field(name, ("spec", name), matters)


def _of_affinity(name: str) -> Field:
    return Field("affinity", ("affinity", name), attrgetter(name))


def _images(volumes: list[core.Volume]) -> list[core.Volume]:
    for volume in volumes:  # called for each pod, and hardly any has one
        if volume.image is not None:
            return [core.Volume(image=v.image) for v in volumes if v.image is not None]
    return []


def _bind_mounts(containers: list[core.Container]) -> list[core.Container]:
    mounts = [mount for each in containers for mount in each.volume_mounts if mount.bind_mount_options]
    return [core.Container(volume_mounts=mounts)] if mounts else []


def _claims(claims: list[core.PodResourceClaim]) -> list[core.PodResourceClaim]:
    """Keeps the names within the pod, one more than a reason shows; the claims themselves differ for each pod."""
    return [core.PodResourceClaim(name=claim.name) for claim in claims[: MAX_CLAIMS + 1]]


def resize_status(status: core.PodStatus) -> core.PodStatus | None:
    """Returns the part of the status that requests depend on, or None unless the pod is being resized in place."""
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


_OF_SPEC: dict[str, Field] = {
    "spec.nodeName": _of_spec("node_name"),
    "spec.priority": _of_spec("priority"),
    "spec.preemptionPolicy": _of_spec("preemption_policy"),
    "spec.containers": _of_spec("containers"),
    "spec.initContainers": _of_spec("init_containers"),
    "spec.ephemeralContainers": _of_spec("ephemeral_containers", _bind_mounts),
    "spec.overhead": _of_spec("overhead"),
    "spec.resources": _of_spec("resources"),
    "spec.nodeSelector": _of_spec("node_selector"),
    _AFFINITY: _of_affinity("node_affinity"),
    "spec.affinity.podAffinity": _of_affinity("pod_affinity"),
    "spec.affinity.podAntiAffinity": _of_affinity("pod_anti_affinity"),
    "spec.topologySpreadConstraints": _of_spec("topology_spread_constraints"),
    "spec.tolerations": _of_spec("tolerations"),
    "spec.volumes.image": _of_spec("volumes", _images),
    "spec.resourceClaims": _of_spec("resource_claims", _claims),
    "spec.hostNetwork": _of_spec("host_network"),
    "spec.hostUsers": _of_spec("host_users"),
}
_NAMESPACE, _RESIZE = "metadata.namespace", "status.resize"
FIELDS = (*_OF_SPEC, _NAMESPACE, _RESIZE)
# In every class, no matter which plugins are enabled: the ledger counts a pod by these, and by `_RESIZE`.
FOOTPRINT = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")

_DIGEST: Final = 16  # bytes
_KIB: Final = 1024
_MAX_SPECS: Final = 8192  # KiB of all specs whose digest is remembered
_MAX_SPEC: Final = 64  # KiB of one
_MAX_SORTED: Final = 256 * _KIB  # bytes of a spec whose maps are sorted


class PodSigner:
    """Signs pods for one set of plugins. Made once for each profile."""

    def __init__(self, reads: Iterable[str]) -> None:
        wanted = {*FOOTPRINT, *reads}
        self._labels = sorted(name[len(_LABEL) : -1] for name in wanted if is_label(name))
        unknown = sorted(name for name in wanted if name not in FIELDS and not is_label(name))
        if unknown:
            raise KubeNexusError(f"unknown pod field {unknown[0]!r}; known: {', '.join([*FIELDS, LABELS])}")
        names = sorted(wanted & _OF_SPEC.keys())
        fields = [_OF_SPEC[name] for name in names]
        self._of_spec = attrgetter(*(field.name for field in fields))
        self._partly = [(i, field.matters) for i, field in enumerate(fields) if field.matters is not None]
        self._into: dict[str, list[tuple[str, int]]] = {"spec": [], "affinity": []}
        for i, field in enumerate(fields):
            self._into[field.into[0]].append((field.into[1], i))
        self._affinity = names.index(_AFFINITY) if _AFFINITY in names else -1
        self._namespace = _NAMESPACE in wanted
        # JSON, since it has numbers of any size, and a quantity may be one.
        self._spec_digests: IdentityMemo[bytes] = IdentityMemo(_MAX_SPECS)
        self.encode: Callable[[list[Any]], bytes] = msgspec.json.Encoder(order="deterministic").encode
        self._encode_as_sent: Callable[[list[Any]], bytes] = msgspec.json.Encoder().encode

    def sign(self, pod: Pod, unpinned: core.NodeAffinity | None = None, signed: Any = None) -> bytes:
        """Returns the signature. `unpinned` is the result of `affinity_without_node_names`, `signed` what plugins add
        (`framework.extension_points.Sign`)."""
        return self.encode(self.signed_values(pod, unpinned, signed))

    def class_pod_of(self, pod: Pod, unpinned: core.NodeAffinity | None = None) -> Pod:
        """Returns a pod with the signed fields of this one and no others, as plugins get it."""
        return self.class_pod(self.signed_values(pod, unpinned))

    def signed_values(self, pod: Pod, unpinned: core.NodeAffinity | None = None, signed: Any = None) -> list[Any]:
        """Returns what `encode` turns into the signature: fields, labels, whether node names were left out, `signed`.

        Called for each pod, as is `encode`.
        """
        parts = self._spec_values(pod.spec)
        if unpinned is not None and self._affinity >= 0:
            parts[self._affinity] = unpinned
        parts += self._other_values(pod)
        parts += (unpinned is not None, signed)
        return parts

    def sign_in_short(self, pod: Pod, signed: Any = None) -> bytes:
        """Returns a digest instead of the signed fields of the spec, and the rest of the signature. It is equal for
        pods whose signatures with node names are equal, and for no others. The digest is remembered for the spec: to
        encode one with 150 tolerations takes 30 us.

        The maps of a very large spec are not sorted, since that takes 40 ms for 110,000 entries. An API server sends
        them sorted; pods whose maps come in another order count as different then."""
        known = self._spec_digests.get(pod.spec)
        if known is None:
            values = self._spec_values(pod.spec)
            encoded = self._encode_as_sent(values)
            if len(encoded) <= _MAX_SORTED:
                encoded = self.encode(values)
            known = blake2b(encoded, digest_size=_DIGEST).digest()
            weight = 1 + len(encoded) // _KIB
            if weight <= _MAX_SPEC:
                self._spec_digests.put(pod.spec, known, weight)
        return known + self.encode([*self._other_values(pod), signed])

    def _spec_values(self, spec: core.PodSpec) -> list[Any]:
        parts = [*self._of_spec(spec)]
        for i, matters in self._partly:
            if parts[i]:
                parts[i] = matters(parts[i])
        return parts

    def _other_values(self, pod: Pod) -> tuple[Any, ...]:
        meta = pod.metadata
        labels = {key: meta.labels[key] for key in self._labels if key in meta.labels} if self._labels else {}
        return meta.namespace if self._namespace else "", resize_status(pod.status), labels

    def class_pod(self, read: list[Any]) -> Pod:
        """Returns the pod of the class from the signed values."""
        namespace, resize, labels, _, _ = read[-5:]
        spec = {name: read[i] for name, i in self._into["spec"]}
        affinity = {name: read[i] for name, i in self._into["affinity"] if read[i] is not None}
        if affinity:
            spec["affinity"] = core.Affinity(**affinity)
        meta = ObjectMeta(labels=labels, namespace=namespace)
        return Pod(metadata=meta, spec=core.PodSpec(**spec), status=resize or _AT_REST)


def is_label(name: str) -> bool:
    """Whether an entry of `reads` is a single label."""
    return name.startswith(_LABEL) and name.endswith("]")


def affinity_without_node_names(pod: Pod) -> core.NodeAffinity | None:
    """Returns the node affinity without node names if every required term names the same node, else None.

    The DaemonSet controller writes its pods so: five thousand of them differ in nothing else.
    """
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None or pod.spec.topology_spread_constraints:
        return None  # spreading counts only nodes that the affinity admits, so the names belong to the class
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
    """Returns the name of a term whose only field requirement is `metadata.name In [one]`; upstream allows no more."""
    fields = term.match_fields
    if len(fields) == 1 and (fields[0].key, fields[0].operator, len(fields[0].values)) == ("metadata.name", "In", 1):
        return tuple(fields[0].values)
    return None
