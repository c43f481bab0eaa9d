"""Lists, page by page: how many objects are asked for at once."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from kubenexus.api.codec import Listing, decode_list
from kubenexus.client.calls import Api, ApiError, Uncertain
from kubenexus.client.kinds import Resource
from kubenexus.client.topics import Timing, Topic
from kubenexus.client.verbs import listing

PAGE_BYTES: Final = 1 << 25  # of a page that is asked for after large ones; 500 ordinary pods are a few megabytes


class Pages:
    """The pages of one kind. `usual`: bytes of an object on the last page."""

    def __init__(self, client: Api, topic: Topic, timing: Timing) -> None:
        self._client, self._kind, self._fields, self._timing = client, topic.type, topic.fields, timing
        self._size = timing.page  # objects on the next page
        self._whole = False  # without pages: the pages grew too old while we turned them
        self.usual = 0

    async def turn(self, resource: Resource) -> AsyncGenerator[Listing[Any], None]:
        """One page after the other; the server looks for the next while the receiver is told of this one."""
        page = await self._page(resource, "")
        while page.more:
            coming = asyncio.create_task(self._page(resource, page.more))
            try:
                await asyncio.sleep(0)  # so that it is on its way
                yield page
                page = await coming
            finally:
                coming.cancel()
        yield page

    async def _page(self, resource: Resource, more: str) -> Listing[Any]:
        """The next page. A page that is too long or too slow to arrive is followed by smaller ones: objects may be of
        several megabytes, and 500 of them no answer that can be read."""
        call = listing(resource, limit=0 if self._whole else self._size, more=more, fields=self._fields)
        try:
            raw = await self._client.send(call, timeout=self._timing.list_page)
        except ApiError as error:
            self._whole = self._whole or (error.code == 410 and bool(more))
            raise
        except Uncertain:
            self._size, self._whole = max(self._size // 4, 1), False
            raise
        page = decode_list(raw, self._kind)
        self.usual = len(raw) // max(len(page.items), 1)
        self._size = min(self._size, max(PAGE_BYTES // max(self.usual, 1), 1))
        return page

    def complete(self) -> None:
        """The list came to its end. The next may have pages again, and larger ones."""
        self._size = min(2 * self._size, self._timing.page)
        self._whole = False
