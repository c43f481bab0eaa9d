"""The cluster as columns: a node is a row, and each property that plugins read is a column over all rows.

A row is reused after its node is gone. `size` is one past the highest row in use, and `alive` marks the rows that are
nodes. Each change is logged by row: in `node_changes` if the node itself changed (labels, taints, capacity), in
`usage_changes` if the pods on it did. A change that concerns all rows, such as the number of nodes, raises
`cluster_version`.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubenexus.api.allocatable import allocatable
from kubenexus.api.core import Node
from kubenexus.base.arrays import BoolColumn, grow
from kubenexus.state.change_log import ChangeLog
from kubenexus.state.claims.store import ClaimStore
from kubenexus.state.default_selectors import DefaultSelectors
from kubenexus.state.demand import Demand
from kubenexus.state.derived import DerivedColumns
from kubenexus.state.devices.columns import DeviceColumns
from kubenexus.state.footprint import Footprint
from kubenexus.state.images import ImageColumns
from kubenexus.state.labels import LabelColumns
from kubenexus.state.numa.columns import NumaColumns
from kubenexus.state.pod_columns import PodColumns
from kubenexus.state.pods import PodRecord
from kubenexus.state.ports import HostPortUse
from kubenexus.state.resources import PODS, ResourceColumns
from kubenexus.state.taints import TaintColumn
from kubenexus.state.tenants import Tenants
from kubenexus.state.undo_log import UndoLog
from kubenexus.state.volumes.store import VolumeStore

T = TypeVar("T")
_FIRST_CAPACITY = 64
_MAX_REMEMBERED = 64
_NOT_YET: Any = object()


class NodeColumns:
    """All columns and the rows' names. Only the ledger and its transactions write here."""

    def __init__(self, tenants: Tenants | None = None) -> None:
        self.capacity = _FIRST_CAPACITY
        self.size = 0
        self.count = 0
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.alive: BoolColumn = np.zeros(self.capacity, np.bool_)
        self.cordoned: BoolColumn = np.zeros(self.capacity, np.bool_)
        self.blocked: BoolColumn = np.zeros(self.capacity, np.bool_)
        self.name_hash: NDArray[np.uint64] = np.zeros(self.capacity, np.uint64)
        # Changes with each pod, see `tie_break_of`.
        self.tie_break: NDArray[np.uint32] = np.zeros(self.capacity, np.uint32)
        self.features: list[frozenset[str]] = []
        self.resources = ResourceColumns(self.capacity)
        self.labels = LabelColumns(self.capacity)
        self.taints = TaintColumn(self.capacity)
        self.images = ImageColumns()
        self.ports = HostPortUse()
        self.devices = DeviceColumns(self.capacity)
        self.numa = NumaColumns(self.capacity)
        self.pods = PodColumns(self.labels)
        self.tenants = Tenants() if tenants is None else tenants
        self.default_selectors = DefaultSelectors()
        self.volumes = VolumeStore(self.row_of, self.capacity)
        self.claims = ClaimStore(self.row_of)
        self.derived = DerivedColumns()
        self.demand: Demand | None = None  # None: too little is known
        self.demand_version = 0
        self.cordoned_count = self.blocked_count = 0  # rows that are cordoned, and blocked
        self.device_class_resources: frozenset[str] = frozenset()
        self.node_changes = ChangeLog()
        self.usage_changes = ChangeLog()
        self.cluster_version = 0
        self._free: list[int] = []
        self._remembered: tuple[int, dict[Hashable, Any]] = (0, {})
        self._shared: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._seals: dict[int, bytes] = {}

    def set(self, node: Node) -> tuple[int, list[str]]:
        """Writes a node into its row if a property that is read has changed. Returns the row, and the resources that no
        node offered before: the ledger has to count their use. Raises Malformed before anything is written."""
        offered = allocatable(node)
        seal = _seal(node)
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is not None and self._seals[row] == seal:
            return row, []
        if row is None:
            row = self._open(name)
        else:
            self.node_changes.record(row)
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
        return self.resources.set_allocatable(row, offered)

    def remove(self, name: str) -> int | None:
        """Empties the row of a node. The ledger removes its pods first."""
        row = self.row_of.get(name)
        if row is None:
            return None
        self.volumes.node_leaves(name)
        self.claims.node_left(name)
        del self.row_of[name]
        self._cordon(row, False)
        self.set_blocked(row, False)
        self.alive[row] = False
        self.name_hash[row] = 0
        if self.labels.set(row, {}):
            self.pods.node_removed()
        self.taints.set(row, ())
        self.images.set(row, [])
        self.features[row] = frozenset()
        self.resources.set_allocatable(row, ())
        self.devices.clear(row)
        self.numa.clear(row)
        self.names[row] = ""
        del self._seals[row]
        self.count -= 1
        self._free.append(row)
        self._moved(row)
        return row

    def add_pod(self, row: int, record: PodRecord, undo: UndoLog | None = None) -> None:
        """Counts a pod on a row."""
        footprint = record.footprint
        self.resources.add_footprint(row, footprint, +1, undo)
        if record.endless:
            self.resources.charge_endless(row, footprint, +1, undo)
        if footprint.ports:
            self.ports.charge(row, footprint.ports, +1, undo)
        if record.device_shares:
            self.devices.charge(row, record.device_shares, footprint.amounts, +1, undo)
        if record.numa is not None and self.numa.any:
            self.numa.add_pod(row, record, undo)
        self._enter(record, row, trial=undo is not None)
        if undo is not None:
            undo.call(lambda: self._leave(record, row))
        self.usage_changed(row)

    def remove_pod(self, row: int, record: PodRecord, undo: UndoLog | None = None) -> None:
        """Removes a pod from a row."""
        footprint = record.footprint
        self.resources.add_footprint(row, footprint, -1, undo)
        if record.endless:
            self.resources.charge_endless(row, footprint, -1, undo)
        if footprint.ports:
            self.ports.charge(row, footprint.ports, -1, undo)
        if record.device_shares:
            self.devices.charge(row, record.device_shares, footprint.amounts, -1, undo)
        if record.numa is not None and self.numa.any:
            self.numa.remove_pod(row, record, undo)
        self._leave(record, row)
        if undo is not None:
            undo.call(lambda: self._enter(record, row))
        self.usage_changed(row)

    def count_reserved(self, row: int, footprint: Footprint, sign: int, undo: UndoLog | None = None) -> None:
        """Counts reserved capacity on a row (`sign` +1), or no longer (-1): amounts, and a place for a pod. No query
        over pods sees it."""
        self.resources.add_footprint(row, footprint, sign, undo)
        self.usage_changed(row)

    def clear_pods(self, row: int, residents: Iterable[PodRecord]) -> None:
        """Removes all pods from a row."""
        for record in residents:
            if record.slot >= 0:
                self._leave(record, row)
        self.resources.clear_use(row)
        self.ports.clear(row)
        self.devices.clear_use(row)
        self.numa.clear_use(row, residents)
        self.usage_changed(row)

    def usage_changed(self, row: int) -> None:
        """Records that the pods on a row changed."""
        self.tie_break[row] = tie_break_of(self.name_hash.item(row), self.resources.used.item(PODS, row))
        self.usage_changes.record(row)

    def _enter(self, record: PodRecord, row: int, trial: bool = False) -> None:
        self.pods.add(record, row)
        if record.mounts is not None:
            self.volumes.enter(record, row)
        if record.claims:
            self.claims.enter(record.claims, trial)

    def _leave(self, record: PodRecord, row: int) -> None:
        if record.claims:
            self.claims.leave(record.claims)
        if record.mounts is not None:
            self.volumes.leave(record, row)
        self.pods.remove(record, row)

    def set_blocked(self, row: int, fenced: bool) -> None:
        """Sets whether a row accepts no new pods."""
        if bool(self.blocked[row]) != fenced:
            self.blocked_count += 1 if fenced else -1
            self.blocked[row] = fenced
            self.node_changes.record(row)

    def set_device_class_resources(self, resources: frozenset[str]) -> None:
        """Sets the extended resources that device classes back. Claims provide them where no device plugin does."""
        if resources != self.device_class_resources:
            self.device_class_resources = resources
            for row in self.row_of.values():
                self.node_changes.record(row)

    def cached_until_node_change(self, question: Hashable, answer: Callable[[], Any]) -> Any:
        """Returns `answer()`, cached under `question` until a node changes. For values that depend on the nodes alone
        and are shared by many pod classes. The caller must not write into the result."""
        if self._remembered[0] != self.node_changes.mark:
            self._remembered = (self.node_changes.mark, {})
        known = self._remembered[1]
        found = known.get(question, _NOT_YET)
        if found is _NOT_YET:
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            found = known[question] = answer()
        return found

    def shared_while_used(self, question: Hashable, make: Callable[[], T]) -> T:
        """Returns `make()`, shared by all callers with an equal `question` while one of them holds a reference."""
        found: T | None = self._shared.get(question)
        if found is None:
            found = self._shared[question] = make()
        return found

    @property
    def free_rows(self) -> list[int]:
        """The rows without a node, in the order in which they became free. The next node takes the last one."""
        return list(self._free)

    def _cordon(self, row: int, cordoned: bool) -> None:
        self.cordoned_count += int(cordoned) - int(self.cordoned[row])
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
        self.name_hash[row] = name_hash_of(name)
        self.volumes.node_came(name, row)
        self.count += 1
        self._moved(row)
        return row

    def _moved(self, row: int) -> None:
        self.tie_break[row] = tie_break_of(self.name_hash.item(row), self.resources.used.item(PODS, row))
        self.node_changes.record(row)
        self.cluster_version += 1

    def _grow(self) -> None:
        self.capacity *= 2
        for name in ("alive", "cordoned", "blocked", "name_hash", "tie_break"):
            setattr(self, name, grow(getattr(self, name), self.capacity))
        for columns in (self.resources, self.labels, self.taints, self.devices, self.numa, self.volumes):
            columns.grow(self.capacity)


_encoder = msgspec.json.Encoder(order="deterministic")


def _seal(node: Node) -> bytes:
    """Returns a fingerprint of the fields that are read of a node. Heartbeats come every few seconds and change
    none."""
    parts = (node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable, node.status.images)
    return hashlib.blake2b(_encoder.encode((*parts, node.status.declared_features)), digest_size=16).digest()


def name_hash_of(name: str) -> int:
    """Returns a hash of the node's name, for ties between scores. It does not depend on the order of arrival."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def tie_break_of(name_hash: int, pods: int) -> int:
    """Returns the node's tie-break number while it runs `pods` pods, common to all classes (see `cycle.tie_break`)."""
    mixed = (pods * 0x9E3779B1 ^ name_hash) & 0xFFFFFFFF  # a factor that spreads neighbouring numbers far apart
    return mixed ^ mixed >> 15
