"""The life of the process: reach the server, watch, lead, schedule, and end so that nothing is left half done.

    reach ─▶ may we? ─▶ serve health ─▶ watch ─▶ lead ─▶ caught up ─▶ schedule ─▶ TERM: finish binds ─▶ release

Leadership lost ends it with an error, since whatever it believes may be outdated; so does a server that no longer knows
us. Whoever starts us starts us again. The lease has a thread of its own (`app.election.leader_thread`), and the main
loop shows life to it every second.
"""

import asyncio
import contextlib
import random
from collections.abc import Coroutine, Mapping
from typing import Any

from kubenexus.app.election.candidate import Candidate
from kubenexus.app.election.leader import LeaderElector
from kubenexus.app.election.leader_thread import LeaderElectionThread
from kubenexus.app.election.lease import LeaseConfig
from kubenexus.app.flags import Flags
from kubenexus.app.http.endpoints import HttpEndpoints
from kubenexus.app.permissions import (
    OPTIONAL_PERMISSIONS,
    losses,
    missing_permissions,
    missing_permissions_error,
    required_permissions,
)
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
from kubenexus.framework.profile import Factory
from kubenexus.observe import logs
from kubenexus.state.digest import digest

UNKNOWN_FOR = 60.0  # seconds of nothing but 401 before we give up
LAST_BINDS = 20.0  # seconds for jobs whose binds have begun when we are asked to end; kubelets kill after 30
DRAIN_SECONDS = 2.0  # seconds for the last events

log = logs.get("app")


class Process:
    """One for each process. `identity` is ours alone among the candidates for leadership. `access` and `lease_access`
    lead to the same server and share nothing: each is used in a thread of its own."""

    def __init__(
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
    ) -> None:
        self._configuration, self._plugins, self._flags = configuration, plugins, flags
        self._clock, self._rng, self._identity = clock, rng, identity
        connection = configuration.document.client_connection
        self._client = ApiClient(
            access, clock, rate_limiter=RateLimiter(clock, qps=connection.qps, burst=connection.burst)
        )
        # The lease has a client of its own: no burst of binds stands before a renewal. And a clock of its own: the
        # seconds of a lease are not made longer by a clock that is put right.
        self._lease_client, self._steady = ApiClient(lease_access, clock, connections=2), WallClock()
        self._elector = self._candidacy()
        self._leadership: LeaderElectionThread | None = None
        self._scheduler: Scheduler | None = None
        self._ports: HttpEndpoints | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._holding: asyncio.Task[Any] | None = None
        self._beating: asyncio.Task[Any] | None = None
        self._stopping, self._news = False, asyncio.Event()

    def stop(self) -> None:
        """Asked to end: finish what is under way."""
        self._stopping = True
        self._news.set()

    def log_digest(self) -> None:
        """Asked what it believes (SIGUSR2): one line that can be held against what a list of the cluster gives."""
        if self._scheduler is not None:
            ledger = self._scheduler.ledger
            log.info("Ledger", digest=digest(ledger), nodes=ledger.nodes.count, pods=len(ledger.pods))

    async def run(self) -> None:
        """Until `stop`. Raises KubeNexusError when it has to end for another reason."""
        try:
            await self._until_begun()
            await self._until_stopped()
        finally:
            await self._end()

    # --- the beginning --------------------------------------------------------------------------------------------

    async def _until_begun(self) -> None:
        """Or until we are asked to end: a server that does not answer may take longer than a kubelet waits."""
        beginning = asyncio.ensure_future(self._begin())
        beginning.add_done_callback(lambda _: self._news.set())
        try:
            while not beginning.done() and not self._stopping:
                await self._news.wait()
                self._news.clear()
            if not self._stopping:
                beginning.result()
        finally:
            self._news.set()  # of tasks that have ended meanwhile, too
            await _cancelled([beginning])

    async def _begin(self) -> None:
        self._ports = ports = HttpEndpoints(self._configuration.document, self._flags, self._client, self._clock)
        loading = self._start(ports.load())
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
                loop=LoopOptions(spent=cpu_seconds),
            ),
        )
        activity = scheduler.loop.activity
        if self._elector is not None:
            self._leadership = LeaderElectionThread(self._elector, activity, self._steady)
        await ports.open(scheduler, self._elector)
        log.info("Starting", source=self._client.access.source, profiles=sorted(scheduler.planners))
        self._beating = self._start(activity.beat(self._clock.follow))
        self._start(self._watch_authentication())
        self._start(GaugeCollector(scheduler, self._elector, self._clock).measure_loop_lag())
        self._start(scheduler.ledger_auditor.run())
        if not self._configuration.document.delay_cache_until_active:
            self._start(scheduler.watch())
        self._start(self._lead(scheduler))

    async def _check_connection(self) -> None:
        """Whether there is a server that knows us."""
        try:
            await self._client.send(Call("GET", "/version"))
        except ApiError as error:
            raise KubeNexusError(f"cannot use {self._where()}: {error}") from None
        except (Unreachable, Uncertain) as error:
            raise KubeNexusError(f"cannot reach {self._where()}: {error}") from None

    async def _check_lease_namespace(self, terms: LeaseConfig) -> None:
        """A lease in a namespace that does not exist could be waited for in vain."""
        try:
            await self._client.send(get(kinds.NAMESPACES, "", terms.namespace))
        except ApiError as error:
            if error.code == 404:
                said = f'the namespace "{terms.namespace}" of the lease does not exist'
                raise KubeNexusError(f"{said}; make it, name another, or run with --leader-elect=false") from None

    async def _check_permissions(self) -> None:
        """Raises when a right is missing that nothing works without, and warns of others. A kind that may not be read
        is watched all the same: the right may be given later."""
        terms = None if self._elector is None else self._elector.terms
        if terms is not None:
            await self._check_lease_namespace(terms)
        missing = await missing_permissions(
            self._client, [*required_permissions(WATCHED_KINDS, terms), *OPTIONAL_PERMISSIONS]
        )
        vital = [deed for deed in missing if deed not in OPTIONAL_PERMISSIONS and deed.resource not in OPTIONAL]
        if vital:
            raise missing_permissions_error(vital)
        if missing:
            log.warning("Some rights are missing", rights=[str(deed) for deed in missing], lost=losses(missing))

    def _candidacy(self) -> LeaderElector | None:
        wanted = self._configuration.document.leader_election
        if not wanted.leader_elect:
            return None
        terms = LeaseConfig.of(wanted)
        if terms.renew < wanted.renew_deadline.seconds:
            log.warning("Renew deadline is cut: the end of the lease is for writes", seconds=terms.renew)
        return LeaderElector(
            self._lease_client,
            self._steady,
            Candidate(self._identity, terms, self._note),
            random.Random(self._rng.getrandbits(64)),
            wall=self._clock,
            on_problem=lambda problem: log.error("Failed to acquire or renew the lease", err=problem),
            on_leader=lambda leader: log.info("New leader", leader=leader),
        )

    def _note(self, now: float) -> str | None:
        """What the lease is to say about slow jobs. Called in the lease thread."""
        return None if self._scheduler is None else self._scheduler.loop.activity.note(now)

    # --- the middle -----------------------------------------------------------------------------------------------

    async def _lead(self, scheduler: Scheduler) -> None:
        if self._leadership is not None:
            noted = await self._leadership.acquire()
            scheduler.postpone(scheduler.loop.activity.slow_jobs.inherit(noted, self._clock.now()))
            self._holding = self._start(self._leadership.hold())
        if self._configuration.document.delay_cache_until_active:
            self._start(scheduler.watch())
        await self._caught_up(scheduler)
        freeze_after_list()
        log.info("Scheduling", nodes=scheduler.ledger.nodes.count, pods=len(scheduler.ledger.pods))
        await scheduler.schedule()

    async def _caught_up(self, scheduler: Scheduler) -> None:
        await scheduler.listed()
        while self._elector is not None:  # alone, nobody has written since the lists began
            try:
                await scheduler.wait_until_current()
                return
            except (ApiError, Unreachable, Uncertain) as error:
                log.error("Cannot tell yet whether all is seen; trying again", err=str(error))
                await asyncio.sleep(1.0)

    async def _watch_authentication(self) -> None:
        """A server that answers nothing but 401 will not come round: our account was made anew, or is gone."""
        while True:
            await asyncio.sleep(5.0)
            since = self._client.unauthorized_since
            if since is not None and self._clock.now() - since > UNKNOWN_FOR:
                raise KubeNexusError(f"{self._where()} has not known us for {UNKNOWN_FOR:g} s (401 Unauthorized)")

    async def _until_stopped(self) -> None:
        """Until somebody asks us to end, or a task does."""
        try:
            while not self._stopping:
                await self._news.wait()
                self._news.clear()
                for task in [each for each in self._tasks if each.done()]:
                    self._tasks.remove(task)
                    task.result()
        except BaseExceptionGroup as group:
            raise _first(group) from None

    def _start(self, doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(doing)
        task.add_done_callback(lambda _: self._news.set())
        self._tasks.append(task)
        return task

    # --- the end --------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Nothing new is decided; binds in flight end; then another may lead."""
        scheduler, last = self._scheduler, [each for each in (self._beating, self._holding) if each is not None]
        await _cancelled([task for task in self._tasks if task not in last])
        if scheduler is not None and self._beating is not None:  # it had begun
            await self._finish(scheduler)
        await _cancelled([] if self._holding is None else [self._holding])
        if self._leadership is not None and self._leadership.elector.may_write():
            await self._leadership.release()
        if self._ports is not None:
            await self._ports.close()
        await self._client.close()
        await (self._lease_client.close() if self._leadership is None else self._leadership.close(self._lease_client))
        await _cancelled(last)  # the lease thread looks for signs of life until it ends

    async def _finish(self, scheduler: Scheduler) -> None:
        guard = scheduler.guard  # who does not lead has nothing to finish, only to wait for what is on its way
        given_up = await scheduler.dispatcher.close(LAST_BINDS if guard.may_write() else guard.write_timeout + 1.0)
        log.info("Stopping", givenUp=given_up)
        if not scheduler.guard.may_write():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await scheduler.recorder.drain(self._client)

    def _where(self) -> str:
        access = self._client.access
        scheme = "https" if access.address.tls else "http"
        return f"{scheme}://{access.address.authority} ({access.source})"


async def _cancelled(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first cause in a group, however deep."""
    cause = group.exceptions[0]
    return _first(cause) if isinstance(cause, BaseExceptionGroup) else cause
