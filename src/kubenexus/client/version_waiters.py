"""`VersionWaiters`: callers that wait until a reflector has delivered all events up to a version of the server."""

import asyncio
from typing import NamedTuple

from kubenexus.client.watch_events import version_at_least


class _Waiter(NamedTuple):
    version: str  # "": only a list helps
    lists: int  # how many lists had begun when the caller began to wait
    done: asyncio.Future[None]


class VersionWaiters:
    """The callers that wait, each for a version or for a list that begins after its call."""

    def __init__(self) -> None:
        self._waiters: list[_Waiter] = []

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, version: str, lists: int) -> asyncio.Future[None]:
        """Returns a future that is done when the version is reached, or list number `lists` + 1 is complete."""
        waiter = _Waiter(version, lists, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        return waiter.done

    def reached(self, version: str, lists: int = 0) -> None:
        """Wakes callers. Called with the version that is reached now, and with the number of a list that is
        complete."""
        for each in self._waiters:
            if not each.done.done() and (lists > each.lists or version_at_least(version, each.version)):
                each.done.set_result(None)
        self._waiters = [each for each in self._waiters if not each.done.done()]
