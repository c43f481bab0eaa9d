"""Pages of a list: no turn of the loop reads more than a portion of one, and their size follows what they hold."""

import asyncio
import random
from collections import Counter
from typing import Any
from urllib.parse import parse_qs

import pytest

from kubenexus.api.core import Pod
from kubenexus.base.clock import VirtualClock
from kubenexus.client import kinds, list_pages
from kubenexus.client.calls import Call, Uncertain, Unreachable
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_protocols import LineStream, WatchTarget
from tests.client.cluster import Told, following, page, pod
from tests.client.server import http, run

DEEP = b"[" * 1500 + b"]" * 1500
MEGABYTE = 1 << 20


class Turns:
    """Counts turns of the loop, and what is read in each of them."""

    def __init__(self) -> None:
        self.number = 0
        self.read: Counter[int] = Counter()  # bytes of notes

    async def count(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)


def counted(turns: Turns) -> type[Pod]:
    class Counted(Pod):
        note: str = ""

        def __post_init__(self) -> None:
            turns.read[turns.number] += len(self.note)

    return Counted


@pytest.mark.parametrize("deep", [None, 0, 11], ids=["none is deep", "the first is deep", "the last is deep"])
def test_a_page_of_large_objects_is_read_in_many_turns(deep: int | None) -> None:
    turns = Turns()
    pods = [pod(f"p{i}", i + 1) | {"note": "x" * MEGABYTE} for i in range(12)]
    if deep is not None:
        pods[deep]["metadata"]["managedFields"] = "HERE"
    body = page(*pods).partition(b"\r\n\r\n")[2].replace(b'"HERE"', DEEP)

    async def main() -> None:
        counting = asyncio.ensure_future(turns.count())
        async with following([http(body)], [], target=WatchTarget(kinds.PODS, counted(turns))) as it:
            await it.until(lambda: it.reflector.synced)
            assert it.told.log == ["begin", *([f"p{i}"] for i in range(12)), "end"]
            assert it.reflector.version == "10"
        counting.cancel()
        assert sum(turns.read.values()) >= 12 * MEGABYTE
        assert max(turns.read.values()) <= 2 * MEGABYTE, "an object, and once more if it is deep"

    run(main())


class Store:
    """So many bytes has each object that it lists; an answer has at most `most` objects."""

    def __init__(self, sizes: list[int], most: int = 10**6) -> None:
        self.sizes, self.most = sizes, most
        self.limits: list[int] = []

    async def send(self, call: Call, **_: Any) -> bytes:
        asked = parse_qs(call.path.partition("?")[2])
        limit, first = int(asked["limit"][0]), int(asked.get("continue", ["0"])[0])
        self.limits.append(limit)
        if limit > self.most:
            raise Uncertain("the body of the answer is longer than 536870912 bytes")
        last = min(first + limit, len(self.sizes))
        pods = [pod(f"p{i}", i + 1) | {"note": "x" * (self.sizes[i] - 120)} for i in range(first, last)]
        return page(*pods, more=str(last) if last < len(self.sizes) else "").partition(b"\r\n\r\n")[2]

    async def stream(self, path: str, **_: Any) -> LineStream:
        raise Unreachable("there is no watch here")


PAGE_BYTES = 1 << 17
SMALL, LARGE = 200, PAGE_BYTES // 8 + 100
PAGES = [
    pytest.param([SMALL] * 1200, 10**6, [[500, 500, 500]] * 2, id="small objects on pages as large as they may be"),
    pytest.param([LARGE] * 20, 10**6, [[500], [7, 7, 7]], id="fewer large objects, in the next list too"),
    pytest.param(
        [LARGE] * 500 + [SMALL] * 1000,
        10**6,
        [[500, 7, 14, 28, 56, 112, 224, 448, 500], [500, 7, 14, 28, 56, 112, 224, 448, 500]],
        id="smaller at once, larger step by step",
    ),
    pytest.param([SMALL] * 80, 31, [[500, 125, 31, 31, 31]], id="no more than could be read, whatever their size"),
    pytest.param(
        [SMALL] * 8, 31, [[500, 125, 31], [62, 15], [30], [60, 15]], id="after a complete list a trial of more"
    ),
]


@pytest.mark.parametrize(("sizes", "most", "limits"), PAGES)
def test_pages_have_as_many_objects_as_make_some_megabytes(
    sizes: list[int], most: int, limits: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_pages, "PAGE_BYTES", PAGE_BYTES)

    async def no_wait(seconds: float) -> None: ...

    async def main() -> None:
        source, told = Store(sizes, most), Told()
        reflector = Reflector(
            source, WatchTarget(kinds.PODS, Pod), told, clock=VirtualClock(), rng=random.Random(1), sleep=no_wait
        )
        for expected in limits:
            source.limits.clear()
            reflector.relist()
            ends = told.log.count("end")
            for _ in range(10):
                await reflector.step()
                if told.log.count("end") > ends:
                    break
            assert source.limits == expected
            assert len(told.held) == len(sizes)

    run(main())
