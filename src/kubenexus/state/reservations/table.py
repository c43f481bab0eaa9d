"""The table of reserved capacity: which amounts on which node are kept for which pods.

An entry counts on its node's row like the requests of a pod, so every filter sees it as used. A decision for an owner
is made without the owner's entries (`plan.decide`). A pod that is placed on capacity of its own claims it: the entry
then counts only what no pod has claimed, so nothing is counted twice. When the pod is gone, or was not bound, its claim
ends and the entry counts in full again, in the same step. No other pod can come between.

    reserve ─▶ entry counts ──claim──▶ entry counts less ──pod gone, bind failed──▶ entry counts more
                    └──────────── release: expired, complete, deleted ───────────▶ nothing counts

Entries name no devices: of GPUs they keep a number, and the cards are chosen when a pod is placed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.reservations.request import ReservationOwner
from kubenexus.api.resource_names import CPU, MEMORY, Amounts
from kubenexus.state.footprint import Footprint, interned
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pods import PodRecord, PodStage

CRITICAL = 2_000_000_000  # the priority of system-cluster-critical: such pods may use any capacity
_MAX_NAMESPACES = 4096  # namespaces whose reservations are remembered


class ReservedCapacity(msgspec.Struct, gc=False):
    """An entry: `amounts` on `node`, and what pods have claimed of it. `record` is what counts on the node's row, None
    if nothing is left of it."""

    name: str
    reservation: str
    node: str
    amounts: Amounts
    claims: dict[str, Amounts] = {}
    record: PodRecord | None = None

    def left(self) -> dict[str, int]:
        """Returns what no pod has claimed, without zeros."""
        left = dict(self.amounts)
        for claimed in self.claims.values():
            for name, amount in claimed:
                left[name] -= amount
        return {name: amount for name, amount in left.items() if amount}


class ReservationRecord(msgspec.Struct, gc=False):
    """One reservation in the table: its owner, its entries by name, and the priority above which pods may take it."""

    key: str
    owner: ReservationOwner
    entries: dict[str, ReservedCapacity]
    priority: int | None = None

    @property
    def pods(self) -> list[str]:
        """The keys of the pods that claim a part of it, in order."""
        return sorted({pod for entry in self.entries.values() for pod in entry.claims})

    @property
    def is_claimed(self) -> bool:
        """Whether pods use all of it."""
        return all(entry.record is None for entry in self.entries.values())


class ReservationTable:
    """All reserved capacity. Only the ledger writes here. An entry counts if its node is known."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self.by_key: dict[str, ReservationRecord] = {}
        self._by_node: dict[str, list[ReservedCapacity]] = {}
        self._claimed: dict[str, list[ReservedCapacity]] = {}  # by pod
        self._by_namespace: dict[str, tuple[ReservationRecord, ...]] = {}  # those whose owners may be in a namespace
        self._yielding: tuple[ReservationRecord, ...] = ()  # those that pods of some priority may take
        self.version = 0  # grows when a reservation comes or goes, or its owners may be others

    def __bool__(self) -> bool:
        return bool(self.by_key)

    # --- reading ----------------------------------------------------------------------------------------------------

    def owned_by(self, namespace: str, group: str, pods: Sequence[Pod]) -> list[ReservedCapacity]:
        """Returns the entries that these pods may use, which are all of a namespace, and of a gang if `group` names
        one. Most namespaces have none: that takes two lookups."""
        return [entry for each in self._records(namespace, group, pods) for entry in self._counted(each)]

    def keys_owned_by(self, namespace: str, group: str, pods: Sequence[Pod]) -> tuple[str, ...]:
        """Returns the keys of the reservations that these pods may use, in order."""
        return tuple(sorted([each.key for each in self._records(namespace, group, pods)]))

    def yielding_to(self, priority: int) -> list[ReservedCapacity]:
        """Returns the entries that pods of this priority may use although they are not the owner's."""
        records = self.by_key.values() if priority >= CRITICAL else self._yielding
        return [
            entry
            for each in records
            if priority >= CRITICAL or (each.priority is not None and priority > each.priority)
            for entry in self._counted(each)
        ]

    def users(self, owned: Collection[str], priority: int) -> list[str]:
        """Returns the keys of pods whose eviction would free nothing for a job of this priority: what they use would be
        reserved again. `owned` are the keys of the job's own reservations."""
        if priority >= CRITICAL:
            return []
        yielding = [each.key for each in self._yielding if each.priority is not None and priority > each.priority]
        free = {*owned, *yielding}
        return [pod for pod, entries in self._claimed.items() if any(each.reservation not in free for each in entries)]

    def on(self, node: str) -> list[PodRecord]:
        """Returns what counts on a node, as records of pods."""
        return [entry.record for entry in self._by_node.get(node, ()) if entry.record is not None]

    @property
    def nodes(self) -> list[str]:
        return list(self._by_node)

    def claims_of(self, pod: str) -> list[ReservedCapacity]:
        """Returns the entries of which a pod has claimed a part."""
        return list(self._claimed.get(pod, ()))

    def counted(self) -> Iterator[tuple[int, Footprint]]:
        """Yields all that counts, with its row."""
        for node in self._by_node:
            row = self._nodes.row_of.get(node)
            for record in self.on(node) if row is not None else ():
                yield row, record.footprint  # type: ignore[misc]

    def lacking(self, key: str) -> list[str]:
        """Returns the entries of a reservation whose node is gone, or holds more than it offers."""
        return [name for name, entry in self.by_key[key].entries.items() if self._lacks(entry)]

    def _lacks(self, entry: ReservedCapacity) -> bool:
        resources, row = self._nodes.resources, self._nodes.row_of.get(entry.node)
        if row is None:
            return True
        wanted = [resources.index.get(name) for name in (*entry.left(), "pods")] if entry.record is not None else []
        return any(r is None or resources.used.item(r, row) > resources.alloc.item(r, row) for r in wanted)

    # --- writing ----------------------------------------------------------------------------------------------------

    def add(self, record: ReservationRecord) -> None:
        """Counts the entries of a reservation on their nodes."""
        self.by_key[record.key] = record
        for entry in record.entries.values():
            self._by_node.setdefault(entry.node, []).append(entry)
            for pod in entry.claims:
                self._claimed.setdefault(pod, []).append(entry)
            self._count(entry)
        self._owners_changed()

    def remove(self, key: str) -> ReservationRecord | None:
        """Removes a reservation, and returns it."""
        record = self.by_key.pop(key, None)
        if record is None:
            return None
        for entry in record.entries.values():
            self._uncount(entry)
            _drop(self._by_node, entry.node, entry)
            for pod in entry.claims:
                _drop(self._claimed, pod, entry)
        self._owners_changed()
        return record

    def claim(self, pod: str, node: str, amounts: Amounts, entries: Iterable[ReservedCapacity]) -> bool:
        """Claims for a pod on a node as much as it requests of these entries there. Returns whether any is claimed."""
        wanted, found = dict(amounts), False
        for entry in entries:
            left = entry.left() if entry.node == node else {}
            taken = tuple([(n, min(wanted[n], a)) for n, a in left.items() if wanted.get(n)])
            if taken:
                found = True
                for name, amount in taken:
                    wanted[name] -= amount
                entry.claims = entry.claims | {pod: taken}
                self._claimed.setdefault(pod, []).append(entry)
                self._uncount(entry)
                self._count(entry)
        return found

    def unclaim(self, pod: str) -> list[ReservedCapacity]:
        """Ends the claims of a pod, and returns the entries."""
        entries = self._claimed.pop(pod, [])
        for entry in entries:
            entry.claims = {key: amounts for key, amounts in entry.claims.items() if key != pod}
            self._uncount(entry)
            self._count(entry)
        return entries

    def namespaces_changed(self) -> None:
        """Forgets which namespaces have reservations, because labels of one changed."""
        if self.by_key:
            self._owners_changed()

    # --- internal ---------------------------------------------------------------------------------------------------

    def _records(self, namespace: str, group: str, pods: Sequence[Pod]) -> list[ReservationRecord]:
        found = self._by_namespace.get(namespace)
        if found is None:
            found = self._remember(namespace)
        return [each for each in found if self._owns(each.owner, group, pods)] if found else []

    def _counted(self, record: ReservationRecord) -> Iterator[ReservedCapacity]:
        for entry in record.entries.values():
            if entry.record is not None and entry.node in self._nodes.row_of:
                yield entry

    def _owns(self, owner: ReservationOwner, group: str, pods: Sequence[Pod]) -> bool:
        if owner.group and owner.group != group:
            return False
        if owner.tier and any(self._nodes.tenants.of(pod).tier != owner.tier for pod in pods):
            return False
        return not owner.pods.requirements or all(owner.pods.matches(pod.metadata.labels) for pod in pods)

    def _remember(self, namespace: str) -> tuple[ReservationRecord, ...]:
        labels: Mapping[str, str] = self._nodes.pods.namespace_labels(namespace)
        if len(self._by_namespace) >= _MAX_NAMESPACES:
            self._by_namespace.clear()
        found = tuple([each for each in self.by_key.values() if each.owner.covers(namespace, labels)])
        self._by_namespace[namespace] = found
        return found

    def _owners_changed(self) -> None:
        self.version += 1
        self._by_namespace.clear()
        self._yielding = tuple([each for each in self.by_key.values() if each.priority is not None])

    def _count(self, entry: ReservedCapacity) -> None:
        left = entry.left()
        entry.record = _record(entry, left) if left else None
        row = self._nodes.row_of.get(entry.node)
        if row is not None and entry.record is not None:
            self._nodes.count_reserved(row, entry.record.footprint, +1)

    def _uncount(self, entry: ReservedCapacity) -> None:
        row = self._nodes.row_of.get(entry.node)
        if row is not None and entry.record is not None:
            self._nodes.count_reserved(row, entry.record.footprint, -1)
        entry.record = None


def _record(entry: ReservedCapacity, left: Mapping[str, int]) -> PodRecord:
    footprint = interned(Footprint(tuple(sorted(left.items())), left.get(CPU, 0), left.get(MEMORY, 0)))
    return PodRecord("", f"{entry.reservation}#{entry.name}", "", entry.node, PodStage.NOMINATED, footprint)


def _drop(table: dict[str, list[ReservedCapacity]], key: str, entry: ReservedCapacity) -> None:
    table[key] = [each for each in table[key] if each is not entry]
    if not table[key]:
        del table[key]
