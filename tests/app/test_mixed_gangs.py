"""Members of several schedulers, or of several profiles of ours, are no gang: it is held, and its pods say why."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

OURS, ALSO_OURS = "default-scheduler", "packing"


def member(name: str, scheduler: str = OURS, *, gang: str = "g", least: int = 3, node: str = "") -> Pod:
    pod = a_member(name, gang, least, cpu=1, node=node)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=scheduler))


def mixed(*names: str) -> str:
    return f"the members of gang default/g name different schedulers ({', '.join(names)}): a gang has one"


@pytest.mark.parametrize(
    ("others", "why"),
    [
        pytest.param([member("c", ALSO_OURS)], mixed(OURS, ALSO_OURS), id="two profiles of ours"),
        pytest.param([member("c", "volcano")], mixed(OURS, "volcano"), id="another scheduler's, waiting"),
        pytest.param([member("c", "volcano", node="n")], mixed(OURS, "volcano"), id="another scheduler's, on a node"),
        pytest.param([member("c"), member("d", "volcano")], mixed(OURS, "volcano"), id="enough without it"),
        pytest.param([member("c", "volcano"), member("d", ALSO_OURS)], mixed(OURS, ALSO_OURS, "volcano"), id="three"),
        pytest.param(
            [member(f"c{i}", f"scheduler-{i}") for i in range(9)],
            mixed(OURS, "scheduler-0", "scheduler-1 and 7 more"),
            id="many: a sentence has an end",
        ),
    ],
)
def test_a_gang_of_several_schedulers_is_held_and_says_so(others: list[Pod], why: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=50))
        fixture.pods(member("a"), member("b"), *others)
        await fixture.work()
        fixture.clock.advance(60)
        await fixture.work()
        assert fixture.server.binds == []
        assert fixture.queue.state("default/gang/g") is QueueState.GATED
        own = [pod.metadata.name for pod in (*others,) if pod.spec.scheduler_name in (OURS, ALSO_OURS)]
        said = {f"FailedScheduling {name}: {why}" for name in ("a", "b", *own)}
        assert set(fixture.told()) == said, "those that are ours, and no others"

    scheduler_test(life)


def test_a_gang_is_one_again_when_the_stranger_is_gone() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=50))
        fixture.pods(member("a"), member("b"), member("c"), member("x", ALSO_OURS))
        await fixture.work()
        assert fixture.server.binds == []
        fixture.delete("default/x")
        await fixture.work()
        assert sorted(fixture.bound()) == ["a", "b", "c"]

    scheduler_test(life)


def test_several_gangs_do_not_concern_each_other() -> None:
    """One is mixed, one is another scheduler's alone, one is ours; and a gang of one is no gang."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=50))
        fixture.pods(member("a"), member("b"), member("x", ALSO_OURS))
        fixture.pods(*(member(f"v{i}", "volcano", gang="theirs") for i in range(3)))
        fixture.pods(*(member(f"o{i}", gang="ours") for i in range(3)))
        fixture.pods(member("one", gang="loose", least=1), member("other", ALSO_OURS, gang="loose", least=1))
        await fixture.work()
        assert sorted(fixture.bound()) == ["o0", "o1", "o2", "one", "other"]
        assert fixture.handlers.assembler.incomplete == {}

    scheduler_test(life)


def test_a_gang_that_runs_is_left_alone_by_a_stranger() -> None:
    """Another tenant's pod with the gang's label: no member is evicted for it, and it is not waited for."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=50))
        fixture.pods(*(member(name, node="n") for name in "abc"), member("x", "volcano"))
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(600)
        await fixture.scheduler.stale_gangs.step()
        assert (fixture.server.calls, fixture.handlers.assembler.incomplete) == ([], {})
        for name in "abcx":
            fixture.delete(f"default/{name}")
        fixture.handlers.assembler.build_changed()
        assert fixture.handlers.assembler.registry.gangs == {}, "nothing is remembered"

    scheduler_test(life)
