"""Event handlers of pods and nodes: watch events to the ledger and the queue (kube-scheduler: eventhandlers.go).

`app.watch.object_handlers` has those of all other kinds; `app.watch.informers` connects both with the reflectors. A
handler gets the object as it is now. So a lost event, a repeated one, or a pod created again under its old name are no
special cases.
"""

from collections.abc import Callable, Iterable
from functools import partial

from kubenexus.api.codec import Unreadable, as_unreadable
from kubenexus.api.core import Node, Pod
from kubenexus.app.binding.recent_binds import RecentBinds
from kubenexus.app.gangs.replacement_holds import ReplacementHolds
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.report.tenant_usage import TenantUsage
from kubenexus.app.watch.bad_object_log import BadObjectLog
from kubenexus.app.watch.node_reports import NodeReports
from kubenexus.app.watch.object_cache import ObjectCache, stripped_node, with_shared_parts
from kubenexus.app.watch.object_handlers import NODE_REPORT, ObjectHandlers
from kubenexus.base.errors import Malformed, described
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.bind.claim_prebind import ClaimPreBind
from kubenexus.bind.volume_prebind import VolumePreBind
from kubenexus.client.watch_events import version_at_least
from kubenexus.queue import object_events
from kubenexus.queue.gangs.gang_registry import LeavingMember
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.job_dependencies import JobDependencies
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodHoldings, PodStage, is_finished


class EventHandlers:
    """Applies watch events to the ledger and the queue. `profiles` are the scheduler names of this process.
    `pods_version` returns the resourceVersion that the watch of pods has reached, "" while no list is complete, None
    without a watch."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        cache: ObjectCache,
        assembler: JobAssembler,
        profiles: Iterable[str],
        *,
        holds: ReplacementHolds,
        pod_reporter: PodReporter,
        recent_binds: RecentBinds,
        volumes: VolumePreBind,
        claims: ClaimPreBind,
        tenant_usage: TenantUsage,
        dependencies: JobDependencies,
        pods_version: Callable[[], str | None],
    ) -> None:
        self.ledger, self.queue, self.cache, self.assembler = ledger, queue, cache, assembler
        self.profiles = frozenset(profiles)
        self._holds, self._pod_reporter, self._recent_binds = holds, pod_reporter, recent_binds
        self._tenant_usage, self._pods_version, self._dependencies = tenant_usage, pods_version, dependencies
        self._unread: dict[str, str] = {}  # pods that cannot be read, and why
        self._looked_up: set[str] = set()  # pods from a GET while a list is under way
        self._leaving: dict[str, LeavingMember] = {}  # bound members of complete gangs that are being deleted
        self.bad_objects = BadObjectLog()
        self.objects = ObjectHandlers(
            ledger,
            queue,
            cache,
            assembler,
            volumes=volumes,
            claims=claims,
            tenant_usage=tenant_usage,
            bad_objects=self.bad_objects,
        )
        self.node_reports = NodeReports(
            partial(self.objects.on_update, NODE_REPORT),
            partial(self.objects.on_delete, NODE_REPORT),
            lambda node: node in cache.of(NODE_REPORT),
        )

    # --- pods -----------------------------------------------------------------------------------------------------

    def pod_keys(self) -> set[str]:
        return {*self.cache.pods, *self._unread}

    def on_pod_update(self, pod: Pod) -> None:
        key = pod.key
        old = self.cache.pods.get(key)
        if is_finished(pod):
            self._contained(key, lambda: self.ledger.pod_ended(pod))
        if is_finished(pod) or (old is not None and old.metadata.uid != pod.metadata.uid):
            self.on_pod_delete(key)
            old = None
        if is_finished(pod):
            return
        before = self.ledger.held_by(key)
        try:
            self.ledger.upsert_pod(pod)
        except Malformed as problem:
            self._quarantine(key, str(problem))
            self._send_freed_events(key, old, before)
            return
        self._unread.pop(key, None)
        if unread := self.ledger.unread_parts.get(key):
            self.bad_objects.log(f"Pod {key}", unread)
        slim = self.cache.pods[key] = self.cache.stripped_pod(pod)
        self._count_usage(key, pod)
        if pod.spec.node_name:
            self._contained(key, lambda: self._send_freed_events(key, old, before))
            self._contained(key, lambda: self._update_gang(pod, slim))
            self._contained(key, lambda: self._send_bound_events(old, slim))
        else:
            self._send_freed_events(key, old, before)
            self._queue_pod(with_shared_parts(pod, slim))

    def pod_listed(self, pod: Pod) -> None:
        """Handles a pod of a list. A bound pod without a node here lost it in a restore of the API server's store. It
        is queued again, unless the bind is younger than the list."""
        record = self.ledger.pods.get(pod.key)
        bound = record is not None and record.stage is PodStage.BOUND and record.uid == pod.metadata.uid
        if bound and not pod.spec.node_name and pod.key not in self._looked_up:
            self.on_pod_delete(pod.key)
        self.on_pod_update(pod)

    def pods_listed(self) -> None:
        """Records that a list of pods is complete."""
        self._looked_up.clear()

    def on_pod_looked_up(self, pod: Pod) -> None:
        """Handles a pod from a GET. It is dropped if the watch has shown a newer state: a deletion would not be shown
        again."""
        version = self._pods_version()
        if version == "":  # it may be younger than the list that is under way
            self._looked_up.add(pod.key)
            self.on_pod_update(pod)
        elif version is None or not version_at_least(version, pod.metadata.resource_version):
            self.on_pod_update(pod)

    def on_pod_delete(self, key: str, last: Pod | None = None) -> None:
        """Handles a pod that was deleted or has ended. `last` is its last state, if the watch sent it."""
        old, record, before = self.cache.pods.pop(key, None), self.ledger.pods.get(key), self.ledger.held_by(key)
        leaving = self._leaving.pop(key, None)
        if record is not None and (record.preempted or self.ledger.preemptions.is_victim(record.uid)):
            leaving = None  # its capacity is for the pod that preempts it
        self._unread.pop(key, None)
        self._contained(key, lambda: self.assembler.remove(key))
        if last is not None:
            self._contained(key, lambda: self.ledger.pod_ended(last))
        self.ledger.remove_pod(key)
        self._count_usage(key)
        if leaving is not None and old is not None and record is not None and self.assembler.has_gang(leaving.gang):
            self._holds.hold(leaving, self.assembler.lacks(leaving.gang), old, record)
            self.assembler.mark_changed(leaving.gang)
        self._send_freed_events(key, old, before)
        if old is None:
            return
        self._dependencies.on_pod_ended(old)
        ended = last or old
        if old.spec.node_name and old.status.phase in ("", "Pending") and not ended.metadata.deletion_timestamp:
            self._recent_binds.pod_vanished(old)
        self._pod_reporter.forget(old)
        self._recent_binds.remove(old.metadata.uid)

    def on_unreadable_pod(self, bad: Unreadable) -> None:
        key = f"{bad.namespace}/{bad.name}"
        if not bad.identified:
            self.bad_objects.log(bad.subject, str(bad.error))
            return
        if bad.ended:
            self.on_pod_delete(key)
            return
        old, before = self.cache.pods.get(key), self.ledger.held_by(key)
        self.ledger.block_unreadable_pod(key, bad.node)
        self._quarantine(key, str(bad.error))
        self._send_freed_events(key, old, before)

    def on_failed_pod(self, pod: Pod, error: Exception) -> None:
        """Handles a pod for which a handler raised. If the ledger counts the pod on its node, only the part that failed
        is missing: the error is logged and the node stays open. Otherwise the pod is treated as unreadable."""
        key, record = pod.key, self.ledger.pods.get(pod.key)
        problem = described(error)
        if record is None or record.stage is not PodStage.BOUND or record.uid != pod.metadata.uid:
            self.on_unreadable_pod(as_unreadable(pod, Malformed(problem)))
            return
        if key not in self.cache.pods:
            self._unread[key] = problem  # so that a list without the pod removes it
        self.bad_objects.log(f"Pod {key}", problem)

    def _contained(self, key: str, step: Callable[[], None]) -> None:
        """Calls a step that follows the ledger's. An exception is logged and affects this step alone: the pod counts
        already, so its node stays open."""
        try:
            step()
        except Exception as error:
            self.bad_objects.log(f"Pod {key}", described(error))

    def _count_usage(self, key: str, pod: Pod | None = None) -> None:
        """Counts what the pod holds now for its tenant. A failure there must not affect the pod."""
        try:
            self._tenant_usage.on_pod(key, pod)
        except Exception as error:
            self.bad_objects.log(f"Pod {key}", described(error))

    def _quarantine(self, key: str, problem: str) -> None:
        self.assembler.remove(key)
        self.cache.pods.pop(key, None)
        self._count_usage(key)
        self._unread[key] = problem
        self.bad_objects.log(f"Pod {key}", problem)

    def _send_freed_events(self, key: str, old: Pod | None, before: PodHoldings) -> None:
        """Sends the queue an event for all that the pod gives up. `old` is the pod as it was cached."""
        after = self.ledger.held_by(key)
        if after == before:
            return
        # Devices that get names count as these alone, and no longer as any cards of the node.
        if before.node and (before.node != after.node or (after.devices and not before.devices)):
            self.queue.on_event(
                object_events.WILDCARD_EVENT
                if old is None
                else object_events.pod_forgotten(old, before.node, held_devices=before.devices)
            )
        nominated = before.nominated
        if nominated is not None and nominated != after.nominated and nominated.node != after.node and old is not None:
            self.queue.on_event(object_events.nomination_ended(old, nominated.node))
        if before.blocked and not self.ledger.is_blocked(before.blocked) and before.blocked in self.cache.nodes:
            node, delegated = self.cache.nodes[before.blocked], self.ledger.nodes.device_class_resources
            self.queue.on_event(object_events.node_added(node, delegated))  # it takes pods again, like a new node

    def _update_gang(self, pod: Pod, slim: Pod) -> None:
        if pod.metadata.deletion_timestamp:
            if leaving := self.assembler.leaving(pod.key):
                self._leaving[pod.key] = leaving
            self.assembler.remove(pod.key)
        else:
            self._leaving.pop(pod.key, None)  # only a restored store undoes a deletion
            self.assembler.add_bound(pod, slim, creation_time(pod))

    def _send_bound_events(self, old: Pod | None, slim: Pod) -> None:
        if old is None or not old.spec.node_name:
            self.queue.on_event(object_events.pod_bound(slim))
        elif old != slim:
            for event in object_events.pod_changed(old, slim):
                self.queue.on_event(event)

    def _queue_pod(self, pod: Pod) -> None:
        """Passes a pod without a node to the assembler, if this process schedules it."""
        key = pod.key
        if pod.metadata.deletion_timestamp:
            self.assembler.remove(key)
        elif pod.spec.scheduler_name not in self.profiles:
            self.assembler.foreign(self.cache.pods[key], pod, creation_time(pod))
        elif key in self.assembler or key not in self.ledger.pods:  # else it is bound, and this event is old
            self.assembler.add_waiting(pod, creation_time(pod))

    # --- nodes ----------------------------------------------------------------------------------------------------

    def node_keys(self) -> set[str]:
        return set(self.cache.nodes)

    def on_node_update(self, node: Node) -> None:
        name = node.metadata.name
        try:
            self.ledger.upsert_node(node)
        except Malformed as problem:
            self.bad_objects.log(f"Node {name}", str(problem))
            return
        self._tenant_usage.on_node(name)
        slim, old, delegated = stripped_node(node), self.cache.nodes.get(name), self.ledger.nodes.device_class_resources
        self.cache.nodes[name] = slim
        if old is None:
            self.queue.on_event(object_events.node_added(slim, delegated))
            return
        for event in object_events.node_changed(old, slim, delegated):
            self.queue.on_event(event)

    def on_node_delete(self, name: str) -> None:
        old = self.cache.nodes.pop(name, None)
        self.ledger.remove_node(name)
        if old is not None:
            self.queue.on_event(object_events.node_gone(old))


def creation_time(pod: Pod) -> float | None:
    """Returns the creationTimestamp in seconds."""
    return parse_timestamp(pod.metadata.creation_timestamp, None)
