"""The same seed is the same scenario with the same faults; and 220 of them have what was promised."""

import json
from collections import Counter
from random import Random

import pytest

from tests.chaos.faults import FAULTS, LONGEST_DELAY, Plan
from tests.chaos.large_pods import a_monster
from tests.chaos.replicas import LEASE_SECONDS, RENEW_SECONDS
from tests.chaos.scenario import BURST, DEEDS, OPTIONAL, THEMES, scenario

SEEDS = range(1, 221)
RATES = {"bind": {"drop": 0.3, "delay": 0.3}, "get": {"500": 0.5}}


def drawn(seed: int, order: str) -> dict[str, list[object]]:
    """The faults of requests in this order, by their sort."""
    plan, found = Plan(seed, RATES), dict[str, list[object]]()
    for letter in order:
        sort = {"b": "bind", "g": "get", "w": "watch pods"}[letter]
        found.setdefault(sort, []).append(plan.next(sort))
    return found


def test_a_fault_depends_on_the_seed_and_the_number_of_its_sort_alone() -> None:
    assert drawn(1, "bbbbbbgggw") == drawn(1, "gbwbgbbbgb")
    assert drawn(1, "b" * 20) != drawn(2, "b" * 20)


def test_faults_come_as_often_as_they_should_and_nowhere_else() -> None:
    found = drawn(3, "b" * 1000 + "w" * 100)
    kinds = Counter(getattr(fault, "kind", "") for fault in found["bind"])
    assert 250 < kinds["drop"] < 350
    assert 250 < kinds["delay"] < 350
    assert set(found["watch pods"]) == {None}


def test_the_same_seed_is_the_same_scenario() -> None:
    assert [scenario(seed) for seed in SEEDS] == [scenario(seed) for seed in SEEDS]
    assert len({repr(scenario(seed)) for seed in SEEDS}) == len(SEEDS)


def test_all_seeds_have_each_theme_deed_and_fault_and_enough_kills_in_a_burst() -> None:
    plays = [scenario(seed) for seed in SEEDS]
    deeds = [wave.deed for play in plays for wave in play.waves if wave.deed is not None]
    assert {play.theme for play in plays} == set(THEMES)
    assert {deed.kind for deed in deeds} == set(DEEDS)
    assert {kind for play in plays for faults in play.rates.values() for kind, rate in faults.items() if rate} == set(
        FAULTS
    )
    assert {how for play in plays for wave in play.waves for _, how in wave.broken} == {"500", "hang", "garbage"}
    assert {path for play in plays for wave in play.waves for path, _ in wave.broken} == set(OPTIONAL)
    kills = [play for play in plays if play.theme == "burst" and play.pods == BURST == 1000]
    assert len(kills) >= 20
    assert all(wave.deed is not None and 50 <= wave.deed.binds < 700 for play in kills for wave in play.waves)


def test_gangs_come_several_at_once_and_some_may_start_with_fewer_than_all() -> None:
    plays = [play for play in map(scenario, SEEDS) if play.theme == "gangs"]
    waves = [wave for play in plays for wave in play.waves]
    assert len(plays) == 20
    assert all(wave.gangs for wave in waves)
    assert sum(len(wave.gangs) > 2 for wave in waves) > 20
    elastic = [minimum < size for wave in waves for size, minimum in wave.gangs]
    assert 0.15 < sum(elastic) / len(elastic) < 0.5
    assert all(2 <= minimum <= size for wave in waves for size, minimum in wave.gangs)


def test_each_monster_is_larger_than_what_people_write_and_small_enough_for_the_server() -> None:
    for number in range(50):
        text = json.dumps(a_monster("m", "kubenexus-scheduler", Random(number)))
        assert 10_000 < len(text) < 1_000_000


@pytest.mark.parametrize("seed", SEEDS)
def test_there_is_less_room_than_is_asked_for_or_nearly_so(seed: int) -> None:
    """Where there is plenty, nobody overbooks."""
    play = scenario(seed)
    assert play.pods * 1.2 + play.rival > play.nodes * play.cpu * 0.8


def test_no_delay_outlasts_what_a_lease_can_bear() -> None:
    assert LONGEST_DELAY < LEASE_SECONDS - RENEW_SECONDS
