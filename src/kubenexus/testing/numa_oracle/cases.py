"""The format of the recorded verdicts (docs/numa-oracle.md), as far as a comparison reads it."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.base.errors import KubeNexusError

SUFFIX = ".json.gz"


class UnusableRecording(KubeNexusError):
    """A path without recorded verdicts; the text says why."""


class Recorded(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a recording. Fields that no comparison reads are skipped."""


class RecordedZone(Recorded, frozen=True):
    id: int
    socket: int = 0
    cores: list[list[int]] | None = None
    uncore: list[int] | None = None
    distances: list[int] = []


class RecordedDevice(Recorded, frozen=True):
    id: str
    numa: list[int] | None = None
    unhealthy: bool = False


class RecordedMachine(Recorded, frozen=True):
    numa: list[RecordedZone]
    devices: dict[str, list[RecordedDevice]] = {}


class RecordedKubelet(Recorded, frozen=True):
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: dict[str, str] | None = None
    cpu_manager_policy: str = "none"
    cpu_manager_policy_options: dict[str, str] | None = None
    memory_manager_policy: str = "None"


class RecordedMemory(Recorded, frozen=True):
    allocatable: int = 0
    free: int = 0


class ZoneState(Recorded, frozen=True):
    id: int
    free_cpus: str = msgspec.field(default="", name="freeCPUs")
    reserved_cpus: str = msgspec.field(default="", name="reservedCPUs")
    memory: dict[str, RecordedMemory] = {}
    group: list[int] | None = None
    assignments: int = 0
    free_devices: dict[str, list[str]] = {}


class RecordedBlock(Recorded, frozen=True):
    type: str
    numa: list[int]
    size: int


class RecordedAllocation(Recorded, frozen=True):
    affinity: list[int] | None = None
    preferred: bool = False
    cpus: str = ""
    memory: list[RecordedBlock] | None = None
    devices: dict[str, list[str]] | None = None
    cpus_per_numa: dict[str, int] | None = msgspec.field(default=None, name="cpusPerNUMA")
    devices_per_numa: dict[str, dict[str, int]] | None = msgspec.field(default=None, name="devicesPerNUMA")


class RecordedState(Recorded, frozen=True):
    numa: list[ZoneState]
    containers: dict[str, dict[str, RecordedAllocation]] | None = None


class Fit(Recorded, frozen=True):
    fits: bool = True
    reason: str = ""


class Verdict(Recorded, frozen=True):
    """What the kubelet said about one pod; `others` are outcomes of the same admission in other runs."""

    admitted: bool
    fit: Fit = Fit()
    reason: str = ""
    by: str = ""
    container: str = ""
    qos: str = ""
    containers: dict[str, RecordedAllocation] | None = None
    others: "list[Verdict] | None" = None


class Case(Recorded, frozen=True):
    id: str
    kind: str
    machine: RecordedMachine
    kubelet: RecordedKubelet
    node: Node
    nrt: NodeResourceTopology
    state: RecordedState
    incoming: list[Pod]
    pods: list[Pod] | None = None


class Entry(Recorded, frozen=True):
    case: Case
    expected: dict[str, Verdict]


_DECODER = msgspec.json.Decoder(list[Entry])


def recordings(paths: Iterable[str | Path]) -> Iterator[tuple[str, list[Entry]]]:
    """Yields the name and the cases of each file. A folder stands for its files. Raises UnusableRecording."""
    for path in map(Path, paths):
        files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not files:
            raise UnusableRecording(f"{path}: no *{SUFFIX} in this folder")
        for file in files:
            try:
                entries = _DECODER.decode(gzip.decompress(file.read_bytes()))
            except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
                raise UnusableRecording(f"{file}: cannot be read: {error}") from error
            yield file.name.removesuffix(SUFFIX), entries
