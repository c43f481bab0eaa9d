"""Every answer to a bind has its own consequence, and no commitment is ever lost."""

import asyncio
import random
from collections.abc import Sequence

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.backlog import UNKNOWN_FACTOR
from kubenexus.bind.bind_result import BindResult, BindStatus
from kubenexus.bind.dispatcher import TRIES, Dispatcher
from kubenexus.bind.job_binding import BindHooks, JobBinding, PodBinding
from kubenexus.client.calls import ApiError
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Code
from kubenexus.testing.builders import a_pod
from tests.async_helpers import HANGS, wait_until, yield_to_loop
from tests.bind.send_checks import send_checks
from tests.bind.server import AWAY, BUSY, FORBIDDEN, LOST, SILENT, Guard, PodServer

NOTHING = Decision("job", Code.SUCCESS, 0, 0.0)


class Landed:
    """Who draws the consequences, and here only notes them."""

    def __init__(self) -> None:
        self.all: list[list[BindResult]] = []

    def __call__(self, job_binding: JobBinding, results: Sequence[BindResult]) -> None:
        self.all.append(list(results))

    @property
    def fates(self) -> list[str]:
        return [result.status.value for results in self.all for result in results]


def committed(*pods: Pod, node: str = "n") -> JobBinding:
    return JobBinding(tuple(PodBinding(pod, node) for pod in pods), NOTHING)


def run(
    server: PodServer,
    *commitments: JobBinding,
    guard: Guard | None = None,
    hooks: BindHooks | None = None,
    limit: int = 4,
) -> Landed:
    """All of them carried out to the end."""
    landed = Landed()

    async def life() -> None:
        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0)

        dispatcher = Dispatcher(
            server,
            guard or Guard(),
            landed,
            random.Random(1),
            limit=limit,
            hooks=hooks or BindHooks(),
            sleep=sleep,
            checks=send_checks(),
        )
        for each in commitments:
            dispatcher.submit(each)
        async with asyncio.timeout(HANGS):
            while dispatcher.open_count:
                await asyncio.sleep(0)

    asyncio.run(life())
    return landed


def changed(pod: Pod, *, node: str = "", uid: str = "", deleted: bool = False) -> Pod:
    meta = msgspec.structs.replace(
        pod.metadata, uid=uid or pod.metadata.uid, deletion_timestamp="2026-11-16T00:00:00Z" if deleted else ""
    )
    return msgspec.structs.replace(pod, metadata=meta, spec=msgspec.structs.replace(pod.spec, node_name=node))


WEB = a_pod("web")


@pytest.mark.parametrize(
    ("there", "script", "looks", "fate", "binds"),
    [
        pytest.param(WEB, [], [], "bound", 1, id="accepted"),
        pytest.param(None, [], [], "gone", 1, id="deleted meanwhile"),
        pytest.param(changed(WEB, uid="new"), [], [], "gone", 1, id="made again under its name"),
        pytest.param(changed(WEB, deleted=True), [], [], "gone", 1, id="being deleted"),
        pytest.param(changed(WEB, node="n"), [], [], "bound", 1, id="bound already, as we would have"),
        pytest.param(changed(WEB, node="m"), [], [], "elsewhere", 1, id="bound elsewhere by somebody"),
        pytest.param(WEB, [FORBIDDEN], [], "refused", 1, id="forbidden"),
        pytest.param(WEB, [ApiError(422, "Invalid", "no")], [], "refused", 1, id="invalid"),
        pytest.param(WEB, [ApiError(409, "Conflict", "gates")], [], "refused", 1, id="a conflict with nobody"),
        pytest.param(WEB, [ApiError(404, "NotFound", "denied")], [], "refused", 1, id="a webhook denies it with 404"),
        pytest.param(WEB, [SILENT, ApiError(404)], [], "refused", 2, id="lost, then denied with 404"),
        pytest.param(None, [ApiError(404)], [FORBIDDEN], "refused", 1, id="not found, and we may not look"),
        pytest.param(WEB, [BUSY], [], "bound", 2, id="server could not: the same bind again"),
        pytest.param(changed(WEB, node="n"), [BUSY], [], "bound", 1, id="server says it could not, and has"),
        pytest.param(WEB, [BUSY] * 9, [], "busy", TRIES, id="server cannot"),
        pytest.param(WEB, [ApiError(429, "TooManyRequests")], [], "busy", 1, id="server will not"),
        pytest.param(WEB, [AWAY], [], "never", 1, id="never sent"),
        pytest.param(WEB, [LOST], [], "bound", 1, id="done, answer lost"),
        pytest.param(WEB, [SILENT], [], "bound", 2, id="lost on the way: the same bind again"),
        pytest.param(WEB, [LOST], [AWAY, BUSY], "bound", 1, id="done, and the server away before it can be asked"),
        pytest.param(WEB, [SILENT, AWAY, SILENT], [], "bound", 4, id="without an answer, again and again"),
        pytest.param(WEB, [SILENT] * 9, [], "busy", TRIES, id="never an answer"),
        pytest.param(WEB, [SILENT, FORBIDDEN], [], "refused", 2, id="lost, then forbidden"),
        pytest.param(None, [SILENT], [], "gone", 1, id="lost, then deleted"),
        pytest.param(WEB, [SILENT], [FORBIDDEN], "bound", 2, id="lost, and we may not look"),
    ],
)
def test_what_an_answer_means(
    there: Pod | None, script: list[Exception | str], looks: list[Exception], fate: str, binds: int
) -> None:
    server = PodServer(*([there] if there else []))
    server.script.extend(script)
    server.looks.extend(looks)
    assert run(server, committed(WEB)).fates == [fate]
    assert len(server.binds) == binds
    assert set(server.binds) == {"web to n"}, "whatever happens, it is the node on which the pod is counted"


def test_at_most_so_many_are_in_flight_and_all_arrive() -> None:
    pods = [a_pod(f"p{i}") for i in range(50)]
    server = PodServer(*pods)
    landed = run(server, *(committed(pod) for pod in pods), limit=4)
    assert (server.most, landed.fates) == (4, ["bound"] * 50)


def test_binds_of_one_job_go_out_together_and_land_together() -> None:
    gang, other = [a_pod(f"g{i}") for i in range(6)], a_pod("other")
    server = PodServer(*gang, other)
    server.script.extend([None, FORBIDDEN])
    landed = run(server, committed(*gang), committed(other), limit=8)
    first = server.binds.index("g0 to n")
    assert server.binds[first : first + 6] == [f"g{i} to n" for i in range(6)]
    assert sorted(map(len, landed.all)) == [1, 6]
    assert landed.fates.count("refused") == 1


def test_no_bind_starts_without_the_lease() -> None:
    server, guard = PodServer(WEB), Guard()
    guard.leads = False
    assert run(server, committed(WEB), guard=guard).fates == ["never"]
    assert server.calls == []


class Slow:
    """A PreBind point that takes its time, or fails."""

    name = "Slow"
    awaited = "volumes"

    def may_concern(self, pod: Pod) -> bool:
        return "volume" in pod.metadata.name

    def __init__(self, problem: str = "", error: Exception | None = None) -> None:
        self.problem, self.error = problem, error
        self.done: list[str] = []

    def concerns(self, pod_binding: PodBinding) -> bool:
        return True

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        for _ in range(10):
            await asyncio.sleep(0)
        if self.error:
            raise self.error
        self.done.append(pod_binding.key)
        return self.problem

    def post_bind(self, pod_binding: PodBinding) -> None:
        self.done.append(f"after {pod_binding.key}")


def test_points_are_passed_in_order() -> None:
    slow, server = Slow(), PodServer(WEB)
    assert run(server, committed(WEB), hooks=BindHooks((slow,), (slow,))).fates == ["bound"]
    assert slow.done == ["default/web", "after default/web"]


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        (Slow("no volume"), 'running PreBind plugin "Slow": no volume'),
        (Slow(error=ValueError("a bug")), "ValueError: a bug"),
    ],
)
def test_what_fails_before_the_bind_leaves_nobody_bound_and_nobody_lost(slow: Slow, said: str) -> None:
    gang = [a_pod("a"), a_pod("b")]
    server = PodServer(*gang)
    landed = run(server, committed(*gang), hooks=BindHooks((slow,)))
    assert [(each.status, each.message) for each in landed.all[0]] == [(BindStatus.REJECTED, said)] * 2
    assert server.binds == []


def test_closing_finishes_what_is_sent_and_sends_no_more() -> None:
    pods = [a_pod(f"p{i}") for i in range(4)]
    server, landed = PodServer(*pods), Landed()

    async def life() -> int:
        server.held = asyncio.Event()
        dispatcher = Dispatcher(server, Guard(), landed, random.Random(1), limit=2, checks=send_checks())
        dispatcher._slots.queue._averages["default"] = 0.0  # it was answered before
        for pod in pods:
            dispatcher.submit(committed(pod))
        await wait_until(lambda: server.in_flight == 2)
        assert not dispatcher.calm
        closing = asyncio.ensure_future(dispatcher.close(5.0))
        await yield_to_loop()
        assert not closing.done()
        server.held.set()
        return await closing

    assert asyncio.run(life()) == 0
    assert sorted(landed.fates) == ["bound", "bound", "never", "never"]
    assert len(server.binds) == 2


def test_closing_does_not_wait_for_ever() -> None:
    server, landed = PodServer(WEB), Landed()

    async def life() -> int:
        server.held = asyncio.Event()
        dispatcher = Dispatcher(server, Guard(), landed, random.Random(1), checks=send_checks())
        dispatcher.submit(committed(WEB))
        await asyncio.sleep(0)
        return await dispatcher.close(0.05)

    assert asyncio.run(life()) == 1
    assert landed.all == []


def test_less_urgent_calls_wait_while_binds_do() -> None:
    pods = [a_pod(f"p{i}") for i in range(3)]
    server = PodServer(*pods)

    async def life() -> list[str]:
        log: list[str] = []
        server.held = asyncio.Event()
        dispatcher = Dispatcher(
            server, Guard(), lambda *_: log.append("landed"), random.Random(1), limit=2, checks=send_checks()
        )
        await dispatcher.wait_for_quiet()
        for pod in pods:
            dispatcher.submit(committed(pod))
        await asyncio.sleep(0)

        async def event() -> None:
            await dispatcher.wait_for_quiet()
            log.append("event")

        waiting = asyncio.ensure_future(event())
        await yield_to_loop()
        assert log == []
        server.held.set()
        await waiting
        await dispatcher.wait_for_quiet(0.0)
        return log

    assert "event" in asyncio.run(life())


def held_server(*pods: Pod) -> PodServer:
    """Answers to binds wait until somebody says so."""
    server = PodServer(*pods)
    server.held = asyncio.Event()
    return server


@pytest.mark.parametrize("sizes", [[8], [3, 5], [1] * 8], ids=["a gang", "two gangs", "pods"])
def test_what_is_handed_over_counts_at_once_and_until_it_is_answered(sizes: list[int]) -> None:
    """A burst hands over in a row: whoever counted only what was begun would be a thousand binds ahead."""
    jobs = [[a_pod(f"p{job}-{member}") for member in range(size)] for job, size in enumerate(sizes)]

    async def life() -> None:
        server = held_server(*(pod for job in jobs for pod in job))
        dispatcher = Dispatcher(server, Guard(), Landed(), random.Random(1), limit=4, checks=send_checks())
        dispatcher.backlog.max_under_way = 8 // UNKNOWN_FACTOR
        for job in jobs:
            assert dispatcher.backlog.admits("default"), "the job before this one is not as much as may be ahead"
            dispatcher.submit(committed(*job))
        for _ in range(10):
            assert not dispatcher.backlog.admits("default")
            await asyncio.sleep(0)
        assert server.held is not None
        server.held.set()
        await wait_until(lambda: not dispatcher.open_count)
        assert dispatcher.backlog.admits("default")
        assert (len(server.binds), server.most) == (8, 4)

    asyncio.run(life())


def test_a_job_goes_out_whole_however_large_and_the_next_is_held_back() -> None:
    gang = [a_pod(f"g{i}") for i in range(100)]

    async def life() -> None:
        server, landed = held_server(*gang), Landed()
        dispatcher = Dispatcher(server, Guard(), landed, random.Random(1), limit=4, checks=send_checks())
        dispatcher.backlog.max_under_way = 8
        dispatcher.submit(committed(*gang))
        assert not dispatcher.backlog.admits("default")
        assert server.held is not None
        server.held.set()
        await wait_until(lambda: not dispatcher.open_count)
        assert landed.all == [[BindResult(BindStatus.BOUND)] * 100]

    asyncio.run(life())


@pytest.mark.parametrize("problem", ["", "no volume"])
def test_who_waits_for_volumes_keeps_nobody_from_being_decided(problem: str) -> None:
    gang, made = [a_pod(f"g{i}") for i in range(8)], asyncio.Event()

    class Provisioner(Slow):
        async def pre_bind(self, pod_binding: PodBinding) -> str:
            await made.wait()
            return problem

    async def life() -> None:
        server = held_server(*gang)
        hooks = BindHooks((Provisioner(),))
        dispatcher = Dispatcher(server, Guard(), Landed(), random.Random(1), limit=4, hooks=hooks, checks=send_checks())
        dispatcher.backlog.max_under_way = 8 // UNKNOWN_FACTOR
        dispatcher.submit(committed(*gang))
        assert not dispatcher.backlog.admits("default"), "whether it has to wait is not known yet"
        await yield_to_loop()
        assert dispatcher.backlog.admits("default")
        made.set()
        await yield_to_loop()
        assert dispatcher.backlog.admits("default") == bool(problem)
        assert server.held is not None
        server.held.set()
        await wait_until(lambda: not dispatcher.open_count)
        assert dispatcher.backlog.admits("default")

    asyncio.run(life())


def test_a_plugin_that_fails_leaves_nothing_counted() -> None:
    class Broken(Slow):
        def concerns(self, pod_binding: PodBinding) -> bool:
            raise ValueError("a bug")

    async def life() -> None:
        pods, landed = [a_pod(f"p{i}") for i in range(8)], Landed()
        server, hooks = PodServer(*pods), BindHooks((Broken(),))
        dispatcher = Dispatcher(server, Guard(), landed, random.Random(1), limit=4, hooks=hooks, checks=send_checks())
        dispatcher.submit(committed(*pods))
        await wait_until(lambda: not dispatcher.open_count)
        assert landed.fates == ["refused"] * 8
        assert (dispatcher.resting, dispatcher.calm) == (False, True)

    asyncio.run(life())
