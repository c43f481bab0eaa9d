"""One namespace's notes, hanging or many, keep no other namespace from hearing why its pods wait."""

import asyncio

import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.job_binding import AlwaysWritable
from kubenexus.client.calls import Call, Uncertain
from kubenexus.observe.status_patcher import SLOW, StatusPatcher
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_pod
from tests.bind.server import PodServer
from tests.observe.test_status_patcher import written_by
from tests.sim.virtual.virtual_time import elapse

EVIL = 10_000


class Server(PodServer):
    """Patches of the namespace "evil" take so long, or for ever where that is 0. Counts those in flight."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.now, self.peak = seconds, 0, 0
        self.heard: list[float] = []

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.namespace != "evil":
            self.heard.append(asyncio.get_running_loop().time())
            return b"{}"
        self.now += 1
        self.peak = max(self.peak, self.now)
        await elapse(self.seconds or timeout)
        self.now -= 1
        if not self.seconds:
            raise Uncertain("no answer")
        return b"{}"


def note(status_patcher: StatusPatcher[Pod], namespace: str, name: str) -> None:
    pod = a_pod(name, namespace=namespace)
    status_patcher.submit(pod, Call("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", b"{}"))


@pytest.mark.parametrize(
    ("seconds", "patience"),
    [
        pytest.param(0.0, 0.0, id="that hang"),
        pytest.param(0.005, 0.005, id="that are answered"),
    ],
)
def test_ten_thousand_notes_of_one_namespace_delay_none_of_another(seconds: float, patience: float) -> None:
    server, stalled = Server(seconds), dict[str, int]()

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(
            server, AlwaysWritable(), lambda pod: True, stalled=stalled.__setitem__
        )
        async with written_by(status_patcher):
            for i in range(EVIL):
                note(status_patcher, "evil", f"evil-{i}")
            await elapse(2.0)
            note(status_patcher, "good", "web")
            await elapse(1.0)
        assert [moment - 2.0 <= patience for moment in server.heard] == [True]

    run(life())


def test_a_namespace_whose_notes_hang_has_two_writers_and_is_reported() -> None:
    server, stalled = Server(0.0), dict[str, int]()

    async def life() -> None:
        status_patcher: StatusPatcher[Pod] = StatusPatcher(
            server, AlwaysWritable(), lambda pod: True, stalled=stalled.__setitem__
        )
        async with written_by(status_patcher):
            for i in range(EVIL):
                note(status_patcher, "evil", f"evil-{i}")
            await elapse(29.0)
            assert (server.peak, stalled) == (SLOW, {})
            server.peak = 0
            await elapse(11.0)
            note(status_patcher, "good", "web")
            await elapse(1.0)
        assert server.peak == SLOW

    run(life())
    assert stalled == {"evil": EVIL}, "and no other namespace"
