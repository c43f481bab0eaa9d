"""`EventRecorder`: sends events to the API server, at the lowest priority and without delaying binds.

An event that occurs again within six minutes becomes a series, as with kube-scheduler's recorder. The second occurrence
is sent at once, and later ones are only counted. The count is sent when the series is over, and every half hour, since
the API server deletes events after an hour.

Namespaces take turns, and a namespace whose events hang has two writers at most (`client.fair_queue`). An event that
could not be sent rests before its next try, and delays no other event meanwhile.

The queue is bounded, and so is the number of remembered series. When the queue is full, the oldest event of the
namespace that has the most is dropped and counted in `dropped`.
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

WaitForQuiet = Callable[[], Awaitable[None]]
UNREACHABLE = "unreachable"


class RecorderLimits(msgspec.Struct, frozen=True, gc=False):
    """Limits as seconds and numbers. `window`, `refresh`, `tries` and `pause` are kube-scheduler's."""

    waiting: int = 16384  # binds go first: a drain of ten thousand pods must not lose events
    remembered: int = 4096
    window: float = 360.0
    refresh: float = 1800.0
    tries: int = 12
    pause: float = 10.0
    timeout: float = 5.0  # of one call: no longer than a write may take (`app.election.leader`)
    look: float = 60.0
    writers: int = 4
    slow: int = 2  # of the writers, for namespaces whose events hang


class EventRecorder:
    """Queues events and sends them. The scheduling loop calls `record`, which costs a dictionary lookup; `run` is a
    task of its own.

    `stalled` is called with a namespace whose events do not go through, and the number of its waiting events.
    """

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
        self.dropped: Counter[str] = Counter()  # by reason: full, rejected, unreachable, broken
        self._clock = clock
        self._host = host
        self._rng = rng
        self._sleep = sleep
        self._known: OrderedDict[tuple[str, ...], EventSeries] = OrderedDict()  # in the order of their last occurrence
        self._work = asyncio.Event()  # the queue may have something to send
        self._queue = FairQueue[EventSeries](
            self.limits.writers, slow=self.limits.slow, changed=self._wake, stalled=stalled
        )
        self._sources: dict[str, EventSource] = {}
        self._nanoseconds = 0

    @property
    def waiting(self) -> int:
        """The number of events that have yet to be sent."""
        return len(self._queue)

    @property
    def remembered(self) -> int:
        return len(self._known)

    # --- called by the loop ---------------------------------------------------------------------------------------

    def record(self, what: EventRecord, controller: str) -> None:
        """Queues an event, or counts it in its series. Neither blocks nor raises. `controller` is the name of the pod's
        scheduler."""
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
        """Ends series that are over, and queues series again before the API server deletes them. Called by `run`."""
        now = self._clock.now()
        for key, series in list(self._known.items()):
            over = series.last + self.limits.window < now
            old = series.count > 1 and series.told_at + self.limits.refresh <= now
            if over:
                del self._known[key]
            if series.sent_count and (old or (over and series.count > series.sent_count)):
                self._enqueue(series)

    # --- sending --------------------------------------------------------------------------------------------------

    async def run(self, api: Api, wait_for_quiet: WaitForQuiet) -> None:
        """Sends queued events until cancelled. `wait_for_quiet` returns when no bind waits to be sent."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_after())
            self._work = asyncio.Event()  # of this event loop
            while True:
                self._work.clear()
                if self._queue.waiting:
                    await wait_for_quiet()
                while (call := self._queue.next()) is not None:
                    tasks.create_task(self._try_to_send(call, api, self.limits.tries))
                await self._work.wait()

    async def drain(self, api: Api) -> None:
        """Sends all queued events now, with one try each. Called at the end of the process; the caller limits the
        time."""
        self._queue.put_first()
        self._work = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            while self._queue.waiting or self._queue.in_flight:
                self._work.clear()
                while (call := self._queue.next()) is not None:
                    tasks.create_task(self._try_to_send(call, api, 1))
                await self._work.wait()

    def _wake(self) -> None:
        self._work.set()

    async def _look_after(self) -> None:
        while True:
            await self._sleep(self.limits.look)
            self.tick()

    async def _try_to_send(self, call: CallInFlight[EventSeries], api: Api, tries: int) -> None:
        """Tries once to send. The series is then sent, rests before the next try, or is given up. Raises nothing but
        CancelledError."""
        series = call.item
        series.tries += 1
        try:
            timeout = self.limits.timeout  # all of it for the last try
            problem = await self._sent(series, api, call.timeout(timeout) if series.tries < tries else timeout)
        except asyncio.CancelledError:  # at the end of the process: `drain` is to send it once more
            self._queue.put(call.namespace, series, series)
            self._queue.done(call, through=False, sent=False)
            raise
        if problem == UNREACHABLE and series.tries < tries:
            self._queue.postpone(call, self.limits.pause * (1 + 0.25 * self._rng.random()), sent=False)
            return
        self._queue.done(call, through=not problem, sent=problem not in (UNREACHABLE, "broken"))
        series.tries = 0
        if problem:
            self._give_up(series, problem)
        else:
            self._on_sent(series)

    async def _sent(self, series: EventSeries, api: Api, timeout: float) -> str:
        """Sends the series. Returns why that failed, or "" if it did not."""
        try:
            await series.send(api, self._clock, timeout)
        except (Unreachable, Uncertain):
            return UNREACHABLE
        except ApiError as error:
            # Other codes are final: the namespace is being deleted, or the server rejects the event.
            return UNREACHABLE if error.code == 429 or error.code >= 500 else "rejected"
        except Exception:  # a failure to send an event must not end the task
            return "broken"
        return ""

    def _on_sent(self, series: EventSeries) -> None:
        series.waiting = False
        if series.needs_sending:
            self._enqueue(series)
        elif series.what.reason == SCHEDULED:  # happens once per pod, so it needs no series
            self._forget(series)

    def _give_up(self, series: EventSeries, why: str) -> None:
        series.waiting = False
        self.dropped[why] += 1
        self._forget(series)

    # --- series and queue -----------------------------------------------------------------------------------------

    def _enqueue(self, series: EventSeries) -> None:
        if series.waiting:
            return
        series.waiting = True
        self._queue.put(series.what.regarding.namespace, series, series)
        if len(self._queue) > self.limits.waiting:
            oldest = self._queue.drop()  # the oldest event is of the least use
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
        """Returns the number in an event's name. It always grows, so that two events of a pod at the same time have
        different names."""
        self._nanoseconds = max(int(now * 1e9), self._nanoseconds + 1)
        return self._nanoseconds
