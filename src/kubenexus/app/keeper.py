"""The keeper of gangs: one that stays incomplete after its first bind is released, so that it does not hold for ever
what it cannot use.

A bind cannot be undone. Of a gang that never was complete all members go, running or not: they wait for others that do
not come. One that was complete once, or of which no member waits for a node, keeps its running members and loses those
that have not started. Only members with
a controller are evicted, since it makes them again; then the gang is whole again, waiting. Bare pods are never deleted:
such a gang is stuck, and an event says so. Pods of other schedulers are not looked at.
"""

import asyncio
from collections.abc import Callable, Iterable

from kubenexus.app.holes import HELD, Holes
from kubenexus.base.clock import Clock
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.verbs import evict
from kubenexus.observe import events, logs
from kubenexus.observe.recorder import EventRecorder
from kubenexus.queue.standing import Bound, Incomplete

PERIOD = 5.0
AGAIN = 30.0  # seconds until a member that is still there is asked to go once more

log = logs.get("keeper")


class Keeper:
    """`incomplete` names the gangs that lack members now, with those that are ours; `deadline` is the usual patience
    with a pod's gang. `gave_up` hears of each gang whose time is over, once."""

    def __init__(
        self,
        api: Api,
        incomplete: Callable[[], Iterable[Incomplete]],
        deadline: Callable[[Bound], float],
        holes: Holes,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._api, self._incomplete, self._deadline = api, incomplete, deadline
        self._holes, self._recorder, self._clock = holes, recorder, clock
        self.gave_up: Callable[[Incomplete], None] = lambda gang: None
        self._late: set[tuple[str, float]] = set()  # gangs whose time is over, and since when they are incomplete
        self._asked: dict[str, float] = {}  # members by UID that were asked to go, or told that they are stuck

    async def run(self, woken: Callable[[], None]) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(PERIOD)
            await self.step()
            woken()

    async def step(self) -> None:
        self._holes.expire()
        late = [gang for gang in self._incomplete() if self._is_late(gang)]
        members = {each.uid for gang in late for each in gang.bound}
        self._asked = {uid: at for uid, at in self._asked.items() if uid in members}
        known, self._late = self._late, {(gang.key, gang.noticed) for gang in late}
        for gang in late:
            if (gang.key, gang.noticed) not in known:
                self.gave_up(gang)
            for member in gang.bound:
                if not gang.keeps(member) and self._asked.get(member.uid, 0.0) <= self._clock.now():
                    await self._release(gang, member)

    def _is_late(self, gang: Incomplete) -> bool:
        patience = self._deadline(gang.bound[0]) if gang.patience is None else float(gang.patience)
        return gang.overdue_at(patience, HELD) <= self._clock.now()

    async def _release(self, gang: Incomplete, member: Bound) -> None:
        pod, profile = member.pod, member.pod.spec.scheduler_name
        if not member.owned:
            self._asked[member.uid] = float("inf")  # told once
            self._recorder.record(events.gang_stuck(pod, gang.title, gang.minimum), profile)
            log.error("A gang is stuck: no controller would make its pods again", gang=gang.title, pod=pod)
            return
        self._asked[member.uid] = self._clock.now() + AGAIN
        meta = pod.metadata
        self._holes.release(gang.key, member.uid)
        try:
            await self._api.send(evict(meta.namespace, meta.name, meta.uid))
        except (ApiError, Uncertain, Unreachable) as problem:
            log.error("Cannot release a member of an incomplete gang yet", problem, gang=gang.title, pod=pod)  # noqa: PLE1205 - our own log
        else:
            self._recorder.record(events.gang_released(pod, gang.title, gang.minimum), profile)
