"""The chosen site is the best by our stated objective: as many members as can be, the lowest level, the least room to
spare there and in the levels around; and of it the fewest nodes."""

from collections.abc import Callable

from hypothesis import assume, given

from kubenexus.testing.builders import HOSTNAME, ZONE
from tests.plan.gang.small_gangs import RACK, GangInstance, Place, puzzles
from tests.plan.gang.test_feasible import solved

LEVELS: tuple[Callable[[Place], str], ...] = (
    lambda place: place.domain(HOSTNAME),
    lambda place: place.domain(RACK),
    lambda place: place.domain(ZONE),
    lambda place: "everywhere",
)


def room(puzzle: GangInstance, place: Place) -> int:
    kind = puzzle.kinds[0]
    times = min(place.cpu // kind.cpu, place.gpu // kind.gpu if kind.gpu else place.cpu)
    return min(times, 1) if kind.port else times


def best_sites(puzzle: GangInstance, members: int) -> list[set[str]]:
    """The names of the nodes of the best sites: several, if nothing but a name or a score tells them apart."""
    for i, level in enumerate(LEVELS):
        rated: dict[tuple[int, ...], list[set[str]]] = {}
        for domain in {level(place) for place in puzzle.places} - {""}:
            inside = [place for place in puzzle.places if level(place) == domain]
            if sum(room(puzzle, place) for place in inside) >= members:
                rated.setdefault(spare(puzzle, inside[0], i), []).append({place.name for place in inside})
        if rated:
            return rated[min(rated)]
    return []


def spare(puzzle: GangInstance, place: Place, level: int) -> tuple[int, ...]:
    """The room of the domains this node is in, from a level upwards; none counts as no room at all."""
    return tuple(
        sum(room(puzzle, other) for other in puzzle.places if each(other) == each(place)) if each(place) else 0
        for each in LEVELS[level:]
    )


@given(puzzle=puzzles(levels=("",)))
def test_the_best_site_is_chosen(puzzle: GangInstance) -> None:
    homes = solved(puzzle)
    assume(homes and puzzle.total > 1)  # a pod by itself goes to the node with the best score
    used = set(homes.values())
    sites = [site for site in best_sites(puzzle, len(homes)) if used <= site]
    assert sites
    rooms = sorted((room(puzzle, place) for place in puzzle.places if place.name in sites[0]), reverse=True)
    fewest = next(n for n in range(1, len(rooms) + 1) if sum(rooms[:n]) >= len(homes))
    assert len(used) == fewest
