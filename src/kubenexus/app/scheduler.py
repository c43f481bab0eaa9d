"""The scheduler: all its parts, constructed in the order of the data's path.

It owns the state and the tasks that work on it. Leader election, HTTP endpoints and shutdown are in `app.process`, so a
test or a simulation creates a whole scheduler in one call.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.devices.resource_claim import ResourceClaim
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.app.binding.bind_results import BindResultHandler
from kubenexus.app.binding.bind_verifier import BindVerifier
from kubenexus.app.binding.recent_binds import RecentBinds
from kubenexus.app.binding.send_checks import send_checks
from kubenexus.app.configured_parts import claim_timeouts, make_ledger, make_planners, volume_timeouts
from kubenexus.app.contained_task import contained
from kubenexus.app.dependencies.lookups import DependencyLookups
from kubenexus.app.election.slow_jobs import SlowJob
from kubenexus.app.gangs.backfill import make_backfill
from kubenexus.app.gangs.completion_markers import CompletionMarkers
from kubenexus.app.gangs.replacement_holds import ReplacementHolds
from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.app.gangs.stale_gang_evictor import StaleGangEvictor
from kubenexus.app.kueue.admission_checks import admission_check_controller
from kubenexus.app.ledger_auditor import LedgerAuditor
from kubenexus.app.preemption.executor import PreemptionExecutor
from kubenexus.app.preemption.policies import profile_rules
from kubenexus.app.provisioning.provisioning_requests import provisioning_requests
from kubenexus.app.queue_profiles import make_queue, make_queue_profiles
from kubenexus.app.report.assembly_reporter import AssemblyReporter
from kubenexus.app.report.expected_starts import expected_start_reporter
from kubenexus.app.report.metered_api import BINDING, GROUP_STATUS, POD_STATUS, RESERVATION_STATUS, MeteredApi
from kubenexus.app.report.pod_group_reporter import PodGroupReporter
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.report.stalled_writes import stalled_writes
from kubenexus.app.report.tenant_usage import TenantUsage
from kubenexus.app.reservations.controller import ReservationController
from kubenexus.app.reservations.drivers import DriverReservations
from kubenexus.app.reservations.own_objects import OwnObjects
from kubenexus.app.reservations.reporter import ReservationReporter
from kubenexus.app.scheduling_loop import LoopOptions, SchedulingLoop
from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.app.watch.informers import WATCHED_KINDS
from kubenexus.app.watch.object_cache import ObjectCache
from kubenexus.app.watch.watches import Watches
from kubenexus.base.clock import Clock
from kubenexus.bind.claim_prebind import ClaimPreBind
from kubenexus.bind.dispatcher import LIMIT, Dispatcher
from kubenexus.bind.job_binding import AlwaysWritable, BindHooks, GuardedApi, WriteGuard
from kubenexus.bind.volume_prebind import VolumePreBind
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_protocols import WatchClient
from kubenexus.config import Configuration
from kubenexus.config.args import GANGS
from kubenexus.config.gang_settings import gang_settings
from kubenexus.config.kueue_settings import kueue_settings
from kubenexus.config.preemption_settings import gang_preemption_settings
from kubenexus.config.reservation_settings import reservation_settings
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import Factory
from kubenexus.observe import logs
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.plan.demand_learner import DemandLearner
from kubenexus.plan.node_backoff import NodeBackoff
from kubenexus.queue.gangs.bound_members import BoundMember
from kubenexus.queue.gangs.gang_registry import GangRegistry
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.job_dependencies import JobDependencies

log = logs.get("scheduler")


class SchedulerOptions(msgspec.Struct, frozen=True):
    """Settings that are not in the configuration file. `host` names this process in events. `delay` returns the seconds
    for which the client's rate limit would delay a call that is sent now. `expected_starts`: they are written into the
    conditions of pods; a process with a virtual clock makes no copies of itself."""

    host: str = "localhost"
    in_flight: int = LIMIT
    watched: tuple[ApiResource, ...] = WATCHED_KINDS
    delay: Callable[[], float] = lambda: 0.0
    loop: LoopOptions = LoopOptions()
    expected_starts: bool = False


class Scheduler:
    """All parts of the scheduler. `guard` decides whether a write may start. A standby runs the watches long before the
    scheduling loop."""

    def __init__(  # noqa: PLR0915 - the wiring
        self,
        configuration: Configuration,
        plugins: Mapping[str, Factory],
        api: WatchClient,
        clock: Clock,
        rng: random.Random,
        *,
        guard: WriteGuard | None = None,
        options: SchedulerOptions | None = None,
    ) -> None:
        self._options = options = options or SchedulerOptions()
        self.guard = guard or AlwaysWritable()
        self.api, self._clock, self._rng = api, clock, rng
        self.metrics, self.wakeup = Metrics(), Wakeup()
        self.watches = Watches(api, clock, rng, self.wakeup)
        # The ledger, the planners, and the jobs that wait.
        self.ledger, self.cache = make_ledger(configuration, options.loop.recorder), ObjectCache()
        self.recent_binds = RecentBinds(self.ledger, clock)
        self.gangs = {name: gang_settings(args.get(GANGS, {}), name) for name, args in configuration.args.items()}
        self.planners = make_planners(configuration, plugins, self.gangs)
        self.node_backoff, self.dependencies = NodeBackoff(clock), JobDependencies(clock)
        self._profiles = make_queue_profiles(
            configuration,
            self.planners,
            {name: gangs.aging for name, gangs in self.gangs.items()},
            self.ledger,
            self.node_backoff,
            (self.dependencies,),
        )
        self.queue = make_queue(configuration, self._profiles, self.ledger.queues, clock)
        self.registry = GangRegistry()
        self.waiting = WaitingPods(self.queue, self.registry, self.ledger.pods)
        # Reports: events, and the conditions of pods and PodGroups.
        self.recorder = EventRecorder(clock, options.host, rng, stalled=stalled_writes(clock, "events"))
        self.status_patcher = self._make_status_patcher()
        self.pod_group_reporter = self._make_pod_group_reporter()
        self.completion_markers = CompletionMarkers(
            self._metered(POD_STATUS), self.guard, self.registry, clock, stalled_writes(clock, "pod status")
        )
        self.pod_reporter = PodReporter(
            self.queue, self.recorder, self.status_patcher, self.pod_group_reporter, self.waiting, clock
        )
        # Pods become jobs.
        self.replacement_holds = ReplacementHolds(self.ledger, self.queue, clock)
        self.assembler = JobAssembler(
            self.queue,
            self.registry,
            self.waiting,
            self.ledger.groups,
            holds=self.replacement_holds,
            observer=self._make_assembly_reporter(),
            default_topology=self._default_topology,
            profiles=frozenset(self.planners),
        )
        # Watch events reach the ledger and the queue.
        self.volumes, self.claims = self._make_volumes(configuration), self._make_claims(configuration)
        self.tenant_usage = TenantUsage(self.ledger, clock)
        self.handlers = EventHandlers(
            self.ledger,
            self.queue,
            self.cache,
            self.assembler,
            self.planners,
            holds=self.replacement_holds,
            pod_reporter=self.pod_reporter,
            recent_binds=self.recent_binds,
            volumes=self.volumes,
            claims=self.claims,
            tenant_usage=self.tenant_usage,
            dependencies=self.dependencies,
            pods_version=self.watches.pods_version,
        )
        self.dependency_lookups = DependencyLookups(
            api, self.dependencies, self.queue, self.waiting, self.pod_reporter, self.wakeup
        )
        for each in options.watched:
            self.watches.add(each, self.handlers)
        # Decisions become binds, and their results are applied.
        self.bind_results = BindResultHandler(
            self.ledger,
            self.queue,
            self.handlers,
            pod_reporter=self.pod_reporter,
            recorder=self.recorder,
            recent_binds=self.recent_binds,
            metrics=self.metrics,
            clock=clock,
            wakeup=self.wakeup,
        )
        self.dispatcher = self._make_dispatcher()
        self.bind_verifier = BindVerifier(
            api,
            self.handlers,
            self.bind_results,
            self.recent_binds,
            planners=self.planners,
            node_backoff=self.node_backoff,
            wakeup=self.wakeup,
            numa=self.metrics.numa,
        )
        self.stale_gangs = self._make_stale_gangs()
        self.preemption = PreemptionExecutor(
            GuardedApi(api, self.guard),
            self.ledger,
            self.queue,
            self.waiting,
            {name: profile_rules(gang_preemption_settings(configuration, name)) for name in self.planners},
            recorder=self.recorder,
            status_patcher=self.status_patcher,
            metrics=self.metrics,
            clock=clock,
            wakeup=self.wakeup,
        )
        # Capacity is kept: for the first gang in the queue, and for ResourceReservations.
        settings = reservation_settings(configuration.args)
        patience = {name: gangs.reservation_seconds for name, gangs in self.gangs.items()}
        gang_reservations = GangReservations(
            self.queue, self.assembler, clock, patience, make_backfill(self.ledger, self.gangs)
        )
        self.reservation_reporter = self._make_reservation_reporter()
        self.resource_reservations = ReservationController(
            self.ledger, self.queue, self.planners, clock, settings, self.reservation_reporter
        )
        drivers = DriverReservations(self.ledger, self.resource_reservations, settings, clock)
        self.own_reservations = self._make_own_reservations(gang_reservations, drivers, writes=settings.write_objects)
        # The loop: pops a job, decides, commits, submits the binds.
        self.loop = SchedulingLoop(
            self.ledger,
            self.queue,
            self.assembler,
            self.planners,
            self.dispatcher,
            gang_reservations,
            resource_reservations=self.resource_reservations,
            drivers=drivers,
            preemption=self.preemption,
            demand=DemandLearner([name for name, each in self.planners.items() if each.profile_plugins.reads_demand]),
            pod_reporter=self.pod_reporter,
            tenant_usage=self.tenant_usage,
            metrics=self.metrics,
            clock=clock,
            node_backoff=self.node_backoff,
            wakeup=self.wakeup,
            node_reports=self.handlers.node_reports,
            outdated=self.watches.outdated,
            options=options.loop,
            on_refused=self._on_refused,
        )
        # Beside the loop: jobs are placed without these.
        guarded = GuardedApi(api, self.guard)
        self.ledger_auditor = LedgerAuditor(self.ledger, self.cache.nodes, self.queue, self.metrics, self.wakeup)
        self.admission_checks = admission_check_controller(kueue_settings(configuration.args), guarded, self, clock)
        self.provisioning = provisioning_requests(guarded, self, clock)
        self.expected_starts = expected_start_reporter(self, clock, enabled=options.expected_starts)
        self.metrics.add_source(lambda: self.metrics.read_queue(self.queue))

    # --- running --------------------------------------------------------------------------------------------------

    async def schedule(self) -> None:
        """Decides and binds, until cancelled. Called after `Watches.wait_until_current`."""
        self.tenant_usage.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            tasks.create_task(self.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.pod_group_reporter.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.completion_markers.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.reservation_reporter.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.own_reservations.status_patcher.run(self.dispatcher.wait_for_quiet))
            tasks.create_task(self.recorder.run(GuardedApi(self.api, self.guard), self.dispatcher.wait_for_quiet))
            tasks.create_task(self.preemption.run())
            for name, run in self._beside_the_loop().items():
                tasks.create_task(contained(name, run))

    def _beside_the_loop(self) -> Mapping[str, Callable[[], Awaitable[object]]]:
        """Returns the tasks that jobs are placed without."""
        return {
            "own reservations": self.own_reservations.run,
            "bind verifier": self.bind_verifier.run,
            "stale gangs": self.stale_gangs.run,
            "dependencies": self.dependency_lookups.run,
            "admission checks": self.admission_checks.run,
            "provisioning": self.provisioning.run,
            "expected starts": self.expected_starts.run,
        }

    def _on_refused(self, job: Job, decision: Decision) -> None:
        self.claims.on_refused(job, decision)
        if self.provisioning.is_on:
            self.provisioning.on_refused(job, decision)

    def postpone(self, jobs: Iterable[SlowJob]) -> None:
        """Moves these jobs behind all others: their decisions took too long in an earlier process."""
        for each in jobs:
            log.warning("Job took too long to decide before; trying it last", job=each.job, times=each.count)
            self.queue.postpone(each.job, each.until)

    def silence(self) -> None:
        """Called in a copy of the process: nothing is recorded there, whose files are those of the process. A gang that
        is in the ledger in part is entered whole, so that no answer depends on half of it."""
        if self._options.loop.recorder is not None:
            self._options.loop.recorder.silence()
        self.loop.enter_rest()

    @property
    def plugin_failures(self) -> Counter[str]:
        """Returns how often each plugin failed, over all profiles."""
        decisions = [planner.class_cache.work.failures for planner in self.planners.values()]
        return sum((*decisions, *[profile.failures for profile in self._profiles.values()]), Counter[str]())

    # --- construction ---------------------------------------------------------------------------------------------

    def _make_status_patcher(self) -> StatusPatcher[Pod]:
        def failed(pod: Pod, why: str) -> None:
            log.error("Failed to update pod status", err=why, pod=pod)
            self.pod_reporter.on_patch_failed(pod)

        def dropped(pod: Pod) -> None:  # it is being tried, and may be refused again with the same words
            self.pod_reporter.on_patch_failed(pod)

        api, stalled = self._metered(POD_STATUS), stalled_writes(self._clock, "pod status")
        return StatusPatcher(api, self.guard, self.waiting.is_waiting, failed, stalled, dropped=dropped)

    def _make_assembly_reporter(self) -> AssemblyReporter:
        return AssemblyReporter(
            self.pod_reporter, self.pod_group_reporter, self.completion_markers, self.recorder, self.queue
        )

    def _make_pod_group_reporter(self) -> PodGroupReporter:
        api, stalled = self._metered(GROUP_STATUS), stalled_writes(self._clock, "PodGroup status")
        served = partial(self.watches.version_of, kinds.POD_GROUPS)
        return PodGroupReporter(self.ledger.groups, api, self.guard, served, self._clock, stalled)

    def _make_reservation_reporter(self) -> ReservationReporter:
        api, stalled = self._metered(RESERVATION_STATUS), stalled_writes(self._clock, "ResourceReservation status")
        return ReservationReporter(self.ledger.reservation_objects, api, self.guard, self._clock, stalled)

    def _make_own_reservations(
        self, gangs: GangReservations, drivers: DriverReservations, *, writes: bool
    ) -> OwnObjects:
        return OwnObjects(
            self.ledger.reservation_objects,
            gangs,
            drivers,
            self.planners,
            reporter=self.reservation_reporter,
            api=self._metered(RESERVATION_STATUS),
            guard=self.guard,
            clock=self._clock,
            stalled=stalled_writes(self._clock, "ResourceReservations"),
            served=lambda: writes and self.watches.serves(kinds.RESOURCE_RESERVATIONS),
        )

    def _make_volumes(self, configuration: Configuration) -> VolumePreBind:
        claims, volumes = self.cache.of("PersistentVolumeClaim"), self.cache.of("PersistentVolume")
        return VolumePreBind(self.api, self.guard, claims, volumes, volume_timeouts(configuration))

    def _make_claims(self, configuration: Configuration) -> ClaimPreBind:
        def written(claim: ResourceClaim) -> None:
            self.handlers.objects.on_update("ResourceClaim", claim)

        claims, pods = self.ledger.nodes.claims, self.ledger.pods
        timeouts, served = claim_timeouts(configuration), partial(self.watches.version_of, kinds.RESOURCE_CLAIMS)
        return ClaimPreBind(self.api, self.guard, claims, pods, written, self._clock, timeouts=timeouts, served=served)

    def _make_dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self._metered(BINDING),
            self.guard,
            self.bind_results,
            self._rng,
            limit=self._options.in_flight,
            hooks=BindHooks((self.status_patcher, self.volumes, self.claims), (self.claims,)),
            checks=send_checks(self.ledger, self.cache, self.assembler, self._options.delay, self.wakeup.set),
        )

    def _make_stale_gangs(self) -> StaleGangEvictor:
        def deadline(member: BoundMember) -> float:
            return self.gangs[member.pod.spec.scheduler_name].deadline

        return StaleGangEvictor(
            GuardedApi(self.api, self.guard),
            lambda: list(self.assembler.incomplete.values()),
            deadline,
            self.replacement_holds,
            recorder=self.recorder,
            metrics=self.metrics,
            clock=self._clock,
            wakeup=self.wakeup,
        )

    def _metered(self, purpose: str) -> MeteredApi:
        return MeteredApi(self.api, purpose, self.metrics, self._clock)

    def _default_topology(self, pod: Pod) -> TopologyRequest:
        settings = self.gangs.get(pod.spec.scheduler_name)
        return NO_TOPOLOGY_REQUEST if settings is None else settings.default_topology(pod.metadata.namespace)
