"""Calls and watches without sockets."""

import asyncio
import random
from typing import Any

import msgspec
import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import ApiError, Call
from kubenexus.sim.apiserver.server import ApiServer
from kubenexus.sim.virtual.in_process_client import InProcessClient
from kubenexus.sim.virtual.loop import run
from tests.sim.virtual.virtual_time import elapse

NAMESPACE = {"metadata": {"name": "a"}}


def source(latency: float = 0.0) -> InProcessClient:
    return InProcessClient(ApiServer(VirtualClock(), random.Random(1)), latency)


def types(lines: list[bytes]) -> list[str]:
    return [msgspec.json.decode(line)["type"] for line in lines]


def test_a_refusal_is_an_api_error() -> None:
    async def scenario() -> None:
        with pytest.raises(ApiError) as caught:
            await source().send(verbs.get(kinds.PODS, "default", "nobody"))
        assert (caught.value.code, caught.value.reason) == (404, "NotFound")
        with pytest.raises(ApiError, match="could not find the requested resource"):
            await source().stream("/api/v1/nothings?watch=1")

    run(scenario())


def test_a_call_returns_what_was_written_after_the_latency() -> None:
    async def scenario() -> tuple[Any, float]:
        body = await source(2.0).send(verbs.create(kinds.NAMESPACES, NAMESPACE))
        return msgspec.json.decode(body)["metadata"]["name"], asyncio.get_running_loop().time()

    assert run(scenario()) == ("a", 2.0)


def test_a_watch_tells_marks_every_minute_and_ends_in_time() -> None:
    async def scenario() -> None:
        api, loop = source(), asyncio.get_running_loop()
        stream = await api.stream(verbs.watch_path(kinds.NAMESPACES, "", seconds=150))
        assert types(await stream.batch()) == ["ADDED"] * 4
        loop.call_later(5, api.now, verbs.create(kinds.NAMESPACES, NAMESPACE))
        heard = [(types(await stream.batch()), loop.time()) for _ in range(4)]
        assert heard == [(["ADDED"], 5.0), (["BOOKMARK"], 60.0), (["BOOKMARK"], 120.0), ([], 150.0)]

    run(scenario())


def test_a_reader_gets_no_more_than_it_asks_for() -> None:
    async def scenario() -> None:
        stream = await source().stream(verbs.watch_path(kinds.NAMESPACES, "", seconds=60))
        assert [len(await stream.batch(3)) for _ in range(2)] == [3, 1]

    run(scenario())


def test_whoever_waits_is_woken_by_the_end() -> None:
    async def scenario() -> None:
        stream = await source().stream(verbs.watch_path(kinds.PODS, "", seconds=3600))
        asyncio.get_running_loop().call_later(1, stream.close)
        assert await stream.batch() == []
        stream.close()

    run(scenario())


def test_owned_objects_follow_their_owner() -> None:
    async def scenario() -> int:
        api = source()
        api.now(verbs.create(kinds.NAMESPACES, NAMESPACE))
        api.now(verbs.create(kinds.CONFIG_MAPS, {"metadata": {"name": "m"}}, "a"))
        api.now(Call("DELETE", kinds.NAMESPACES.at(name="a")))
        await elapse(0.001)
        return api.now(verbs.get(kinds.NAMESPACES, "", "a")).code

    assert run(scenario()) == 404
