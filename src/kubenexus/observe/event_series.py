"""An event and its repetitions, and how many of them the API server has received."""

from kubenexus.base.clock import Clock
from kubenexus.base.timestamps import format_micro_time
from kubenexus.client.calls import Api, ApiError
from kubenexus.observe.events import EventRecord, EventSource, Series, create_call, event_name, repeat_call


class EventSeries:
    """An event with its count. `sent_count` is the count that the server has, 0 before the first call.

    The recorder sets `waiting`, so that at most one writer sends a series at a time. It also sets `tries`: how many
    calls failed since the series was queued.
    """

    __slots__ = ("count", "first", "last", "name", "sent_count", "source", "told_at", "tries", "waiting", "what")

    def __init__(self, what: EventRecord, source: EventSource, now: float, nanoseconds: int) -> None:
        self.what = what
        self.source = source
        self.name = event_name(what.regarding.name, nanoseconds)
        self.first = self.last = now
        self.count = 1
        self.sent_count = 0
        self.tries = 0
        self.told_at = now
        self.waiting = False

    @property
    def needs_sending(self) -> bool:
        """Whether to send without delay: the first occurrence and the first repetition. Later counts can be late."""
        return self.sent_count < min(self.count, 2)

    def repeat(self, now: float) -> None:
        self.count += 1
        self.last = now

    async def send(self, api: Api, clock: Clock, timeout: float) -> None:
        """Sends the event, or its count if the server has the event. Raises what the API raises, except if the event
        exists."""
        count, series = self.count, self._series()
        if not (self.sent_count and series and await self._repeat(api, series, timeout)):
            count = await self._create(api, series, count, timeout)
        self.sent_count, self.told_at = count, clock.now()

    async def _repeat(self, api: Api, series: Series, timeout: float) -> bool:
        try:
            await api.send(repeat_call(self.what, self.name, series), timeout=timeout)
        except ApiError as error:
            if error.code != 404:
                raise
            return False  # the event was deleted, or it expired
        return True

    async def _create(self, api: Api, series: Series | None, count: int, timeout: float) -> int:
        try:
            await api.send(create_call(self.what, self.source, self.name, self.first, series), timeout=timeout)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return 1  # an earlier call succeeded and only its answer was lost
        return count

    def _series(self) -> Series | None:
        return Series(count=self.count, last_observed_time=format_micro_time(self.last)) if self.count > 1 else None
