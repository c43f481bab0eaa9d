"""All parts of a scheduler, put together: from a configuration and somebody who carries calls.

It owns the state and the tasks that work on it. Who leads, what is served and when the process ends is not known here
(`app.process`), so a test or a simulation can have a whole scheduler in one line.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.app.binding.bind_results import BindResultHandler
from kubenexus.app.binding.bind_verifier import BindVerifier
from kubenexus.app.election.slow_jobs import SlowJob
from kubenexus.app.gangs.completion_markers import CompletionMarkers
from kubenexus.app.gangs.replacement_holds import ReplacementHolds
from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.app.gangs.stale_gang_evictor import StaleGangEvictor
from kubenexus.app.ledger_auditor import LedgerAuditor
from kubenexus.app.report.metered_api import BINDING, GROUP_STATUS, POD_STATUS, MeteredApi
from kubenexus.app.report.pod_group_reporter import PodGroupReporter
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.scheduling_loop import SchedulingLoop
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.app.watch.informers import OPTIONAL, WATCHED_KINDS, InformerHandler, watch_target
from kubenexus.base.clock import Clock
from kubenexus.bind.dispatcher import LIMIT, Dispatcher
from kubenexus.bind.job_binding import AlwaysWritable, BindHooks, GuardedApi, JobBinding, PodBinding, WriteGuard
from kubenexus.bind.job_progress import SendChecks
from kubenexus.bind.volume_prebind import VolumePreBind
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_events import version_at_least
from kubenexus.client.watch_protocols import WatchClient
from kubenexus.config import Configuration
from kubenexus.config.args import GANGS
from kubenexus.config.gang_settings import gang_settings
from kubenexus.framework import pod_limits
from kubenexus.framework.profile import Factory, ProfilePlugins
from kubenexus.observe import events, logs
from kubenexus.observe.log_throttle import LogThrottle
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang import empty_capacity, reservation
from kubenexus.plan.node_backoff import NodeBackoff
from kubenexus.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.gangs.bound_members import BoundMember, IncompleteGang
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger

# What schedulers write to, and so must have read before they decide.
WRITTEN_KINDS = frozenset({kinds.PODS, kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS})

# What each decision stands on. Where these may have changed unseen, none is made.
DECIDED_ON = frozenset({kinds.NODES, kinds.PODS})
OUTDATED = 30.0  # seconds until a scheduler that cannot decide is no longer ready

GRACE = 5.0  # seconds that optional kinds have to be listed before pods are placed without them
SAID = 10.0  # seconds between two lines about kinds that are waited for

log = logs.get("scheduler")


class SchedulerOptions(msgspec.Struct, frozen=True):
    """What is not in the configuration. `host` is how events name us; `spent` is the clock for single decisions;
    `delay`: seconds for which the client's rate limit holds back a call that is sent now."""

    host: str = "localhost"
    in_flight: int = LIMIT
    watched: tuple[ApiResource, ...] = WATCHED_KINDS
    spent: Callable[[], float] | None = None
    delay: Callable[[], float] = lambda: 0.0


class Scheduler:
    """`guard` says whether a write may start. Watches may run long before the loop does: a standby is warm."""

    def __init__(
        self,
        configuration: Configuration,
        plugins: Mapping[str, Factory],
        api: WatchClient,
        clock: Clock,
        rng: random.Random,
        *,
        guard: WriteGuard | None = None,
        settings: SchedulerOptions | None = None,
    ) -> None:
        self._settings = settings = settings or SchedulerOptions()
        self.guard = guard or AlwaysWritable()
        self.api, self._clock, self._rng = api, clock, rng
        self.metrics, self.ledger = Metrics(), Ledger()
        self.gangs = {name: gang_settings(args.get(GANGS, {}), name) for name, args in configuration.args.items()}
        self.planners = {
            each.name: Planner(ProfilePlugins(each, plugins), levels=self.gangs[each.name].levels)
            for each in configuration.profiles
        }
        self.node_backoff = NodeBackoff(clock)
        self.queue = self._waiting_room(configuration)
        self.handlers = EventHandlers(self.ledger, self.queue, self.planners, self._usual)
        self.recorder = EventRecorder(clock, settings.host, rng, stalled=self._stalled("events"))
        statuses, stalled = self._counted(POD_STATUS), self._stalled("pod status")
        self.status_patcher = StatusPatcher(statuses, self.guard, self._still_waits, self._unwritten, stalled)
        self.completion_markers = CompletionMarkers(statuses, self.guard, self.handlers.assembler, clock, stalled)
        groups, stalled = self._counted(GROUP_STATUS), self._stalled("PodGroup status")
        self.pod_group_reporter = PodGroupReporter(
            self.ledger.groups, groups, self.guard, self._pod_groups, clock, stalled
        )
        self.pod_reporter = PodReporter(self.queue, self.recorder, self.status_patcher, self.pod_group_reporter, clock)
        self.bind_results = BindResultHandler(
            self.ledger, self.queue, self.pod_reporter, self.recorder, self.metrics, clock
        )
        self.volumes = self._volumes(configuration)
        self.dispatcher = self._dispatcher(settings)
        self.bind_verifier = BindVerifier(api, self.handlers, self.bind_results, self.planners, self.node_backoff)
        self.replacement_holds = ReplacementHolds(self.ledger, self.queue, clock)
        self.stale_gangs = self._keeper()
        self.loop = self._loop()
        patience = {name: gangs.reservation_seconds for name, gangs in self.gangs.items()}
        self.loop.reservations = GangReservations(self.queue, clock, patience)
        self.ledger_auditor = LedgerAuditor(self.ledger, self.handlers.cache.nodes, self.queue, self.metrics)
        self._connect()
        self._informers = {each: InformerHandler(self.handlers, each, self.loop.wake) for each in settings.watched}
        self.reflectors = [self._reflector(each) for each in settings.watched]
        self._decided_on = [each for each in self.reflectors if each.wanted in DECIDED_ON]
        self.loop.outdated = self.outdated

    # --- what runs ------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Follow the cluster, until cancelled."""
        for informer in self._informers.values():
            informer.unlisted()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.reflectors:
                tasks.create_task(reflector.run())

    async def schedule(self) -> None:
        """Decide and bind, until cancelled. Only after `wait_until_current`."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            tasks.create_task(self.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.pod_group_reporter.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.completion_markers.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.recorder.run(GuardedApi(self.api, self.guard), self.dispatcher.wait_for_quiet))
            tasks.create_task(self.bind_verifier.run(self.loop.wake))
            tasks.create_task(self.stale_gangs.run(self.loop.wake))

    def postpone(self, jobs: Iterable[SlowJob]) -> None:
        """These took too long to decide in a process before this one: they are tried after all others."""
        for each in jobs:
            log.warning("Job took too long to decide before; trying it last", job=each.job, times=each.count)
            self.queue.postpone(each.job, each.until)

    @property
    def unsynced(self) -> list[str]:
        """The kinds that have never been listed completely, and without which no decision may be made."""
        return [str(each.resource) for each in self.reflectors if not each.synced and each.wanted not in OPTIONAL]

    def outdated(self, seconds: float = 0.0) -> list[str]:
        """The kinds that decisions stand on, and that have not been heard of for so long, though they were listed: the
        watch is down, for them or for all."""
        lost = [each for each in self._decided_on if each.lost_since is not None]
        latest = self._clock.now() - seconds if lost else 0.0
        return [str(each.resource) for each in lost if each.lost_since is not None and each.lost_since <= latest]

    @property
    def missing(self) -> dict[str, str]:
        """Optional kinds that cannot be listed or watched now, each with the problem. Pods that name one wait."""
        optional = [each for each in self.reflectors if each.wanted in OPTIONAL]
        return {str(each.wanted): each.missing for each in optional if each.missing}

    @property
    def plugin_failures(self) -> Counter[str]:
        """How often each plugin failed, over all profiles."""
        decisions = [planner.class_cache.work.failures for planner in self.planners.values()]
        return sum((*decisions, *[profile.failures for profile in self._profiles.values()]), Counter[str]())

    async def listed(self, look: float = 0.01) -> None:
        """Until all kinds have been listed that decisions stand on, looking so often. The others get a moment, so that
        at a normal start gangs that name a PodGroup stand in the queue before the first pod is placed."""
        looks, often = 0, round(SAID / look)
        while self.unsynced or (self.missing and looks * look < GRACE):
            looks += 1
            if self.unsynced and looks % often == 0:
                log.warning("Still waiting for the first lists", kinds=self.unsynced)
            await asyncio.sleep(look)
        if self.missing:
            said = [f"{kind}: {problem}" for kind, problem in self.missing.items()]
            log.warning("Scheduling without some optional kinds; pods that name one wait", kinds=said)

    async def wait_until_current(self) -> None:
        """Until every bind before this call is in the ledger, a predecessor's last one too: no decision may stand on
        less. The other kinds are as old as their watches, as always."""
        written = [each for each in self.reflectors if each.resource in WRITTEN_KINDS]
        await asyncio.gather(*(each.wait_until_current(patience=0.2) for each in written))

    # --- how it is put together -----------------------------------------------------------------------------------

    def _waiting_room(self, configuration: Configuration) -> SchedulingQueue:
        document = configuration.document
        policy = BackoffPolicy(float(document.pod_initial_backoff_seconds), float(document.pod_max_backoff_seconds))
        profile = self._profiles = {name: self._rules(planner) for name, planner in self.planners.items()}
        return SchedulingQueue(profile | {"": next(iter(profile.values()))}, self._clock, policy)

    def _rules(self, planner: Planner) -> QueueProfile:
        columns = self.ledger.nodes
        # Who a pod belongs to can only refuse it nodes where a default constraint is a hard one.
        defaults = [each for plugin in planner.profile_plugins.plugins for each in getattr(plugin, "defaults", ())]
        refuses_by_owner = any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in defaults)

        scope = columns.pods.terms.scope

        def sign(pod: Pod) -> bytes:
            signature, namespace = planner.class_cache.signature(pod, columns, lift=False), pod.metadata.namespace
            spoken_of = scope(namespace)
            if not spoken_of and namespace not in self.node_backoff.namespaces:
                return signature
            # It is kept from nodes that are open to other namespaces, or others' terms may speak of its pods.
            return b"%b in %b %b" % (signature, namespace.encode(), repr(spoken_of).encode())

        def owners() -> int:
            return columns.default_selectors.version if refuses_by_owner else 0

        def context() -> tuple[int, frozenset[str]]:
            return owners(), self.node_backoff.namespaces

        aging = self.gangs[planner.profile_plugins.profile.name].aging
        also = {**empty_capacity.EVENTS_TO_REGISTER, **reservation.EVENTS_TO_REGISTER, **pod_limits.EVENTS_TO_REGISTER}
        return QueueProfile.of(
            planner.profile_plugins, sign, context, also=also, aging=aging, selectors=owners, scope=scope
        )

    def _volumes(self, configuration: Configuration) -> VolumePreBind:
        cache = self.handlers.cache
        timeouts = {
            name: float(args["VolumeBinding"]["bindTimeoutSeconds"])
            for name, args in configuration.args.items()
            if args.get("VolumeBinding", {}).get("bindTimeoutSeconds")
        }
        claims, volumes = cache.of("PersistentVolumeClaim"), cache.of("PersistentVolume")
        return VolumePreBind(self.api, self.guard, claims, volumes, timeouts)

    def _dispatcher(self, settings: SchedulerOptions) -> Dispatcher:
        return Dispatcher(
            self._counted(BINDING),
            self.guard,
            self.bind_results,
            self._rng,
            limit=settings.in_flight,
            points=BindHooks((self.status_patcher, self.volumes)),
            hooks=SendChecks(self._still_wanted, self._needed, self._unexplained, settings.delay),
        )

    def _stalled(self, writes: str) -> Callable[[str, int], None]:
        """Logs, once a minute for each namespace, that none of these writes goes through."""
        lines = LogThrottle(self._clock)

        def said(namespace: str, waiting: int) -> None:
            if lines.left_out(namespace) is not None:
                text = "Writes of a namespace do not go through; an admission webhook may hold them"
                log.warning(text, writes=writes, namespace=namespace, waiting=waiting)

        return said

    def _counted(self, purpose: str) -> MeteredApi:
        return MeteredApi(self.api, purpose, self.metrics, self._clock)

    def _keeper(self) -> StaleGangEvictor:
        def deadline(member: BoundMember) -> float:
            return self.gangs[member.pod.spec.scheduler_name].deadline

        def incomplete() -> list[IncompleteGang]:
            return list(self.handlers.assembler.incomplete.values())

        return StaleGangEvictor(
            GuardedApi(self.api, self.guard), incomplete, deadline, self.replacement_holds, self.recorder, self._clock
        )

    def _loop(self) -> SchedulingLoop:
        return SchedulingLoop(
            self.ledger,
            self.queue,
            self.planners,
            self.dispatcher,
            pod_reporter=self.pod_reporter,
            metrics=self.metrics,
            clock=self._clock,
            node_backoff=self.node_backoff,
            spent=self._settings.spent,
        )

    def _connect(self) -> None:
        """Who hears of what."""
        assembler = self.handlers.assembler
        assembler.on_pod_queued, assembler.on_gang_queued = (
            self.pod_reporter.on_pod_queued,
            self.pod_reporter.on_gang_queued,
        )
        assembler.on_gang_warning, assembler.failed = self._warned, self._unformed
        assembler.completed = self.completion_markers.mark_complete
        self.pod_reporter.latest_pod = assembler.latest_pod
        self.bind_results.on_attempt_finished, self.bind_results.is_waiting = (
            assembler.attempt_finished,
            lambda pod: pod.key in assembler,
        )
        self.handlers.on_pod_left = self._left
        self.handlers.on_pod_vanished = self.bind_verifier.check_vanished_pod
        self.handlers.on_member_lost = self.replacement_holds.hold
        self.handlers.assembler.hold_keys, self.handlers.assembler.on_gang_complete = (
            self.replacement_holds.keys_of,
            self.replacement_holds.release_gang,
        )
        self.handlers.on_object_changed = self._heard
        self.stale_gangs.on_timeout = lambda gang: self.metrics.gang_decisions.labels("timeout").add()
        self.bind_results.on_pod_looked_up = self._looked_up
        self.bind_results.wake = self.dispatcher.on_capacity = self.loop.wake
        self.metrics.add_source(lambda: self.metrics.read_queue(self.queue))

    def _reflector(self, resource: ApiResource) -> Reflector:
        informer = self._informers[resource]
        return Reflector(
            self.api, watch_target(resource), informer, clock=self._clock, rng=self._rng, answered=self._server_answers
        )

    def _server_answers(self) -> None:
        """One watch has come back: all others try at once. Else they would be back seconds apart, each after its own
        backoff, and pods would be placed on nodes as they were before."""
        for reflector in self.reflectors:
            reflector.retry()
        self.loop.wake()

    def _left(self, pod: Pod) -> None:
        """A pod is gone: nothing about it is remembered."""
        self.pod_reporter.forget(pod)
        self.bind_results.forget(pod.metadata.uid)

    def _looked_up(self, pod: Pod) -> None:
        """A look found this pod. It may have been overtaken: what the watch has told since, above all that the pod is
        gone, would never be told again."""
        watch = next((each for each in self.reflectors if each.resource is kinds.PODS), None)
        if watch is not None and not watch.version:
            self.handlers.pod_looked_up(pod)
        elif watch is None or not version_at_least(watch.version, pod.metadata.resource_version):
            self.handlers.on_pod_update(pod)

    def _heard(self, kind: str, thing: Any) -> None:
        if kind == "PersistentVolumeClaim":
            self.volumes.on_claim_changed(f"{thing.metadata.namespace}/{thing.metadata.name}")

    def _still_wanted(self, pod_binding: PodBinding) -> str:
        record = self.ledger.pods.get(pod_binding.key)
        if record is None or record.uid != pod_binding.uid or record.node != pod_binding.node:
            return "the pod is gone, or somebody else has bound it"
        known = self.handlers.cache.pods.get(pod_binding.key)
        if known is not None and known.metadata.deletion_timestamp:
            return "the pod is being deleted"
        return "" if pod_binding.node in self.ledger.nodes.row_of else f"node {pod_binding.node} is gone"

    def _needed(self, job_binding: JobBinding) -> int:
        return self.handlers.assembler.needed(job_binding.attempt.job)

    def _unexplained(self, doing: str, error: Exception) -> None:
        log.error("Something unexpected happened to a bind", error, doing=doing)  # noqa: PLE1205 - our own log

    def _pod_groups(self) -> ApiResource:
        """PodGroups, in the form that the server knows."""
        forms = (each.resource for each in self.reflectors if each.resource.kind == kinds.POD_GROUPS.kind)
        return next((form for form in forms if form.group == kinds.POD_GROUPS.group), kinds.POD_GROUPS)

    def _still_waits(self, pod: Pod) -> bool:
        return self.handlers.assembler.is_waiting(pod)

    def _usual(self, pod: Pod) -> TopologyRequest:
        settings = self.gangs.get(pod.spec.scheduler_name)
        return NO_TOPOLOGY_REQUEST if settings is None else settings.default_topology(pod.metadata.namespace)

    def _warned(self, pod: Pod, text: str) -> None:
        log.warning("Pod is not clear about its gang", why=text, pod=pod)
        self.recorder.record(events.gang_unclear(pod, text), pod.spec.scheduler_name)

    def _unformed(self, gang: str, error: Exception) -> None:
        log.error("Failed to form a gang; it waits until it changes", error, gang=gang)  # noqa: PLE1205 - our own log

    def _unwritten(self, pod: Pod, why: str) -> None:
        log.error("Failed to update pod status", err=why, pod=pod)
        self.pod_reporter.on_patch_failed(pod)
