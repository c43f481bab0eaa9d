"""Capacity that is kept for pods which are not on their nodes: nominations, holds, and reservations."""

import math
from collections.abc import Sequence

from kubenexus.api.core import Pod
from kubenexus.state.cluster_objects import ClusterObjects
from kubenexus.state.footprint import footprint_of
from kubenexus.state.nominations import Nominations
from kubenexus.state.pods import PodRecord, PodStage, readable_pod_record
from kubenexus.state.preemptions import PendingPreemption, Preemptions
from kubenexus.state.queues.queue_tree import QueueTree
from kubenexus.state.reservations.table import ReservationRecord, ReservedCapacity
from kubenexus.state.tenants import Tenants

NominatedPods = dict[str, dict[str, PodRecord]]  # by node and key


class KeptCapacity(ClusterObjects):
    """The part of the ledger that keeps capacity for pods to come."""

    def __init__(self, tenants: Tenants | None) -> None:
        super().__init__(tenants)
        self.pods: dict[str, PodRecord] = {}  # assumed and bound ones: their nominations do not count
        self.preemptions = Preemptions()
        self.queues = QueueTree(self.nodes, self.pods, self.kueue_workloads.admitted_amounts)
        self._nominations = Nominations(self.nodes.pods.nominated)  # of the API server
        self._holds = Nominations(self.nodes.pods.nominated)  # our own, for pods that do not exist yet
        self._nominated_and_held: tuple[int, NominatedPods] = (-1, {})  # as of a generation

    def begin_preemption(
        self,
        job: str,
        members: Sequence[tuple[Pod, str]],
        victims: set[str],
        *,
        minimum: int = 1,
        began: float = 0.0,
        deadline: float = math.inf,
    ) -> PendingPreemption:
        """Nominates members of a job to nodes from now on, before the API server knows, while victims (by UID) leave
        these. See `PendingPreemption` for the other arguments."""
        pending = self.preemptions.begin(
            job,
            {pod.metadata.uid: node for pod, node in members},
            victims,
            priority=max((pod.spec.priority for pod, _ in members), default=0),
            minimum=minimum,
            began=began,
            deadline=deadline,
        )
        for pod, node in members:
            record, _ = readable_pod_record(pod, node, PodStage.NOMINATED, footprint_of(pod))
            self.generation += self._nominations.add(record)
        return pending

    def hold_capacity(self, record: PodRecord) -> None:
        """Holds capacity on a node for a pod that does not exist yet, as for a pod nominated there. The record's key
        must be no pod's. The digest leaves holds out, since no list contains them."""
        self.generation += self._holds.add(record)

    def release_capacity(self, key: str) -> None:
        """Releases capacity that `hold_capacity` holds under this key."""
        self.generation += self._holds.remove(key)

    def reserve(self, record: ReservationRecord) -> None:
        """Keeps capacity on nodes for the owners of a reservation. It counts as used for all other pods. The digest
        leaves it out."""
        self.reservations.add(record)
        self.generation += 1

    def release_reservation(self, key: str) -> ReservationRecord | None:
        """Ends a reservation, and returns what it was. Pods on its capacity stay."""
        record = self.reservations.remove(key)
        self.generation += record is not None
        return record

    def claim(self, records: list[PodRecord], entries: list[ReservedCapacity]) -> None:
        """Lets pods that were just placed claim the capacity that is reserved for them on their nodes."""
        for record in records:
            self.generation += self.reservations.claim(record.key, record.node, record.footprint.amounts, entries)

    def nominees(self, node: str) -> list[PodRecord]:
        """Returns the pods that the API server nominates to this node and that are not placed yet."""
        return [n for key, n in self._nominations.on(node).items() if key not in self.pods]

    def nominated_and_held(self) -> NominatedPods:
        """Returns by node and key the records that count there before other pods: nominees and held capacity. Every
        decision calls this several times, and mostly the result is empty. The caller must not change it."""
        nominated, held = self._nominations.by_node, self._holds.by_node
        if not nominated and not held:
            return {}
        generation, found = self._nominated_and_held
        if generation != self.generation:
            found = self._without_placed(nominated)
            if held:
                found = {**found, **{node: {**found.get(node, {}), **records} for node, records in held.items()}}
            self._nominated_and_held = self.generation, found
        return found

    def _without_placed(self, nominated: NominatedPods) -> NominatedPods:
        """Leaves out pods that are placed already. Hundreds of pods may be nominated, of which few are."""
        placed = self._nominations.keys & self.pods.keys()
        if not placed:
            return nominated
        nodes = {self._nominations.node_of(key) for key in placed}
        left = {node: {key: each for key, each in nominated[node].items() if key not in placed} for node in nodes}
        return {**nominated, **left}

    @property
    def nominated_nodes(self) -> list[str]:
        return list(self._nominations.by_node)

    def nominated_node(self, key: str) -> str:
        """Returns the node that a pod is nominated to, also while it is assumed; "" for none."""
        return self._nominations.node_of(key)

    def _namespace(self, name: str, labels: dict[str, str] | None) -> None:
        super()._namespace(name, labels)
        self.queues.set_namespace(name, labels)

    def _withdraw(self, key: str) -> None:
        self.generation += self._nominations.remove(key)
