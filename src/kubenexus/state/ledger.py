"""The ledger: the only writer of what is true.

    Unknown ──assume──▶ Assumed ──upsert_pod(bound)──▶ Bound ──remove_pod / finished──▶ Gone
       │                   │ └──forget (bind failed)──▶ Unknown                       ▲
       │                   └──────────────remove_pod───────────────────────────────────┤
       └──upsert_pod(bound by anybody)──────────────▶ Bound ────────────────────────────┘

A pod counts on its node from Assumed until Gone. Every transition below is a method and returns the rows it touched;
nothing else in the program changes these columns. A pod may be bound to a node we have not seen, or no longer see: it
is remembered by the node's name and counted when the node is there. A bound pod that cannot be read does not vanish:
its node is fenced until the pod can be read or is gone.
"""

from itertools import islice
from typing import Any

from kubenexus.api.allocatable import allocatable
from kubenexus.api.core import DeviceClass, Node, Pod
from kubenexus.api.storage import StorageObject
from kubenexus.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from kubenexus.base.errors import KubeNexusError, Malformed, truncated_key
from kubenexus.state.audit import Miscount, miscounts, query_miscounts
from kubenexus.state.blocked_nodes import BlockedNodes
from kubenexus.state.devices import Device, DeviceShare
from kubenexus.state.footprint import Footprint, footprint_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.nominations import Nominations
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.pod_queries import PodQuery
from kubenexus.state.pods import PodHoldings, PodRecord, PodStage, is_finished, pod_record
from kubenexus.state.pods_by_node import PodsByNode
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.transaction import Transaction
from kubenexus.state.volumes.pod_volumes import VolumeChoice
from kubenexus.state.volumes.store import ChangedRows

IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"


class Ledger:
    def __init__(self) -> None:
        self.nodes = NodeColumns()
        self.generation = 0
        self.pods: dict[str, PodRecord] = {}
        self.assumed = 0  # of the pods: how many the API server has yet to confirm
        self.groups = PodGroupStore()
        self._pods_by_node = PodsByNode()
        self._nominations = Nominations(self.nodes.pods.nominated)  # by the API server's word
        self._holds = Nominations(self.nodes.pods.nominated)  # by our own, for pods that have yet to come
        self._blocked_nodes = BlockedNodes()
        self._device_classes: dict[str, str] = {}
        self._devices: dict[str, tuple[Device, ...]] = {}

    # --- what the API server says about nodes ---------------------------------------------------------------------

    def upsert_node(self, node: Node) -> set[int]:
        """A node was added or changed. Raises Malformed, leaving the row as it was."""
        name = node.metadata.name
        mark, known = self.nodes.node_changes.mark, name in self.nodes.row_of
        row, offered_first = self.nodes.set(node)
        if self.nodes.node_changes.mark == mark:
            return set()
        self.generation += 1
        if not known:
            self.nodes.devices.set(row, self._devices.get(name, ()))
            self.nodes.set_blocked(row, name in self._blocked_nodes)
            if self._pods_by_node.on(name):
                self._recount(row)
        return {row} | self._count_first(offered_first)

    def remove_node(self, name: str) -> set[int]:
        """A node was deleted. Its pods stay known, and count again if the name comes back."""
        row = self.nodes.row_of.get(name)
        if row is None:
            return set()
        self.nodes.clear_pods(row, self._pods_by_node.on(name))
        self.nodes.remove(name)
        self.generation += 1
        return {row}

    def set_devices(self, node: str, devices: tuple[Device, ...]) -> set[int]:
        """Discovery described a node's devices; an empty tuple means they went away."""
        if devices == self._devices.get(node, ()):
            return set()
        self._devices[node] = devices
        if not devices:
            del self._devices[node]
        row = self.nodes.row_of.get(node)
        if row is None:
            return set()
        self.nodes.devices.set(row, devices)
        self.nodes.node_changes.record(row)
        self._recount(row)
        self.generation += 1
        return {row}

    def upsert_device_class(self, device_class: DeviceClass) -> None:
        self._device_classes[device_class.metadata.name] = device_class.spec.extended_resource_name
        self._delegate()

    def remove_device_class(self, name: str) -> None:
        self._device_classes.pop(name, None)
        self._delegate()

    def upsert_owner(self, owner: Service | ReplicationController | ReplicaSet | StatefulSet) -> None:
        """A service or controller was added or changed. Raises Malformed when its selector cannot be read."""
        self.generation += 1
        self.nodes.default_selectors.seen(owner)

    def remove_owner(self, kind: type[Any], namespace: str, name: str) -> None:
        self.generation += 1
        self.nodes.default_selectors.gone(kind, namespace, name)

    def upsert_namespace(self, namespace: Namespace) -> None:
        self._namespace(namespace.metadata.name, namespace.metadata.labels)

    def remove_namespace(self, name: str) -> None:
        self._namespace(name, None)

    def upsert_storage(self, thing: StorageObject) -> set[int]:
        """A volume, a claim, or what belongs to them was added or changed. Raises Malformed, leaving all as it was."""
        return self._storage(self.nodes.volumes.seen(thing))

    def remove_storage(self, kind: type[StorageObject], key: str) -> set[int]:
        """One was deleted: `namespace/name`, or the name alone where there is no namespace."""
        return self._storage(self.nodes.volumes.gone(kind, key))

    # --- what the API server says about pods ----------------------------------------------------------------------

    def upsert_pod(self, pod: Pod) -> set[int]:
        """A pod was added or changed, whoever bound it. Raises Malformed when it cannot be read, after fencing its
        node if it is bound."""
        key, node = pod.key, pod.spec.node_name
        if is_finished(pod):
            return self.remove_pod(key)
        dirty: set[int] = set()
        record = self.pods.get(key)
        if record is not None and record.uid != pod.metadata.uid:
            dirty |= self.remove_pod(key)  # deleted and made again, and nobody told us of the delete
            record = None
        at = node or pod.status.nominated_node_name
        try:
            stage = PodStage.BOUND if node else PodStage.NOMINATED
            fresh = pod_record(pod, at, stage, footprint_of(pod)) if at else None
        except Malformed as problem:
            dirty |= self.block_unreadable_pod(key, node)
            raise problem.within(subject=f"Pod {truncated_key(key)}") from None
        dirty |= self._lift_fence(key)
        if fresh is None or node:
            self._withdraw(key)
        else:
            self.generation += self._nominations.add(fresh)
        if node and fresh is not None:
            dirty |= self._bound(fresh, record)
        return dirty

    def remove_pod(self, key: str) -> set[int]:
        """A pod was deleted, or has finished."""
        self._withdraw(key)
        dirty = self._lift_fence(key)
        record = self.pods.get(key)
        return dirty if record is None else dirty | self._remove(record)

    def block_unreadable_pod(self, key: str, node: str) -> set[int]:
        """A pod that cannot be decoded or counted. If it is bound, its node takes nothing new until it can be read or
        is gone; what was known of it before no longer counts, so that the ledger is what a list would make it."""
        record = self.pods.get(key)
        if not node and record is not None and record.stage is PodStage.ASSUMED:
            self._withdraw(key)
            return self._lift_fence(key)  # we placed it, and its bind may be under way: it keeps its room
        dirty = self.remove_pod(key)
        if not node:
            return dirty
        self._blocked_nodes.block(node, key)
        return dirty | self._fence(node)

    # --- what we decide -------------------------------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """Placements to be kept or rolled back as a whole."""
        return Transaction(self)

    def assume(
        self,
        pod: Pod,
        node: str,
        now: float,
        footprint: Footprint | None = None,
        takes: tuple[DeviceShare, ...] = (),
        picks: tuple[VolumeChoice, ...] = (),
    ) -> PodRecord:
        """We decided: from now on the pod counts on its node, whatever the API server will answer."""
        with self.transaction() as transaction:
            transaction.place(pod, node, footprint or footprint_of(pod), takes, picks)
            return transaction.commit(now)[0]

    def commit_records(self, records: list[PodRecord]) -> None:
        """Called by an attempt that is kept."""
        fresh: set[str] = set()
        for key in (record.key for record in records):
            if key in self.pods or key in fresh:
                raise KubeNexusError(f"Pod {key}: already assumed or bound")
            fresh.add(key)
        for record in records:
            self._enter(record)
        self.generation += 1

    def forget(self, key: str) -> set[int]:
        """The bind failed: an assumed pod is Unknown again. A bound one stays."""
        record = self.pods.get(key)
        if record is None or record.stage is not PodStage.ASSUMED:
            return set()
        return self._remove(record)

    def hold_capacity(self, record: PodRecord) -> None:
        """Room on a node is kept for somebody who has yet to come, as for a pod nominated there. The record's name must
        be no pod's. No list tells of it, so it is no part of what a list would make the ledger."""
        self.generation += self._holds.add(record)

    def release_capacity(self, key: str) -> None:
        self.generation += self._holds.remove(key)

    # --- counting anew --------------------------------------------------------------------------------------------

    def audit(self, node: Node) -> list[Miscount]:
        """Whether a node's row holds what this node, as it was last seen, offers and what its pods take. If not, the
        row is put right and noted as changed; if so, nothing is. Called by `app.ledger_auditor`, never within an
        attempt: what is only tried counts, and is no pod's that we know of."""
        row = self.nodes.row_of.get(node.metadata.name)
        if row is None:
            return []
        offers = allocatable(node)
        found = miscounts(self.nodes, row, offers, self._pods_by_node.on(node.metadata.name))
        if found:
            self.nodes.resources.reset_allocatable(row, offers)
            self.nodes.node_changes.record(row)
            self._recount(row)
            self.generation += 1
        return found

    def audit_query(self, question: PodQuery) -> list[Miscount]:
        """Whether a question about pods has the answer that all of them give. As `audit`."""
        found = query_miscounts(self.nodes, question)
        if found:
            self.nodes.pods.recount(question)
            self.nodes.cluster_version += 1
            self.generation += 1
        return found

    # --- reading --------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The state as of now, for one decision."""
        return Snapshot(self, self.generation)

    def on_node(self, name: str) -> list[PodRecord]:
        return list(self._pods_by_node.on(name))

    def nominees(self, node: str) -> list[PodRecord]:
        """Pods that wait for this node and are not placed yet, by the API server's word."""
        return [n for key, n in self._nominations.on(node).items() if key not in self.pods]

    def nominated_and_held(self) -> dict[str, list[PodRecord]]:
        """By node, all that must be counted there before others are let in: nominees, and what is held. Every decision
        asks, and mostly there is nobody."""
        nominated, held = self._nominations.by_node, self._holds.by_node
        if not nominated and not held:
            return {}
        nodes = dict.fromkeys((*nominated, *held))
        return {node: self.nominees(node) + list(self._holds.on(node).values()) for node in nodes}

    @property
    def nominated_nodes(self) -> list[str]:
        return list(self._nominations.by_node)

    def held_by(self, key: str) -> PodHoldings:
        """What a pod keeps from others now. A nomination counts while the pod is neither assumed nor bound."""
        record = self.pods.get(key)
        if record is not None:
            return PodHoldings(node=record.node)
        return PodHoldings(nominated=self._nominations.of(key), blocked=self._blocked_nodes.node_of(key))

    def fenced(self, node: str) -> bool:
        """Whether the node takes nothing new, since a pod there cannot be read."""
        return node in self._blocked_nodes

    @property
    def blocked_nodes(self) -> dict[str, list[str]]:
        """Fenced nodes, and the pods that could not be read."""
        return self._blocked_nodes.as_dict()

    # --- how it is kept -------------------------------------------------------------------------------------------

    def _bound(self, fresh: PodRecord, record: PodRecord | None) -> set[int]:
        if record is None:
            return self._add(fresh)
        if record.node == fresh.node:
            fresh.device_shares, fresh.volume_choices = record.device_shares, record.volume_choices
            # Nothing to count again: the record moves on, the columns stay. The API server itself labels a pod with its
            # node's zone when it is bound, and hardly ever does anybody ask about that.
            if _counts_alike(record, fresh) and self.nodes.pods.relabel(record, fresh.labels):
                self.assumed -= record.stage is PodStage.ASSUMED
                record.stage, record.priority, record.assumed_at = PodStage.BOUND, fresh.priority, 0.0
                return set()
        return self._remove(record) | self._add(fresh)

    def _add(self, record: PodRecord) -> set[int]:
        self._enter(record)
        self.generation += 1
        row = self.nodes.row_of.get(record.node)
        if row is None:
            return set()
        self.nodes.add_pod(row, record)
        return {row}

    def _enter(self, record: PodRecord) -> None:
        self.pods[record.key] = record
        self.assumed += record.stage is PodStage.ASSUMED
        self._pods_by_node.put(record)

    def _remove(self, record: PodRecord) -> set[int]:
        del self.pods[record.key]
        self.assumed -= record.stage is PodStage.ASSUMED
        self._pods_by_node.take(record)
        self.generation += 1
        row = self.nodes.row_of.get(record.node)
        if row is None:
            return set()
        if not self.nodes.remove_pod(row, record):
            self._recount(row)
        return {row}

    def _recount(self, row: int) -> None:
        residents = self._pods_by_node.on(self.nodes.names[row])
        self.nodes.clear_pods(row, residents)
        for record in residents:
            self.nodes.add_pod(row, record)

    def _count_first(self, resources: list[str]) -> set[int]:
        """A resource is offered for the first time: count what pods hold of it already."""
        if not resources:
            return set()
        fresh = set(resources)
        asked = {
            record.node for record in self.pods.values() if any(name in fresh for name, _ in record.footprint.amounts)
        }
        rows = {self.nodes.row_of[node] for node in asked if node in self.nodes.row_of}
        for row in rows:
            self._recount(row)
        return rows

    def _withdraw(self, key: str) -> None:
        self.generation += self._nominations.remove(key)

    def _lift_fence(self, key: str) -> set[int]:
        node = self._blocked_nodes.unblock(key)
        return self._fence(node) if node else set()

    def _fence(self, node: str) -> set[int]:
        self.generation += 1
        row = self.nodes.row_of.get(node)
        if row is None:
            return set()
        self.nodes.set_blocked(row, node in self._blocked_nodes)
        return {row}

    def _namespace(self, name: str, labels: dict[str, str] | None) -> None:
        self.nodes.pods.upsert_namespace(name, labels)
        self.nodes.cluster_version += 1
        self.generation += 1

    def _storage(self, touched: ChangedRows | None) -> set[int]:
        if touched is None:
            return set()
        for row in touched.nodes:
            self.nodes.node_changes.record(row)
        # Where no row is concerned, one is named all the same: whoever caches then looks at its stamps again.
        for row in touched.usage or islice(self.nodes.row_of.values(), 1):
            self.nodes.usage_changes.record(row)
        self.generation += 1
        return {*touched.usage, *touched.nodes}

    def _delegate(self) -> None:
        names = {resource for resource in self._device_classes.values() if "/" in resource}  # an extended one has it
        names |= {IMPLICIT_RESOURCE + name for name in self._device_classes}
        self.nodes.set_device_class_resources(frozenset(names))
        self.generation += 1


def _counts_alike(one: PodRecord, other: PodRecord) -> bool:
    """Whether two records of a pod count the same on its node, whatever its labels."""
    return (one.footprint, one.terms, one.mounts, one.terminating, one.endless) == (
        other.footprint,
        other.terms,
        other.mounts,
        other.terminating,
        other.endless,
    )
