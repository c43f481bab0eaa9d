"""One namespace's binds that hang or fail (a webhook of its own never answers, or with an error) cost other namespaces
at most a moment."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.dispatcher import AHEAD, FAILING, LIMIT, UNANSWERED, Dispatcher
from kubenexus.bind.progress import Hooks
from kubenexus.client.calls import ApiError, Call, NoConnection, Uncertain
from kubenexus.client.fair_queue import LATE
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_pod
from tests.bind.server import Guard, PodServer
from tests.bind.test_dispatcher import Landed, committed
from tests.sim.virtual.passing import elapse

SAID = f'running Bind plugin "DefaultBinder": {UNANSWERED}'
QUICK = 0.01


class Webhooked(PodServer):
    """Binds of the namespace "evil" take so long (None: for ever), those of others a moment. Knows when each bind was
    answered, and how many of each namespace are in flight."""

    def __init__(self, *pods: Pod, slowness: float | None = None) -> None:
        super().__init__(*pods)
        self.slowness, self.bound = slowness, dict[str, float]()
        self.now: dict[str, int] = {"evil": 0, "good": 0}
        self.peak: dict[str, int] = {"evil": 0, "good": 0}

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if not call.path.endswith("/binding"):
            return await super().send(call, timeout=timeout)
        await self._answered_after(call.namespace, timeout)
        said = await super().send(call, timeout=timeout)
        self.bound[call.path.split("/")[6]] = asyncio.get_running_loop().time()
        return said

    async def _answered_after(self, namespace: str, timeout: float) -> None:
        self.now[namespace] += 1
        self.peak[namespace] = max(self.peak[namespace], self.now[namespace])
        try:
            seconds = self.slowness if namespace == "evil" else QUICK
            if seconds is None or seconds > timeout:
                await elapse(timeout)
                raise Uncertain("no answer")
            await elapse(seconds)
        finally:
            self.now[namespace] -= 1


def pods_of(namespace: str, count: int, first: int = 0) -> list[Pod]:
    return [a_pod(f"{namespace}-{i}", namespace=namespace) for i in range(first, first + count)]


def loop_over(dispatcher: Dispatcher, pods: list[Pod]) -> int:
    """What the scheduling loop does: decides while it may. Returns how many were held back before their decision."""
    held = 0
    while pods and not dispatcher.full:
        pod = pods.pop(0)
        if dispatcher.crowded([pod]):
            held += 1
        else:
            dispatcher.submit(committed(pod))
    return held


def lives(
    server: PodServer, life: Callable[[Dispatcher], Coroutine[Any, Any, None]], hooks: Hooks | None = None
) -> None:
    async def whole() -> None:
        dispatcher = Dispatcher(server, Guard(), Landed(), random.Random(1), hooks=hooks or Hooks())
        await life(dispatcher)
        await dispatcher.close(0.0)

    run(whole())


@pytest.mark.parametrize("slowness", [None, 2.0], ids=["for ever", "for two seconds"])
def test_binds_that_hang_keep_no_other_namespaces_pods_waiting(slowness: float | None) -> None:
    evil, good = pods_of("evil", 1000), pods_of("good", 20)
    server, waits = Webhooked(*evil, *good, slowness=slowness), list[float]()

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        for pod in good:
            loop_over(dispatcher, waiting)
            came = asyncio.get_running_loop().time()
            mine = [pod]
            while pod.metadata.name not in server.bound:
                loop_over(dispatcher, mine)
                await elapse(0.05)
            waits.append(server.bound[pod.metadata.name] - came)
            await elapse(3.0)

    lives(server, life)
    assert waits[0] <= LATE + 0.1, "until it is known that the others hang"
    assert max(waits[1:]) <= 0.1


def test_a_namespace_whose_binds_hang_holds_half_of_the_slots_and_decides_no_further() -> None:
    evil = pods_of("evil", 1000)
    server = Webhooked(*evil)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        assert loop_over(dispatcher, waiting) == 0
        await elapse(0.5)
        assert (dispatcher.full, dispatcher.calm, server.now["evil"]) == (True, False, LIMIT)
        await elapse(LATE)
        assert (dispatcher.full, dispatcher.calm) == (False, True), "others may be decided, notes be written"
        assert dispatcher.crowded([evil[-1]]) == SAID
        assert dispatcher.crowded(pods_of("good", 1)) == ""
        opened = dispatcher.open
        server.peak["evil"] = 0
        for _ in range(30):
            await elapse(2.0)
            loop_over(dispatcher, waiting)
            assert dispatcher.open <= opened == AHEAD * LIMIT
            assert not dispatcher.full
        assert server.peak["evil"] == LIMIT // 2, "repeated binds have the same share"

    lives(server, life)


def test_a_namespace_whose_webhook_answers_again_has_all_slots_again() -> None:
    evil = pods_of("evil", 3000)
    server = Webhooked(*evil, slowness=3.0)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        for _ in range(20):
            loop_over(dispatcher, waiting)
            await elapse(0.1)
        assert dispatcher.crowded([evil[-1]]) == SAID
        server.slowness = QUICK
        await elapse(5.0)
        server.peak["evil"] = 0
        assert dispatcher.crowded([evil[-1]]) == ""
        for pod in evil[-500:]:
            dispatcher.submit(committed(pod))
        await elapse(5.0)
        assert (dispatcher.open, server.peak["evil"]) == (0, LIMIT)

    lives(server, life)


@pytest.mark.parametrize(
    ("delay", "crowded"),
    [
        pytest.param(0.0, SAID, id="the server takes two seconds"),
        pytest.param(2.0, "", id="our own rate limit takes two seconds"),
    ],
)
def test_only_the_time_that_the_server_takes_counts(delay: float, crowded: str) -> None:
    evil = pods_of("evil", 400)
    server = Webhooked(*evil, slowness=2.0)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        loop_over(dispatcher, waiting)
        await elapse(LATE + 0.5)
        loop_over(dispatcher, waiting)
        assert dispatcher.crowded([evil[-1]]) == crowded

    lives(server, life, Hooks(delay=lambda: delay))


def test_a_gang_whose_first_binds_hang_waits_whole_and_others_pass() -> None:
    gang, other = pods_of("evil", 3 * LIMIT), pods_of("good", 1)
    server = Webhooked(*gang, *other, slowness=4.0)

    async def life(dispatcher: Dispatcher) -> None:
        dispatcher.submit(committed(*gang))
        assert dispatcher.full
        await elapse(LATE + 0.01)
        assert not dispatcher.full
        dispatcher.submit(committed(*other))
        await elapse(0.1)
        assert set(server.bound) == {"good-0"}
        await elapse(60.0)
        assert (len(server.bound), dispatcher.open) == (3 * LIMIT + 1, 0), "what was begun is carried through"

    lives(server, life)


def test_a_bind_for_which_no_connection_was_free_stops_no_decisions() -> None:
    """It says nothing about the server, and may be the fault of its namespace alone."""
    server = PodServer(a_pod("web"))
    server.script.append(NoConnection("not sent, no connection was free within 5 s"))

    async def life(dispatcher: Dispatcher) -> None:
        dispatcher.submit(committed(a_pod("web")))
        await elapse(0.001)
        assert (dispatcher.open, dispatcher.full) == (0, False)

    lives(server, life)


class Refusing(PodServer):
    """Answers binds of the namespace "evil" at once with an error, as its webhook does, until it is `mended`."""

    def __init__(self, *pods: Pod, code: int) -> None:
        super().__init__(*pods)
        self.code, self.mended, self.asked = code, False, 0

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        await elapse(QUICK)
        self.asked += call.namespace == "evil"
        if call.path.endswith("/binding") and call.namespace == "evil" and not self.mended:
            raise ApiError(self.code, "", 'admission webhook "evil.example.com" failed')
        return await super().send(call, timeout=timeout)


@pytest.mark.parametrize("code", [500, 503, 409, 403, 429, 401])
def test_binds_that_fail_at_once_cost_few_calls_and_keep_no_other_namespaces_pods_waiting(code: int) -> None:
    evil, good = pods_of("evil", 1000), pods_of("good", 1)
    server = Refusing(*evil, *good, code=code)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        for _ in range(30):
            loop_over(dispatcher, waiting)
            waiting = waiting or list(evil)
            await elapse(0.1)
        assert (dispatcher.full, dispatcher.calm) == (False, True)
        assert dispatcher.open <= AHEAD * LIMIT
        before = server.asked
        for _ in range(100):
            loop_over(dispatcher, waiting)
            waiting = waiting or list(evil)
            await elapse(0.1)
        assert server.asked - before <= 60 * 10, "a few at a time, in ten seconds"
        assert dispatcher.open <= AHEAD
        dispatcher.submit(committed(*good))
        await elapse(2 * QUICK)
        assert server.pods[good[0].key].spec.node_name, "another namespace is served at once"

    lives(server, life)


def test_a_namespace_whose_binds_fail_is_told_why_its_jobs_wait_and_goes_on_once_they_do_not() -> None:
    evil = pods_of("evil", 1000)
    server = Refusing(*evil, code=500)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        for _ in range(60):
            loop_over(dispatcher, waiting)
            waiting = waiting or list(evil)
            await elapse(0.1)
        loop_over(dispatcher, waiting)
        assert dispatcher.crowded([evil[-1]]) == f'running Bind plugin "DefaultBinder": {FAILING}'
        server.mended = True
        left = list(evil)
        for _ in range(100):
            loop_over(dispatcher, left)
            left = [pod for pod in evil if not server.pods[pod.key].spec.node_name]
            await elapse(0.1)
        assert left == []

    lives(server, life)
