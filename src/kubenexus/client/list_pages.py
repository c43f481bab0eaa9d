"""`ListPages`: lists in pages of a size that fits, and each page in portions that one turn of the loop can handle."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any, Final, TypeVar

from kubenexus.api.codec import ListPage, Page, split_list
from kubenexus.client.calls import Api, ApiError, Uncertain
from kubenexus.client.kinds import ApiResource
from kubenexus.client.verbs import list_call
from kubenexus.client.watch_protocols import WatchTarget, WatchTiming

PAGE_BYTES: Final = 1 << 24  # of a page after large ones; 500 ordinary pods are two megabytes
T = TypeVar("T")


class ListPages:
    """The pages of one kind."""

    def __init__(self, client: Api, target: WatchTarget, timing: WatchTiming) -> None:
        self._client, self._kind, self._fields, self._timing = client, target.type, target.fields, timing
        self._size = timing.page  # objects on the next page
        self._most = timing.page  # so many arrive in time and can be read
        self._fit = timing.page  # so many make PAGE_BYTES, if they are as large as those on the last page
        self._whole = False  # without pages: the continuation expired before the last page

    async def turn(self, resource: ApiResource) -> AsyncGenerator[ListPage[Any], None]:
        """Yields the portions of one page after the other, and returns to the event loop between them. The server
        prepares the next page while the caller handles this one."""
        page = await self._page(resource, "")
        while True:
            coming = asyncio.create_task(self._page(resource, page.more)) if page.more else None
            try:
                if coming is not None:
                    await asyncio.sleep(0)  # so that the call is sent
                for number, portion in enumerate(page.portions):
                    if number:
                        await asyncio.sleep(0)
                    yield portion
                if coming is None:
                    return
                page = await coming
            finally:
                if coming is not None:
                    coming.cancel()

    async def _page(self, resource: ApiResource, more: str) -> Page[Any]:
        """Returns the next page. After a page that is too long or too slow, pages are smaller: objects may have several
        megabytes, and 500 of them make an answer beyond all limits."""
        call = list_call(resource, limit=0 if self._whole else self._size, more=more, fields=self._fields)
        try:
            raw = await self._client.send(call, timeout=self._timing.list_page)
        except ApiError as error:
            self._whole = self._whole or (error.code == 410 and bool(more))
            raise
        except Uncertain:
            self._size = self._most = max(self._size // 4, 1)
            self._whole = False
            raise
        page = await _in_turns(split_list(raw, self._kind))
        self._fit = max(PAGE_BYTES * max(page.count, 1) // len(raw), 1)
        self._resize()
        return page

    def complete(self) -> None:
        """Ends a list that is complete. The next may have pages again, and larger ones."""
        self._most = min(2 * self._most, self._timing.page)
        self._resize()
        self._whole = False

    def _resize(self) -> None:
        """Makes pages smaller at once, larger step by step: large objects may follow small ones."""
        self._size = min(2 * self._size, self._fit, self._most)


async def _in_turns(steps: Generator[None, None, T]) -> T:
    """Runs the steps with a return to the event loop between them, and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        await asyncio.sleep(0)
