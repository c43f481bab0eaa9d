"""What decides in a scheduler, without what reports: handlers, queue, planner and ledger, one call after the other.
Binds happen at once. Small enough for thousands of stories."""

import functools
from typing import cast

import msgspec

from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST
from kubenexus.api.runtimes import runtime_class
from kubenexus.app.binding.recent_binds import RecentBinds
from kubenexus.app.gangs.backfill import Backfill
from kubenexus.app.gangs.replacement_holds import ReplacementHolds
from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.report.tenant_usage import TenantUsage
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.app.watch.object_cache import ObjectCache
from kubenexus.base.clock import VirtualClock
from kubenexus.bind.claim_prebind import ClaimPreBind
from kubenexus.bind.volume_prebind import VolumePreBind
from kubenexus.config.gang_settings import BackfillSettings
from kubenexus.framework.aging import Aging
from kubenexus.framework.decision import Decision
from kubenexus.framework.profile import ProfilePlugins
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.gang import empty_capacity, reservation
from kubenexus.plugins import profile_plugins
from kubenexus.queue.gangs.gang_registry import GangRegistry
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.job_dependencies import JobDependencies
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from tests.queue.assembler_fixture import AssemblyRecord

GOES = "2026-01-01T00:00:00Z"
PROFILE = "default-scheduler"  # what pods say that say nothing


@functools.cache
def _lineup() -> ProfilePlugins:
    return profile_plugins()


class Silent:
    """Stands for what reports to users, and for volumes: binds are made at once here."""

    def forget(self, pod: Pod) -> None:
        pass

    def on_claim_changed(self, key: str) -> None:
        pass


class DecisionFixture:
    """`patience`: for how long the first gang in line keeps its room; 0: not at all."""

    def __init__(
        self,
        patience: float = 300.0,
        aging: Aging | None = Aging(),  # noqa: B008 - it is a value
        backfill: BackfillSettings = BackfillSettings(),  # noqa: B008 - it is a value
    ) -> None:
        self.clock, self.ledger = VirtualClock(1_000_000.0), Ledger()
        self.planner = Planner(_lineup())
        columns = self.ledger.nodes
        profile = QueueProfile.of(
            _lineup(),
            lambda pod: b"%b %d" % (self.planner.class_cache.signature(pod, columns, lift=False), runtime_class(pod)),
            also={**empty_capacity.EVENTS_TO_REGISTER, **reservation.EVENTS_TO_REGISTER},
            aging=aging,
        )
        self.queue = SchedulingQueue({"": profile}, self.clock)
        self.replacement_holds = ReplacementHolds(self.ledger, self.queue, self.clock)
        registry, cache = GangRegistry(), ObjectCache()
        self.assembler = JobAssembler(
            self.queue,
            registry,
            WaitingPods(self.queue, registry, self.ledger.pods),
            self.ledger.groups,
            holds=self.replacement_holds,
            observer=AssemblyRecord(),
            default_topology=lambda pod: NO_TOPOLOGY_REQUEST,
            profiles=frozenset({PROFILE}),
        )
        self.handlers = EventHandlers(
            self.ledger,
            self.queue,
            cache,
            self.assembler,
            [PROFILE],
            holds=self.replacement_holds,
            pod_reporter=cast(PodReporter, Silent()),
            recent_binds=RecentBinds(self.ledger, self.clock),
            volumes=cast(VolumePreBind, Silent()),
            claims=cast(ClaimPreBind, Silent()),
            tenant_usage=TenantUsage(self.ledger, self.clock),
            dependencies=JobDependencies(self.clock),
            pods_version=lambda: None,
        )
        self.reservations = GangReservations(
            self.queue, self.assembler, self.clock, {PROFILE: patience}, {PROFILE: Backfill(self.ledger, backfill)}
        )
        self.pods: dict[str, Pod] = {}
        self.went_ahead: list[str] = []
        self.refusals: dict[str, Decision] = {}

    def nodes(self, *nodes: Node) -> None:
        for node in nodes:
            self.handlers.on_node_update(node)

    def come(self, *pods: Pod) -> None:
        for pod in pods:
            self.pods[pod.key] = pod
            self.handlers.on_pod_update(pod)

    def end(self, *names: str) -> None:
        """Pods are gone: by name, or by `namespace/name`."""
        for name in names:
            key = name if "/" in name else f"default/{name}"
            del self.pods[key]
            self.handlers.on_pod_delete(key)

    def run(self, prefix: str, seconds: float) -> None:
        """Pods that have nodes begin to run, and do so for a while."""
        for name in self.where(prefix):
            pod = self.pods[f"default/{name}"]
            status = msgspec.structs.replace(pod.status, phase="Running")
            self.come(msgspec.structs.replace(pod, status=status))
        self.handlers.assembler.build_changed()
        self.clock.advance(seconds)

    def lose(self, name: str) -> None:
        """A pod is deleted: first it is told to go, then it is gone."""
        pod = self.pods[f"default/{name}"]
        self.come(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=GOES)))
        self.end(name)

    def work(self) -> int:
        """Until nobody is ready. Returns how many decisions that took."""
        count = 0
        self.reservations.expire()
        self.queue.tick()
        while (attempt := self._pop()) is not None:
            self._take(attempt)
            self.reservations.expire()
            self.queue.tick()
            count += 1
            assert count < 10_000, "it never comes to rest"
        return count

    def _pop(self) -> SchedulingAttempt | None:
        self.assembler.build_changed()
        return self.queue.pop(rebuilder=self.assembler)

    def where(self, prefix: str = "") -> dict[str, str]:
        """Pods on nodes, by name."""
        placed = {pod.metadata.name: pod.spec.node_name for pod in self.pods.values() if pod.spec.node_name}
        return {name: node for name, node in placed.items() if name.startswith(prefix)}

    def why(self, job: str) -> str:
        found = self.refusals.get(f"default/{job}")
        return "" if found is None else found.sentence("default")

    def _take(self, attempt: SchedulingAttempt) -> None:
        job, now, snapshot = attempt.job, self.clock.now(), self.ledger.snapshot()
        decision = self.planner.decide(job, snapshot, now, self.reservations.ahead_of(job))
        if not decision.placed:
            self.refusals[job.key] = decision
            self.reservations.refused(job, decision, self.planner, snapshot)
            self.queue.done(attempt, decision)
            return
        self.refusals.pop(job.key, None)
        commit(decision, job, self.ledger, now)
        if self.reservations.placed(job, decision):
            self.went_ahead.append(job.key)
        for placement in decision.placements:
            pod = self.pods[placement.pod]
            self.pods[pod.key] = msgspec.structs.replace(
                pod, spec=msgspec.structs.replace(pod.spec, node_name=placement.node)
            )
            self.handlers.on_pod_update(self.pods[pod.key])
        self.queue.done(attempt, decision)
        self.handlers.assembler.attempt_finished(job.key)
