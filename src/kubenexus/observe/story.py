"""One thing that happened, perhaps again and again, and how much of that the API server has been told."""

from kubenexus.base.clock import Clock
from kubenexus.base.moments import micros_text
from kubenexus.client.calls import Api, ApiError
from kubenexus.observe.events import Happening, Series, Source, create_call, name_of, repeat_call


class Story:
    """`told` is the count that the server knows, 0 before the first. The recorder sets `waiting`, so that a story
    is in the hands of one writer at most, and `tries`, how often it was sent in vain since it waits."""

    __slots__ = ("count", "first", "last", "name", "source", "told", "told_at", "tries", "waiting", "what")

    def __init__(self, what: Happening, source: Source, now: float, nanoseconds: int) -> None:
        self.what = what
        self.source = source
        self.name = name_of(what.regarding.name, nanoseconds)
        self.first = self.last = now
        self.count = 1
        self.told = 0
        self.tries = 0
        self.told_at = now
        self.waiting = False

    @property
    def untold(self) -> bool:
        """Worth telling at once: that it happened, and that it happened again. How often can wait."""
        return self.told < min(self.count, 2)

    def again(self, now: float) -> None:
        self.count += 1
        self.last = now

    async def tell(self, api: Api, clock: Clock, timeout: float) -> None:
        """Raises what the API raises, unless that means that it was told already."""
        count, series = self.count, self._series()
        if not (self.told and series and await self._repeat(api, series, timeout)):
            count = await self._create(api, series, count, timeout)
        self.told, self.told_at = count, clock.now()

    async def _repeat(self, api: Api, series: Series, timeout: float) -> bool:
        try:
            await api.send(repeat_call(self.what, self.name, series), timeout=timeout)
        except ApiError as error:
            if error.code != 404:
                raise
            return False  # somebody deleted the event, or it was too old
        return True

    async def _create(self, api: Api, series: Series | None, count: int, timeout: float) -> int:
        try:
            await api.send(create_call(self.what, self.source, self.name, self.first, series), timeout=timeout)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return 1  # an earlier try went through and only its answer was lost
        return count

    def _series(self) -> Series | None:
        return Series(count=self.count, last_observed_time=micros_text(self.last)) if self.count > 1 else None
