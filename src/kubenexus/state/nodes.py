"""The cluster as columns: a node is a row, everything the rules read is a column over all rows.

Rows are handed out once and reused after a node is gone; `size` is one past the highest row in use, and `alive` says
which rows are nodes. Every change is noted in a log by row: `node_changes` when the node itself changed (labels,
taints, capacity), `usage_changes` when what runs on it did. What concerns all rows at once, such as how many nodes
there are, moves `cluster_version`.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.core import Node
from kubenexus.api.offers import allocatable
from kubenexus.base.numbers import BoolColumn
from kubenexus.state.cells import Undo
from kubenexus.state.changes import Changes
from kubenexus.state.derived import DerivedColumns
from kubenexus.state.devices import DeviceColumns
from kubenexus.state.images import ImageColumns
from kubenexus.state.labels import LabelColumns
from kubenexus.state.owners import Owners
from kubenexus.state.podcolumns import PodColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.ports import PortUse
from kubenexus.state.resources import PODS, ResourceColumns, widen
from kubenexus.state.taints import TaintColumn
from kubenexus.state.volumes.store import VolumeStore

T = TypeVar("T")
_FIRST_CAPACITY = 64
_MOST_REMEMBERED = 64
_NOT_YET: Any = object()


class NodeColumns:
    """All columns and the rows' names. Only the ledger and the journal write here."""

    def __init__(self) -> None:
        self.capacity = _FIRST_CAPACITY
        self.size = 0
        self.count = 0
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.alive: BoolColumn = np.zeros(self.capacity, np.bool_)
        self.cordoned: BoolColumn = np.zeros(self.capacity, np.bool_)
        self.fenced: BoolColumn = np.zeros(self.capacity, np.bool_)
        self.lot: NDArray[np.uint64] = np.zeros(self.capacity, np.uint64)
        self.draw: NDArray[np.uint32] = np.zeros(self.capacity, np.uint32)  # the lot, drawn anew with each pod
        self.features: list[frozenset[str]] = []
        self.resources = ResourceColumns(self.capacity)
        self.labels = LabelColumns(self.capacity)
        self.taints = TaintColumn(self.capacity)
        self.images = ImageColumns()
        self.ports = PortUse()
        self.devices = DeviceColumns(self.capacity)
        self.pods = PodColumns(self.labels)
        self.owners = Owners()
        self.volumes = VolumeStore(self.row_of, self.capacity)
        self.derived = DerivedColumns()
        self.cordons = self.fences = 0  # how many there are
        self.delegated: frozenset[str] = frozenset()
        self.node_changes = Changes()
        self.usage_changes = Changes()
        self.cluster_version = 0
        self._free: list[int] = []
        self._remembered: tuple[int, dict[Hashable, Any]] = (0, {})
        self._shared: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._seals: dict[int, bytes] = {}

    def set(self, node: Node) -> tuple[int, list[str]]:
        """Write a node into its row, if anything that matters changed. Returns the row, and resources never seen
        before, whose use the ledger has to count. Raises Malformed before anything is written."""
        offered = allocatable(node)
        seal = _seal(node)
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is not None and self._seals[row] == seal:
            return row, []
        if row is None:
            row = self._open(name)
        else:
            self.node_changes.note(row)
        self._seals[row] = seal
        return row, self._write(row, node, offered)

    def _write(self, row: int, node: Node, offered: tuple[tuple[str, int], ...]) -> list[str]:
        self._cordon(row, node.spec.unschedulable)
        if self.labels.set(row, node.metadata.labels):
            self.pods.node_relabelled()
        self.taints.set(row, tuple(node.spec.taints))
        if self.images.set(row, node.status.images):
            self.cluster_version += 1
        self.features[row] = frozenset(node.status.declared_features)
        return self.resources.offer(row, offered)

    def remove(self, name: str) -> int | None:
        """Empty a node's row. What ran there has to be taken off by the ledger before."""
        row = self.row_of.get(name)
        if row is None:
            return None
        self.volumes.node_leaves(name)
        del self.row_of[name]
        self._cordon(row, False)
        self.fence(row, False)
        self.alive[row] = False
        self.lot[row] = 0
        self.labels.set(row, {})
        self.taints.set(row, ())
        self.images.set(row, [])
        self.features[row] = frozenset()
        self.resources.offer(row, ())
        self.devices.clear(row)
        self.names[row] = ""
        del self._seals[row]
        self.count -= 1
        self._free.append(row)
        self._moved(row)
        return row

    def put(self, row: int, record: PodRecord, undo: Undo | None = None) -> None:
        """Count a pod on a row."""
        footprint = record.footprint
        self.resources.charge(row, footprint, +1, undo)
        if record.endless:
            self.resources.charge_endless(row, footprint, +1, undo)
        if footprint.ports:
            self.ports.charge(row, footprint.ports, +1, undo)
        if record.takes:
            self.devices.charge(row, record.takes, +1, undo)
        self.pods.enter(record, row)
        if record.mounts is not None:
            self.volumes.enter(record, row)
        if undo is not None:
            undo.call(lambda: self._leave(record, row))
        self.use_changed(row)

    def take_off(self, row: int, record: PodRecord) -> bool:
        """Count a pod no longer. False: a counter stood at its cap, recount the row."""
        footprint = record.footprint
        exact = self.resources.charge(row, footprint, -1)
        if record.endless:
            exact &= self.resources.charge_endless(row, footprint, -1)
        if footprint.ports:
            self.ports.charge(row, footprint.ports, -1)
        if record.takes:
            self.devices.charge(row, record.takes, -1)
        self._leave(record, row)
        self.use_changed(row)
        return exact

    def empty(self, row: int, residents: Iterable[PodRecord]) -> None:
        """Take everything off a row."""
        for record in residents:
            if record.slot >= 0:
                self._leave(record, row)
        self.resources.clear_use(row)
        self.ports.clear(row)
        self.devices.clear_use(row)
        self.use_changed(row)

    def use_changed(self, row: int) -> None:
        """What runs on a row is not what it was."""
        self.draw[row] = draw_of(self.lot.item(row), self.resources.used.item(PODS, row))
        self.usage_changes.note(row)

    def _leave(self, record: PodRecord, row: int) -> None:
        if record.mounts is not None:
            self.volumes.leave(record, row)
        self.pods.leave(record, row)

    def fence(self, row: int, fenced: bool) -> None:
        if bool(self.fenced[row]) != fenced:
            self.fences += 1 if fenced else -1
            self.fenced[row] = fenced
            self.node_changes.note(row)

    def delegate(self, resources: frozenset[str]) -> None:
        """Extended resources that device classes back: where no device plugin offers them, claims will."""
        if resources != self.delegated:
            self.delegated = resources
            for row in self.row_of.values():
                self.node_changes.note(row)

    def remembered(self, question: Hashable, answer: Callable[[], Any]) -> Any:
        """What follows from the nodes alone, whatever runs there: many classes ask in the same words, and until a node
        changes they are answered once. Nobody may write into an answer."""
        if self._remembered[0] != self.node_changes.mark:
            self._remembered = (self.node_changes.mark, {})
        known = self._remembered[1]
        found = known.get(question, _NOT_YET)
        if found is _NOT_YET:
            if len(known) >= _MOST_REMEMBERED:
                known.clear()
            found = known[question] = answer()
        return found

    def shared(self, question: Hashable, make: Callable[[], T]) -> T:
        """What follows the pods for all classes that ask in the same words. It is kept while one of them holds it."""
        found: T | None = self._shared.get(question)
        if found is None:
            found = self._shared[question] = make()
        return found

    def _cordon(self, row: int, cordoned: bool) -> None:
        self.cordons += int(cordoned) - int(self.cordoned[row])
        self.cordoned[row] = cordoned

    def _open(self, name: str) -> int:
        row = self._free.pop() if self._free else self.size
        if row == self.size:
            if row == self.capacity:
                self._grow()
            self.size += 1
            self.names.append("")
            self.features.append(frozenset())
        self.names[row] = name
        self.row_of[name] = row
        self.alive[row] = True
        self.lot[row] = lot_of(name)
        self.volumes.node_came(name, row)
        self.count += 1
        self._moved(row)
        return row

    def _moved(self, row: int) -> None:
        self.draw[row] = draw_of(self.lot.item(row), self.resources.used.item(PODS, row))
        self.node_changes.note(row)
        self.cluster_version += 1

    def _grow(self) -> None:
        self.capacity *= 2
        for name in ("alive", "cordoned", "fenced", "lot", "draw"):
            setattr(self, name, widen(getattr(self, name), self.capacity))
        for columns in (self.resources, self.labels, self.taints, self.devices, self.volumes):
            columns.grow(self.capacity)


_encoder = msgspec.json.Encoder(order="deterministic")


def _seal(node: Node) -> bytes:
    """A short fingerprint of what we read of a node: heartbeats arrive every few seconds and change nothing."""
    parts = (node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable, node.status.images)
    return hashlib.blake2b(_encoder.encode((*parts, node.status.declared_features)), digest_size=16).digest()


def lot_of(name: str) -> int:
    """A node's lot when scores tie: from its name alone, so that it does not depend on the order of arrival."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def draw_of(lot: int, pods: int) -> int:
    """A node's lot while it runs so many pods: what all classes' lots have in common (see `cycle.lots`)."""
    mixed = (pods * 0x9E3779B1 ^ lot) & 0xFFFFFFFF  # a factor that spreads neighbouring numbers far apart
    return mixed ^ mixed >> 15
