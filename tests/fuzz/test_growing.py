"""The growing run on a small cluster: it plays every kind of object, repeats itself, and goes red when it should.

Nothing here is judged by time: what is bounded is bounded by counts."""

import math

import pytest

from kubenexus.testing.fuzz.__main__ import main
from kubenexus.testing.fuzz.growing_run import Bounds, GrowingRun, Worst
from kubenexus.testing.large.groups import GROUPS
from kubenexus.testing.large.large_cluster import LargeCluster, run_on_large_cluster
from kubenexus.testing.large.objects import OTHERS
from kubenexus.testing.large.pods import PODS
from kubenexus.testing.large.scenarios import NAME, dimensions, fits, grown, play

NODES = 40
ANY = Bounds(math.inf, math.inf)


def test_a_few_rounds_leave_every_ordinary_pod_its_place() -> None:
    growing = GrowingRun(3, ANY)
    growing.run(range(2), NODES)
    assert growing.broken == []
    assert sum(worst.scenarios for worst in growing.worst.values()) > 10
    assert any("what grew" in line for line in growing.report())


def test_a_round_follows_from_the_seed_and_its_number() -> None:
    """But for times, which are those of the machine."""
    seen = []
    for rounds in (range(2), range(1, 2), range(1, 2)):
        growing = GrowingRun(7, ANY)
        growing.run(rounds, NODES)
        seen.append({key: (worst.scenarios, worst.refused) for key, worst in growing.worst.items()})
    assert seen[1] == seen[2]
    assert seen[0].items() >= seen[1].items()


@pytest.mark.parametrize(
    "bounds", [pytest.param(Bounds(seconds=0.0), id="time"), pytest.param(Bounds(megabytes=-1.0), id="memory")]
)
def test_a_turn_beyond_its_bounds_is_told_with_how_to_see_it_again(bounds: Bounds) -> None:
    growing = GrowingRun(3, bounds)
    growing.run(range(1), NODES)
    assert growing.broken
    assert "again: python -m kubenexus.testing.fuzz --grow --seed 3 --round 0" in "\n".join(growing.report())


def test_the_command_says_what_was_worst(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of the machine's times, and so it is not looked at."""
    main(["--grow", "--rounds", "1", "--nodes", str(NODES), "--seed", "5"])
    assert "what grew" in capsys.readouterr().out


def test_the_worst_of_nothing_is_nothing() -> None:
    assert Worst() == Worst(0, 0, 0.0, "", 0, 0.0)


@pytest.mark.parametrize("dimension", sorted(PODS))
def test_every_field_of_a_pod_grows_to_what_an_api_server_accepts(dimension: str) -> None:
    few, many = grown(PODS[dimension], 3), grown(PODS[dimension], 200)
    assert fits(many)
    assert len(str(many)) > len(str(few))


def test_every_scene_can_be_played_one_after_the_other() -> None:
    """On one stage, with forty entries each: whatever is left behind by one is met by the next."""
    played = list[tuple[str, str]]()

    async def all_of_them(cluster: LargeCluster) -> None:
        for about, dimension in dimensions():
            scenario = await play(cluster, about, dimension, 40)
            assert scenario is not None
            assert not cluster.said_of(NAME)
            played.append((about, dimension))

    run_on_large_cluster(all_of_them, NODES)
    assert len(played) == 2 * len(PODS) + len(OTHERS) + len(GROUPS)


@pytest.mark.parametrize("first", sorted(PODS))
def test_every_field_can_be_grown_beside_every_other(first: str) -> None:
    for second in PODS:
        pod = grown(PODS[first], 3)
        PODS[second](pod, 3)
        assert fits(pod)
