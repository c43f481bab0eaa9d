"""A note is written until it is written, and never when it is no longer true."""

import asyncio
from collections.abc import Callable

import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.commitment import Always
from kubenexus.bind.notes import PAUSES, Notes
from kubenexus.client.calls import ApiError, Call
from kubenexus.testing.builders import a_pod
from tests.bind.server import AWAY, BUSY, FORBIDDEN, SILENT, PodServer
from tests.turns import turns, until

WEB = a_pod("web")
WHY = Call("PATCH", "/api/v1/namespaces/default/pods/web/status", b"{}")
GONE = ApiError(404, "NotFound", 'pods "web" not found')
CONFLICT = ApiError(409, "Conflict", "the object has been modified")


def written(
    *problems: Exception,
    still: Callable[[PodServer], bool] = lambda server: True,
    newer: Call | None = None,
    pause: int = 1,
) -> tuple[list[Call], list[str]]:
    """What was sent about a pod whose patches meet these problems, and what was given up. `newer` comes meanwhile, in a
    pause of so many turns."""
    server, given_up = PodServer(WEB), list[str]()
    server.patches.extend(problems)

    def failed(pod: Pod, why: str) -> None:
        given_up.append(why)

    async def life() -> None:
        async def sleep(seconds: float) -> None:
            if newer is not None and len(server.calls) == 1:
                notes.write(WEB, newer)
            await turns(pause)

        async def at_once() -> None:
            await asyncio.sleep(0)

        notes = Notes(server, Always(), lambda pod: still(server), failed, sleep=sleep)
        notes.write(WEB, WHY)
        task = asyncio.ensure_future(notes.run(at_once))
        await turns(200)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(life())
    return server.calls, given_up


@pytest.mark.parametrize("problem", [AWAY, SILENT, BUSY, CONFLICT, FORBIDDEN], ids=str)
def test_what_could_not_be_written_is_written_again(problem: Exception) -> None:
    """Nobody else would: a pod that waits for good is not refused a second time."""
    assert written(problem, problem) == ([WHY] * 3, [])


def test_it_is_given_up_in_the_end() -> None:
    assert written(*[FORBIDDEN] * 99) == ([WHY] * (len(PAUSES) + 1), [str(FORBIDDEN)])


def test_a_pod_that_is_gone_is_nobodys_concern() -> None:
    assert written(GONE) == ([WHY], [])


def test_what_has_become_untrue_is_not_written_again() -> None:
    assert written(BUSY, still=lambda server: not server.calls) == ([WHY], [])


@pytest.mark.parametrize("pause", [1, 20], ids=["while it waits", "and is written while the older one waits"])
def test_what_is_newer_takes_its_place(pause: int) -> None:
    newer = Call("PATCH", WHY.path, b'{"newer": 1}')
    assert written(BUSY, newer=newer, pause=pause) == ([WHY, newer], [])


def test_what_is_newer_than_a_note_on_its_way_follows_it() -> None:
    server, newer = PodServer(WEB), Call("PATCH", WHY.path, b'{"newer": 1}')

    async def life() -> None:
        arrived = asyncio.Event()

        async def send(call: Call, *, timeout: float = 10.0) -> bytes:
            server.calls.append(call)
            await arrived.wait()
            return b"{}"

        server.send = send  # type: ignore[method-assign]
        notes: Notes[Pod] = Notes(server, Always(), lambda pod: True)
        task = asyncio.ensure_future(notes.run(lambda: asyncio.sleep(0)))
        for call in (WHY, newer):
            notes.write(WEB, call)
            await turns()
        assert server.calls == [WHY]
        arrived.set()
        await until(lambda: len(server.calls) == 2)
        await turns()
        assert (server.calls, len(notes), len(notes._latest)) == ([WHY, newer], 0, 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(life())
