"""An answer is the same however its bytes are cut: for every border, in the head, in a chunk's size, within a line."""

import contextlib
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.client.answers import Answer, Garbled, Limits, Reader
from kubenexus.client.lines import Lines
from tests.client.server import chunk, http

BODIES = st.binary(max_size=80)
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-ENCODING:  chunked \r\nX-Y: z\r\n\r\n"


def cut(data: bytes, borders: list[int]) -> list[bytes]:
    places = [0, *sorted({border % (len(data) + 1) for border in borders}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(places) if a < b]


def read(pieces: list[bytes], **settings: Any) -> tuple[Reader, Answer]:
    reader = Reader(Limits(**settings))
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
        with contextlib.suppress(Garbled):
            read(cut(start + data, borders))


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
    gathered = Lines(limit=40)
    for piece in cut(b"".join(line + b"\n" for line in lines), borders):
        gathered.feed(piece)
    assert not gathered.broken
    assert gathered.take(10**6) == [line for line in lines if line]


@given(st.lists(st.binary(min_size=1, max_size=5).filter(lambda line: b"\n" not in line)), st.integers(1, 4))
def test_lines_are_taken_in_order_some_at_a_time(lines: list[bytes], most: int) -> None:
    gathered = Lines(limit=40)
    gathered.feed(b"".join(line + b"\n" for line in lines))
    taken: list[bytes] = []
    while len(gathered):
        some = gathered.take(most)
        assert 0 < len(some) <= most
        taken += some
    assert taken == lines


@pytest.mark.parametrize("pieces", [[b"x" * 41], [b"x" * 20, b"y" * 21], [b"x" * 41 + b"\n"], [b"a\n" + b"x" * 41]])
def test_a_line_beyond_the_limit_is_refused_before_it_fills_the_memory(pieces: list[bytes]) -> None:
    gathered = Lines(limit=40)
    *before, last = pieces
    for piece in before:
        gathered.feed(piece)
    with pytest.raises(Garbled, match="a line of the stream is longer than 40 bytes"):
        gathered.feed(last)


def test_many_short_lines_may_together_be_longer_than_one_may_be() -> None:
    gathered = Lines(limit=40)
    gathered.feed(b"x" * 30 + b"\n" + b"y" * 30 + b"\n")
    assert len(gathered) == 2
