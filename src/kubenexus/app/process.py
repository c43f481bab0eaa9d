"""Runs the scheduler process from its start to its end.

    connect ─▶ permissions ─▶ serve HTTP ─▶ watch ─▶ lead ─▶ catch up ─▶ schedule ─▶ SIGTERM ─▶ last binds ─▶ release

The process ends with an error when it loses leadership, because its state may be outdated. It also does when the API
server answers only 401. The kubelet then starts it again. The lease is renewed in its own thread
(`app.election.leader_thread`), which checks every second that the main loop still runs.
"""

import asyncio
import contextlib
import random
from collections.abc import Coroutine, Mapping
from typing import Any

import numpy.ma  # noqa: F401  # np.unique loads it at its first call: 15 ms, else within a turn of the loop

from kubenexus.app.election.candidate import Candidate
from kubenexus.app.election.leader import LeaderElector
from kubenexus.app.election.leader_thread import LeaderElectionThread
from kubenexus.app.election.lease import LeaseConfig
from kubenexus.app.flags import Flags
from kubenexus.app.http.api.live_api import LiveApi
from kubenexus.app.http.endpoints import HttpEndpoints
from kubenexus.app.permissions import (
    KUEUE_PERMISSIONS,
    OPTIONAL_PERMISSIONS,
    PROVISIONING_PERMISSIONS,
    losses,
    missing_permissions,
    missing_permissions_error,
    required_permissions,
)
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.report.gauge_collector import GaugeCollector
from kubenexus.app.scheduler import Scheduler, SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.app.watch.informers import OPTIONAL, WATCHED_KINDS
from kubenexus.base.clock import WallClock, cpu_seconds
from kubenexus.base.errors import KubeNexusError
from kubenexus.base.gc_tuning import freeze_after_list
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.client_config import ClientConfig
from kubenexus.client.rate_limiter import RateLimiter
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import get
from kubenexus.config import Configuration
from kubenexus.config.args import GANGS
from kubenexus.config.kueue_settings import kueue_settings
from kubenexus.framework.profile import Factory
from kubenexus.observe import logs
from kubenexus.state.digest import digest

MAX_UNAUTHORIZED_SECONDS = 60.0  # seconds of only 401 answers until the process ends
PROBE_SECONDS = 4.0  # seconds without an answer of the API server until it is called, to know whether it answers
PROBE_TIMEOUT = 10.0
LAST_BINDS_SECONDS = 20.0  # seconds for jobs whose binds have begun at SIGTERM; kubelets kill after 30
DRAIN_SECONDS = 2.0  # seconds to send the last events

log = logs.get("app")


class Process:
    """The scheduler process: API clients, leader election, HTTP endpoints and the scheduler. Created once.

    `identity` must be unique among the candidates for leadership. `access` and `lease_access` address the same API
    server and share nothing, because each is used in its own thread.
    """

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        configuration: Configuration,
        plugins: Mapping[str, Factory],
        access: ClientConfig,
        clock: WallClock,
        rng: random.Random,
        *,
        lease_access: ClientConfig,
        flags: Flags,
        identity: str,
        recorder: FlightRecorder | None = None,
        live: LiveApi | None = None,
    ) -> None:
        self._configuration, self._plugins, self._flags = configuration, plugins, flags
        self._clock, self._rng, self._identity = clock, rng, identity
        self._recorder, self._live = recorder, live
        connection = configuration.document.client_connection
        self._client = ApiClient(
            access, clock, rate_limiter=RateLimiter(clock, qps=connection.qps, burst=connection.burst)
        )
        # The lease has its own client, so that a burst of binds cannot delay a renewal. It has its own clock, on which
        # `follow` is never called: a correction of the system time must not stretch a lease.
        self._lease_client, self._lease_clock = ApiClient(lease_access, clock, connections=2), WallClock()
        self._elector = self._make_elector()
        self._leadership: LeaderElectionThread | None = None
        self._scheduler: Scheduler | None = None
        self._endpoints: HttpEndpoints | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._hold: asyncio.Task[Any] | None = None
        self._heartbeat: asyncio.Task[Any] | None = None
        self._stopping, self._wakeup = False, asyncio.Event()

    def stop(self) -> None:
        """Makes `run` finish the binds in flight and return. Called on SIGTERM."""
        self._stopping = True
        self._wakeup.set()

    def log_digest(self) -> None:
        """Logs a digest of the ledger, to compare with the digest of a fresh list of the cluster. Called on SIGUSR2."""
        if self._scheduler is not None:
            ledger = self._scheduler.ledger
            log.info("Ledger", digest=digest(ledger), nodes=ledger.nodes.count, pods=len(ledger.pods))

    async def run(self) -> None:
        """Runs until `stop` is called. Raises KubeNexusError if the process has to end for another reason."""
        try:
            await self._wait_for_start()
            await self._wait_for_stop()
        finally:
            await self._end()

    # --- start -----------------------------------------------------------------------------------------------------

    async def _wait_for_start(self) -> None:
        """Waits until `_begin` has ended or `stop` is called. An API server that does not answer may take longer than
        the kubelet's grace period."""
        start = asyncio.ensure_future(self._begin())
        start.add_done_callback(lambda _: self._wakeup.set())
        try:
            while not start.done() and not self._stopping:
                await self._wakeup.wait()
                self._wakeup.clear()
            if not self._stopping:
                start.result()
        finally:
            self._wakeup.set()  # so that `_wait_for_stop` also sees tasks that have ended by now
            await _cancel([start])

    async def _begin(self) -> None:
        self._endpoints = endpoints = HttpEndpoints(
            self._configuration.document, self._flags, self._client, self._clock, self._live
        )
        loading = self._start(endpoints.load())
        await self._check_connection()
        await self._check_permissions()
        await loading
        self._scheduler = scheduler = Scheduler(
            self._configuration,
            self._plugins,
            self._client,
            self._clock,
            self._rng,
            guard=self._elector,
            options=SchedulerOptions(
                host=self._identity.partition("_")[0],
                delay=lambda: self._client.delay,
                loop=LoopOptions(
                    spent=cpu_seconds,
                    recorder=self._recorder,
                    on_decision=None if self._live is None else self._live.decisions.add,
                ),
                expected_starts=True,
            ),
        )
        activity = scheduler.loop.activity
        if self._elector is not None:
            self._leadership = LeaderElectionThread(self._elector, activity, self._lease_clock)
        await endpoints.open(scheduler, self._elector)
        log.info("Starting", source=self._client.access.source, profiles=sorted(scheduler.planners))
        self._heartbeat = self._start(activity.beat(self._clock.follow))
        self._start(self._watch_authentication())
        self._start(self._probe_api_server())
        self._start(GaugeCollector(scheduler, self._elector, self._clock).measure_loop_lag())
        self._start(scheduler.ledger_auditor.run())
        if not self._configuration.document.delay_cache_until_active:
            self._start(scheduler.watches.run())
        self._start(self._lead(scheduler))

    async def _check_connection(self) -> None:
        """Raises KubeNexusError unless the API server answers and accepts the credentials."""
        try:
            await self._client.send(Call("GET", "/version"))
        except ApiError as error:
            raise KubeNexusError(f"cannot use {self._server_name()}: {error}") from None
        except (Unreachable, Uncertain) as error:
            raise KubeNexusError(f"cannot reach {self._server_name()}: {error}") from None

    async def _check_lease_namespace(self, terms: LeaseConfig) -> None:
        """Raises KubeNexusError if the namespace of the lease does not exist: the lease could never be created."""
        try:
            await self._client.send(get(kinds.NAMESPACES, "", terms.namespace))
        except ApiError as error:
            if error.code == 404:
                problem = f'the namespace "{terms.namespace}" of the lease does not exist'
                raise KubeNexusError(f"{problem}; make it, name another, or run with --leader-elect=false") from None

    async def _check_permissions(self) -> None:
        """Raises KubeNexusError if a required permission is missing, and warns about optional ones. An optional kind
        that may not be read is watched all the same: the permission may be granted later."""
        terms = None if self._elector is None else self._elector.terms
        if terms is not None:
            await self._check_lease_namespace(terms)
        checks = kueue_settings(self._configuration.args).admission_checks
        provisions = any(each.get(GANGS, {}).get("provisioningClassName") for each in self._configuration.args.values())
        optional = {**OPTIONAL_PERMISSIONS, **(KUEUE_PERMISSIONS if checks else {})}
        optional |= PROVISIONING_PERMISSIONS if provisions else {}
        missing = await missing_permissions(self._client, [*required_permissions(WATCHED_KINDS, terms), *optional])
        vital = [each for each in missing if each not in optional and each.resource not in OPTIONAL]
        if vital:
            raise missing_permissions_error(vital)
        if missing:
            log.warning("Some rights are missing", rights=[str(each) for each in missing], lost=losses(missing))

    def _make_elector(self) -> LeaderElector | None:
        settings = self._configuration.document.leader_election
        if not settings.leader_elect:
            return None
        terms = LeaseConfig.of(settings)
        if terms.renew < settings.renew_deadline.seconds:
            log.warning("Renew deadline is cut: the end of the lease is for writes", seconds=terms.renew)
        return LeaderElector(
            self._lease_client,
            self._lease_clock,
            Candidate(self._identity, terms, self._note),
            random.Random(self._rng.getrandbits(64)),
            wall=self._clock,
            on_problem=lambda problem: log.error("Failed to acquire or renew the lease", err=problem),
            on_leader=lambda leader: log.info("New leader", leader=leader),
        )

    def _note(self, now: float) -> str | None:
        """Returns the annotation about slow jobs for the lease, None to leave it unchanged. Called in the lease
        thread."""
        return None if self._scheduler is None else self._scheduler.loop.activity.note(now)

    # --- leading and running --------------------------------------------------------------------------------------

    async def _lead(self, scheduler: Scheduler) -> None:
        if self._leadership is not None:
            annotation = await self._leadership.acquire()
            scheduler.postpone(scheduler.loop.activity.slow_jobs.inherit(annotation, self._clock.now()))
            self._hold = self._start(self._leadership.hold())
        if self._configuration.document.delay_cache_until_active:
            self._start(scheduler.watches.run())
        await self._catch_up(scheduler)
        freeze_after_list()
        log.info("Scheduling", nodes=scheduler.ledger.nodes.count, pods=len(scheduler.ledger.pods))
        await scheduler.schedule()

    async def _catch_up(self, scheduler: Scheduler) -> None:
        """Waits until all kinds are listed and the watches have reached the last write of the previous leader."""
        await scheduler.watches.listed()
        while self._elector is not None:  # without election there is no previous leader
            try:
                await scheduler.watches.wait_until_current()
                return
            except (ApiError, Unreachable, Uncertain) as error:
                log.error("Cannot tell yet whether all is seen; trying again", err=str(error))
                await asyncio.sleep(1.0)

    async def _watch_authentication(self) -> None:
        """Raises KubeNexusError after `MAX_UNAUTHORIZED_SECONDS` of only 401 answers. The service account was deleted
        or created again, and the token will not become valid again."""
        while True:
            await asyncio.sleep(5.0)
            since = self._client.unauthorized_since
            if since is not None and self._clock.now() - since > MAX_UNAUTHORIZED_SECONDS:
                raise KubeNexusError(
                    f"{self._server_name()} has not known us for {MAX_UNAUTHORIZED_SECONDS:g} s (401 Unauthorized)"
                )

    async def _probe_api_server(self) -> None:
        """Calls the API server whenever it has not answered for `PROBE_SECONDS`, so that `/readyz` shows whether it
        does. In a quiet cluster there may be no other call for minutes, and a server that stands still leaves watches
        open."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            if self._client.unanswered_seconds >= PROBE_SECONDS:
                with contextlib.suppress(ApiError, Unreachable, Uncertain):
                    await self._client.send(Call("GET", "/version"), timeout=PROBE_TIMEOUT)

    async def _wait_for_stop(self) -> None:
        """Waits until `stop` is called. Raises the error of the first task that fails."""
        try:
            while not self._stopping:
                await self._wakeup.wait()
                self._wakeup.clear()
                for task in [each for each in self._tasks if each.done()]:
                    self._tasks.remove(task)
                    task.result()
        except BaseExceptionGroup as group:
            raise _first_cause(group) from None

    def _start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(coroutine)
        task.add_done_callback(lambda _: self._wakeup.set())
        self._tasks.append(task)
        return task

    # --- shutdown --------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Cancels all decisions, waits for the binds in flight, and only then releases the lease."""
        scheduler, last = self._scheduler, [each for each in (self._heartbeat, self._hold) if each is not None]
        await _cancel([task for task in self._tasks if task not in last])
        if scheduler is not None and self._heartbeat is not None:  # `_begin` started the watches
            await self._finish(scheduler)
        await _cancel([] if self._hold is None else [self._hold])
        if self._leadership is not None and self._leadership.elector.may_write():
            await self._leadership.release()
        if self._endpoints is not None:
            await self._endpoints.close()
        await self._client.close()
        await (self._lease_client.close() if self._leadership is None else self._leadership.close(self._lease_client))
        await _cancel(last)  # last: the lease thread checks the heartbeat until it ends

    async def _finish(self, scheduler: Scheduler) -> None:
        guard = scheduler.guard  # a standby only waits for writes that are already sent
        given_up = await scheduler.dispatcher.close(
            LAST_BINDS_SECONDS if guard.may_write() else guard.write_timeout + 1.0
        )
        log.info("Stopping", givenUp=given_up)
        if not scheduler.guard.may_write():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await scheduler.recorder.drain(self._client)

    def _server_name(self) -> str:
        access = self._client.access
        scheme = "https" if access.address.tls else "http"
        return f"{scheme}://{access.address.authority} ({access.source})"


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns the first exception in a group, or in its nested groups."""
    cause = group.exceptions[0]
    return _first_cause(cause) if isinstance(cause, BaseExceptionGroup) else cause
