"""Answers without end: lines as they come, a bound on what is held, and an end that is always noticed."""

import asyncio

import pytest

from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.http_response import ResponseLimits
from tests.async_helpers import wait_until, yield_to_loop
from tests.client.cluster import STREAM
from tests.client.server import Talk, a_client, answering, both_loops, calling, chunk, http, run, status


@both_loops
def test_lines_however_they_are_cut(run) -> None:
    async def main() -> None:
        async def handler(talk: Talk) -> None:
            await talk.request()
            data = STREAM + chunk(b"one\ntw") + chunk(b"o\n") + chunk(b"three\n") + b"0\r\n\r\n"
            for byte in data:
                talk.writer.write(bytes([byte]))
                await talk.writer.drain()
                await asyncio.sleep(0)

        async with calling(handler) as (client, _):
            stream = await client.stream("/x")
            lines: list[bytes] = []
            while batch := await stream.batch():
                lines += batch
            assert lines == [b"one", b"two", b"three"]
            assert stream.ended
            assert await stream.batch() == []

    run(main())


def test_a_refusal_is_an_error_and_not_a_stream() -> None:
    async def main() -> None:
        async with calling(answering(http(status(403, "Forbidden", "no"), "403 X"), then=None)) as (client, _):
            with pytest.raises(ApiError, match="no"):
                await client.stream("/x")

    run(main())


def test_a_stream_that_does_not_begin_is_given_up() -> None:
    async def main() -> None:
        async def silent(talk: Talk) -> None:
            await talk.gone()

        async with calling(silent) as (client, _):
            with pytest.raises(Uncertain, match="no answer within"):
                await client.stream("/x", timeout=0.1)

    run(main())


def test_what_has_come_is_handed_over_before_the_break_is_told() -> None:
    async def main() -> None:
        async def handler(talk: Talk) -> None:
            await talk.request()
            await talk.say(STREAM + chunk(b"one\n") + chunk(b"half"))
            await yield_to_loop()
            talk.reset()

        async with calling(handler) as (client, _):
            stream = await client.stream("/x")
            await wait_until(lambda: stream.ended)
            assert await stream.batch() == [b"one"]
            with pytest.raises(Uncertain):
                await stream.batch()

    run(main())


@both_loops
def test_a_reader_that_is_slow_makes_the_server_wait(run) -> None:
    sent = 0

    async def flood(talk: Talk) -> None:
        nonlocal sent
        await talk.request()
        await talk.say(STREAM)
        line = chunk(b"x" * 999_999 + b"\n")
        for _ in range(40):
            await talk.say(line)
            sent += 1
        await talk.say(b"0\r\n\r\n")

    async def main() -> None:
        async with calling(flood) as (client, _):
            stream = await client.stream("/x")
            await wait_until(lambda: stream.lines.size)
            before = -1
            while before < sent:  # until the server has come to a halt
                before = sent
                await yield_to_loop(200)
            assert stream.lines.size < 8_000_000
            assert sent < 40
            count = 0
            while batch := await stream.batch():
                count += len(batch)
            assert count == 40

    run(main())


def test_a_line_beyond_the_limit_ends_the_stream_with_the_reason() -> None:
    async def main() -> None:
        async def handler(talk: Talk) -> None:
            await talk.request()
            await talk.say(STREAM + chunk(b"x" * 3000))
            await talk.gone()

        async with calling(handler, limits=ResponseLimits(line=2000)) as (client, _):
            with pytest.raises(Uncertain, match="a line of the stream is longer than 2000 bytes"):
                await (await client.stream("/x")).batch()

    run(main())


def test_closing_lets_go_who_waits_and_hangs_up() -> None:
    async def main() -> None:
        hung_up = asyncio.Event()

        async def handler(talk: Talk) -> None:
            await talk.request()
            await talk.say(STREAM)
            await talk.gone()
            hung_up.set()

        async with calling(handler) as (client, _):
            stream = await client.stream("/x")
            waiting = asyncio.ensure_future(stream.batch())
            await yield_to_loop()
            await client.close()
            assert await waiting == []
            await hung_up.wait()
            stream.close()

    run(main())


def test_streams_do_not_take_the_connections_of_calls() -> None:
    async def main() -> None:
        async def handler(talk: Talk) -> None:
            while request := await talk.request():
                if request.path == "/watch":
                    await talk.say(STREAM)
                    await talk.gone()
                    return
                await talk.say(http())

        async with calling(handler, connections=1) as (client, served):
            streams = [await client.stream("/watch") for _ in range(5)]
            assert await client.send(Call("GET", "/x")) == b"{}"
            assert len(served.talks) == 6
            for stream in streams:
                stream.close()

    run(main())


def test_a_stream_from_nobody_is_unreachable() -> None:
    async def main() -> None:
        with pytest.raises(Unreachable, match="connection refused"):
            await a_client(1).stream("/x")

    run(main())
