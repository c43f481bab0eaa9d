"""One call: what comes back when the server answers, refuses, dawdles, stops half way or is not there."""

import asyncio
import contextlib

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.credentials import StaticCredentials
from kubenexus.client.http_response import ResponseLimits
from kubenexus.client.transport import USER_AGENT
from tests.async_helpers import yield_to_loop
from tests.client.server import Talk, a_client, answering, both_loops, calling, chunked, http, run, serving, status

GET = Call("GET", "/api/v1/nodes")
POST = Call("POST", "/api/v1/namespaces/a/pods/b/binding", b'{"a":1}')


@both_loops
def test_the_body_of_an_answer(run) -> None:
    async def main() -> None:
        async with calling(answering(http(b'{"x":1}'), chunked(b'{"y"', b":2}"))) as (client, served):
            assert await client.send(POST) == b'{"x":1}'
            assert await client.send(GET) == b'{"y":2}'
            assert len(served.talks) == 1
            posted, got = served.requests
            assert (posted.method, posted.path, posted.body) == ("POST", POST.path, POST.body)
            assert posted.fields["authorization"] == "Bearer secret"
            assert posted.fields["content-type"] == "application/json"
            assert posted.fields["user-agent"] == USER_AGENT
            assert USER_AGENT.startswith("kubenexus/0")
            assert "content-length" not in got.fields

    run(main())


@pytest.mark.parametrize(
    ("answer", "code", "reason", "text"),
    [
        pytest.param(http(status(409, "Conflict", "no"), "409 Conflict"), 409, "Conflict", "no", id="a Status"),
        pytest.param(http(b"<h1>Sorry</h1>", "503 X"), 503, "", "the server answered 503: <h1>Sorry</h1>", id="a page"),
        pytest.param(http(b"", "404 Not Found"), 404, "", "the server answered 404", id="nothing at all"),
        pytest.param(http(b"[1,", "400 X"), 400, "", "the server answered 400: [1,", id="half a JSON"),
        pytest.param(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", 302, "", "the server answered 302", id="moved"
        ),
    ],
)
def test_a_refusal_is_told_as_the_server_tells_it(answer: bytes, code: int, reason: str, text: str) -> None:
    async def main() -> None:
        async with calling(answering(answer)) as (client, _):
            with pytest.raises(ApiError) as caught:
                await client.send(POST)
            assert (caught.value.code, caught.value.reason, str(caught.value)) == (code, reason, text)

    run(main())


@pytest.mark.parametrize(
    ("call", "answer", "error"),
    [
        pytest.param(POST, http(b"bad gateway", "502 Bad Gateway"), Uncertain, id="a gateway lost a write"),
        pytest.param(POST, http(status(504, "Timeout"), "504 X"), Uncertain, id="a write timed out in the server"),
        pytest.param(
            POST,
            http(status(500, "InternalError", "etcdserver: request timed out"), "500 X"),
            Uncertain,
            id="a write timed out in the store",
        ),
        pytest.param(POST, http(status(500, "ServerTimeout", "timeout"), "500 X"), ApiError, id="it says: not done"),
        pytest.param(POST, http(status(500, "InternalError", "no"), "500 X"), ApiError, id="any other failure"),
        pytest.param(GET, http(status(504, "Timeout"), "504 X"), ApiError, id="a read has no consequences"),
    ],
)
def test_a_server_that_does_not_know_what_became_of_a_write(call: Call, answer: bytes, error: type) -> None:
    async def main() -> None:
        async with calling(answering(answer)) as (client, _):
            with pytest.raises(error):
                await client.send(call)

    run(main())


async def _greeted(talk: Talk) -> None:
    """A first call is answered, so that the next has a connection: its short time is then for the answer alone."""
    await talk.request()
    await talk.say(http())


@both_loops
def test_a_server_that_never_answers_leaves_a_write_uncertain_in_time(run) -> None:
    async def silent(talk: Talk) -> None:
        await _greeted(talk)
        await talk.request()
        await talk.gone()

    async def main() -> None:
        async with calling(silent) as (client, _):
            await client.send(GET)
            with pytest.raises(Uncertain, match=r"POST .*binding: no answer within 0.02 s"):
                await client.send(POST, timeout=0.02)

    run(main())


def test_an_answer_that_dribbles_in_is_not_waited_for_longer_than_its_time() -> None:
    async def dribble(talk: Talk) -> None:
        await _greeted(talk)
        await talk.request()
        await talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while not talk.writer.is_closing():
            await talk.say(b"x")
            await asyncio.sleep(0)

    async def main() -> None:
        async with calling(dribble) as (client, _):
            await client.send(GET)
            with pytest.raises(Uncertain, match="no answer within"):
                await client.send(GET, timeout=0.03)

    run(main())


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 2", id="half a status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="half a head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", id="half a body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12", id="half a chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", id="no last chunk"),
    ],
)
@pytest.mark.parametrize("how", ["close", "reset"])
@both_loops
def test_half_an_answer_is_no_answer(run, part: bytes, how: str) -> None:
    async def half(talk: Talk) -> None:
        await talk.request()
        await talk.say(part)
        if how == "reset":
            await yield_to_loop()
            talk.reset()

    async def main() -> None:
        async with calling(half) as (client, served):
            with pytest.raises(Uncertain):
                await client.send(POST)
            assert len(served.requests) == 1, "a write is never repeated"

    run(main())


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async def main() -> None:
        async with calling(_once(b"HTTP/1.1 200 OK\r\n\r\n{}")) as (client, served):
            assert await client.send(GET) == b"{}"
            assert await client.send(GET) == b"{}"
            assert len(served.talks) == 2

    run(main())


def _once(answer: bytes):
    async def handler(talk: Talk) -> None:
        await talk.request()
        await talk.say(answer)

    return handler


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n\r\n", "not an HTTP/1.1 answer", id="another protocol"),
        pytest.param(http(b"x" * 2000), "longer than 1000 bytes", id="a body beyond the limit"),
        pytest.param(chunked(*[b"x" * 400] * 3), "longer than 1000 bytes", id="chunks beyond the limit"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 3000, "head of the answer is longer", id="an endless head"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "Invalid character in Content-Length",
            id="a negative length",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "Duplicate", id="two lengths"
        ),
        pytest.param(b"HTTP/1.1 429 Later\r\nRetry-After: 1\r\nRetry-After: 2\r\n\r\n", "there twice", id="two waits"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "which was not asked for", id="an unknown coding"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\n", "a chunk of the answer", id="a wrong chunk"
        ),
        pytest.param(b"HTTP/1.1 101 Switching\r\n\r\n", "changed the protocol", id="another protocol from now on"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(answer: bytes, text: str) -> None:
    async def main() -> None:
        async with calling(answering(answer), limits=ResponseLimits(head=2048, body=1000)) as (client, _):
            with pytest.raises(Uncertain, match=f"GET /api/v1/nodes: .*{text}"):
                await client.send(GET)

    run(main())


def test_interim_answers_are_passed_over() -> None:
    async def main() -> None:
        async with calling(answering(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + http(b"1"))) as (client, _):
            assert await client.send(GET) == b"1"

    run(main())


def test_nobody_there_is_unreachable_in_words() -> None:
    async def main() -> None:
        async with serving(answering()) as served:
            port = served.port
        client = a_client(port)
        with pytest.raises(Unreachable, match=f"http://127.0.0.1:{port}: connection refused"):
            await client.send(POST)
        await client.close()
        with pytest.raises(Unreachable, match="the client is closed"):
            await client.send(POST)

    run(main())


def test_a_name_that_nobody_knows_is_unreachable_in_words() -> None:
    async def main() -> None:
        client = a_client(1, host="no-such-host.invalid")
        with pytest.raises(Unreachable, match="cannot be resolved"):
            await client.send(GET)

    run(main())


def test_a_path_that_would_break_out_of_the_request_is_a_bug() -> None:
    async def main() -> None:
        async with calling(answering()) as (client, _):
            with pytest.raises(ValueError, match="not a path"):
                await client.send(Call("GET", "/x HTTP/1.1\r\nX: y"))

    run(main())


def test_the_prefix_of_a_server_goes_before_every_path() -> None:
    async def main() -> None:
        async with calling(answering(http()), prefix="/k8s/clusters/c-1") as (client, served):
            await client.send(GET)
            assert served.requests[0].path == "/k8s/clusters/c-1/api/v1/nodes"

    run(main())


def test_a_write_whose_time_is_over_is_not_sent() -> None:
    """As when the process was stopped between the question whether it may write and the write."""

    async def main() -> None:
        async with calling(answering(http(), http())) as (client, served):
            await client.send(GET)  # so that there is a connection, and nothing to wait for
            with pytest.raises(Unreachable, match="not sent"):
                await client.send(POST, timeout=0.0)
            await yield_to_loop()
            assert [request.method for request in served.requests] == ["GET"]

    run(main())


def test_a_write_that_was_begun_before_the_machine_was_suspended_is_not_sent() -> None:
    """The loop's own time stands still meanwhile; the clock's does not."""
    clock = VirtualClock(100.0)

    class Suspending(StaticCredentials):
        def current(self) -> str | None:
            clock.advance(60.0)
            return super().current()

    async def main() -> None:
        async with calling(answering(http()), credentials=Suspending("Bearer x"), clock=clock) as (client, served):
            with pytest.raises(Unreachable, match="not sent"):
                await client.send(POST, timeout=5.0)
            await yield_to_loop()
            assert served.requests == []

    run(main())


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(http(), 0.0, id="an answer"),
        pytest.param(http(status(404, "NotFound"), "404 X"), 0.0, id="a refusal is an answer"),
        pytest.param(http(status(401, "Unauthorized"), "401 X"), 0.0, id="so is a 401, which has a check of its own"),
        pytest.param(http(b"no backend", "503 X"), 40.0, id="a load balancer answers for a server that is away"),
        pytest.param(b"", 40.0, id="the connection ends"),
    ],
)
def test_how_long_the_server_has_not_answered(answer: bytes, seconds: float) -> None:
    async def main() -> None:
        clock = VirtualClock(50.0)
        async with calling(answering(http(), answer), clock=clock) as (client, _):
            clock.advance(7.0)
            assert client.unanswered_seconds == 7.0, "since the start"
            await client.send(GET)
            assert client.unanswered_seconds == 0.0
            clock.advance(40.0)
            with contextlib.suppress(ApiError, Uncertain):
                await client.send(POST, timeout=0.05 if not answer else 10.0)
            assert client.unanswered_seconds == seconds

    run(main())


def test_a_watch_that_begins_is_an_answer_and_a_server_that_is_away_is_none() -> None:
    async def main() -> None:
        clock = VirtualClock(50.0)
        async with calling(answering(chunked(b"{}\n")), clock=clock) as (client, _):
            clock.advance(40.0)
            stream = await client.stream("/watch")
            assert client.unanswered_seconds == 0.0
            stream.close()
        gone = a_client(1, clock=clock)
        clock.advance(40.0)
        with pytest.raises(Unreachable):
            await gone.send(GET)
        assert gone.unanswered_seconds == 40.0
        await gone.close()

    run(main())
