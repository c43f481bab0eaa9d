"""Gangs that fit tightly, known to fit because the cluster was made around them. Taking members in their order, or the
best node for each, leaves most of these behind."""

import random
from typing import Any

import pytest

from kubenexus.plan.gang.multi_class import packer, packing_problem
from kubenexus.testing.builders import HOSTNAME
from tests.plan.gang.small_gangs import GangInstance, Kind, Place
from tests.plan.gang.test_feasible import solved
from tests.rounds import rounds


def planted(dice: random.Random, nodes: int, kinds: int, spare: float = 0.0, each: int = 4) -> GangInstance:
    """Every node has just what the up to `each` members that were drawn for it ask for; some have a little to spare."""
    asked = [(dice.randint(1, 6), dice.randint(0, 3)) for _ in range(kinds)]
    homes = [[dice.randrange(kinds) for _ in range(dice.randint(1, each))] for _ in range(nodes)]

    def more() -> int:
        return dice.randint(1, 3) if dice.random() < spare else 0

    places = [
        Place(f"n{i}", sum(asked[k][0] for k in home) + more(), sum(asked[k][1] for k in home) + more(), "", "")
        for i, home in enumerate(homes)
    ]
    numbers = [sum(home.count(k) for home in homes) for k in range(kinds)]
    members = tuple(Kind(number, *each) for number, each in zip(numbers, asked, strict=True) if number)
    return GangInstance(tuple(places), members, sum(numbers))


def anything(seed: int) -> GangInstance:
    dice = random.Random(seed)
    nodes, kinds = dice.randint(4, 40), dice.randint(2, 5)
    return planted(dice, nodes, kinds, dice.choice([0.0, 0.1, 0.3, 0.6]), dice.choice([4, 6, 8]))


@pytest.mark.parametrize(("nodes", "kinds"), [(4, 2), (8, 3), (12, 4), (40, 2), (30, 4)])
def test_a_gang_that_fits_tightly_is_placed(nodes: int, kinds: int) -> None:
    for seed in range(rounds(10, 25)):
        puzzle = planted(random.Random(seed), nodes, kinds)
        assert len(solved(puzzle, possible=False)) == puzzle.total


def test_of_gangs_of_any_kinds_that_fit_99_of_100_are_placed() -> None:
    """Two to five kinds on up to forty nodes, with nothing to spare or with a little."""
    seeds = range(rounds(100, 200))
    behind = [seed for seed in seeds if len(solved(puzzle := anything(seed), possible=False)) < puzzle.total]
    assert len(behind) <= len(seeds) // 100, f"seeds {behind}"


def test_work_grows_with_the_number_of_kinds_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang whose members all differ is planned in a few looks at the nodes of each domain for each of them."""
    looks = []

    def counted(free: Any, demand: Any) -> Any:
        looks.append(demand)
        return packing_problem.fits_count(free, demand)

    monkeypatch.setattr(packer, "fits_count", counted)
    places = tuple(Place(f"n{i}", 3, 0, "", "") for i in range(600))
    puzzle = GangInstance(places, tuple(Kind(1, 1 + k % 2, 0, 8000 + k) for k in range(200)), 200)
    assert len(solved(puzzle, possible=False)) == 200
    assert len(looks) <= 20 * 200


def test_a_gang_larger_than_the_budget_is_placed_where_there_is_room_for_all() -> None:
    """Two kinds that keep apart by node: no rack has nodes enough, and many racks are tried before the cluster."""
    places = tuple(Place(f"n{i}", 4, 0, "", f"r{i // 50}") for i in range(600))
    puzzle = GangInstance(places, (Kind(200, 1), Kind(200, 2)), 400, tie="apart", key=HOSTNAME)
    assert len(solved(puzzle, possible=False)) == 400
