"""One namespace's binds that hang or fail (a webhook of its own never answers, or with an error) cost other namespaces
at most a moment."""

import asyncio
import random
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.backlog import (
    AHEAD,
    FAILING,
    FEW_BINDS,
    MAX_UNDER_WAY,
    UNANSWERED,
    UNKNOWN_FACTOR,
    NamespaceBacklog,
)
from kubenexus.bind.dispatcher import LIMIT, Dispatcher
from kubenexus.bind.job_progress import SendChecks
from kubenexus.client.calls import ApiError, Call, NoConnection, Uncertain
from kubenexus.client.fair_queue import LATE_SECONDS, TRIAL_SECONDS, FairQueue
from kubenexus.client.namespace_calls import Speed
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_pod
from tests.bind.send_checks import send_checks
from tests.bind.server import Guard, PodServer
from tests.bind.test_dispatcher import Landed, committed
from tests.sim.virtual.virtual_time import elapse

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


def loop_over(dispatcher: Dispatcher, pods: list[Pod]) -> None:
    """What the scheduling loop does: decides those that are admitted, and sets the others aside."""
    aside = list[Pod]()
    for pod in pods if not dispatcher.resting else ():
        if dispatcher.backlog.admits(pod.metadata.namespace):
            dispatcher.submit(committed(pod))
        else:
            aside.append(pod)
    pods[:] = aside


async def keep_trying(dispatcher: Dispatcher, pods: list[Pod], seconds: float) -> None:
    """All pods again and again, as the queue does with those whose binds failed."""
    waiting = list(pods)
    for _ in range(round(10 * seconds)):
        loop_over(dispatcher, waiting)
        waiting = waiting or list(pods)
        await elapse(0.1)


def held(dispatcher: Dispatcher, pod: Pod) -> str:
    """Why the pod is not admitted; "" if it is, or others of its namespace are only many."""
    admitted = dispatcher.backlog.admits(pod.metadata.namespace)
    return "" if admitted else dispatcher.backlog.problem(pod.metadata.namespace)


def lives(
    server: PodServer, life: Callable[[Dispatcher], Coroutine[Any, Any, None]], hooks: SendChecks | None = None
) -> None:
    async def whole() -> None:
        dispatcher = Dispatcher(server, Guard(), Landed(), random.Random(1), checks=hooks or send_checks())
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
    assert max(waits) <= 0.1, "not even until it is known that the others hang"


def test_a_namespace_whose_binds_hang_holds_a_few_slots_and_is_decided_no_further() -> None:
    evil = pods_of("evil", 1000)
    server = Webhooked(*evil)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        loop_over(dispatcher, waiting)
        assert (waiting, held(dispatcher, evil[-1])) == ([], ""), "they are only many"
        await elapse(TRIAL_SECONDS / 2)
        assert server.now["evil"] == 1, "its trial"
        await elapse(LATE_SECONDS)
        assert (held(dispatcher, evil[-1]), dispatcher.calm) == (UNANSWERED, True), "others' notes are written"
        assert dispatcher.backlog.admits("good")
        waiting = list(evil)
        for _ in range(30):
            await elapse(2.0)
            loop_over(dispatcher, waiting)
            assert dispatcher.open_count <= len(evil), "no more than were decided before"
        assert server.peak["evil"] <= LIMIT // 2, "repeated binds have the same share"

    lives(server, life)


def test_a_namespace_whose_webhook_answers_again_has_all_slots_again() -> None:
    evil = pods_of("evil", 3000)
    server = Webhooked(*evil, slowness=3.0)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        for _ in range(20):
            loop_over(dispatcher, waiting)
            await elapse(0.1)
        assert held(dispatcher, evil[-1]) == UNANSWERED
        server.slowness = QUICK
        await elapse(10.0)
        server.peak["evil"] = 0
        assert dispatcher.backlog.admits("evil")
        for pod in evil[-500:]:
            dispatcher.submit(committed(pod))
        await elapse(5.0)
        assert (dispatcher.open_count, server.peak["evil"]) == (0, LIMIT)

    lives(server, life)


@pytest.mark.parametrize(
    ("delay", "crowded"),
    [
        pytest.param(0.0, UNANSWERED, id="the server takes two seconds"),
        pytest.param(2.0, "", id="our own rate limit takes two seconds"),
    ],
)
def test_only_the_time_that_the_server_takes_counts(delay: float, crowded: str) -> None:
    evil = pods_of("evil", 400)
    server = Webhooked(*evil, slowness=2.0)

    async def life(dispatcher: Dispatcher) -> None:
        waiting = list(evil)
        loop_over(dispatcher, waiting)
        await elapse(LATE_SECONDS + 0.5)
        loop_over(dispatcher, waiting)
        assert held(dispatcher, evil[-1]) == crowded

    lives(server, life, send_checks(delay=lambda: delay))


def test_a_gang_whose_first_binds_hang_waits_whole_and_others_pass() -> None:
    gang, other = pods_of("evil", 3 * LIMIT), pods_of("good", 1)
    server = Webhooked(*gang, *other, slowness=4.0)

    async def life(dispatcher: Dispatcher) -> None:
        dispatcher.submit(committed(*gang))
        dispatcher.submit(committed(*other))
        await elapse(0.1)
        assert set(server.bound) == {"good-0"}
        await elapse(90.0)
        assert (len(server.bound), dispatcher.open_count) == (3 * LIMIT + 1, 0), "what was begun is carried through"

    lives(server, life)


def test_a_bind_for_which_no_connection_was_free_stops_no_decisions() -> None:
    """It says nothing about the server, and may be the fault of its namespace alone."""
    server = PodServer(a_pod("web"))
    server.script.append(NoConnection("not sent, no connection was free within 5 s"))

    async def life(dispatcher: Dispatcher) -> None:
        dispatcher.submit(committed(a_pod("web")))
        await elapse(0.001)
        assert (dispatcher.open_count, dispatcher.resting) == (0, False)

    lives(server, life)


DENIED = 'admission webhook "evil.example.com" failed'


class Refusing(PodServer):
    """Answers binds of the namespace "evil" at once with an error, as its webhook does, until it is `mended`."""

    def __init__(self, *pods: Pod, code: int | Exception) -> None:
        super().__init__(*pods)
        self.code, self.mended, self.asked = code, False, 0

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        await elapse(QUICK)
        self.asked += call.namespace == "evil"
        if call.path.endswith("/binding") and call.namespace == "evil" and not self.mended:
            raise self.code if isinstance(self.code, Exception) else ApiError(self.code, "", DENIED)
        return await super().send(call, timeout=timeout)


@pytest.mark.parametrize("code", [500, 503, 409, 403, 429, 401, Uncertain("504: it may have happened")])
def test_binds_that_fail_at_once_cost_few_calls_and_keep_no_other_namespaces_pods_waiting(
    code: int | Exception,
) -> None:
    evil, good = pods_of("evil", 1000), pods_of("good", 1)
    server = Refusing(*evil, *good, code=code)

    async def life(dispatcher: Dispatcher) -> None:
        await keep_trying(dispatcher, evil, 3.0)
        assert (dispatcher.resting, dispatcher.calm) == (False, True)
        before = server.asked
        await keep_trying(dispatcher, evil, 10.0)
        assert server.asked - before <= 60 * 10, "a few at a time, in ten seconds"
        assert dispatcher.open_count <= AHEAD
        dispatcher.submit(committed(*good))
        await elapse(2 * QUICK)
        assert server.pods[good[0].key].spec.node_name, "another namespace is served at once"

    lives(server, life)


def test_a_namespace_whose_binds_fail_is_told_why_its_jobs_wait_and_goes_on_once_they_do_not() -> None:
    evil = pods_of("evil", 1000)
    server = Refusing(*evil, code=500)

    async def life(dispatcher: Dispatcher) -> None:
        await keep_trying(dispatcher, evil, 6.0)
        loop_over(dispatcher, list(evil))
        assert held(dispatcher, evil[-1]) == f'{FAILING}running Bind plugin "DefaultBinder": {DENIED}'
        server.mended = True
        left = list(evil)
        for _ in range(100):
            loop_over(dispatcher, left)
            left = [pod for pod in evil if not server.pods[pod.key].spec.node_name]
            await elapse(0.1)
        assert left == []

    lives(server, life)


class ManyWebhooks(PodServer):
    """Binds of namespaces that begin with "evil" take so long (None: for ever), those of others a moment."""

    def __init__(self, *pods: Pod, slowness: float | None) -> None:
        super().__init__(*pods)
        self.slowness = slowness

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.path.endswith("/binding"):
            evil = call.namespace.startswith("evil")
            if evil and self.slowness is None:
                await elapse(timeout)
                raise Uncertain("no answer")
            await elapse(self.slowness if evil and self.slowness else QUICK)
        return await super().send(call, timeout=timeout)


@pytest.mark.parametrize(
    ("namespaces", "slowness", "pods", "known", "seconds"),
    [
        pytest.param(30, 0.24, 1500, False, 1.0, id="thirty take a quarter of a second"),
        pytest.param(63, 0.24, 1500, True, 1.0, id="as many as there are slots"),
        pytest.param(63, 0.24, 1500, False, 1.0, id="as many as there are slots, and it was never answered before"),
        pytest.param(63, 0.9, 1000, False, 2.0, id="they are just not late"),
        pytest.param(400, None, 1600, True, 1.0, id="four hundred hang"),
        pytest.param(400, None, 1600, False, 3.0, id="four hundred hang, and it was never answered before"),
    ],
)
def test_namespaces_with_slow_webhooks_do_not_delay_the_binds_of_another(
    namespaces: int, slowness: float | None, pods: int, known: bool, seconds: float
) -> None:
    evil = [a_pod(f"e{k}-{i}", namespace=f"evil{k}") for i in range(pods // namespaces) for k in range(namespaces)]
    first, good = pods_of("good", 20, first=500), pods_of("good", 500)
    server = ManyWebhooks(*evil, *first, *good, slowness=slowness)

    async def life(dispatcher: Dispatcher) -> None:
        for pod in first if known else ():
            dispatcher.submit(committed(pod))
        await elapse(1.0)
        for pod in evil:
            dispatcher.submit(committed(pod))
        await elapse(2.0)
        for pod in good:
            dispatcher.submit(committed(pod))
        await elapse(seconds)
        assert sum(bool(server.pods[pod.key].spec.node_name) for pod in good) == 500
        assert slowness is None or any(server.pods[pod.key].spec.node_name for pod in evil)

    lives(server, life)


def test_a_first_bind_is_sent_soon_while_newer_namespaces_that_hang_keep_coming() -> None:
    evil = [a_pod("e", namespace=f"evil{k}") for k in range(700)]
    server = ManyWebhooks(*evil, *pods_of("good", 1), slowness=None)

    async def life(dispatcher: Dispatcher) -> None:
        for pod in evil[:500]:
            dispatcher.submit(committed(pod))
        await elapse(0.5)
        (good,) = pods_of("good", 1)
        dispatcher.submit(committed(good))
        for pod in evil[500:650]:  # thirty in a second
            dispatcher.submit(committed(pod))
            await elapse(1 / 30)
        assert server.pods[good.key].spec.node_name

    lives(server, life)


def test_less_urgent_calls_go_out_at_a_least_rate_while_binds_wait_for_minutes() -> None:
    """Namespaces just not slow, so that their binds count as waiting."""
    evil = [a_pod(f"e{k}-{i}", namespace=f"evil{k}") for i in range(120) for k in range(60)]
    server = ManyWebhooks(*evil, slowness=0.045)

    async def life(dispatcher: Dispatcher) -> None:
        loop, times = asyncio.get_running_loop(), list[float]()
        for pod in evil:
            dispatcher.submit(committed(pod))
        await elapse(0.5)
        while loop.time() < 3.5:
            await dispatcher.wait_for_quiet()
            assert not dispatcher.calm
            times.append(loop.time())
        assert times[0] == pytest.approx(1.0, abs=0.1), "first they wait for a second"
        assert len(times) >= 25, "each lets a batch of four or eight pass: at least 50 a second"

    lives(server, life)


class AllOf(FairQueue[int]):
    """A queue in which all namespaces have one speed."""

    def __init__(self, speed: Speed) -> None:
        super().__init__(1)
        self._speed = speed

    def speed(self, namespace: str) -> Speed:
        return self._speed


# --- how far ahead --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("under_way", "allowance"),
    [
        pytest.param({}, MAX_UNDER_WAY, id="alone"),
        pytest.param({"a": 5000}, MAX_UNDER_WAY - 5000, id="what another namespace leaves"),
        pytest.param({"a": 1, "b": 1, "c": 1}, MAX_UNDER_WAY - 3, id="what other namespaces leave"),
        pytest.param({"a": MAX_UNDER_WAY}, MAX_UNDER_WAY // 2, id="an equal share once all are under way"),
        pytest.param({f"n{i}": 1 for i in range(MAX_UNDER_WAY)}, FEW_BINDS, id="a few in any case"),
    ],
)
def test_how_many_binds_a_slow_namespace_may_have_under_way(under_way: dict[str, int], allowance: int) -> None:
    backlog = NamespaceBacklog(AllOf(Speed.SLOW), lambda: None)
    for namespace, binds in under_way.items():
        backlog.begun(namespace, binds)
    for _ in range(allowance):
        assert backlog.admits("mine")
        backlog.begun("mine", 1)
    assert not backlog.admits("mine")
    assert not backlog.full


@pytest.mark.parametrize(
    ("speed", "most"),
    [
        pytest.param(Speed.QUICK, MAX_UNDER_WAY, id="that are answered quickly"),
        pytest.param(Speed.UNKNOWN, UNKNOWN_FACTOR * MAX_UNDER_WAY, id="that were never answered"),
    ],
)
def test_namespaces_that_are_not_known_to_be_slow_are_set_aside_only_with_all_others(speed: Speed, most: int) -> None:
    backlog = NamespaceBacklog(AllOf(speed), lambda: None)
    backlog.begun("a", most - 1)
    assert (backlog.admits("mine"), backlog.full) == (True, False)
    backlog.begun("b", 1)
    assert (backlog.admits("mine"), backlog.full) == (False, True)


def test_a_namespace_that_is_answered_quickly_waits_only_with_all_others() -> None:
    """If it were set aside for its number, jobs of less priority would pass it."""
    good, evil = pods_of("good", 300), pods_of("evil", 60)
    server, woken = Webhooked(*good, *evil, slowness=0.24), list[bool]()

    async def life(dispatcher: Dispatcher) -> None:
        backlog = dispatcher.backlog
        for pod in good[:100] + evil:
            dispatcher.submit(committed(pod))
        await elapse(3.0)
        assert (dispatcher.open_count, dispatcher.backlog.full) == (0, False)
        backlog.max_under_way = 120
        for pod in good[100:]:
            assert backlog.admits("good") is not dispatcher.resting
            if dispatcher.resting:
                break
            dispatcher.submit(committed(pod))
        assert dispatcher.open_count == 120, "whatever others have"
        assert backlog.admits("evil"), "a slow namespace does not wait for quick ones, nor these for it"
        woken.clear()
        await elapse(2 * QUICK)
        assert (bool(woken), dispatcher.resting) == (True, False), "it may go on"

    lives(server, life, send_checks(wake=lambda: woken.append(True)))


def test_what_the_bound_costs_does_not_depend_on_how_many_namespaces_hang() -> None:
    evil = [a_pod(f"p{i}", namespace=f"evil-{i}") for i in range(300)]

    class Hanging(PodServer):
        async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
            await elapse(timeout)
            raise Uncertain("no answer")

    async def life(dispatcher: Dispatcher) -> None:
        for pod in evil:
            dispatcher.submit(committed(pod))
        await elapse(30.0)
        backlog, queue = dispatcher.backlog, dispatcher._slots.queue
        assert sum(queue.stuck(f"evil-{i}") for i in range(300)) > 100
        looked = 0

        def looks(frame: object, event: str, argument: object) -> None:
            nonlocal looked
            looked += event in ("call", "c_call")

        sys.setprofile(looks)
        try:
            backlog.admits("good")
        finally:
            sys.setprofile(None)
        assert looked < 30

    lives(Hanging(*evil), life)


def test_a_namespace_is_admitted_again_when_half_of_its_binds_have_landed() -> None:
    woken = list[bool]()
    backlog = NamespaceBacklog(AllOf(Speed.SLOW), lambda: woken.append(True))
    backlog.begun("a", MAX_UNDER_WAY + 1)
    backlog.ended("a", 1)
    assert (backlog.admits("a"), backlog.any_freed) == (False, False), "no job of it was held"
    backlog.hold("a")
    for _ in range(MAX_UNDER_WAY // 2 - 1):
        backlog.ended("a", 1)
    assert (backlog.take_freed(), backlog.headroom("a"), woken) == ([], 0, [])
    backlog.ended("a", 1)
    assert (backlog.any_freed, backlog.headroom("a"), woken) == (True, MAX_UNDER_WAY // 2, [True])
    assert (backlog.take_freed(), backlog.any_freed) == (["a"], False)
    backlog.hold("a")
    assert backlog.take_freed() == ["a"], "others of it are left, and may be tried"
