"""What the bench has to know of a scheduler: how it is built and started, and how gangs are declared to it."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench.live.cases import SCHEDULER
from bench.peers.building import KINDS, Module, provide
from kubenexus.testing.controlplane import ControlPlane, ManagedProcess, Object

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QPS = 5000  # of every client, so that no limit decides


class Gang(NamedTuple):
    """So many pods, all of which are needed; with `rack`, in one rack."""

    name: str
    size: int
    rack: bool


class Peer(ABC):
    """One scheduler. Subclasses start it, and override what differs.

    `scheduler_name` goes into the pods. `racks`: a gang can be bound to a rack.
    """

    name: str
    scheduler_name = SCHEDULER
    racks = True
    module: Module | None = None

    def __init__(self) -> None:
        self.folder = Path()

    @property
    def version(self) -> str:
        assert self.module is not None
        return self.module.version()

    def build(self) -> None:
        """Builds its programs if they are missing. Raises CannotBuild."""
        if self.module is not None:
            self.folder = provide(self.module)

    def prepare(self, plane: ControlPlane, namespace: str, racks: int) -> None:
        """Creates its kinds and objects, before pods exist and before the clock runs. `racks`: the nodes' racks, if
        gangs are bound to racks, else 0."""
        if self.module is not None:
            create_kinds(plane, self.folder / KINDS)

    def group(self, gang: Gang) -> Object | None:
        """Returns the object that declares a gang, if it takes one."""
        return None

    def join(self, pod: Object, gang: Gang) -> None:  # noqa: B027 - a pod may be a member as it is
        """Changes a pod into a member of a gang."""

    @abstractmethod
    def start(self, plane: ControlPlane) -> list[ManagedProcess]:
        """Starts its processes. This is on the clock."""


def create_kinds(plane: ControlPlane, folder: Path) -> None:
    """Creates all CustomResourceDefinitions of a folder, and waits until the server serves them."""
    cluster, names = plane.cluster(), set()
    for file in sorted(folder.glob("*.yaml")):
        for definition in yaml.load_all(file.read_text(encoding="utf-8"), Loader=LOADER):
            if definition and definition["metadata"]["name"] not in names:
                cluster.create(definition)
                names.add(definition["metadata"]["name"])
    cluster.until(DEFINITIONS, lambda all: all_served(all, names), "all kinds are served", seconds=180.0)


def all_served(definitions: dict[str, Object], names: set[str]) -> bool:
    """Returns whether the server serves all these definitions."""

    def conditions(item: Object) -> set[tuple[str, str]]:
        return {(each["type"], each["status"]) for each in item["status"]["conditions"] or ()}

    return all(("Established", "True") in conditions(definitions[name]) for name in names)


def made(version: str, kind: str, name: str, spec: Any, namespace: str = "") -> Object:
    """Returns an object of any kind."""
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def mark(pod: Object, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> None:
    """Adds labels and annotations to a pod."""
    meta = pod["metadata"]
    meta["labels"] = {**meta.get("labels", {}), **(labels or {})}
    meta["annotations"] = {**meta.get("annotations", {}), **(annotations or {})}
