"""The volumes of the cluster, kept up to date with storage objects and the pods that use them.

The volume that a driver attaches for a claim follows from the claim, its volume and its class. When one of these
changes, the pods that use the claim are subtracted before the change and added after it. So no record is needed of how
they were counted.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple

from kubenexus.api import storage
from kubenexus.api.core import Pod
from kubenexus.api.storage import StorageObject
from kubenexus.base.errors import Malformed
from kubenexus.state.pods import PodRecord
from kubenexus.state.volumes import records
from kubenexus.state.volumes.available_volumes import AvailableVolumes
from kubenexus.state.volumes.claim_users import ClaimUsers
from kubenexus.state.volumes.csi_drivers import CsiDriverColumns
from kubenexus.state.volumes.csi_translation import DRIVERS, AttachedVolume, driver_of
from kubenexus.state.volumes.pod_volumes import PodVolumes, pod_volumes
from kubenexus.state.volumes.records import CapacityRecord, ClaimRecord, ClassRecord, NodeRecord, VolumeRecord

Index = dict[str, set[str]]


class ChangedRows(NamedTuple):
    """Rows on which volumes are counted differently now (`usage`), and rows whose CSI drivers changed (`nodes`)."""

    usage: Set[int] = frozenset()
    nodes: Set[int] = frozenset()


class _Kind(NamedTuple):
    """A kind of object: its known records, the function that reads an object, and the one that handles its record."""

    known: Mapping[str, Any]
    read: Callable[[Any], Any]
    update: Callable[[str, Any], ChangedRows | None]


class VolumeStore:
    """All volume state. Only the ledger and its transactions write here. `version` grows with every change."""

    def __init__(self, row_of: Mapping[str, int], capacity: int) -> None:
        self.version = 0
        self.claims: dict[str, ClaimRecord] = {}
        self.volumes: dict[str, VolumeRecord] = {}
        self.classes: dict[str, ClassRecord] = {}
        self.csi_drivers: dict[str, storage.CSIDriverSpec] = {}
        self.drivers = CsiDriverColumns(capacity)
        self.users = ClaimUsers(self.claims.get, self.attachment_of, self.drivers)
        self.stock = AvailableVolumes(self.volumes)
        self._row_of = row_of
        self._capacities: dict[str, CapacityRecord] = {}
        self._nodes: dict[str, NodeRecord] = {}
        self._attachments: dict[str, storage.VolumeAttachmentSpec] = {}
        self._claims_of: Index = {}  # by the volume they name
        self._attachments_of: Index = {}  # by the volume
        self._attachments_on: Index = {}  # by the node
        self._last: tuple[Pod | None, PodVolumes | None] = (None, None)
        self._kinds: dict[type, _Kind] = {
            storage.PersistentVolumeClaim: _Kind(self.claims, records.claim_of, self._claim),
            storage.PersistentVolume: _Kind(self.volumes, records.volume_of, self._volume),
            storage.StorageClass: _Kind(self.classes, records.class_of, self._class),
            storage.CSIStorageCapacity: _Kind(self._capacities, records.capacity_of, self._capacity),
            storage.CSIDriver: _Kind(self.csi_drivers, lambda driver: driver.spec, self._csi_driver),
            storage.CSINode: _Kind(self._nodes, records.node_of, self._node),
            storage.VolumeAttachment: _Kind(self._attachments, lambda attachment: attachment.spec, self._attachment),
        }

    def grow(self, capacity: int) -> None:
        self.drivers.grow(capacity)

    # --- reading --------------------------------------------------------------------------------------------------

    def mounts(self, pod: Pod) -> PodVolumes | None:
        """Returns `pod_volumes(pod)`; cached for one pod, since several plugins in turn call it."""
        if self._last[0] is not pod:
            self._last = (pod, pod_volumes(pod))
        return self._last[1]

    def known(self, kind: type[StorageObject]) -> set[str]:
        """Returns the keys of all known objects of a kind."""
        return set(self._kinds[kind].known)

    def attachment_of(self, claim: ClaimRecord) -> AttachedVolume | None:
        """Returns the volume that is attached where the claim is used, None if no driver counts it. A volume that does
        not exist yet is identified by its claim."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return volume.attachment
        known = self.classes.get(claim.class_name)
        driver = "" if known is None else driver_of(known.provisioner)
        return AttachedVolume(driver, f"\0{claim.key}") if driver else None

    def in_tree(self, claim: ClaimRecord) -> bool:
        """Returns whether the claim's volume is of an in-tree plugin. Only nodes with a CSINode attach such a volume by
        a CSI driver."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return bool(volume.plugin)
        known = self.classes.get(claim.class_name)
        return known is not None and known.provisioner in DRIVERS

    # --- objects from the API server ------------------------------------------------------------------------------

    def seen(self, thing: StorageObject) -> ChangedRows | None:
        """Adds or updates an object. Returns the changed rows, or None if no field that is read has changed. Raises
        Malformed and then changes nothing."""
        kind, key = self._kinds[type(thing)], thing.metadata.key
        try:
            record = kind.read(thing)
        except Malformed as problem:
            raise problem.within(subject=f"{type(thing).__name__} {key}") from None
        return self._count(kind.update(key, record))

    def gone(self, kind: type[StorageObject], key: str) -> ChangedRows | None:
        """Removes an object. Returns the changed rows, or None if it was not known."""
        return self._count(self._kinds[kind].update(key, None))

    def _count(self, touched: ChangedRows | None) -> ChangedRows | None:
        self.version += touched is not None
        return touched

    def _claim(self, key: str, new: ClaimRecord | None) -> ChangedRows | None:
        old = self.claims.get(key)
        if old == new:
            return None
        usage = self.users.recounted([key], lambda: _put(self.claims, key, new))
        _index(self._claims_of, key, old.volume if old else "", new.volume if new else "")
        if new is not None:
            self.stock.claim_changed(new)
        return ChangedRows(usage)

    def _volume(self, name: str, new: VolumeRecord | None) -> ChangedRows | None:
        old = self.volumes.get(name)
        if old == new:
            return None
        held = [self._attachments[each] for each in self._attachments_of.get(name, ())]
        usage = self._attach(held, -1)
        usage |= self.users.recounted(self._claims_of.get(name, ()), lambda: _put(self.volumes, name, new))
        usage |= self._attach(held, +1)
        self.stock.volume_changed(name, old, new)
        return ChangedRows(usage)

    def _class(self, name: str, new: ClassRecord | None) -> ChangedRows | None:
        if self.classes.get(name) == new:
            return None
        using = [key for key in self.users.claims() if key in self.claims and self.claims[key].class_name == name]
        usage = self.users.recounted(using, lambda: _put(self.classes, name, new))
        self.stock.rules_changed(name)
        return ChangedRows(usage)

    def _capacity(self, key: str, new: CapacityRecord | None) -> ChangedRows | None:
        old = self._capacities.get(key)
        if old == new:
            return None
        _put(self._capacities, key, new)
        self.stock.capacity_changed(old, new)
        return ChangedRows()

    def _csi_driver(self, name: str, new: storage.CSIDriverSpec | None) -> ChangedRows | None:
        if self.csi_drivers.get(name) == new:
            return None
        _put(self.csi_drivers, name, new)
        self.stock.rules_changed()
        return ChangedRows(nodes=set(self._row_of.values()))

    def _node(self, name: str, new: NodeRecord | None) -> ChangedRows | None:
        if self._nodes.get(name) == new:
            return None
        _put(self._nodes, name, new)
        row = self._row_of.get(name)
        if row is None:
            return ChangedRows()
        self.drivers.describe(row, new)
        return ChangedRows(nodes={row})

    def _attachment(self, name: str, new: storage.VolumeAttachmentSpec | None) -> ChangedRows | None:
        old = self._attachments.get(name)
        if old == new:
            return None
        usage = self._attach([old] if old is not None else [], -1)
        _put(self._attachments, name, new)
        _index(self._attachments_of, name, _source(old), _source(new))
        _index(self._attachments_on, name, old.node_name if old else "", new.node_name if new else "")
        return ChangedRows(usage | self._attach([new] if new is not None else [], +1))

    def _attach(self, held: Iterable[storage.VolumeAttachmentSpec], sign: int) -> set[int]:
        """Adds or removes VolumeAttachments (`sign`). Only volumes of CSI drivers are counted."""
        rows = set()
        for each in held:
            row, volume = self._row_of.get(each.node_name), self.volumes.get(_source(each))
            if row is not None and each.attacher and volume is not None and volume.csi and volume.attachment:
                self.drivers.attach(row, AttachedVolume(each.attacher, volume.attachment.handle), sign)
                rows.add(row)
        return rows

    # --- nodes and pods are added and removed ---------------------------------------------------------------------

    def node_came(self, name: str, row: int) -> None:
        self.drivers.describe(row, self._nodes.get(name))
        self._attach(self._held_on(name), +1)

    def node_leaves(self, name: str) -> None:
        """Called while the node still has its row. The row's driver columns are overwritten for the next node."""
        self._attach(self._held_on(name), -1)

    def _held_on(self, node: str) -> list[storage.VolumeAttachmentSpec]:
        return [self._attachments[each] for each in self._attachments_on.get(node, ())]

    def enter(self, record: PodRecord, row: int) -> None:
        """Counts the volumes of a pod on a row, and assumes the claims that were decided with it."""
        self.users.follow(record, row, +1)
        for claim, volume, node in _promised(record):
            self.stock.promise(claim, volume, node)
        self.version += 1

    def leave(self, record: PodRecord, row: int) -> None:
        """Undoes `enter`."""
        self.users.follow(record, row, -1)
        for claim, volume, node in _promised(record):
            self.stock.release(claim, volume, node)
        self.version += 1


def _promised(record: PodRecord) -> list[tuple[str, str, str]]:
    """Returns (claim, volume, node) for each claim that was decided with a pod: an existing volume, or "" and the
    node."""
    if not record.volume_choices or record.mounts is None:
        return []
    picked = dict(record.volume_choices)
    uses = [(f"{record.namespace}/{use.claim}", picked.get(use.position)) for use in record.mounts.claims]
    return [(claim, volume, "" if volume else record.node) for claim, volume in uses if volume is not None]


def _source(attachment: storage.VolumeAttachmentSpec | None) -> str:
    """Returns the name of the attached persistent volume, or ""."""
    return "" if attachment is None else attachment.source.persistent_volume_name or ""


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _index(index: Index, key: str, old: str, new: str) -> None:
    """Moves an entry from `old` to `new`."""
    if old:
        index[old].discard(key)
        if not index[old]:
            del index[old]
    if new:
        index.setdefault(new, set()).add(key)
