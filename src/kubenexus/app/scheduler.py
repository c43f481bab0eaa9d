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
from kubenexus.api.gangs.claim import UNSAID, Nearness
from kubenexus.app.auditor import Auditor
from kubenexus.app.counted import BINDING, GROUP_STATUS, POD_STATUS, Counted
from kubenexus.app.feed import Feed
from kubenexus.app.hearing import OPTIONAL, WATCHED, Hearing, topic
from kubenexus.app.herald import Herald
from kubenexus.app.holes import Holes
from kubenexus.app.inquest import Inquest
from kubenexus.app.keeper import Keeper
from kubenexus.app.landing import Landing
from kubenexus.app.loop import Loop
from kubenexus.app.registrar import Registrar
from kubenexus.app.reservations import Reservations
from kubenexus.app.slow_jobs import SlowJob
from kubenexus.app.witnesses import Witnesses
from kubenexus.base.clock import Clock
from kubenexus.bind.commitment import Always, Bind, Commitment, Fenced, Guard, Points
from kubenexus.bind.dispatcher import LIMIT, Dispatcher
from kubenexus.bind.notes import Notes
from kubenexus.bind.progress import Hooks
from kubenexus.bind.shunned import Shunned
from kubenexus.bind.volumes import VolumeBinding
from kubenexus.client import kinds
from kubenexus.client.changes import at_least
from kubenexus.client.kinds import Resource
from kubenexus.client.topics import Source
from kubenexus.client.watch import Reflector
from kubenexus.config import Configuration
from kubenexus.config.args import GANGS
from kubenexus.config.gangs import gang_settings
from kubenexus.framework import limits
from kubenexus.framework.profile import Factory, Lineup
from kubenexus.observe import events, logs
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.throttle import Throttle
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang import capacity, stake
from kubenexus.plugins.spread import HARD
from kubenexus.queue.policy import Policy
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.rules import Rules
from kubenexus.queue.standing import Bound, Incomplete
from kubenexus.state.ledger import Ledger

# What schedulers write to, and so must have read before they decide.
WRITTEN = frozenset({kinds.PODS, kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS})

# What each decision stands on. Where these may have changed unseen, none is made.
DECIDED_ON = frozenset({kinds.NODES, kinds.PODS})
OUTDATED = 30.0  # seconds until a scheduler that cannot decide is no longer ready

GRACE = 5.0  # seconds that optional kinds have to be listed before pods are placed without them
SAID = 10.0  # seconds between two lines about kinds that are waited for

log = logs.get("scheduler")


class Settings(msgspec.Struct, frozen=True):
    """What is not in the configuration. `host` is how events name us; `spent` is the clock for single decisions;
    `delay`: seconds for which the client's rate limit holds back a call that is sent now."""

    host: str = "localhost"
    in_flight: int = LIMIT
    watched: tuple[Resource, ...] = WATCHED
    spent: Callable[[], float] | None = None
    delay: Callable[[], float] = lambda: 0.0


class Scheduler:
    """`guard` says whether a write may start. Watches may run long before the loop does: a standby is warm."""

    def __init__(
        self,
        configuration: Configuration,
        plugins: Mapping[str, Factory],
        api: Source,
        clock: Clock,
        rng: random.Random,
        *,
        guard: Guard | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._settings = settings = settings or Settings()
        self.guard = guard or Always()
        self.api, self._clock, self._rng = api, clock, rng
        self.metrics, self.ledger = Metrics(), Ledger()
        self.gangs = {name: gang_settings(args.get(GANGS, {}), name) for name, args in configuration.args.items()}
        self.planners = {
            each.name: Planner(Lineup(each, plugins), levels=self.gangs[each.name].levels)
            for each in configuration.profiles
        }
        self.shunned = Shunned(clock)
        self.room = self._waiting_room(configuration)
        self.feed = Feed(self.ledger, self.room, self.planners, self._usual)
        self.recorder = EventRecorder(clock, settings.host, rng, stalled=self._stalled("events"))
        statuses, stalled = self._counted(POD_STATUS), self._stalled("pod status")
        self.notes = Notes(statuses, self.guard, self._still_waits, self._unwritten, stalled)
        self.witnesses = Witnesses(statuses, self.guard, self.feed.assembly, clock, stalled)
        groups, stalled = self._counted(GROUP_STATUS), self._stalled("PodGroup status")
        self.registrar = Registrar(self.ledger.groups, groups, self.guard, self._pod_groups, clock, stalled)
        self.herald = Herald(self.room, self.recorder, self.notes, self.registrar, clock)
        self.landing = Landing(self.ledger, self.room, self.herald, self.recorder, self.metrics, clock)
        self.volumes = self._volumes(configuration)
        self.dispatcher = self._dispatcher(settings)
        self.inquest = Inquest(api, self.feed, self.landing, self.planners, self.shunned)
        self.holes = Holes(self.ledger, self.room, clock)
        self.keeper = self._keeper()
        self.loop = self._loop()
        patience = {name: gangs.reservation for name, gangs in self.gangs.items()}
        self.loop.reservations = Reservations(self.room, clock, patience)
        self.auditor = Auditor(self.ledger, self.feed.known.nodes, self.room, self.metrics)
        self._connect()
        self._hearings = {each: Hearing(self.feed, each, self.loop.wake) for each in settings.watched}
        self.reflectors = [self._reflector(each) for each in settings.watched]
        self._decided_on = [each for each in self.reflectors if each.wanted in DECIDED_ON]
        self.loop.outdated = self.outdated

    # --- what runs ------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Follow the cluster, until cancelled."""
        for hearing in self._hearings.values():
            hearing.unlisted()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.reflectors:
                tasks.create_task(reflector.run())

    async def schedule(self) -> None:
        """Decide and bind, until cancelled. Only after `caught_up`."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            tasks.create_task(self.notes.run(self.dispatcher.room))
            tasks.create_task(self.registrar.notes.run(self.dispatcher.room))
            tasks.create_task(self.witnesses.notes.run(self.dispatcher.room))
            tasks.create_task(self.recorder.run(Fenced(self.api, self.guard), self.dispatcher.room))
            tasks.create_task(self.inquest.run(self.loop.wake))
            tasks.create_task(self.keeper.run(self.loop.wake))

    def postpone(self, jobs: Iterable[SlowJob]) -> None:
        """These took too long to decide in a process before this one: they are tried after all others."""
        for each in jobs:
            log.warning("Job took too long to decide before; trying it last", job=each.job, times=each.count)
            self.room.postpone(each.job, each.until)

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
        decisions = [planner.bench.work.failures for planner in self.planners.values()]
        return sum((*decisions, *[rules.failures for rules in self._profiles.values()]), Counter[str]())

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

    async def caught_up(self) -> None:
        """Until every bind before this call is in the ledger, a predecessor's last one too: no decision may stand on
        less. The other kinds are as old as their watches, as always."""
        written = [each for each in self.reflectors if each.resource in WRITTEN]
        await asyncio.gather(*(each.caught_up(patience=0.2) for each in written))

    # --- how it is put together -----------------------------------------------------------------------------------

    def _waiting_room(self, configuration: Configuration) -> WaitingRoom:
        document = configuration.document
        policy = Policy(float(document.pod_initial_backoff_seconds), float(document.pod_max_backoff_seconds))
        rules = self._profiles = {name: self._rules(planner) for name, planner in self.planners.items()}
        return WaitingRoom(rules | {"": next(iter(rules.values()))}, self._clock, policy)

    def _rules(self, planner: Planner) -> Rules:
        columns = self.ledger.nodes
        # Who a pod belongs to can only refuse it nodes where a default constraint is a hard one.
        defaults = [each for plugin in planner.lineup.plugins for each in getattr(plugin, "defaults", ())]
        refuses_by_owner = any(each.when_unsatisfiable == HARD for each in defaults)

        scope = columns.pods.terms.scope

        def sign(pod: Pod) -> bytes:
            signature, namespace = planner.bench.signature(pod, columns, lift=False), pod.metadata.namespace
            spoken_of = scope(namespace)
            if not spoken_of and namespace not in self.shunned.namespaces:
                return signature
            # It is kept from nodes that are open to other namespaces, or others' terms may speak of its pods.
            return b"%b in %b %b" % (signature, namespace.encode(), repr(spoken_of).encode())

        def owners() -> int:
            return columns.owners.version if refuses_by_owner else 0

        def context() -> tuple[int, frozenset[str]]:
            return owners(), self.shunned.namespaces

        aging = self.gangs[planner.lineup.profile.name].aging
        also = {**capacity.WAKES, **stake.WAKES, **limits.WAKES}
        return Rules.of(planner.lineup, sign, context, also=also, aging=aging, selectors=owners, scope=scope)

    def _volumes(self, configuration: Configuration) -> VolumeBinding:
        known = self.feed.known
        timeouts = {
            name: float(args["VolumeBinding"]["bindTimeoutSeconds"])
            for name, args in configuration.args.items()
            if args.get("VolumeBinding", {}).get("bindTimeoutSeconds")
        }
        claims, volumes = known.of("PersistentVolumeClaim"), known.of("PersistentVolume")
        return VolumeBinding(self.api, self.guard, claims, volumes, timeouts)

    def _dispatcher(self, settings: Settings) -> Dispatcher:
        return Dispatcher(
            self._counted(BINDING),
            self.guard,
            self.landing,
            self._rng,
            limit=settings.in_flight,
            points=Points((self.notes, self.volumes)),
            hooks=Hooks(self._still_wanted, self._needed, self._unexplained, settings.delay),
        )

    def _stalled(self, writes: str) -> Callable[[str, int], None]:
        """Logs, once a minute for each namespace, that none of these writes goes through."""
        lines = Throttle(self._clock)

        def said(namespace: str, waiting: int) -> None:
            if lines.left_out(namespace) is not None:
                text = "Writes of a namespace do not go through; an admission webhook may hold them"
                log.warning(text, writes=writes, namespace=namespace, waiting=waiting)

        return said

    def _counted(self, purpose: str) -> Counted:
        return Counted(self.api, purpose, self.metrics, self._clock)

    def _keeper(self) -> Keeper:
        def deadline(member: Bound) -> float:
            return self.gangs[member.pod.spec.scheduler_name].deadline

        def incomplete() -> list[Incomplete]:
            return list(self.feed.assembly.incomplete.values())

        return Keeper(Fenced(self.api, self.guard), incomplete, deadline, self.holes, self.recorder, self._clock)

    def _loop(self) -> Loop:
        return Loop(
            self.ledger,
            self.room,
            self.planners,
            self.dispatcher,
            herald=self.herald,
            metrics=self.metrics,
            clock=self._clock,
            shunned=self.shunned,
            spent=self._settings.spent,
        )

    def _connect(self) -> None:
        """Who hears of what."""
        assembly = self.feed.assembly
        assembly.arrived, assembly.assembled = self.herald.arrived, self.herald.assembled
        assembly.warned, assembly.failed = self._warned, self._unformed
        assembly.completed = self.witnesses.completed
        self.herald.latest = assembly.latest
        self.landing.landed, self.landing.waits = assembly.landed, lambda pod: pod.key in assembly
        self.feed.left = self._left
        self.feed.vanished = self.inquest.vanished
        self.feed.lost = self.holes.leave
        self.feed.assembly.holes, self.feed.assembly.whole = self.holes.of, self.holes.close
        self.feed.heard = self._heard
        self.keeper.gave_up = lambda gang: self.metrics.gang_decisions.at("timeout").add()
        self.landing.learn = self._looked_up
        self.landing.woken = self.dispatcher.rested = self.loop.wake
        self.metrics.add_source(lambda: self.metrics.read_queue(self.room))

    def _reflector(self, resource: Resource) -> Reflector:
        hearing = self._hearings[resource]
        return Reflector(
            self.api, topic(resource), hearing, clock=self._clock, rng=self._rng, answered=self._server_answers
        )

    def _server_answers(self) -> None:
        """One watch has come back: all others try at once. Else they would be back seconds apart, each after its own
        backoff, and pods would be placed on nodes as they were before."""
        for reflector in self.reflectors:
            reflector.retry()
        self.loop.wake()

    def _left(self, pod: Pod) -> None:
        """A pod is gone: nothing about it is remembered."""
        self.herald.placed(pod)
        self.landing.forget(pod.metadata.uid)

    def _looked_up(self, pod: Pod) -> None:
        """A look found this pod. It may have been overtaken: what the watch has told since, above all that the pod is
        gone, would never be told again."""
        watch = next((each for each in self.reflectors if each.resource is kinds.PODS), None)
        if watch is not None and not watch.version:
            self.feed.pod_looked_up(pod)
        elif watch is None or not at_least(watch.version, pod.metadata.resource_version):
            self.feed.pod_seen(pod)

    def _heard(self, kind: str, thing: Any) -> None:
        if kind == "PersistentVolumeClaim":
            self.volumes.heard(f"{thing.metadata.namespace}/{thing.metadata.name}")

    def _still_wanted(self, bind: Bind) -> str:
        record = self.ledger.pods.get(bind.key)
        if record is None or record.uid != bind.uid or record.node != bind.node:
            return "the pod is gone, or somebody else has bound it"
        known = self.feed.known.pods.get(bind.key)
        if known is not None and known.metadata.deletion_timestamp:
            return "the pod is being deleted"
        return "" if bind.node in self.ledger.nodes.row_of else f"node {bind.node} is gone"

    def _needed(self, commitment: Commitment) -> int:
        return self.feed.assembly.needed(commitment.token.job)

    def _unexplained(self, doing: str, error: Exception) -> None:
        log.error("Something unexpected happened to a bind", error, doing=doing)  # noqa: PLE1205 - our own log

    def _pod_groups(self) -> Resource:
        """PodGroups, in the form that the server knows."""
        forms = (each.resource for each in self.reflectors if each.resource.kind == kinds.POD_GROUPS.kind)
        return next((form for form in forms if form.group == kinds.POD_GROUPS.group), kinds.POD_GROUPS)

    def _still_waits(self, pod: Pod) -> bool:
        return self.feed.assembly.still_waits(pod)

    def _usual(self, pod: Pod) -> Nearness:
        settings = self.gangs.get(pod.spec.scheduler_name)
        return UNSAID if settings is None else settings.usual(pod.metadata.namespace)

    def _warned(self, pod: Pod, text: str) -> None:
        log.warning("Pod is not clear about its gang", why=text, pod=pod)
        self.recorder.record(events.gang_unclear(pod, text), pod.spec.scheduler_name)

    def _unformed(self, gang: str, error: Exception) -> None:
        log.error("Failed to form a gang; it waits until it changes", error, gang=gang)  # noqa: PLE1205 - our own log

    def _unwritten(self, pod: Pod, why: str) -> None:
        log.error("Failed to update pod status", err=why, pod=pod)
        self.herald.missed(pod)
