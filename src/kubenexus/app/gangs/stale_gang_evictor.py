"""Evicts members of gangs that stay incomplete after their first bind, so that they do not hold unusable capacity for
ever.

A bind cannot be undone, so members are evicted:

- Of a gang that never was complete: all members, running or not, since they wait for others that do not come.
- Of a gang that was complete once, or of which no member waits for a node: only members that have not started.

Only members with a controller are evicted, since the controller creates them again and the gang then waits as a whole.
Bare pods are never deleted: such a gang is stuck, and an event reports that. Pods of other schedulers are ignored.

A step evicts a bounded number of members, in turn over namespaces and over the gangs of each. So a gang of thousands,
or one that a PodDisruptionBudget protects, does not delay other tenants. A step waits for its evictions no longer than
until the next step, which chooses no further members of namespaces whose evictions hang.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from kubenexus.app.gangs.replacement_holds import HOLD_SECONDS, ReplacementHolds
from kubenexus.app.wakeup import Wakeup
from kubenexus.base.clock import Clock
from kubenexus.client.calls import Api
from kubenexus.client.fair_slots import FairSlots
from kubenexus.client.verbs import evict
from kubenexus.observe import events, logs
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.queue.gangs.bound_members import BoundMember, IncompleteGang

PERIOD = 5.0
AGAIN = 30.0  # seconds until a member that still exists is evicted again
A_STEP = 256  # evictions in one step: 3,000 a minute
AT_ONCE = 8  # evictions in flight
SEND = 5.0  # timeout of one eviction, in seconds

T = TypeVar("T")

log = logs.get("stale_gangs")


class StaleGangEvictor:
    """Runs the periodic steps. `incomplete` returns the gangs that lack members now, with their members of this
    process's profiles. `deadline` returns the seconds for which a gang may be incomplete, unless it sets that."""

    def __init__(
        self,
        api: Api,
        incomplete: Callable[[], Iterable[IncompleteGang]],
        deadline: Callable[[BoundMember], float],
        replacement_holds: ReplacementHolds,
        *,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Clock,
        wakeup: Wakeup,
    ) -> None:
        self._api, self._incomplete, self._deadline = api, incomplete, deadline
        self._replacement_holds, self._recorder, self._metrics = replacement_holds, recorder, metrics
        self._clock, self._wakeup = clock, wakeup
        self._late: set[tuple[str, float]] = set()  # overdue gangs, and since when each is incomplete
        self._last_namespace = ""  # the namespace of the last chosen member
        self._slots = FairSlots(AT_ONCE)
        self._evictions: dict[asyncio.Task[None], str] = {}  # evictions in progress, and their namespaces
        self._not_before: dict[str, float] = {}  # evicted or stuck members by UID, and until when they are not chosen

    async def run(self) -> None:
        """Runs until cancelled. Holds expire in time, however long evictions take."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._expire_holds())
                tasks.create_task(self._run_steps())
        finally:
            for task in self._evictions:
                task.cancel()

    async def _expire_holds(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            self._replacement_holds.expire()
            self._wakeup.set()

    async def _run_steps(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            await self.step()
            self._wakeup.set()

    async def step(self) -> None:
        """Chooses members of all overdue gangs, starts their evictions, and waits for these for at most `PERIOD`
        seconds."""
        self._replacement_holds.expire()
        late = [gang for gang in self._incomplete() if self._is_late(gang)]
        members = {each.uid for gang in late for each in gang.bound}
        self._not_before = {uid: at for uid, at in self._not_before.items() if uid in members}
        known, self._late = self._late, {(gang.key, gang.noticed) for gang in late}
        for gang in late:
            if (gang.key, gang.noticed) not in known:
                self._metrics.gang_decisions.labels("timeout").add()
        begun = [self._begin(*each) for each in self._chosen(late)]
        if begun:
            ended, _ = await asyncio.wait(begun, timeout=PERIOD)
            for task in ended:
                task.result()

    def _begin(self, gang: IncompleteGang, member: BoundMember) -> asyncio.Task[None]:
        """Starts the eviction of a member. The member is not chosen again for `AGAIN` seconds, however long it waits
        for a slot."""
        self._not_before[member.uid] = self._clock.now() + AGAIN
        task = asyncio.get_running_loop().create_task(self._evict_in_slot(gang, member))
        self._evictions[task] = member.pod.metadata.namespace
        task.add_done_callback(self._evictions.pop)
        return task

    async def _evict_in_slot(self, gang: IncompleteGang, member: BoundMember) -> None:
        slot = await self._slots.acquire(member.pod.metadata.namespace)
        try:
            if (gang.key, gang.noticed) in self._late:  # the gang may be complete by now
                await self._evict(gang, member)
        finally:
            self._slots.release(slot)

    def _chosen(self, late: list[IncompleteGang]) -> list[tuple[IncompleteGang, BoundMember]]:
        """Returns the members to evict in this step."""
        gangs: dict[str, list[Iterator[tuple[IncompleteGang, BoundMember]]]] = {}
        hanging = set(self._evictions.values())
        for gang in late:
            namespace = gang.bound[0].pod.metadata.namespace
            if namespace not in hanging:
                gangs.setdefault(namespace, []).append(self._evictable(gang))
        order = sorted(gangs)
        begin = bisect_right(order, self._last_namespace)  # begin after the namespace that was last in the last step
        chosen = list(
            islice(_round_robin([_round_robin(gangs[each]) for each in order[begin:] + order[:begin]]), A_STEP)
        )
        if chosen:
            self._last_namespace = chosen[-1][1].pod.metadata.namespace
        return chosen

    def _evictable(self, gang: IncompleteGang) -> Iterator[tuple[IncompleteGang, BoundMember]]:
        now = self._clock.now()
        for member in gang.bound:
            if not gang.keeps(member) and self._not_before.get(member.uid, 0.0) <= now:
                yield gang, member

    def _is_late(self, gang: IncompleteGang) -> bool:
        patience = self._deadline(gang.bound[0]) if gang.patience is None else float(gang.patience)
        return gang.overdue_at(patience, HOLD_SECONDS) <= self._clock.now()

    async def _evict(self, gang: IncompleteGang, member: BoundMember) -> None:
        pod, profile = member.pod, member.pod.spec.scheduler_name
        if not member.has_controller:
            self._not_before[member.uid] = float("inf")  # reported once
            self._recorder.record(events.gang_stuck(pod, gang.title, gang.minimum), profile)
            log.error("A gang is stuck: no controller would make its pods again", gang=gang.title, pod=pod)
            return
        meta = pod.metadata
        self._not_before[member.uid] = self._clock.now() + AGAIN
        self._replacement_holds.release(gang.key, member.uid)
        try:
            await self._api.send(evict(meta.namespace, meta.name, meta.uid), timeout=SEND)
        except Exception as problem:  # all errors: none may keep other gangs from being released
            log.error("Cannot release a member of an incomplete gang yet", problem, gang=gang.title, pod=pod)  # noqa: PLE1205 - our own log
        else:
            self._recorder.record(events.gang_released(pod, gang.title, gang.minimum), profile)


def _round_robin(iterators: list[Iterator[T]]) -> Iterator[T]:
    """Yields one item of each iterator, then the next of each, until all are exhausted."""
    left = iterators
    while left:
        still = []
        for each in left:
            for found in islice(each, 1):
                yield found
                still.append(each)
        left = still
