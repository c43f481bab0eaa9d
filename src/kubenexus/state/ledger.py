"""The ledger: the only writer of the cluster's state.

    Unknown ──assume──▶ Assumed ──upsert_pod(bound)──▶ Bound ──remove_pod / finished──▶ Gone
       │                   │ └──forget (bind failed)──▶ Unknown                       ▲
       │                   └──────────────remove_pod───────────────────────────────────┤
       └──upsert_pod(bound by any scheduler)────────▶ Bound ────────────────────────────┘

A pod counts on its node from Assumed until Gone. Each transition is a method that returns the rows it changed; no other
code changes these columns. A pod may be bound to a node that is not known, or no longer known. The ledger keeps such a
pod under the node's name and counts it when the node appears. A bound pod that cannot be decoded blocks its node: the
node accepts no new pods until the pod can be decoded or is gone.
"""

from collections.abc import Iterable

from kubenexus.api.allocatable import allocatable
from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.api.devices.inventory import NO_FACTS, node_facts
from kubenexus.base.errors import KubeNexusError, Malformed, described, truncated_key
from kubenexus.state.audit import Miscount, miscounts, query_miscounts
from kubenexus.state.blocked_nodes import BlockedNodes
from kubenexus.state.footprint import Footprint, footprint_of
from kubenexus.state.kept_capacity import KeptCapacity
from kubenexus.state.numa.reports import NumaReports
from kubenexus.state.pod_queries import PodQuery
from kubenexus.state.pods import PodHoldings, PodRecord, PodStage, counts_alike, is_finished, readable_pod_record
from kubenexus.state.pods_by_node import PodsByNode
from kubenexus.state.preemptions import PreemptionEnd
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.tenants import Tenants
from kubenexus.state.transaction import Transaction
from kubenexus.state.volumes.pod_volumes import VolumeChoice

POOLS_FOR_A_READ = 5  # nodes whose pools are read in the time of one node's devices


class Ledger(KeptCapacity):
    """The state of all nodes and pods. `generation` grows with every change; a `Snapshot` is valid while it stays the
    same. Only code of this package writes to `nodes` and `pods`. No method blocks or does I/O."""

    def __init__(self, tenants: Tenants | None = None, *, reads_numa: bool = True, keeps_movable: bool = False) -> None:
        """`reads_numa`: whether a plugin needs what nodes report about their NUMA nodes. `keeps_movable`: whether
        consolidation needs the pods that may move."""
        super().__init__(tenants)
        self.assumed = 0  # pods that are assumed: the API server has not confirmed their binding
        self.unread_parts: dict[str, str] = {}  # by pod that counts without a part that cannot be read: why
        self._pods_by_node = PodsByNode()
        self._blocked_nodes = BlockedNodes()
        self._numa_reports = NumaReports(self.nodes, reads_numa)
        self._keeps_movable = keeps_movable

    # --- nodes from the API server --------------------------------------------------------------------------------

    def upsert_node(self, node: Node) -> set[int]:
        """Adds or updates a node. Raises Malformed and leaves the row unchanged if the node cannot be read."""
        name = node.metadata.name
        mark, known = self.nodes.node_changes.mark, name in self.nodes.row_of
        row, offered_first = self.nodes.set(node)
        self._inventory.set_facts(name, node_facts(node))
        relabelled = self._numa_reports.set_node(node)
        if self.nodes.node_changes.mark == mark and not relabelled:
            return set()
        self.generation += 1
        if not known:
            self.nodes.devices.set(row, self._inventory.of(name))
            self.nodes.set_blocked(row, name in self._blocked_nodes)
            if self._pods_by_node.on(name) or self.reservations.on(name):
                self._recount(row)
        if not known or relabelled:
            self._read_numa(name)
        return {row} | self._count_first(offered_first)

    def remove_node(self, name: str) -> set[int]:
        """Removes a node. Its pods stay known, and count again if a node of that name comes back."""
        row = self.nodes.row_of.get(name)
        if row is None:
            return set()
        self.nodes.clear_pods(row, self._pods_by_node.on(name))
        self.nodes.remove(name)
        self.generation += 1
        self._inventory.set_facts(name, NO_FACTS)
        self._numa_reports.forget(name)
        return {row}

    def read_devices(self, most: int | None = None) -> int:
        """Reads the devices of nodes about which an object changed, of `most` nodes at a time. Returns how many are
        left. The scheduling loop does this in portions before it decides; `snapshot` reads all that is left."""
        for node, devices in self._inventory.read(most):
            self.set_devices(node, devices)
            self._read_numa(node)
        claims = self.nodes.claims
        if claims.outdated:
            claims.read_pools(self.nodes.labels.of_row, claims.outdated if most is None else most * POOLS_FOR_A_READ)
        return self._inventory.unread + claims.outdated

    def set_devices(self, node: str, devices: NodeDevices) -> set[int]:
        """Replaces the devices of a node. Devices may be known before their node."""
        if not self._inventory.replace(node, devices):
            return set()
        row = self.nodes.row_of.get(node)
        if row is None:
            return set()
        self.nodes.devices.set(row, devices)
        self.nodes.node_changes.record(row)
        self._recount(row)
        self.generation += 1
        return {row}

    # --- pods from the API server ---------------------------------------------------------------------------------

    def upsert_pod(self, pod: Pod) -> set[int]:
        """Adds or updates a pod, bound by any scheduler. Raises Malformed if its requests cannot be read; if the pod is
        bound, its node is then blocked. Any other part that cannot be read is left out (see `unread_parts`)."""
        key, node = pod.key, pod.spec.node_name
        if is_finished(pod):
            return self.remove_pod(key)
        dirty: set[int] = set()
        record = self.pods.get(key)
        if record is not None and record.uid != pod.metadata.uid:
            dirty |= self.remove_pod(key)  # deleted and created again; the watch did not deliver the delete
            record = None
        at = node or self.preemptions.node_of(pod.metadata.uid) or pod.status.nominated_node_name
        try:
            footprint = footprint_of(pod) if at else None
        except Exception as error:
            dirty |= self.block_unreadable_pod(key, node)
            malformed = error if isinstance(error, Malformed) else Malformed(described(error))
            raise malformed.within(subject=f"Pod {truncated_key(key)}") from None
        fresh, unread = None, ""
        if footprint is not None:
            stage = PodStage.BOUND if node else PodStage.NOMINATED
            fresh, unread = readable_pod_record(pod, at, stage, footprint, keeps_movable=self._keeps_movable)
        self._set_unread_parts(key, unread)
        dirty |= self._unblock_node(key)
        if fresh is None or node:
            self._withdraw(key)
        else:
            self.generation += self._nominations.add(fresh)
        if node and fresh is not None:
            dirty |= self._bound(fresh, record)
        return dirty

    def remove_pod(self, key: str) -> set[int]:
        """Removes a pod that was deleted or has finished."""
        self._set_unread_parts(key, "")
        nominated = self._nominations.of(key)
        if nominated is not None:
            self.preemptions.member_gone(nominated.uid)
        self._withdraw(key)
        dirty = self._unblock_node(key)
        record = self.pods.get(key)
        return dirty if record is None else dirty | self._remove(record)

    def pod_ended(self, pod: Pod) -> None:
        """Learns from a pod that has ended by itself how long pods like it run. Called before `remove_pod`."""
        self.nodes.pods.pod_ended(pod)

    def put_back(self, record: PodRecord) -> set[int]:
        """Adds a record again that `remove_pod` removed: for trials on a ledger that belongs to the caller alone."""
        return self._add(record)

    def block_unreadable_pod(self, key: str, node: str) -> set[int]:
        """Handles a pod that cannot be decoded or counted. If it is bound, its node accepts no new pods until the pod
        can be read or is gone. The earlier record no longer counts, so that the ledger equals one built from a list."""
        record = self.pods.get(key)
        if not node and record is not None and record.stage is PodStage.ASSUMED:
            self._withdraw(key)
            return self._unblock_node(key)  # we placed it and its bind may be in flight: it stays counted
        dirty = self.remove_pod(key)
        if not node:
            return dirty
        self._blocked_nodes.block(node, key)
        return dirty | self._block_node(node)

    # --- our own decisions ----------------------------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """Returns a transaction: placements that are committed or rolled back as a whole."""
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
        """Counts the pod on its node from now on, before the API server has answered the bind."""
        with self.transaction() as transaction:
            transaction.place(pod, node, footprint or footprint_of(pod), takes, picks)
            return transaction.commit(now)[0]

    def commit_records(self, records: list[PodRecord]) -> None:
        """Enters the records of a transaction that is committed. Raises KubeNexusError if a pod is already known."""
        fresh: set[str] = set()
        for key in (record.key for record in records):
            if key in self.pods or key in fresh:
                raise KubeNexusError(f"Pod {key}: already assumed or bound")
            fresh.add(key)
        for record in records:
            self._enter(record)
            self.nodes.claims.confirm(record.claims)
            self.nodes.pods.expected_ends.update(record)
        self.generation += 1

    def forget(self, key: str) -> set[int]:
        """Makes an assumed pod Unknown again after its bind failed. A bound pod stays."""
        record = self.pods.get(key)
        if record is None or record.stage is not PodStage.ASSUMED:
            return set()
        return self._remove(record)

    def end_preemption(self, job: str, how: PreemptionEnd, members: Iterable[Pod]) -> None:
        """Ends the preemption of a job. `members` are its pods as last seen; nominations at the API server stay."""
        if self.preemptions.end(job, how) is None:
            return
        for pod in members:
            if pod.key not in self.pods and self._nominations.of(pod.key) is not None:
                self.upsert_pod(pod)

    # --- audit ----------------------------------------------------------------------------------------------------

    def audit(self, node: Node) -> list[Miscount]:
        """Recounts the row of `node` and returns the wrong counters; if there are any, corrects the row and records it
        as changed. Called by `app.ledger_auditor`, never within a transaction: trial placements count on rows but are
        in no record of the ledger."""
        name, offers = node.metadata.name, allocatable(node)
        row = self.nodes.row_of.get(name)
        if row is None:
            return []
        found = miscounts(self.nodes, row, offers, [*self._pods_by_node.on(name), *self.reservations.on(name)])
        if found:
            self.nodes.resources.reset_allocatable(row, offers)
            self.nodes.node_changes.record(row)
            self._recount(row)
            self.generation += 1
        return found

    def audit_query(self, question: PodQuery) -> list[Miscount]:
        """Recounts a pod query over all pods and returns the wrong counters; if there are any, corrects its answer."""
        found = query_miscounts(self.nodes, question)
        if found:
            self.nodes.pods.recount(question)
            self.nodes.cluster_version += 1
            self.generation += 1
        return found

    # --- reading --------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Returns the state as of now, for one decision."""
        if self.has_unread_devices:
            self.read_devices()
        return Snapshot(self, self.generation)

    def on_node(self, name: str) -> list[PodRecord]:
        """Returns the assumed and bound pods of a node."""
        return list(self._pods_by_node.on(name))

    def devices_of(self, node: str) -> NodeDevices:
        """Returns the devices of a node, which need not be known itself."""
        self.read_devices()
        return self._inventory.of(node)

    def held_by(self, key: str) -> PodHoldings:
        """Returns what a pod occupies now. A nomination counts while the pod is neither assumed nor bound."""
        record = self.pods.get(key)
        if record is not None:
            return PodHoldings(node=record.node, devices=bool(record.device_shares))
        return PodHoldings(nominated=self._nominations.of(key), blocked=self._blocked_nodes.node_of(key))

    def is_blocked(self, node: str) -> bool:
        """Returns whether the node accepts no new pods, since a pod there cannot be read."""
        return node in self._blocked_nodes

    @property
    def blocked_nodes(self) -> dict[str, list[str]]:
        """The unreadable pods by blocked node."""
        return self._blocked_nodes.as_dict()

    # --- internal -------------------------------------------------------------------------------------------------

    def _bound(self, fresh: PodRecord, record: PodRecord | None) -> set[int]:
        if record is None:
            return self._add(fresh)
        claims = self.reservations.claims_of(record.key) if self.reservations else []
        if record.uid == fresh.uid:
            fresh.kueue_workload = record.kueue_workload  # as it was placed: its owner may write another later
        if record.node == fresh.node:
            # What we gave it counts, not what its owner may have written into the annotation since.
            fresh.device_shares = record.device_shares or fresh.device_shares
            fresh.volume_choices, fresh.claims = record.volume_choices, record.claims
            # Update the record and leave the columns, if nothing has to be counted again. On binding the API server
            # labels a pod with its node's zone, and almost no query refers to that label.
            if counts_alike(record, fresh) and self.nodes.pods.relabel(record, fresh.labels):
                self.assumed -= record.stage is PodStage.ASSUMED
                record.stage, record.assumed_at = PodStage.BOUND, 0.0
                record.started_at, record.preempted = fresh.started_at, fresh.preempted
                record.saved_at, record.traits, record.pod = fresh.saved_at, fresh.traits, fresh.pod
                self.nodes.pods.victims.update(record)
                self.nodes.pods.expected_ends.update(record)
                return set()
        dirty = self._remove(record, leaves=record.node != fresh.node) | self._add(fresh)
        if claims:
            self.claim([fresh], claims)
        return dirty

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
        if self.queues.is_active:
            self.queues.count(record, +1)
        self.preemptions.member_placed(record.uid)
        self.assumed += record.stage is PodStage.ASSUMED
        self._pods_by_node.put(record)

    def _remove(self, record: PodRecord, *, leaves: bool = True) -> set[int]:
        """Removes a record. `leaves`: no other record of the pod on this node follows."""
        del self.pods[record.key]
        if self.queues.is_active:
            self.queues.count(record, -1)
        if leaves:
            self.preemptions.victim_gone(record.uid)
        self.assumed -= record.stage is PodStage.ASSUMED
        self._pods_by_node.take(record)
        if self.reservations:
            self.reservations.unclaim(record.key)
        self.generation += 1
        row = self.nodes.row_of.get(record.node)
        if row is None:
            return set()
        self.nodes.remove_pod(row, record)
        return {row}

    def _recount(self, row: int) -> None:
        residents = self._pods_by_node.on(self.nodes.names[row])
        self.nodes.clear_pods(row, residents)
        for record in residents:
            self.nodes.add_pod(row, record)
        for reserved in self.reservations.on(self.nodes.names[row]):
            self.nodes.count_reserved(row, reserved.footprint, +1)

    def _read_numa(self, node: str) -> None:
        """Reads what a node reports about its NUMA nodes, if anything, and counts pods that the report has not seen."""
        known = self._inventory
        if self._numa_reports.read(node, known.topology(node), known.of(node), self._pods_by_node.on(node)):
            self.generation += 1

    def contradict_numa(self, node: str) -> str:
        """Records that a kubelet's managers refused a pod that was placed on its node. Returns the likely cause."""
        row = self.nodes.row_of.get(node)
        if row is None:
            return "no_report"
        self.nodes.usage_changes.record(row)
        self.generation += 1
        return self.nodes.numa.contradict(row)

    def _count_first(self, resources: list[str]) -> set[int]:
        """Counts what pods already hold of resources that a node offers for the first time. Returns the rows."""
        if not resources:
            return set()
        fresh = set(resources)
        asked = {
            record.node for record in self.pods.values() if any(name in fresh for name, _ in record.footprint.amounts)
        }
        asked |= set(self.reservations.nodes)
        rows = {self.nodes.row_of[node] for node in asked if node in self.nodes.row_of}
        for row in rows:
            self._recount(row)
        return rows

    def _set_unread_parts(self, key: str, problem: str) -> None:
        if problem:
            self.unread_parts[key] = problem
        else:
            self.unread_parts.pop(key, None)

    def _unblock_node(self, key: str) -> set[int]:
        node = self._blocked_nodes.unblock(key)
        return self._block_node(node) if node else set()

    def _block_node(self, node: str) -> set[int]:
        self.generation += 1
        row = self.nodes.row_of.get(node)
        if row is None:
            return set()
        self.nodes.set_blocked(row, node in self._blocked_nodes)
        return {row}
