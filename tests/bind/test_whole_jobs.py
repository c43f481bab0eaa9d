"""Between decision and bind a job is checked as a whole: enough of it can be bound, or none of it is. Once it has begun
it is carried through, and each bind has an outcome of its own."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.bind.bind_result import BindResult, BindStatus
from kubenexus.bind.dispatcher import Dispatcher
from kubenexus.bind.job_binding import BindHooks, JobBinding, PodBinding
from kubenexus.bind.job_progress import LOOKS, JobProgress, SendChecks
from kubenexus.client.calls import Call
from kubenexus.framework.decision import Decision
from kubenexus.framework.verdict import Code
from kubenexus.testing.builders import a_pod
from tests.async_helpers import wait_until, yield_to_loop
from tests.bind.send_checks import send_checks
from tests.bind.server import FORBIDDEN, SILENT, Guard, PodServer

NOTHING = Decision("job", Code.SUCCESS, 0, 0.0)
STRANGE = RuntimeError("something that no answer explains")


class Landed:
    def __init__(self) -> None:
        self.fates: list[list[str]] = []

    def __call__(self, job_binding: JobBinding, results: Sequence[BindResult]) -> None:
        self.fates.append([each.status.value for each in results])


class Volumes:
    """A PreBind point that waits until the test says so; those in `failing` fail at once."""

    name = "Volumes"
    awaited = "volumes"

    def __init__(self, *failing: str) -> None:
        self.made, self.failing, self.ended = asyncio.Event(), failing, list[str]()

    def may_concern(self, pod: Pod) -> bool:
        return True

    def concerns(self, pod_binding: PodBinding) -> bool:
        return True

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        try:
            if pod_binding.pod.metadata.name in self.failing:
                return "no volume"
            await self.made.wait()
            return ""
        finally:
            self.ended.append(pod_binding.pod.metadata.name)


class Stage:
    """A dispatcher, and what the test may do to it."""

    def __init__(self, *pods: Pod, limit: int = 4, volumes: Volumes | None = None) -> None:
        self.server, self.guard, self.landed, self.lost = PodServer(*pods), Guard(), Landed(), set[str]()
        self.needs: int | None = None
        self.problems: list[str] = []
        self.dispatcher = Dispatcher(
            self.server,
            self.guard,
            self.landed,
            random.Random(1),
            limit=limit,
            hooks=BindHooks((volumes,) if volumes else ()),
            checks=send_checks(
                still_wanted=self._still,
                needs=self._needed,
                problem=lambda doing, error: self.problems.append(f"{doing}: {error}"),
            ),
            sleep=lambda seconds: asyncio.sleep(0),
        )

    def submit(self, pods: Sequence[Pod], minimum: int) -> None:
        self.dispatcher.submit(JobBinding(tuple(PodBinding(pod, "n") for pod in pods), NOTHING, minimum=minimum))

    def hold(self) -> asyncio.Event:
        self.server.held = asyncio.Event()
        return self.server.held

    def _still(self, pod_binding: PodBinding) -> str:
        return "it is gone" if pod_binding.pod.metadata.name in self.lost else ""

    def _needed(self, job_binding: JobBinding) -> int:
        return job_binding.minimum if self.needs is None else self.needs


def four(prefix: str = "m") -> list[Pod]:
    return [a_pod(f"{prefix}{i}") for i in range(4)]


def lose(*names: str) -> Callable[[Stage], None]:
    return lambda stage: stage.lost.update(names)


def depose(stage: Stage) -> None:
    stage.guard.leads = False


def need_more(stage: Stage) -> None:
    stage.needs = 5


@pytest.mark.parametrize(
    ("happens", "minimum", "fates", "binds"),
    [
        pytest.param(lose(), 4, ["bound"] * 4, 4, id="nothing happens"),
        pytest.param(lose("m3"), 4, ["never"] * 4, 0, id="a member or its node is gone"),
        pytest.param(lose("m3"), 3, ["bound"] * 3 + ["never"], 3, id="one is gone, and enough are left"),
        pytest.param(lose("m0", "m3"), 3, ["never"] * 4, 0, id="two are gone, and too few are left"),
        pytest.param(lose("m0", "m1", "m2", "m3"), 1, ["never"] * 4, 0, id="none is left"),
        pytest.param(need_more, 4, ["never"] * 4, 0, id="one that had its node already is gone"),
        pytest.param(depose, 4, ["never"] * 4, 0, id="the fence has closed"),
    ],
)
@pytest.mark.parametrize("when", ["while volumes are made", "while they stand in line"])
def test_of_a_gang_enough_are_bound_or_none(
    when: str, happens: Callable[[Stage], None], minimum: int, fates: list[str], binds: int
) -> None:
    async def life() -> None:
        gang, before = four(), [a_pod(f"before-{i}") for i in range(4)]
        volumes = Volumes()
        stage = Stage(*gang, *before, volumes=volumes if when == "while volumes are made" else None)
        stage.dispatcher._slots.queue._averages["default"] = 0.0  # it was answered before
        held = stage.hold()
        if when == "while they stand in line":
            for pod in before:
                stage.submit([pod], 1)
            await wait_until(lambda: stage.server.in_flight == 4)
        stage.submit(gang, minimum)
        await yield_to_loop()
        happens(stage)
        volumes.made.set()
        held.set()
        await wait_until(lambda: not stage.dispatcher.open_count)
        assert stage.landed.fates[-1] == fates
        assert sum(bind.startswith("m") for bind in stage.server.binds) == binds

    asyncio.run(life())


def test_a_prebind_that_fails_for_one_member_ends_those_of_the_others_at_once() -> None:
    async def life() -> None:
        volumes = Volumes("m2")
        stage = Stage(*four(), volumes=volumes)
        stage.submit(four(), 4)
        await wait_until(lambda: not stage.dispatcher.open_count)
        assert stage.landed.fates == [["refused"] * 4]
        assert (sorted(volumes.ended), stage.server.binds) == (["m0", "m1", "m2", "m3"], [])

    asyncio.run(life())


@pytest.mark.parametrize(
    ("minimum", "sent"),
    [pytest.param(4, 1, id="the first refusal is enough"), pytest.param(2, 3, id="three leave one of the two needed")],
)
def test_while_nobody_is_bound_refusals_count_as_lost(minimum: int, sent: int) -> None:
    async def life() -> None:
        stage = Stage(*four(), limit=1)
        stage.server.script.extend([FORBIDDEN] * 4)
        stage.submit(four(), minimum)
        await wait_until(lambda: not stage.dispatcher.open_count)
        assert len(stage.server.binds) == sent
        assert stage.landed.fates == [["refused"] * sent + ["never"] * (4 - sent)]

    asyncio.run(life())


def test_a_large_job_that_fails_bit_by_bit_is_not_looked_at_each_time() -> None:
    """What a job costs is bounded by its size, whatever its members meet."""
    asked, pod_bindings = list[str](), tuple(PodBinding(a_pod(f"p{i}"), "n") for i in range(100))
    progress = JobProgress(JobBinding(pod_bindings, NOTHING))

    def still(pod_binding: PodBinding) -> str:
        asked.append(pod_binding.key)
        return ""

    for pod_binding in pod_bindings[:99]:
        assert progress.short(send_checks(still_wanted=still)) == ""
        progress.sent(pod_binding)
        progress.ended(pod_binding, BindResult(BindStatus.REJECTED))
    assert len(asked) < LOOKS * len(pod_bindings)
    progress.ended(pod_bindings[99], BindResult(BindStatus.REJECTED, "no"))
    assert progress.short(send_checks(still_wanted=still)) != ""


@pytest.mark.parametrize("stops", [True, False], ids=["the first failure stops it", "each bind fails for itself"])
def test_what_a_gang_needs_is_counted_a_few_times_however_many_of_its_binds_fail(stops: bool) -> None:
    """The count goes through all members of the gang, so one for each bind would take their square."""
    pods, counts = [a_pod(f"p{i}") for i in range(1000)], 0

    def needs(job_binding: JobBinding) -> int:
        nonlocal counts
        counts += 1
        return 1000 if stops else 1

    def still(pod_binding: PodBinding) -> str:
        return "" if stops or pod_binding.key == pods[-1].key else "it is gone"

    async def life() -> None:
        server, landed = PodServer(*pods), Landed()
        server.outage = lambda: FORBIDDEN
        dispatcher = Dispatcher(
            server, Guard(), landed, random.Random(1), limit=1, checks=send_checks(still_wanted=still, needs=needs)
        )
        pod_bindings = tuple(PodBinding(pod, "n") for pod in pods)
        dispatcher.submit(JobBinding(pod_bindings, NOTHING, minimum=1))
        await wait_until(lambda: dispatcher.open_count == 0)
        assert [sorted(set(each)) for each in landed.fates] == [["never", "refused"]]

    asyncio.run(life())
    assert counts < 2 * LOOKS + 10


# --- TERM ---------------------------------------------------------------------------------------------------------


def test_closing_carries_through_what_has_begun_and_begins_nothing() -> None:
    """Three gangs at once: one in the middle, one in line, one that waits for its volumes."""

    async def life() -> None:
        begun, waiting, preparing = ([a_pod(f"{name}{i:02}") for i in range(10)] for name in "bwp")

        class SomeVolumes(Volumes):
            def concerns(self, pod_binding: PodBinding) -> bool:
                return pod_binding.pod.metadata.name.startswith("p")

        stage = Stage(*begun, *waiting, *preparing, limit=3, volumes=SomeVolumes())
        stage.dispatcher._slots.queue._averages["default"] = 0.0  # it was answered before
        held = stage.hold()
        for gang in (begun, waiting, preparing):
            stage.submit(gang, 10)
        await wait_until(lambda: stage.server.in_flight == 3)
        closing = asyncio.ensure_future(stage.dispatcher.close(5.0))
        await wait_until(lambda: len(stage.landed.fates) == 1)
        assert stage.landed.fates == [["never"] * 10], "who waits for volumes is not waited for"
        held.set()
        assert await closing == 0
        assert sorted(stage.landed.fates[1:]) == [["bound"] * 10, ["never"] * 10]
        assert {bind[0] for bind in stage.server.binds} == {"b"}
        assert stage.dispatcher.calm

    asyncio.run(life())


def test_the_fence_is_asked_even_at_the_end() -> None:
    async def life() -> None:
        stage = Stage(*four(), limit=1)
        held = stage.hold()
        stage.submit(four(), 4)
        await wait_until(lambda: stage.server.in_flight == 1)
        closing = asyncio.ensure_future(stage.dispatcher.close(5.0))
        stage.guard.leads = False
        held.set()
        assert await closing == 0
        assert stage.landed.fates == [["bound", "never", "never", "never"]]

    asyncio.run(life())


def test_what_is_handed_over_after_the_end_is_not_begun() -> None:
    async def life() -> None:
        stage = Stage(*four(), volumes=Volumes())
        assert await stage.dispatcher.close(5.0) == 0
        stage.submit(four(), 4)
        await wait_until(lambda: not stage.dispatcher.open_count)
        assert (stage.landed.fates, stage.server.calls) == ([["never"] * 4], [])

    asyncio.run(life())


# --- errors that no answer explains -------------------------------------------------------------------------------


class Strange(PodServer):
    """Raises what it should not, once: before a bind is done, after that, or at a look."""

    def __init__(self, *pods: Pod, when: str) -> None:
        super().__init__(*pods)
        self.when = when

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        bind = call.path.endswith("/m1/binding")
        if bind and self.when == "before":
            self.when = ""
            raise STRANGE
        answer = await super().send(call, timeout=timeout)
        if bind and self.when in ("after", "after, and at the look"):
            self.when = self.when.removeprefix("after").removeprefix(", and ")
            raise STRANGE
        if call.method == "GET" and self.when == "at the look":
            self.when = ""
            raise STRANGE
        return answer


@pytest.mark.parametrize("when", ["before", "after", "after, and at the look"])
def test_an_error_that_nothing_explains_is_looked_into_and_is_one_binds_alone(when: str) -> None:
    async def life() -> None:
        gang, landed, problems = four(), Landed(), list[str]()
        server = Strange(*gang, when=when)
        hooks = send_checks(problem=lambda doing, error: problems.append(str(error)))
        dispatcher = Dispatcher(
            server, Guard(), landed, random.Random(1), checks=hooks, sleep=lambda seconds: asyncio.sleep(0)
        )
        dispatcher.submit(JobBinding(tuple(PodBinding(pod, "n") for pod in gang), NOTHING, minimum=4))
        await wait_until(lambda: not dispatcher.open_count)
        assert landed.fates == [["bound"] * 4]
        assert all(pod.spec.node_name == "n" for pod in server.pods.values())
        assert set(problems) == {str(STRANGE)}

    asyncio.run(life())


def test_an_error_of_our_own_while_a_bind_is_settled_does_not_end_the_others() -> None:
    """Where nothing foresees it, too."""

    async def life() -> None:
        stage = Stage(*four())
        stage.server.script.extend([SILENT] * 4)
        settle, errors = stage.dispatcher._settle, [STRANGE, STRANGE]

        async def odd(*arguments: Any) -> BindResult:
            if errors:
                raise errors.pop()
            return await settle(*arguments)

        stage.dispatcher._settle = odd  # type: ignore[method-assign, assignment]
        stage.submit(four(), 4)
        await wait_until(lambda: not stage.dispatcher.open_count)
        assert stage.landed.fates == [["bound"] * 4]
        assert stage.problems == [f"sending a bind: {STRANGE}"] * 2

    asyncio.run(life())


def test_a_job_does_not_land_while_a_bind_of_it_is_under_way() -> None:
    """An error in one bind once freed the room of all others, which then landed on it."""

    async def life() -> None:
        gang, landed = four(), Landed()
        server = Strange(*gang, when="before")
        server.held = asyncio.Event()
        dispatcher = Dispatcher(
            server, Guard(), landed, random.Random(1), sleep=lambda seconds: asyncio.sleep(0), checks=send_checks()
        )
        dispatcher.submit(JobBinding(tuple(PodBinding(pod, "n") for pod in gang), NOTHING, minimum=4))
        await yield_to_loop()
        assert landed.fates == []
        server.held.set()
        await wait_until(lambda: not dispatcher.open_count)
        assert landed.fates == [["bound"] * 4]

    asyncio.run(life())


def _strange(*_: object) -> str:
    raise STRANGE


@pytest.mark.parametrize(
    ("hooks", "fate"),
    [
        pytest.param(send_checks(still_wanted=_strange), "refused", id="whether it is still wanted"),
        pytest.param(send_checks(needs=_strange), "refused", id="how many are needed"),
    ],
)
def test_a_question_that_fails_leaves_nobody_bound(hooks: SendChecks, fate: str) -> None:
    async def life() -> None:
        gang, landed = four(), Landed()
        server = PodServer(*gang)
        dispatcher = Dispatcher(server, Guard(), landed, random.Random(1), checks=hooks)
        dispatcher.submit(JobBinding(tuple(PodBinding(pod, "n") for pod in gang), NOTHING, minimum=4))
        dispatcher.submit(JobBinding((PodBinding(gang[0], "n"),), NOTHING))
        await wait_until(lambda: not dispatcher.open_count)
        assert sorted(landed.fates) == [["never"], [fate] * 4]
        assert (server.binds, dispatcher.resting, dispatcher.calm) == ([], False, True)

    asyncio.run(life())


def test_what_a_plugin_makes_of_a_bind_does_not_undo_it() -> None:
    class Odd:
        def post_bind(self, pod_binding: PodBinding) -> None:
            raise STRANGE

    async def life() -> None:
        gang, landed = four(), Landed()
        dispatcher = Dispatcher(
            PodServer(*gang), Guard(), landed, random.Random(1), hooks=BindHooks((), (Odd(),)), checks=send_checks()
        )
        dispatcher.submit(JobBinding(tuple(PodBinding(pod, "n") for pod in gang), NOTHING, minimum=4))
        await wait_until(lambda: not dispatcher.open_count)
        assert landed.fates == [["bound"] * 4]

    asyncio.run(life())


def test_a_landing_that_fails_is_told_of() -> None:
    async def life() -> None:
        stage = Stage(*four())
        stage.dispatcher._on_results = _strange  # type: ignore[assignment]
        stage.submit(four(), 4)
        await wait_until(lambda: not stage.dispatcher.open_count)
        assert stage.problems == [f"applying the results of a bind: {STRANGE}"]

    asyncio.run(life())
