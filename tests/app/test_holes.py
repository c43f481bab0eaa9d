"""The place of a lost member is held for its replacement: for whom, for how long, and how little that is worth to a
tenant who makes and deletes members."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app import holes
from kubenexus.app.holes import HELD, SHORTEST
from kubenexus.base.moments import seconds_text
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import lineup
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger, relist
from tests.api.gangs.small import a_member
from tests.app.test_keeper import bound, leave
from tests.app.town import Town, in_town


def three(town: Town) -> list[Pod]:
    """A gang that has filled three nodes for two minutes."""
    town.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
    members = [bound(name, f"n{i}", phase="Running") for i, name in enumerate("abc")]
    town.pods(*members)
    town.feed.assembly.flush()
    town.clock.advance(HELD)
    return members


def test_the_hole_of_a_lost_member_is_held_for_its_replacement() -> None:
    async def life(town: Town) -> None:
        *_, last = three(town)
        leave(town, last)
        town.pods(a_pod("thief", cpu=1))
        await town.work()
        assert "thief" not in town.where()
        town.pods(a_member("d", "llama", 3, cpu=1))
        await town.work()
        assert town.where()["d"] == "n2"

    in_town(life)


def test_a_hole_is_not_held_for_ever() -> None:
    async def life(town: Town) -> None:
        *_, last = three(town)
        leave(town, last)
        town.pods(a_pod("thief", cpu=1))
        await town.work()
        town.clock.advance(HELD)
        await town.scheduler.keeper.step()
        town.clock.advance(10)
        await town.work()
        assert town.where()["thief"] == "n2"

    in_town(life)


def test_who_is_more_urgent_does_not_respect_a_hole() -> None:
    async def life(town: Town) -> None:
        *_, last = three(town)
        leave(town, last)
        town.pods(a_pod("urgent", cpu=1, priority=1000))
        await town.work()
        assert town.where()["urgent"] == "n2"

    in_town(life)


def test_a_gang_that_goes_as_a_whole_leaves_no_holes() -> None:
    async def life(town: Town) -> None:
        for pod in three(town):
            leave(town, pod)
        town.pods(*(a_pod(f"next-{i}", cpu=1) for i in range(3)))
        await town.work()
        assert len(town.where()) == 3

    in_town(life)


def test_a_hole_is_not_part_of_what_a_list_would_make_the_ledger() -> None:
    """The digest of a ledger that holds room is that of one built from a list, and a list ends no hole."""

    async def life(town: Town) -> None:
        first, second, last = three(town)
        leave(town, last)
        rebuilt = a_ledger([a_node(f"n{i}", cpu=1) for i in range(3)], [first, second])
        assert digest(town.ledger) == digest(rebuilt)
        relist(town.ledger, [a_node(f"n{i}", cpu=1) for i in range(3)], [first, second])
        town.pods(a_pod("thief", cpu=1))
        await town.work()
        assert "thief" not in town.where()

    in_town(life)


# --- what a hole is worth -----------------------------------------------------------------------------------------


def since(pod: Pod, when: float) -> Pod:
    """A member that was bound then."""
    said = [msgspec.structs.replace(each, last_transition_time=seconds_text(when)) for each in pod.status.conditions]
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=said))


def held(town: Town) -> int:
    return sum(map(len, town.ledger.spoken_for().values()))


@pytest.mark.parametrize(
    ("others", "phase", "stayed", "count"),
    [
        pytest.param("ab", "Running", HELD, 1, id="it ran in a gang that was complete"),
        pytest.param("abd", "Running", HELD, 0, id="the gang lacks no member without it"),
        pytest.param("a", "Running", HELD, 0, id="the gang never was complete"),
        pytest.param("", "Running", HELD, 0, id="no other member is on a node"),
        pytest.param("ab", "Pending", HELD, 0, id="it named a node, and never ran there"),
        pytest.param("ab", "Running", SHORTEST, 1, id="it was there for a moment"),
        pytest.param("ab", "Running", SHORTEST - 1, 0, id="it was there for less than a moment"),
    ],
)
def test_only_a_member_that_ran_and_is_missed_leaves_a_hole(others: str, phase: str, stayed: float, count: int) -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=1) for i in range(4)))
        lost = bound("c", "n3", phase=phase)
        town.pods(*(bound(name, f"n{i}", phase="Running") for i, name in enumerate(others)), lost)
        town.feed.assembly.flush()
        town.clock.advance(stayed)
        leave(town, lost)
        assert held(town) == count

    in_town(life)


@pytest.mark.parametrize("stayed", [10.0, 60.0, HELD, 10 * HELD])
def test_a_hole_is_held_no_longer_than_its_member_was_on_its_node(stayed: float) -> None:
    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
        *others, last = [bound(name, f"n{i}", phase="Running") for i, name in enumerate("abc")]
        town.clock.advance(9000.0)
        last = since(last, town.clock.now())
        town.pods(*others, last)
        town.feed.assembly.flush()
        town.clock.advance(stayed)
        leave(town, last)
        town.clock.advance(min(stayed, HELD) - 1)
        await town.scheduler.keeper.step()
        assert held(town) == 1
        town.clock.advance(1)
        await town.scheduler.keeper.step()
        assert held(town) == 0

    in_town(life)


def test_members_that_name_their_nodes_and_go_at_once_keep_no_node_from_others() -> None:
    """A gang that says that it needs a thousand: each of its pods would fill a node."""

    async def life(town: Town) -> None:
        town.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        town.pods(a_member("anchor", "g", 1000, cpu="1m", node="n0"))
        for wave in range(3):
            members = [a_member(f"h{wave}-{i}", "g", 1000, cpu=8, node=f"n{i}") for i in range(4)]
            town.pods(*members)
            town.feed.assembly.flush()
            for pod in members:
                leave(town, pod)
            town.clock.advance(100)
            await town.scheduler.keeper.step()
        town.pods(*(a_pod(f"victim{i}", cpu=7, namespace="other") for i in range(4)))
        await town.work()
        assert len([name for name in town.where() if name.startswith("victim")]) == 4

    in_town(life)


def large_gangs(town: Town, size: int, namespaces: int) -> None:
    """A gang of so many in each namespace, whose members avoid each other and are lost all but one."""
    town.nodes(a_node("n", cpu=1000, pods=10_000))
    lost = []
    for number in range(namespaces):
        apart = ["job=llama per kubernetes.io/hostname"]
        members = [
            a_member(f"m{i}", "g", size, cpu="1m", node="n", phase="Running", namespace=f"ns{number}", apart=apart)
            for i in range(size)
        ]
        town.pods(*members)
        lost.extend(members[1:])
    town.feed.assembly.flush()
    for pod in lost:
        leave(town, pod)


@pytest.mark.parametrize(
    ("namespaces", "count"),
    [
        pytest.param(1, holes.MOST_OF_NAMESPACE, id="those of a namespace"),
        pytest.param(6, holes.MOST, id="all of them"),
    ],
)
def test_holes_are_few_and_carry_no_terms_since_every_decision_looks_at_them(namespaces: int, count: int) -> None:
    async def life(town: Town) -> None:
        large_gangs(town, 2 * holes.MOST_OF_NAMESPACE, namespaces)
        assert held(town) == count
        assert not any(each.terms for found in town.ledger.spoken_for().values() for each in found)

    in_town(life)


def test_what_a_decision_does_for_holes_counts_as_work() -> None:
    """A burst of decisions ends by the work done: one row for each hole, and one for the node that it is on."""

    async def life(town: Town) -> None:
        large_gangs(town, 2 * holes.MOST_OF_NAMESPACE, 1)
        ledger, planner = town.ledger, Planner(lineup())
        rows = []
        for priority in (1, 1, 0):  # those that are more urgent respect no holes; the first fills the tables
            before = planner.bench.work.rows
            planner.decide(Job.of(a_pod("pod", cpu=1, priority=priority)), ledger.snapshot(), 0.0)
            rows.append(planner.bench.work.rows - before)
        assert rows[2] - rows[1] == holes.MOST_OF_NAMESPACE + 1

    in_town(life)
