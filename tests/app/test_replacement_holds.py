"""The place of a lost member is held for its replacement: for whom, for how long, and how little that is worth to a
tenant who makes and deletes members."""

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.app.gangs import replacement_holds
from kubenexus.app.gangs.replacement_holds import HOLD_SECONDS, MIN_STAY_SECONDS
from kubenexus.base.timestamps import format_time
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger, relist
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_stale_gang_evictor import bound, leave


def three(fixture: SchedulerFixture) -> list[Pod]:
    """A gang that has filled three nodes for two minutes."""
    fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
    members = [bound(name, f"n{i}", phase="Running") for i, name in enumerate("abc")]
    fixture.pods(*members)
    fixture.handlers.assembler.build_changed()
    fixture.clock.advance(HOLD_SECONDS)
    return members


def test_the_hole_of_a_lost_member_is_held_for_its_replacement() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        *_, last = three(fixture)
        leave(fixture, last)
        fixture.pods(a_pod("thief", cpu=1))
        await fixture.work()
        assert "thief" not in fixture.where()
        fixture.pods(a_member("d", "llama", 3, cpu=1))
        await fixture.work()
        assert fixture.where()["d"] == "n2"

    scheduler_test(life)


def test_a_hole_is_not_held_for_ever() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        *_, last = three(fixture)
        leave(fixture, last)
        fixture.pods(a_pod("thief", cpu=1))
        await fixture.work()
        fixture.clock.advance(HOLD_SECONDS)
        await fixture.scheduler.stale_gangs.step()
        fixture.clock.advance(10)
        await fixture.work()
        assert fixture.where()["thief"] == "n2"

    scheduler_test(life)


def test_who_is_more_urgent_does_not_respect_a_hole() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        *_, last = three(fixture)
        leave(fixture, last)
        fixture.pods(a_pod("urgent", cpu=1, priority=1000))
        await fixture.work()
        assert fixture.where()["urgent"] == "n2"

    scheduler_test(life)


def test_a_gang_that_goes_as_a_whole_leaves_no_holes() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        for pod in three(fixture):
            leave(fixture, pod)
        fixture.pods(*(a_pod(f"next-{i}", cpu=1) for i in range(3)))
        await fixture.work()
        assert len(fixture.where()) == 3

    scheduler_test(life)


def test_a_hole_is_not_part_of_what_a_list_would_make_the_ledger() -> None:
    """The digest of a ledger that holds room is that of one built from a list, and a list ends no hole."""

    async def life(fixture: SchedulerFixture) -> None:
        first, second, last = three(fixture)
        leave(fixture, last)
        rebuilt = a_ledger([a_node(f"n{i}", cpu=1) for i in range(3)], [first, second])
        assert digest(fixture.ledger) == digest(rebuilt)
        relist(fixture.ledger, [a_node(f"n{i}", cpu=1) for i in range(3)], [first, second])
        fixture.pods(a_pod("thief", cpu=1))
        await fixture.work()
        assert "thief" not in fixture.where()

    scheduler_test(life)


# --- what a hole is worth -----------------------------------------------------------------------------------------


def since(pod: Pod, when: float) -> Pod:
    """A member that was bound then."""
    said = [msgspec.structs.replace(each, last_transition_time=format_time(when)) for each in pod.status.conditions]
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=said))


def held(fixture: SchedulerFixture) -> int:
    return sum(map(len, fixture.ledger.nominated_and_held().values()))


@pytest.mark.parametrize(
    ("others", "phase", "stayed", "count"),
    [
        pytest.param("ab", "Running", HOLD_SECONDS, 1, id="it ran in a gang that was complete"),
        pytest.param("abd", "Running", HOLD_SECONDS, 0, id="the gang lacks no member without it"),
        pytest.param("a", "Running", HOLD_SECONDS, 0, id="the gang never was complete"),
        pytest.param("", "Running", HOLD_SECONDS, 0, id="no other member is on a node"),
        pytest.param("ab", "Pending", HOLD_SECONDS, 0, id="it named a node, and never ran there"),
        pytest.param("ab", "Running", MIN_STAY_SECONDS, 1, id="it was there for a moment"),
        pytest.param("ab", "Running", MIN_STAY_SECONDS - 1, 0, id="it was there for less than a moment"),
    ],
)
def test_only_a_member_that_ran_and_is_missed_leaves_a_hole(others: str, phase: str, stayed: float, count: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(4)))
        lost = bound("c", "n3", phase=phase)
        fixture.pods(*(bound(name, f"n{i}", phase="Running") for i, name in enumerate(others)), lost)
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(stayed)
        leave(fixture, lost)
        assert held(fixture) == count

    scheduler_test(life)


@pytest.mark.parametrize("stayed", [10.0, 60.0, HOLD_SECONDS, 10 * HOLD_SECONDS])
def test_a_hole_is_held_no_longer_than_its_member_was_on_its_node(stayed: float) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
        *others, last = [bound(name, f"n{i}", phase="Running") for i, name in enumerate("abc")]
        fixture.clock.advance(9000.0)
        last = since(last, fixture.clock.now())
        fixture.pods(*others, last)
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(stayed)
        leave(fixture, last)
        fixture.clock.advance(min(stayed, HOLD_SECONDS) - 1)
        await fixture.scheduler.stale_gangs.step()
        assert held(fixture) == 1
        fixture.clock.advance(1)
        await fixture.scheduler.stale_gangs.step()
        assert held(fixture) == 0

    scheduler_test(life)


def test_members_that_name_their_nodes_and_go_at_once_keep_no_node_from_others() -> None:
    """A gang that says that it needs a thousand: each of its pods would fill a node."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=8) for i in range(4)))
        fixture.pods(a_member("anchor", "g", 1000, cpu="1m", node="n0"))
        for wave in range(3):
            members = [a_member(f"h{wave}-{i}", "g", 1000, cpu=8, node=f"n{i}") for i in range(4)]
            fixture.pods(*members)
            fixture.handlers.assembler.build_changed()
            for pod in members:
                leave(fixture, pod)
            fixture.clock.advance(100)
            await fixture.scheduler.stale_gangs.step()
        fixture.pods(*(a_pod(f"victim{i}", cpu=7, namespace="other") for i in range(4)))
        await fixture.work()
        assert len([name for name in fixture.where() if name.startswith("victim")]) == 4

    scheduler_test(life)


def large_gangs(fixture: SchedulerFixture, size: int, namespaces: int) -> None:
    """A gang of so many in each namespace, whose members avoid each other and are lost all but one."""
    fixture.nodes(a_node("n", cpu=1000, pods=10_000))
    lost = []
    for number in range(namespaces):
        apart = ["job=llama per kubernetes.io/hostname"]
        members = [
            a_member(f"m{i}", "g", size, cpu="1m", node="n", phase="Running", namespace=f"ns{number}", apart=apart)
            for i in range(size)
        ]
        fixture.pods(*members)
        lost.extend(members[1:])
    fixture.handlers.assembler.build_changed()
    for pod in lost:
        leave(fixture, pod)


@pytest.mark.parametrize(
    ("namespaces", "count"),
    [
        pytest.param(1, replacement_holds.MAX_HOLDS_OF_NAMESPACE, id="those of a namespace"),
        pytest.param(6, replacement_holds.MAX_HOLDS, id="all of them"),
    ],
)
def test_holes_are_few_and_carry_no_terms_since_every_decision_looks_at_them(namespaces: int, count: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        large_gangs(fixture, 2 * replacement_holds.MAX_HOLDS_OF_NAMESPACE, namespaces)
        assert held(fixture) == count
        assert not any(each.terms for found in fixture.ledger.nominated_and_held().values() for each in found.values())

    scheduler_test(life)


def test_what_a_decision_does_for_holes_counts_as_work() -> None:
    """A burst of decisions ends by the work done: one row for each hole, and one for the node that it is on."""

    async def life(fixture: SchedulerFixture) -> None:
        large_gangs(fixture, 2 * replacement_holds.MAX_HOLDS_OF_NAMESPACE, 1)
        ledger, planner = fixture.ledger, Planner(profile_plugins())
        rows = []
        for priority in (1, 1, 0):  # those that are more urgent respect no holes; the first fills the tables
            before = planner.class_cache.work.rows
            planner.decide(Job.of(a_pod("pod", cpu=1, priority=priority)), ledger.snapshot(), 0.0)
            rows.append(planner.class_cache.work.rows - before)
        assert rows[2] - rows[1] == replacement_holds.MAX_HOLDS_OF_NAMESPACE + 1

    scheduler_test(life)
