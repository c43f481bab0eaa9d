"""A ledger that records its changes. Its state is that of any other ledger."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.kueue import ClusterQueue, LocalQueue
from kubenexus.api.workloads import PodGroup, Workload
from kubenexus.app.recording.entries import Preempting, decode_entry, encode_entry
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.base.errors import Malformed
from kubenexus.state.ledger import Ledger
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.pods import PodRecord
from kubenexus.state.preemptions import PendingPreemption, PreemptionEnd
from kubenexus.state.reservations.table import ReservationRecord, ReservedCapacity
from kubenexus.state.tenants import Tenants


class RecordedGroups(PodGroupStore):
    def __init__(self, recorder: FlightRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def seen(self, kind: str, thing: PodGroup | Workload) -> None:
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


class RecordedLedger(Ledger):
    """Records each call that changes it and then makes it. A call within another is part of that one."""

    def __init__(self, tenants: RecordedTenants, recorder: FlightRecorder, *, reads_numa: bool = True) -> None:
        super().__init__(tenants, reads_numa=reads_numa)
        self.groups = RecordedGroups(recorder)
        self._recorder = recorder
        recorder.attach(self)

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


def _record_objects() -> None:
    """Adds the methods for other kinds. `upsert_...` takes the object, `remove_...` its key, or its type and key."""
    upserts = ("resource_slice", "resource_claim", "node_topology", "device_class", "owner", "namespace")
    for name in (*upserts, "device_taint_rule", "disruption_budget", "storage"):
        setattr(RecordedLedger, f"upsert_{name}", _upsert(f"upsert_{name}"))
    named = {
        "resource_slice": "ResourceSlice",
        "resource_claim": "ResourceClaim",
        "node_topology": "NodeResourceTopology",
        "device_class": "DeviceClass",
        "device_taint_rule": "DeviceTaintRule",
        "namespace": "Namespace",
        "disruption_budget": "PodDisruptionBudget",
    }
    for name, kind in named.items():
        setattr(RecordedLedger, f"remove_{name}", _remove(f"remove_{name}", kind))
    for name in ("owner", "storage"):
        setattr(RecordedLedger, f"remove_{name}", _remove_typed(f"remove_{name}"))


def _upsert(method: str) -> Any:
    plain = getattr(Ledger, method)

    def upsert(self: RecordedLedger, thing: Any) -> Any:
        _seen(self._recorder, type(thing).__name__, thing)
        with self._recorder.paused():
            return plain(self, thing)

    return upsert


def _remove(method: str, kind: str) -> Any:
    plain = getattr(Ledger, method)

    def remove(self: RecordedLedger, key: str) -> Any:
        _gone(self._recorder, kind, key)
        with self._recorder.paused():
            return plain(self, key)

    return remove


def _remove_typed(method: str) -> Any:
    plain = getattr(Ledger, method)

    def remove(self: RecordedLedger, kind: type[Any], *key: str) -> Any:
        _gone(self._recorder, kind.__name__, "/".join(key))
        with self._recorder.paused():
            return plain(self, kind, *key)

    return remove


_record_objects()
