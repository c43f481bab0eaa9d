"""Gangs that fit tightly, known to fit because the cluster was made around them. Taking members in their order, or the
best node for each, leaves most of these behind."""

import random

import pytest

from tests.plan.gang.puzzles import Kind, Place, Puzzle
from tests.plan.gang.test_feasible import solved


def planted(seed: int, nodes: int, kinds: int) -> Puzzle:
    """Every node has just what the members that were drawn for it ask for."""
    rng = random.Random(seed)
    asked = [(rng.randint(1, 6), rng.randint(0, 3)) for _ in range(kinds)]
    homes = [[rng.randrange(kinds) for _ in range(rng.randint(1, 4))] for _ in range(nodes)]
    places = [
        Place(f"n{i}", sum(asked[k][0] for k in home), sum(asked[k][1] for k in home), "", "")
        for i, home in enumerate(homes)
    ]
    numbers = [sum(home.count(k) for home in homes) for k in range(kinds)]
    members = tuple(Kind(number, *each) for number, each in zip(numbers, asked, strict=True) if number)
    return Puzzle(tuple(places), members, sum(numbers))


@pytest.mark.parametrize(("nodes", "kinds"), [(4, 2), (8, 3), (12, 4), (40, 2)])
def test_a_gang_that_fits_tightly_is_placed(nodes: int, kinds: int) -> None:
    for seed in range(25):
        puzzle = planted(seed, nodes, kinds)
        assert len(solved(puzzle, possible=False)) == puzzle.total
