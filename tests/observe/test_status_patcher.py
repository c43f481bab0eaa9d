"""A note is written until it is written, and never when it is no longer true."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.job_binding import AlwaysWritable, PodBinding
from kubenexus.client.calls import ApiError, Call
from kubenexus.observe.status_patcher import PAUSES, WRITERS, StatusPatcher
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_pod
from tests.bind.server import AWAY, BUSY, FORBIDDEN, SILENT, Guard, PodServer
from tests.sim.virtual.virtual_time import elapse

WEB = a_pod("web")
HOUR = 3600.0
NOT_LEADING = "this process does not lead any more"
GONE = ApiError(404, "NotFound", 'pods "web" not found')
CONFLICT = ApiError(409, "Conflict", "the object has been modified")


Given = list[tuple[float, str]]


def about(pod: Pod) -> Call:
    return Call("PATCH", f"/api/v1/namespaces/default/pods/{pod.metadata.name}/status", b"{}")


WHY = about(WEB)


def at() -> float:
    return round(asyncio.get_running_loop().time(), 1)


async def at_once() -> None:
    """There is always room."""
    await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def written_by(status_patcher: StatusPatcher[Pod]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(status_patcher.run(at_once))
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def written(
    *problems: Exception,
    still: Callable[[PodServer], bool] = lambda server: True,
    newer: tuple[float, Call] | None = None,
) -> tuple[list[Call], Given]:
    """What was sent about a pod whose patches meet these problems, and what was given up when. `newer` comes then."""
    server, given_up = PodServer(WEB), Given()
    server.patches.extend(problems)

    def failed(pod: Pod, why: str) -> None:
        given_up.append((at(), why))

    async def life() -> None:
        status_patcher = StatusPatcher(server, AlwaysWritable(), lambda pod: still(server), failed)
        async with written_by(status_patcher):
            status_patcher.submit(WEB, WHY)
            if newer is not None:
                await elapse(newer[0])
                status_patcher.submit(WEB, newer[1])
            await elapse(HOUR)
        assert (len(status_patcher), status_patcher._latest) == (0, {})

    run(life())
    return server.calls, given_up


@pytest.mark.parametrize("problem", [AWAY, SILENT, BUSY, CONFLICT, FORBIDDEN, RecursionError("a bug")], ids=str)
def test_what_could_not_be_written_is_written_again(problem: Exception) -> None:
    """Nobody else would: a pod that waits for good is not refused a second time."""
    assert written(problem, problem) == ([WHY] * 3, [])


def test_it_is_given_up_in_the_end() -> None:
    assert written(*[FORBIDDEN] * 99) == ([WHY] * (len(PAUSES) + 1), [(round(sum(PAUSES), 1), str(FORBIDDEN))])


def test_a_pod_that_is_gone_is_nobodys_concern() -> None:
    assert written(GONE) == ([WHY], [])


@pytest.mark.parametrize(
    ("away", "sent", "given_up"),
    [
        pytest.param(5.0, [WHY], [], id="soon"),
        pytest.param(HOUR, [], [(round(sum(PAUSES), 1), NOT_LEADING)], id="much later"),
    ],
)
def test_who_leads_again_writes_what_it_has_not_written(away: float, sent: list[Call], given_up: Given) -> None:
    """A renewal that was late: the fence was shut for a moment, and nobody will say again why the pod waits."""
    server, guard, missed = PodServer(WEB), Guard(), Given()
    guard.leads = False

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(
            server, guard, lambda pod: True, lambda pod, why: missed.append((at(), why))
        )
        async with written_by(status_patcher):
            status_patcher.submit(WEB, WHY)
            await elapse(away)
            assert server.calls == [], "not without the lease"
            guard.leads = True
            await elapse(HOUR)
        assert (len(status_patcher), status_patcher._latest) == (0, {})

    run(life())
    assert (server.calls, missed) == (sent, given_up)


def test_what_has_become_untrue_is_not_written_again() -> None:
    assert written(BUSY, still=lambda server: not server.calls) == ([WHY], [])


@pytest.mark.parametrize("after", [0.0, 0.1], ids=["before it is sent", "while it rests"])
def test_what_is_newer_takes_its_place(after: float) -> None:
    newer = Call("PATCH", WHY.path, b'{"newer": 1}')
    sent, given_up = written(*[BUSY] * (after > 0), newer=(after, newer))
    assert (sent[-1], sent[:-1], given_up) == (newer, [WHY] * (after > 0), [])


def test_what_is_newer_than_a_note_on_its_way_follows_it() -> None:
    sent, newer = list[tuple[float, Call]](), Call("PATCH", WHY.path, b'{"newer": 1}')

    class Slow(PodServer):
        async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
            sent.append((at(), call))
            await elapse(2.0)
            return b"{}"

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(Slow(), AlwaysWritable(), lambda pod: True)
        async with written_by(status_patcher):
            status_patcher.submit(WEB, WHY)
            await elapse(1.0)
            status_patcher.submit(WEB, newer)
            await elapse(HOUR)
        assert (len(status_patcher), status_patcher._latest) == (0, {})

    run(life())
    assert sent == [(0.0, WHY), (2.0, newer)]


def test_those_who_are_refused_hold_up_nobody() -> None:
    """Ten times as many as there are writers are refused again and again; others come behind them, and do not wait."""
    refused = [a_pod(f"refused-{number}") for number in range(10 * WRITERS)]
    others = [a_pod(f"other-{number}") for number in range(10 * WRITERS)]
    sent: dict[str, list[float]] = {}

    class Server(PodServer):
        async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
            name = call.path.split("/")[6]
            sent.setdefault(name, []).append(at())
            if name.startswith("refused"):
                raise FORBIDDEN
            return b"{}"

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(Server(), AlwaysWritable(), lambda pod: True)
        async with written_by(status_patcher):
            for pod in refused:
                status_patcher.submit(pod, about(pod))
            await elapse(3.0)
            assert len(status_patcher) == len(refused)
            for pod in others:
                status_patcher.submit(pod, about(pod))
            await elapse(HOUR)

    run(life())
    assert all(sent[pod.metadata.name] == [3.0] for pod in others)
    tries = [round(sum(PAUSES[:count]), 1) for count in range(len(PAUSES) + 1)]
    assert all(sent[pod.metadata.name] == tries for pod in refused)


def gone(status_patcher: StatusPatcher[Pod]) -> None:
    status_patcher.cancel(WEB.metadata.uid)


def bound(status_patcher: StatusPatcher[Pod]) -> None:
    assert not status_patcher.concerns(PodBinding(WEB, "n1")), "a bind waits for nothing but a note on its way"


@pytest.mark.parametrize("parting", [gone, bound], ids=["gone", "bound"])
def test_nothing_is_said_of_a_pod_whose_note_rests_when_it_is(parting: Callable[[StatusPatcher[Pod]], None]) -> None:
    server = PodServer(WEB)
    server.patches.append(BUSY)

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(server, AlwaysWritable(), lambda pod: True)
        async with written_by(status_patcher):
            status_patcher.submit(WEB, WHY)
            await elapse(0.1)
            assert len(status_patcher) == 1
            parting(status_patcher)
            assert len(status_patcher) == 0
            await elapse(HOUR)

    run(life())
    assert server.calls == [WHY]


def test_what_is_written_while_a_note_is_about_to_go_follows_it() -> None:
    """Both at once would be two patches of one pod, in any order; and the second to end would find nothing to end."""

    class Slow(PodServer):
        async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
            self.calls.append(call)
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            await elapse(0.1)
            self.in_flight -= 1
            return b"{}"

    server, newer = Slow(WEB), Call("PATCH", WHY.path, b'{"newer":1}')

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(server, AlwaysWritable(), lambda pod: True)

        once = iter([newer])

        async def room() -> None:
            for call in once:  # before the task of the first note begins
                asyncio.get_running_loop().call_soon(status_patcher.submit, WEB, call)

        task = asyncio.ensure_future(status_patcher.run(room))
        status_patcher.submit(WEB, WHY)
        await elapse(1.0)
        assert not task.done()
        assert (server.calls, server.most) == ([WHY, newer], 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(life())


def test_what_is_no_longer_true_is_dropped_and_said_to_be() -> None:
    dropped: list[Pod] = []

    async def life() -> None:
        server = PodServer(WEB)
        status_patcher = StatusPatcher(server, AlwaysWritable(), lambda pod: False, dropped=dropped.append)
        async with written_by(status_patcher):
            status_patcher.submit(WEB, WHY)
            await elapse(1.0)
        assert server.calls == []

    run(life())
    assert dropped == [WEB]


NEWER = Call("PATCH", WHY.path, b'{"newer": 1}')


@pytest.mark.parametrize("refused", [False, True], ids=["the write goes through", "the write fails"])
@pytest.mark.parametrize("kept_first", [False, True], ids=["submitted before", "submitted after"])
def test_a_patch_that_another_write_carries_is_sent_by_itself_only_if_that_fails(
    refused: bool, kept_first: bool
) -> None:
    server, uid = PodServer(WEB), WEB.metadata.uid

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(server, AlwaysWritable(), lambda pod: True)
        async with written_by(status_patcher):
            if kept_first:
                status_patcher.keep_back(uid)
            status_patcher.submit(WEB, WHY)
            if not kept_first:
                status_patcher.keep_back(uid)
            await elapse(1.0)
            assert (server.calls, len(status_patcher), uid in status_patcher) == ([], 1, True)
            with contextlib.suppress(ApiError), status_patcher.carried(uid) as call:
                assert call == WHY
                if refused:
                    raise BUSY
            await elapse(1.0)
            assert (len(status_patcher), uid in status_patcher) == (0, False)

    run(life())
    assert server.calls == [WHY] * refused


def test_what_is_newer_than_a_patch_that_is_carried_follows_it() -> None:
    server = PodServer(WEB)

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(server, AlwaysWritable(), lambda pod: True)
        async with written_by(status_patcher):
            status_patcher.keep_back(WEB.metadata.uid)
            status_patcher.submit(WEB, WHY)
            with status_patcher.carried(WEB.metadata.uid):
                status_patcher.submit(WEB, NEWER)
                await elapse(1.0)
                assert server.calls == []
            await elapse(1.0)

    run(life())
    assert server.calls == [NEWER]


def test_a_bind_waits_for_the_write_that_carries_a_patch() -> None:
    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(PodServer(WEB), AlwaysWritable(), lambda pod: True)
        status_patcher.keep_back(WEB.metadata.uid)
        status_patcher.submit(WEB, WHY)
        with status_patcher.carried(WEB.metadata.uid) as call:
            assert call == WHY
            binding = PodBinding(WEB, "n1")
            assert status_patcher.concerns(binding)
            bind = asyncio.ensure_future(status_patcher.pre_bind(binding))
            await elapse(1.0)
            assert not bind.done()
        await elapse(0.1)
        assert bind.done()
        assert len(status_patcher) == 0

    run(life())


def test_a_write_carries_nothing_while_a_patch_is_on_its_way_or_if_it_is_not_true_any_more() -> None:
    true, server = [True], PodServer(WEB)

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(server, AlwaysWritable(), lambda pod: true[0])
        async with written_by(status_patcher):
            status_patcher.submit(WEB, WHY)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            status_patcher.keep_back(WEB.metadata.uid)
            status_patcher.submit(WEB, NEWER)
            with status_patcher.carried(WEB.metadata.uid) as call:
                assert call is None
            await elapse(1.0)
            assert server.calls == [WHY, NEWER]
            true[0] = False
            status_patcher.keep_back(WEB.metadata.uid)
            status_patcher.submit(WEB, WHY)
            with status_patcher.carried(WEB.metadata.uid) as call:
                assert call is None
            await elapse(1.0)
            assert (len(status_patcher), len(server.calls)) == (0, 2)

    run(life())


def test_a_patch_that_was_kept_back_is_sent_when_no_other_write_follows() -> None:
    server = PodServer(WEB)

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(server, AlwaysWritable(), lambda pod: True)
        async with written_by(status_patcher):
            status_patcher.keep_back(WEB.metadata.uid)
            status_patcher.submit(WEB, WHY)
            await elapse(1.0)
            assert server.calls == []
            status_patcher.send_kept(WEB.metadata.uid)
            await elapse(1.0)

    run(life())
    assert server.calls == [WHY]
