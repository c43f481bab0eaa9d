"""A gang is placed if and only if it can be: the planner against trying everything."""

from hypothesis import example, given

from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import HOSTNAME, ZONE
from kubenexus.testing.harness import a_ledger
from tests.plan.gang.small_gangs import RACK, GangInstance, Kind, Place, puzzles
from tests.properties.table_content import bytes_of

RULES = profile_plugins()


def solved(puzzle: GangInstance, *, possible: bool = True) -> dict[str, str]:
    """The members' nodes, by their names. What was decided must be possible (that takes long to find out for large
    gangs: then it must fit), and nothing is written."""
    ledger = a_ledger(puzzle.nodes(), puzzle.others())
    before = bytes_of(ledger)
    decision = Planner(RULES).decide(puzzle.job(), ledger.snapshot(), 0.0)
    assert bytes_of(ledger) == before
    homes = {placement.pod: placement.node for placement in decision.placements}
    assert len(homes) == len(decision.placements)
    assert puzzle.allows(homes) if possible else puzzle.fits(homes)
    assert decision.placed == bool(homes)
    if puzzle.required and homes:
        where = {place.name: place.domain(puzzle.required) for place in puzzle.places}
        assert len({where[node] for node in homes.values()} | {""}) == 2
    return homes


@given(puzzle=puzzles())
@example(GangInstance((Place("n0", 3, 0, "a", "r1"), Place("n1", 2, 0, "a", "r2")), (Kind(4, 1),), 4, required=RACK))
def test_members_of_one_kind_are_placed_exactly_when_they_fit(puzzle: GangInstance) -> None:
    assert len(solved(puzzle)) == puzzle.answer()


@given(puzzle=puzzles(ties=("apart", "near", "even")))
@example(GangInstance((Place("n0", 9, 0, "a", "", 3), Place("n1", 9, 0, "b", "")), (Kind(5, 1),), 5, "even", ZONE, 1))
@example(GangInstance((Place("n0", 9, 0, "a", ""), Place("n1", 9, 0, "", "")), (Kind(3, 1),), 3, "apart", HOSTNAME))
@example(
    GangInstance((Place("a", 3, 0, "b", ""), Place("b", 4, 0, "b", "r3")), (Kind(1, 1),), 1, "near", HOSTNAME, 1, RACK)
)
@example(
    GangInstance((Place("n0", 4, 0, "a", ""), Place("n1", 2, 0, "a", "r1")), (Kind(3, 1),), 1, "near", ZONE, 1, RACK)
)
def test_members_of_one_kind_with_a_tie_are_placed_exactly_when_they_fit(puzzle: GangInstance) -> None:
    assert len(solved(puzzle)) == puzzle.answer()


@given(puzzle=puzzles(kinds=2))
@example(GangInstance((Place("n0", 4, 0, "", ""), Place("n1", 3, 0, "", "")), (Kind(1, 3), Kind(2, 2)), 3))
def test_members_of_two_kinds_are_placed_exactly_when_they_fit(puzzle: GangInstance) -> None:
    assert len(solved(puzzle)) == puzzle.answer()
