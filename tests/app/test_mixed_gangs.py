"""Members of several schedulers, or of several profiles of ours, are no gang: it is held, and its pods say why."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_node
from tests.api.gangs.small import a_member
from tests.app.town import Town, in_town

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
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=50))
        town.pods(member("a"), member("b"), *others)
        await town.work()
        town.clock.advance(60)
        await town.work()
        assert town.server.binds == []
        assert town.room.place("default/gang/g") is Place.GATED
        own = [pod.metadata.name for pod in (*others,) if pod.spec.scheduler_name in (OURS, ALSO_OURS)]
        said = {f"FailedScheduling {name}: {why}" for name in ("a", "b", *own)}
        assert set(town.told()) == said, "those that are ours, and no others"

    in_town(life)


def test_a_gang_is_one_again_when_the_stranger_is_gone() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=50))
        town.pods(member("a"), member("b"), member("c"), member("x", ALSO_OURS))
        await town.work()
        assert town.server.binds == []
        town.delete("default/x")
        await town.work()
        assert sorted(town.bound()) == ["a", "b", "c"]

    in_town(life)


def test_several_gangs_do_not_concern_each_other() -> None:
    """One is mixed, one is another scheduler's alone, one is ours; and a gang of one is no gang."""

    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=50))
        town.pods(member("a"), member("b"), member("x", ALSO_OURS))
        town.pods(*(member(f"v{i}", "volcano", gang="theirs") for i in range(3)))
        town.pods(*(member(f"o{i}", gang="ours") for i in range(3)))
        town.pods(member("one", gang="loose", least=1), member("other", ALSO_OURS, gang="loose", least=1))
        await town.work()
        assert sorted(town.bound()) == ["o0", "o1", "o2", "one", "other"]
        assert town.feed.assembly.incomplete == {}

    in_town(life)


def test_a_gang_that_runs_is_left_alone_by_a_stranger() -> None:
    """Another tenant's pod with the gang's label: no member is evicted for it, and it is not waited for."""

    async def life(town: Town) -> None:
        town.nodes(a_node("n", cpu=50))
        town.pods(*(member(name, node="n") for name in "abc"), member("x", "volcano"))
        town.feed.assembly.flush()
        town.clock.advance(600)
        await town.scheduler.keeper.step()
        assert (town.server.calls, town.feed.assembly.incomplete) == ([], {})
        for name in "abcx":
            town.delete(f"default/{name}")
        town.feed.assembly.flush()
        assert town.feed.assembly.roll.rosters == {}, "nothing is remembered"

    in_town(life)
