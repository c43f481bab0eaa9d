"""An answer is the same however its bytes are cut: for every border, in the head, in a chunk's size, within a line."""

import contextlib
import gc
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import handwritten_reader
from kubenexus.client.http_response import HttpResponse, MalformedResponse, ResponseLimits, ResponseParser
from kubenexus.client.line_buffer import LineBuffer
from tests.client.server import chunk, http

BODIES = st.binary(max_size=80)
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-ENCODING:  chunked \r\nX-Y: z\r\n\r\n"


def cut(data: bytes, borders: list[int]) -> list[bytes]:
    places = [0, *sorted({border % (len(data) + 1) for border in borders}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(places) if a < b]


def read(pieces: list[bytes], **settings: Any) -> tuple[ResponseParser, HttpResponse]:
    reader = ResponseParser(ResponseLimits(**settings))
    for piece in pieces:
        reader.feed(piece)
    return reader, reader.answer()


@given(st.lists(BODIES.filter(len)), st.lists(st.integers(0, 10**6)), st.sampled_from([b"", b"X-T: 1\r\n"]))
def test_chunks_cut_anywhere(parts: list[bytes], borders: list[int], trailer: bytes) -> None:
    data = HEAD + b"".join(map(chunk, parts)) + b"0;last=1\r\n" + trailer + b"\r\n"
    reader, answer = read(cut(data, borders))
    assert reader.done
    assert not reader.extra
    assert answer.body == b"".join(parts)
    assert reader.keep


@given(BODIES, st.lists(st.integers(0, 10**6)))
def test_a_length_cut_anywhere(body: bytes, borders: list[int]) -> None:
    reader, answer = read(cut(http(body, "201 Created", Retry_After="3"), borders))
    assert reader.done
    assert (answer.status, answer.body, answer.fields[b"retry-after"]) == (201, body, b"3")


@given(BODIES, st.lists(st.integers(0, 10**6)))
def test_one_byte_too_few_is_not_the_end(body: bytes, borders: list[int]) -> None:
    data = HEAD + (chunk(body) if body else b"") + b"0\r\n\r\n"
    reader, _ = read(cut(data[:-1], borders))
    assert not reader.done
    assert not reader.eof()


@given(st.binary(max_size=200), st.lists(st.integers(0, 10**6)))
def test_anything_is_read_or_refused(data: bytes, borders: list[int]) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\n", HEAD):
        with contextlib.suppress(MalformedResponse):
            read(cut(start + data, borders))


STARTS = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 204 No\r\n",
    b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 409 C\r\n",
]
FIELDS = [
    *[b"Content-Length: 5\r\n", b"content-length:0 \r\n", b"Transfer-Encoding: chunked\r\n", b"Retry-After: 3\r\n"],
    *[b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"X:\r\n"],
]
ENDS = [b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"5;x=1\r\nhello\r\n0\r\nRetry-After: 9\r\n\r\n", b"", b"helloHTTP/1.1 2"]


@given(st.sampled_from(STARTS), st.lists(st.sampled_from(FIELDS), max_size=3), st.sampled_from(ENDS), st.data())
def test_what_is_read_at_all_is_read_as_by_the_twin(start: bytes, fields: list[bytes], end: bytes, drawn: Any) -> None:
    """The twin takes a little more: two equal lengths, a length beside chunks."""
    data = start + b"".join(fields) + b"\r\n" + end
    pieces = cut(data, drawn.draw(st.lists(st.integers(0, 10**6))))
    streaming = drawn.draw(st.booleans())
    with contextlib.suppress(MalformedResponse):
        assert _all_of(ResponseParser, pieces, streaming) == _all_of(handwritten_reader.Reader, pieces, streaming)


def _all_of(reader: Any, pieces: list[bytes], streaming: bool) -> list[Any]:
    got: list[bytes] = []
    it = reader(ResponseLimits(head=300, body=1000), got.append if streaming else None)
    for piece in pieces:
        it.feed(piece)
    before = it.done
    complete = it.eof()
    kept = complete and it.keep and not it.extra
    return [before, complete, kept, it.streaming, it.answer() if complete else None, b"".join(got)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="a protocol that is like HTTP"),
        pytest.param(b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="a line break before the answer"),
        pytest.param(b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="another version"),
        pytest.param(b"HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n", id="no such status"),
        pytest.param(b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", id="a status below all"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n", id="a coding with a tab"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", id="two ends"),
        pytest.param(HEAD + b"0\r\nX: " + b"x" * 2000, id="an endless trailer"),
        pytest.param(HEAD + b"1;" + b"x" * 2000, id="an endless line before a chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000 + b"\r\n\r\n", id="a head that ends beyond its limit"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 500])
def test_what_the_parser_takes_and_we_do_not(data: bytes, size: int) -> None:
    with pytest.raises(MalformedResponse):
        read([data[at : at + size] for at in range(0, len(data), size)], head=1000)


@pytest.mark.parametrize("more", [b"x", b"HTTP/1.1 2", http(b"another")])
@pytest.mark.parametrize("fields", [{}, {"Connection": "close"}])
def test_what_comes_after_the_answer_is_seen_and_is_not_part_of_it(more: bytes, fields: dict[str, str]) -> None:
    reader, answer = read([http(b"{}", "201 Created", **fields) + more])
    assert reader.done
    assert reader.extra
    assert (answer.status, answer.body, answer.fields[b"content-length"]) == (201, b"{}", b"2")


def test_what_is_done_with_leaves_nothing_to_the_collector() -> None:
    gc.collect()
    read([http()])
    read([HEAD, b"0\r\n\r\n"])
    reader, _ = read([b"HTTP/1.1 200 OK\r\n\r\n{}"])
    assert reader.eof()
    reader, _ = read([HEAD])
    reader.drop()
    del reader
    assert gc.collect() == 0


@pytest.mark.parametrize("code", ["204 No Content", "304 Not Modified"])
def test_answers_that_have_no_body(code: str) -> None:
    reader, answer = read([f"HTTP/1.1 {code}\r\n\r\n".encode()])
    assert reader.done
    assert reader.keep
    assert answer.body == b""


def test_a_long_head_within_its_limit_in_one_read() -> None:
    reader, _ = read([b"HTTP/1.1 200 OK\r\nX: " + b"y" * 900 + b"\r\nContent-Length: 0\r\n\r\n"], head=1000)
    assert reader.done


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line)), st.lists(st.integers(0, 10**6)))
def test_lines_cut_anywhere(lines: list[bytes], borders: list[int]) -> None:
    gathered = LineBuffer(limit=40)
    for piece in cut(b"".join(line + b"\n" for line in lines), borders):
        gathered.feed(piece)
    assert not gathered.broken
    assert gathered.take(10**6) == [line for line in lines if line]


@given(st.lists(st.binary(min_size=1, max_size=5).filter(lambda line: b"\n" not in line)), st.integers(1, 4))
def test_lines_are_taken_in_order_some_at_a_time(lines: list[bytes], most: int) -> None:
    gathered = LineBuffer(limit=40)
    gathered.feed(b"".join(line + b"\n" for line in lines))
    taken: list[bytes] = []
    while len(gathered):
        some = gathered.take(most)
        assert 0 < len(some) <= most
        taken += some
    assert taken == lines


@pytest.mark.parametrize("pieces", [[b"x" * 41], [b"x" * 20, b"y" * 21], [b"x" * 41 + b"\n"], [b"a\n" + b"x" * 41]])
def test_a_line_beyond_the_limit_is_refused_before_it_fills_the_memory(pieces: list[bytes]) -> None:
    gathered = LineBuffer(limit=40)
    *before, last = pieces
    for piece in before:
        gathered.feed(piece)
    with pytest.raises(MalformedResponse, match="a line of the stream is longer than 40 bytes"):
        gathered.feed(last)


def test_many_short_lines_may_together_be_longer_than_one_may_be() -> None:
    gathered = LineBuffer(limit=40)
    gathered.feed(b"x" * 30 + b"\n" + b"y" * 30 + b"\n")
    assert len(gathered) == 2
