"""The first bind only after the cache has seen everything up to that moment: how a reflector knows."""

import asyncio
from typing import Any

import pytest

from kubenexus.api.codec import Page
from kubenexus.api.core import Pod
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_protocols import WatchTarget
from tests.async_helpers import wait_until, yield_to_loop
from tests.client.cluster import bookmark, event, following, page, pod, says
from tests.client.server import Talk, chunk, http, run, status


def test_at_the_moment_already() -> None:
    async def main() -> None:
        async with following([page(version=10)], []) as it:
            await it.until(lambda: it.reflector.watching)
            await it.reflector.wait_until_current()
            assert it.asked[-1] == {"limit": "1"}
            assert it.told.log.count("begin") == 1

    run(main())


@pytest.mark.parametrize(
    "last", [pytest.param(event("ADDED", pod("late", 42)), id="an event"), pytest.param(bookmark(42), id="a bookmark")]
)
def test_f16_a_delayed_watch_is_waited_for(last: bytes) -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def delayed(talk: Talk) -> None:
            await talk.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await go.wait()
            await talk.say(chunk(last))
            await talk.gone()

        async with following([page(version=10), page(version=42)], [delayed]) as it:
            await it.until(lambda: it.reflector.watching)
            fence = asyncio.ensure_future(it.reflector.wait_until_current(patience=5.0))
            await wait_until(lambda: len(it.reflector._waiters))
            await yield_to_loop()
            assert not fence.done(), "the bind of another leader has not been seen yet"
            go.set()
            await fence
            assert it.reflector.version == "42"
            assert it.told.log.count("begin") == 1

    run(main())


def test_f16_a_watch_that_stays_behind_is_replaced_by_a_list() -> None:
    async def main() -> None:
        lists = [page(version=10), page(version=42), page(pod("bound", 41, nodeName="n"), version=43)]
        async with following(lists, [says()]) as it:
            await it.until(lambda: it.reflector.watching)
            await it.reflector.wait_until_current(patience=0.005)
            assert it.told.held["bound"].spec.node_name == "n"
            assert it.reflector.restarts == 0, "wanted, not failed"

    run(main())


def test_f16_a_list_begun_earlier_is_not_enough() -> None:
    async def main() -> None:
        go = asyncio.Event()
        async with following([page(version=10)], []) as it:
            await it.until(lambda: it.reflector.watching)
            list_pages = it.reflector._list_pages
            real = list_pages._page

            async def slow(resource: ApiResource, more: str) -> Page[Any]:
                found = await real(resource, more)
                await go.wait()
                return found

            list_pages._page = slow  # type: ignore[method-assign]
            it.reflector.relist()
            await it.until(lambda: not it.reflector.version)
            lists = it.reflector._wanted
            fence = asyncio.ensure_future(it.reflector.wait_until_current(patience=0.001))
            await wait_until(lambda: it.reflector._wanted > lists)
            await yield_to_loop()
            assert not fence.done()
            go.set()
            await fence

    run(main())


def test_a_list_that_is_wanted_does_not_wait_for_the_end_of_a_pause() -> None:
    async def main() -> None:
        async def forever(seconds: float) -> None:
            await asyncio.Event().wait()

        refused = http(status(403, "Forbidden", "no"), "403 X")
        async with following([refused, page(pod("a", 1))], [], sleep=forever) as it:
            await it.until(lambda: it.told.troubles)
            await yield_to_loop()
            it.reflector.relist()
            await it.until(lambda: it.reflector.synced)

    run(main())


def test_of_a_kind_that_is_not_served_there_is_nothing_to_see() -> None:
    async def main() -> None:
        missing = http(b"404 page not found\n", "404 Not Found")
        async with following([missing], [], target=WatchTarget(kinds.POD_GROUPS, Pod)) as it:
            await it.reflector.wait_until_current()

    run(main())


def test_a_server_that_will_not_say_is_an_error_for_who_asked() -> None:
    async def main() -> None:
        async with following([page(), http(status(403, "Forbidden", "no"), "403 X")], []) as it:
            await it.until(lambda: it.reflector.watching)
            with pytest.raises(ApiError, match="no"):
                await it.reflector.wait_until_current()

    run(main())
