"""Who sends events: at the lowest priority, without ever delaying a bind, and without saying the same thing twice.

The same thing happening again within six minutes is no new event but a series, as with kube-scheduler's recorder: the
second time is told at once, further ones are only counted, and the count is told when the series is over or half an
hour old (the API server forgets events after an hour).

Namespaces take turns, and one whose events hang has two writers at most (`client.fair_queue`). An event that could not
be sent rests before its next try, and holds up no other meanwhile.

What waits is bounded and so is what is remembered: an event that has to give way, of the namespace that has the most of
them, is counted in `dropped`.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from random import Random

import msgspec

from kubenexus.base.clock import Clock, Sleep
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.fair_queue import CallInFlight, FairQueue
from kubenexus.observe.event_series import EventSeries
from kubenexus.observe.events import SCHEDULED, EventRecord, EventSource

Room = Callable[[], Awaitable[None]]
UNREACHABLE = "unreachable"


class RecorderLimits(msgspec.Struct, frozen=True, gc=False):
    """In seconds and pieces. `window`, `refresh`, `tries` and `pause` are kube-scheduler's."""

    waiting: int = 16384  # events yield to binds: a drain of ten thousand pods must not lose any
    remembered: int = 4096
    window: float = 360.0
    refresh: float = 1800.0
    tries: int = 12
    pause: float = 10.0
    timeout: float = 5.0  # of one call: no longer than a write may take (the fence in `app.election.leader`)
    look: float = 60.0
    writers: int = 4
    slow: int = 2  # of these, for namespaces whose events hang


class EventRecorder:
    """`record` is called by the loop and costs a dictionary lookup; `run` is one task beside it. `stalled` hears of
    namespaces whose events do not go through, with how many wait."""

    def __init__(
        self,
        clock: Clock,
        host: str,
        rng: Random,
        *,
        limits: RecorderLimits | None = None,
        sleep: Sleep = asyncio.sleep,
        stalled: Callable[[str, int], None] = lambda namespace, count: None,
    ) -> None:
        self.limits = limits or RecorderLimits()
        self.dropped: Counter[str] = Counter()  # by why: full, rejected, unreachable, broken
        self._clock = clock
        self._host = host
        self._rng = rng
        self._sleep = sleep
        self._known: OrderedDict[tuple[str, ...], EventSeries] = OrderedDict()  # the one seen last is the last
        self._queue = FairQueue[EventSeries](self.limits.writers, slow=self.limits.slow, stalled=stalled)
        self._sources: dict[str, EventSource] = {}
        self._nanoseconds = 0

    @property
    def waiting(self) -> int:
        """How many events have yet to be sent."""
        return len(self._queue)

    @property
    def remembered(self) -> int:
        return len(self._known)

    # --- what the loop calls --------------------------------------------------------------------------------------

    def record(self, what: EventRecord, controller: str) -> None:
        """This happened. Never waits and never raises; `controller` is the name of the pod's scheduler."""
        now, key = self._clock.now(), (controller, *what.key)
        series = self._known.get(key)
        if series is None or series.last + self.limits.window < now:
            self._known[key] = series = EventSeries(what, self._source(controller), now, self._unique(now))
        else:
            series.repeat(now)
        self._known.move_to_end(key)
        if series.needs_sending:
            self._enqueue(series)
        if len(self._known) > self.limits.remembered:
            self._known.popitem(last=False)

    def tick(self) -> None:
        """End series that are over, and tell those again that the API server would forget. `run` calls it."""
        now = self._clock.now()
        for key, series in list(self._known.items()):
            over = series.last + self.limits.window < now
            old = series.count > 1 and series.told_at + self.limits.refresh <= now
            if over:
                del self._known[key]
            if series.sent_count and (old or (over and series.count > series.sent_count)):
                self._enqueue(series)

    # --- what runs beside it --------------------------------------------------------------------------------------

    async def run(self, api: Api, room: Room) -> None:
        """Until cancelled. `room` returns when an event may be sent: when no bind is waiting for its turn."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_after())
            work = self._woken()
            while True:
                work.clear()
                if self._queue.waiting:
                    await room()
                while (call := self._queue.next()) is not None:
                    tasks.create_task(self._tell(call, api, self.limits.tries))
                await work.wait()

    async def drain(self, api: Api) -> None:
        """What waits is sent now, each event with one try. For the end of the process; the caller bounds the time."""
        self._queue.put_first()
        work = self._woken()
        async with asyncio.TaskGroup() as tasks:
            while self._queue.waiting or self._queue.in_flight:
                work.clear()
                while (call := self._queue.next()) is not None:
                    tasks.create_task(self._tell(call, api, 1))
                await work.wait()

    def _woken(self) -> asyncio.Event:
        """Set when there may be something to send."""
        work = asyncio.Event()
        self._queue.changed = work.set
        return work

    async def _look_after(self) -> None:
        while True:
            await self._sleep(self.limits.look)
            self.tick()

    async def _tell(self, call: CallInFlight[EventSeries], api: Api, tries: int) -> None:
        """Once: it is told, or rests, or there is no point. Whatever happens stays here."""
        series = call.item
        series.tries += 1
        try:
            problem = await self._sent(series, api)
        except asyncio.CancelledError:  # at the end of the process: `drain` is to send it once more
            self._queue.put(call.namespace, series, series)
            self._queue.done(call, through=False)
            raise
        if problem == UNREACHABLE and series.tries < tries:
            self._queue.postpone(call, self.limits.pause * (1 + 0.25 * self._rng.random()))
            return
        self._queue.done(call, through=not problem)
        series.tries = 0
        if problem:
            self._give_up(series, problem)
        else:
            self._told(series)

    async def _sent(self, series: EventSeries, api: Api) -> str:
        """Why it was not told, "" if it was."""
        try:
            await series.send(api, self._clock, self.limits.timeout)
        except (Unreachable, Uncertain):
            return UNREACHABLE
        except ApiError as error:
            # Else a namespace that is going away, an event the server does not like.
            return UNREACHABLE if error.code == 429 or error.code >= 500 else "rejected"
        except Exception:  # an event is never worth the loop
            return "broken"
        return ""

    def _told(self, series: EventSeries) -> None:
        series.waiting = False
        if series.needs_sending:
            self._enqueue(series)
        elif series.what.reason == SCHEDULED:  # happens once; no need to remember it
            self._forget(series)

    def _give_up(self, series: EventSeries, why: str) -> None:
        series.waiting = False
        self.dropped[why] += 1
        self._forget(series)

    # --- how it is kept -------------------------------------------------------------------------------------------

    def _enqueue(self, series: EventSeries) -> None:
        if series.waiting:
            return
        series.waiting = True
        self._queue.put(series.what.regarding.namespace, series, series)
        if len(self._queue) > self.limits.waiting:
            oldest = self._queue.drop()  # the oldest news is the least news
            if oldest is not None:
                self._give_up(oldest, "full")

    def _forget(self, series: EventSeries) -> None:
        key = (series.source.controller, *series.what.key)
        if self._known.get(key) is series:
            del self._known[key]

    def _source(self, controller: str) -> EventSource:
        if controller not in self._sources:
            self._sources[controller] = EventSource.on(self._host, controller)
        return self._sources[controller]

    def _unique(self, now: float) -> int:
        """Part of an event's name. Two events of a pod in the same instant are still two."""
        self._nanoseconds = max(int(now * 1e9), self._nanoseconds + 1)
        return self._nanoseconds
