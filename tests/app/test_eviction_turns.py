"""Many members that have to go: a bounded number in each step, of all tenants in turn."""

import asyncio

import msgspec

from kubenexus.api.core import Pod, PodCondition, PodStatus
from kubenexus.app.gangs.stale_gang_evictor import A_STEP, AT_ONCE, PERIOD, SEND
from kubenexus.client.calls import Call, Uncertain
from kubenexus.testing.builders import a_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_stale_gang_evictor import BEGAN, OWNER, bound, evicted
from tests.sim.virtual.virtual_time import elapse


def named(namespace: str, gang: str, size: int) -> list[Pod]:
    """Members of a gang that lacks one, bound when the clock began."""
    found = []
    for i in range(size):
        pod = a_member(f"{gang}-{i}", gang, size + 1, cpu="1m", node="n1", namespace=namespace)
        said = [PodCondition(type="PodScheduled", status="True", last_transition_time=BEGAN)]
        meta = msgspec.structs.replace(pod.metadata, owner_references=OWNER)
        found.append(msgspec.structs.replace(pod, metadata=meta, status=PodStatus(phase="Pending", conditions=said)))
    return found


def test_a_gang_of_thousands_delays_no_other_tenants_and_no_other_gangs() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=64, pods=4000))
        fixture.pods(*named("evil", "huge", 3 * A_STEP), *named("evil", "small", 2), *named("good", "theirs", 3))
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(300)
        fixture.server.calls.clear()
        await fixture.scheduler.stale_gangs.step()
        asked = evicted(fixture)
        assert len(asked) == A_STEP
        assert {"theirs-0", "theirs-1", "theirs-2", "small-0", "small-1"} <= set(asked[:AT_ONCE])
        assert fixture.server.most <= AT_ONCE
        for _ in range(3):
            await fixture.scheduler.stale_gangs.step()
        assert len(evicted(fixture)) == len(set(evicted(fixture))) == 3 * A_STEP + 5

    scheduler_test(life)


def test_with_more_namespaces_than_a_step_has_turns_each_has_one_in_time() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=64, pods=4000))
        for i in range(A_STEP + 50):
            fixture.pods(*named(f"t{i:03}", f"g{i:03}", 3))
            fixture.handlers.assembler.build_changed()
        fixture.clock.advance(300)
        await fixture.scheduler.stale_gangs.step()
        await fixture.scheduler.stale_gangs.step()
        assert len({name.split("-")[0] for name in evicted(fixture)}) == A_STEP + 50

    scheduler_test(life)


def test_holes_end_in_time_while_an_eviction_takes_long() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        stale_gangs, asked, ends = fixture.scheduler.stale_gangs, list[float](), list[int]()

        async def hangs(call: Call, *, timeout: float = 10.0) -> bytes:
            asked.append(timeout)
            return await asyncio.Event().wait() and b""

        fixture.nodes(a_node("n1", cpu=4))
        fixture.pods(bound("a", "n1"))
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(300)
        stale_gangs._api.send = hangs  # type: ignore[method-assign]
        fixture.scheduler.replacement_holds.expire = lambda: ends.append(1)  # type: ignore[method-assign]
        running = asyncio.ensure_future(stale_gangs.run())
        await elapse(10 * PERIOD + 1)
        running.cancel()
        assert (asked, len(ends)) == ([SEND], 10 + 9), "the second step comes a period later, and all others in time"

    scheduler_test(life)


def test_evictions_that_hang_delay_no_other_tenants_release() -> None:
    """A webhook on evictions in one namespace does not answer: 250 of its members would take 32 times 5 s."""

    async def life(fixture: SchedulerFixture) -> None:
        stale_gangs, asked, most = fixture.scheduler.stale_gangs, dict[str, float](), [0, 0]

        async def hangs(call: Call, *, timeout: float = 10.0) -> bytes:
            asked.setdefault(call.path.split("/")[6], asyncio.get_running_loop().time())
            if call.namespace == "evil":
                most[0] += 1
                most[1] = max(most)
                await elapse(timeout)
                most[0] -= 1
                raise Uncertain("no answer")
            return b"{}"

        def come(*pods: Pod) -> None:
            fixture.pods(*pods)
            fixture.handlers.assembler.build_changed()
            fixture.clock.advance(300)

        fixture.nodes(a_node("n1", cpu=64, pods=4000))
        stale_gangs._api.send = hangs  # type: ignore[method-assign]
        come(*named("evil", "huge", A_STEP), *named("good", "first", 3))
        running = asyncio.ensure_future(stale_gangs.run())
        await elapse(2 * PERIOD)
        come(*named("good", "second", 3))
        await elapse(2 * PERIOD)
        assert {f"{gang}-{i}" for gang in ("first", "second") for i in range(3)} <= set(asked)
        assert most[1] <= AT_ONCE
        fixture.pods(a_member("huge-last", "huge", A_STEP + 1, cpu="1m", node="n1", namespace="evil"))
        fixture.handlers.assembler.build_changed()
        await elapse(2 * PERIOD + SEND)
        before = len(asked)
        await elapse(20 * PERIOD)
        assert len(asked) == before < A_STEP, "what waits for its turn stays when its gang is whole"
        running.cancel()

    scheduler_test(life)
