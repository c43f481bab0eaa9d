"""The served kinds as data. The file was recorded from a real server; see tests/contract/record.

A kind has names only; how its objects are defaulted and checked is in `rules`.
"""

import functools
from importlib import resources
from typing import Any

import msgspec

DATA = resources.files("kubenexus.sim.apiserver") / "data"
ALWAYS = ("metadata.name", "metadata.namespace")


class Subresource(msgspec.Struct, frozen=True):
    """A subresource: `status`, `scale`, `binding`."""

    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = "v1"


class ServedKind(msgspec.Struct, frozen=True, rename="camel", eq=False):
    """One kind. `store` names its collection in the store: events of v1 and of events.k8s.io share one."""

    group_version: str
    resource: str
    kind: str
    singular_resource: str = ""
    scope: str = "Namespaced"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: dict[str, Subresource] = {}
    columns: list[dict[str, Any]] = []
    fields: tuple[str, ...] = ()  # names that a field selector may use, besides name and namespace
    custom: dict[str, Any] | None = None  # the version in its CustomResourceDefinition
    list_kind: str = ""

    @property
    def group(self) -> str:
        return _group(self.group_version)

    @property
    def version(self) -> str:
        return self.group_version.rpartition("/")[2]

    @property
    def namespaced(self) -> bool:
        return self.scope == "Namespaced"

    @property
    def qualified(self) -> str:
        """The name in messages: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def store(self) -> str:
        return _store(self.group_version, self.resource)

    def key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.namespaced else name


@functools.cache
def _group(group_version: str) -> str:
    return group_version.rpartition("/")[0]


@functools.cache
def _store(group_version: str, resource: str) -> str:
    group = _group(group_version)
    return f"{resource}.{group}" if group and resource != "events" else resource


class Names(msgspec.Struct, frozen=True):
    """Encoded constants of a kind that every answer needs."""

    head: bytes
    list_head: bytes


@functools.cache
def names(kind: ServedKind) -> Names:
    """Returns the encoded first bytes of objects and of lists of the kind."""
    named = msgspec.json.encode({"kind": kind.kind, "apiVersion": kind.group_version})
    listed = msgspec.json.encode({"kind": kind.list_kind or f"{kind.kind}List", "apiVersion": kind.group_version})
    return Names(head=named[:-1] + b",", list_head=listed[:-1] + b",")


def recorded() -> list[ServedKind]:
    """Returns the kinds of the real server that we serve, in its order."""
    kinds = msgspec.json.decode((DATA / "kinds.json").read_bytes(), type=list[ServedKind])
    return [msgspec.structs.replace(kind, fields=FIELDS.get(kind.qualified, ())) for kind in kinds]


_EVENT_FIELDS = (
    *(f"involvedObject.{each}" for each in ("kind", "namespace", "name", "uid", "apiVersion")),
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
# Names that a field selector may use. A real server does not publish these.
FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        *(f"spec.{each}" for each in ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")),
        "spec.hostNetwork",
        *(f"status.{each}" for each in ("phase", "podIP", "podIPs", "nominatedNodeName")),
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": _EVENT_FIELDS,
    "events.events.k8s.io": _EVENT_FIELDS,
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "resourceslices.resource.k8s.io": ("spec.driver", "spec.nodeName"),
}


class Registry:
    """All kinds by group, version and resource. Custom kinds are added and removed."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self._by_object: dict[tuple[str, str], ServedKind] = {}  # if several resources have one kind, the first
        self._group_versions: set[str] = set()
        for kind in recorded():
            self._kinds[kind.group_version, kind.resource] = kind
        self._index()

    def add(self, kind: ServedKind) -> None:
        self._kinds[kind.group_version, kind.resource] = kind
        self._index()

    def remove(self, kind: ServedKind) -> None:
        self._kinds.pop((kind.group_version, kind.resource), None)
        self._index()

    def find(self, group_version: str, resource: str) -> ServedKind | None:
        return self._kinds.get((group_version, resource))

    def of_object(self, api_version: str, kind: str) -> ServedKind | None:
        """Finds a kind by the apiVersion and kind of an ownerReference."""
        return self._by_object.get((api_version, kind))

    def all(self) -> list[ServedKind]:
        return list(self._kinds.values())

    def has_group_version(self, group_version: str) -> bool:
        return group_version in self._group_versions

    def _index(self) -> None:
        """Builds the indexes that every request uses."""
        self._group_versions = {known for known, _ in self._kinds}
        self._by_object = {(each.group_version, each.kind): each for each in reversed(self._kinds.values())}
