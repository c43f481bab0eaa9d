"""A ledger that records its changes. Its state is that of any other ledger."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device_taint_rule import DeviceTaintRule
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology
from kubenexus.api.devices.resource_claim import DeviceClass, ResourceClaim
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.gangs.resolver import GroupObject
from kubenexus.api.kueue import ClusterQueue, LocalQueue
from kubenexus.api.queues.queue import Queue
from kubenexus.api.storage import StorageObject
from kubenexus.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kubenexus.app.recording.entries import Preempting, decode_entry, encode_entry
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.base.errors import Malformed
from kubenexus.state.demand import Demand
from kubenexus.state.kueue_workloads import KueueWorkloads
from kubenexus.state.ledger import Ledger
from kubenexus.state.object_kinds import QUEUE
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.pods import PodRecord
from kubenexus.state.preemptions import PendingPreemption, PreemptionEnd
from kubenexus.state.queues.queue_tree import QueueTree
from kubenexus.state.reservations.table import ReservationRecord, ReservedCapacity
from kubenexus.state.tenants import Tenants


class RecordedGroups(PodGroupStore):
    def __init__(self, recorder: FlightRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def seen(self, kind: str, thing: GroupObject) -> None:
        _seen(self._recorder, kind, thing)
        super().seen(kind, thing)

    def gone(self, kind: str, key: str) -> None:
        _gone(self._recorder, kind, key)
        super().gone(kind, key)

    def unlisted(self, kind: str) -> bool:
        self._recorder.event("unlisted", kind, place=("unlisted", kind))
        return super().unlisted(kind)

    def listed(self, kind: str) -> bool:
        self._recorder.event("listed", kind)
        self._recorder.drop("unlisted", kind)
        return super().listed(kind)

    def unreadable(self, kind: str, key: str, problem: Malformed) -> bool:
        self._recorder.event("unreadable", kind, (key, problem.problem, problem.field))
        return super().unreadable(kind, key, problem)


class RecordedTenants(Tenants):
    def __init__(self, own_tier: Iterable[str], recorder: FlightRecorder) -> None:
        super().__init__(tuple(own_tier))
        self._recorder = recorder

    def set_cluster_queue(self, queue: ClusterQueue) -> None:
        _seen(self._recorder, "ClusterQueue", queue)
        super().set_cluster_queue(queue)

    def remove_cluster_queue(self, name: str) -> None:
        _gone(self._recorder, "ClusterQueue", name)
        super().remove_cluster_queue(name)

    def set_local_queue(self, queue: LocalQueue) -> None:
        _seen(self._recorder, "LocalQueue", queue)
        super().set_local_queue(queue)

    def remove_local_queue(self, key: str) -> None:
        _gone(self._recorder, "LocalQueue", key)
        super().remove_local_queue(key)


class RecordedQueues(QueueTree):
    def __init__(self, ledger: Ledger, recorder: FlightRecorder) -> None:
        super().__init__(ledger.nodes, ledger.pods, ledger.kueue_workloads.admitted_amounts)
        self._recorder = recorder

    def set_object(self, queue: Queue) -> None:
        _seen(self._recorder, QUEUE, queue)
        super().set_object(queue)

    def remove_object(self, name: str) -> None:
        _gone(self._recorder, QUEUE, name)
        super().remove_object(name)


class RecordedLedger(Ledger):
    """Records each call that changes it and then makes it. A call within another is part of that one."""

    def __init__(
        self,
        tenants: RecordedTenants,
        recorder: FlightRecorder,
        *,
        reads_numa: bool = True,
        keeps_movable: bool = False,
    ) -> None:
        super().__init__(tenants, reads_numa=reads_numa, keeps_movable=keeps_movable)
        self.groups = RecordedGroups(recorder)
        self.kueue_workloads = KueueWorkloads(self.groups)
        self.queues = RecordedQueues(self, recorder)
        self._recorder = recorder
        recorder.attach(self)

    def node_rows(self) -> tuple[list[str], list[int]]:
        """Returns the nodes by row, "" for a free row, and the free rows in the order in which they became free."""
        names, alive = self.nodes.names, self.nodes.alive[: self.nodes.size].tolist()
        return [name if there else "" for name, there in zip(names, alive, strict=True)], self.nodes.free_rows

    def pods_by_arrival(self) -> Iterable[str]:
        """Returns the keys of pods that count on nodes, in the order in which they came to count."""
        return self.pods

    def contradicted_nodes(self) -> list[str]:
        """Returns the nodes whose kubelet refused a pod that was expected to be admitted."""
        return sorted(self.nodes.names[row] for row in self.nodes.numa.contradicted)

    def left_of_preemption(self, job: str, payload: bytes) -> list[bytes]:
        """Returns the entries of a preemption: as it was recorded while it goes on. One that ended may have left
        nominations, of a pod whose bind failed for instance."""
        if self.preemptions.get(job) is not None:
            return [payload]
        begun = msgspec.msgpack.decode(decode_entry(payload).content, type=Preempting)
        left = tuple((pod, node) for pod, node in begun.members if self.nominated_node(pod.key) == node)
        if not left:
            return []
        return [encode_entry("preempt", job, msgspec.structs.replace(begun, members=left)), encode_entry("landed", job)]

    # --- objects --------------------------------------------------------------------------------------------------

    def upsert_node(self, node: Node) -> set[int]:
        self._recorder.event("seen", "Node", node, place=("Node", node.metadata.name))
        with self._recorder.paused():
            return super().upsert_node(node)

    def remove_node(self, name: str) -> set[int]:
        self._recorder.event("gone", "Node", name)
        self._recorder.drop("Node", name)
        with self._recorder.paused():
            return super().remove_node(name)

    def upsert_pod(self, pod: Pod) -> set[int]:
        self._recorder.event("seen", "Pod", pod, place=("Pod", pod.key))
        if pod.spec.node_name:
            self._recorder.drop("assume", pod.key)
        with self._recorder.paused():
            return super().upsert_pod(pod)

    def remove_pod(self, key: str) -> set[int]:
        self._recorder.event("gone", "Pod", key)
        self._recorder.drop("Pod", key)
        self._recorder.drop("assume", key)
        with self._recorder.paused():
            return super().remove_pod(key)

    def block_unreadable_pod(self, key: str, node: str) -> set[int]:
        self._recorder.event("block", key, node, place=("Pod", key))
        with self._recorder.paused():
            return super().block_unreadable_pod(key, node)

    # --- other objects ----------------------------------------------------------------------------------------------

    def upsert_resource_slice(self, thing: ResourceSlice) -> None:
        _seen(self._recorder, "ResourceSlice", thing)
        super().upsert_resource_slice(thing)

    def remove_resource_slice(self, name: str) -> None:
        _gone(self._recorder, "ResourceSlice", name)
        super().remove_resource_slice(name)

    def upsert_device_taint_rule(self, rule: DeviceTaintRule) -> None:
        _seen(self._recorder, "DeviceTaintRule", rule)
        super().upsert_device_taint_rule(rule)

    def remove_device_taint_rule(self, name: str) -> None:
        _gone(self._recorder, "DeviceTaintRule", name)
        super().remove_device_taint_rule(name)

    def upsert_resource_claim(self, claim: ResourceClaim) -> None:
        _seen(self._recorder, "ResourceClaim", claim)
        super().upsert_resource_claim(claim)

    def remove_resource_claim(self, key: str) -> None:
        _gone(self._recorder, "ResourceClaim", key)
        super().remove_resource_claim(key)

    def upsert_node_topology(self, thing: NodeResourceTopology) -> None:
        _seen(self._recorder, "NodeResourceTopology", thing)
        super().upsert_node_topology(thing)

    def remove_node_topology(self, name: str) -> None:
        _gone(self._recorder, "NodeResourceTopology", name)
        super().remove_node_topology(name)

    def upsert_device_class(self, device_class: DeviceClass) -> None:
        _seen(self._recorder, "DeviceClass", device_class)
        super().upsert_device_class(device_class)

    def remove_device_class(self, name: str) -> None:
        _gone(self._recorder, "DeviceClass", name)
        super().remove_device_class(name)

    def upsert_owner(self, owner: Service | ReplicationController | ReplicaSet | StatefulSet) -> None:
        _seen(self._recorder, type(owner).__name__, owner)
        super().upsert_owner(owner)

    def remove_owner(self, kind: type[Any], namespace: str, name: str) -> None:
        _gone(self._recorder, kind.__name__, f"{namespace}/{name}")
        super().remove_owner(kind, namespace, name)

    def upsert_namespace(self, namespace: Namespace) -> None:
        _seen(self._recorder, "Namespace", namespace)
        super().upsert_namespace(namespace)

    def remove_namespace(self, name: str) -> None:
        _gone(self._recorder, "Namespace", name)
        super().remove_namespace(name)

    def upsert_disruption_budget(self, budget: PodDisruptionBudget) -> None:
        _seen(self._recorder, "PodDisruptionBudget", budget)
        super().upsert_disruption_budget(budget)

    def remove_disruption_budget(self, key: str) -> None:
        _gone(self._recorder, "PodDisruptionBudget", key)
        super().remove_disruption_budget(key)

    def upsert_storage(self, thing: StorageObject) -> set[int]:
        _seen(self._recorder, type(thing).__name__, thing)
        return super().upsert_storage(thing)

    def remove_storage(self, kind: type[StorageObject], key: str) -> set[int]:
        _gone(self._recorder, kind.__name__, key)
        return super().remove_storage(kind, key)

    def read_devices(self, most: int | None = None) -> int:
        if self.has_unread_devices:  # what a node has can depend on the pods that were there when it was read
            self._recorder.event("read", "", most)
        with self._recorder.paused():
            return super().read_devices(most)

    def contradict_numa(self, node: str) -> str:
        self._recorder.event("contradict", node)
        return super().contradict_numa(node)

    def set_demand(self, demand: Demand | None) -> None:
        self._recorder.event("demand", "", demand, place=("demand", ""))
        super().set_demand(demand)

    # --- what this process decides ----------------------------------------------------------------------------------

    def forget(self, key: str) -> set[int]:
        self._recorder.event("forget", key)
        self._recorder.drop("assume", key)
        with self._recorder.paused():
            return super().forget(key)

    def hold_capacity(self, record: PodRecord) -> None:
        self._recorder.event("hold", record.key, record, place=("hold", record.key))
        super().hold_capacity(record)

    def release_capacity(self, key: str) -> None:
        self._recorder.event("release", key)
        self._recorder.drop("hold", key)
        super().release_capacity(key)

    def reserve(self, record: ReservationRecord) -> None:
        self._recorder.event("reserve", record.key, record, place=("reserve", record.key))
        super().reserve(record)

    def release_reservation(self, key: str) -> ReservationRecord | None:
        self._recorder.event("unreserve", key)
        self._recorder.drop("reserve", key)
        self._recorder.drop("claim", key)
        return super().release_reservation(key)

    def claim(self, records: list[PodRecord], entries: list[ReservedCapacity]) -> None:
        if records and entries:
            key = entries[0].reservation
            self._recorder.event("claim", key, [record.key for record in records], place=("claim", key))
        super().claim(records, entries)

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
        content = Preempting(tuple(members), tuple(sorted(victims)), minimum, began, deadline)
        self._recorder.event("preempt", job, content, place=("preempt", job))
        with self._recorder.paused():
            return super().begin_preemption(job, members, victims, minimum=minimum, began=began, deadline=deadline)

    def end_preemption(self, job: str, how: PreemptionEnd, members: Iterable[Pod]) -> None:
        known = list(members)
        self._recorder.event("preempted", job, (how.value, known))
        self._recorder.drop("preempt", job)
        with self._recorder.paused():
            super().end_preemption(job, how, known)
        for pod in known:
            if pod.key not in self.pods:
                self._recorder.remember_pod(pod)


def _seen(recorder: FlightRecorder, kind: str, thing: Any) -> None:
    recorder.event("seen", kind, thing, place=("seen", f"{kind}/{thing.metadata.key}"))


def _gone(recorder: FlightRecorder, kind: str, key: str) -> None:
    recorder.event("gone", kind, key)
    recorder.drop("seen", f"{kind}/{key}")
