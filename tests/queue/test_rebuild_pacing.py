"""Gangs that grow member by member: what it costs to form them grows with their number, not with its square."""

from collections.abc import Iterable
from typing import Any

import pytest

from kubenexus.api.core import Pod
from kubenexus.queue.gangs import gang_jobs
from kubenexus.queue.gangs import job_assembler as assembling
from kubenexus.queue.gangs.gang_jobs import MAX_MEMBERS, GangJobs
from kubenexus.queue.gangs.rebuild_pacing import CREDIT, GROWTH, PER_SECOND, RebuildPacing
from kubenexus.queue.queued_job import QueueState
from tests.api.gangs.builders import a_member
from tests.queue.assembler_fixture import AssemblerFixture, names, turned

GANG = "gang/llama"


@pytest.fixture
def fixture() -> AssemblerFixture:
    return AssemblerFixture()


@pytest.fixture
def formed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many members each formation went through."""
    sizes: list[int] = []

    def counted(gang: Any, seated: Any, holes: tuple[str, ...] = ()) -> GangJobs:
        sizes.append(len(seated))
        return form(gang, seated, holes)

    form = gang_jobs.build_gang_jobs
    monkeypatch.setattr(assembling, "build_gang_jobs", counted)
    return sizes


def one_by_one(fixture: AssemblerFixture, numbers: Iterable[int], least: int) -> None:
    for i in numbers:
        fixture.waits(a_member(f"m{i:05}", least=least))
        fixture.assembler.build_changed()


@pytest.mark.parametrize("least", [2, 5000], ids=["a gang that waits for room", "one that waits for members"])
def test_members_that_come_one_by_one_are_not_gone_through_each_time(
    fixture: AssemblerFixture, formed: list[int], least: int
) -> None:
    one_by_one(fixture, range(1500), least)
    assert sum(formed) <= 1500 * (GROWTH + 1) + CREDIT
    before = sum(formed)
    one_by_one(fixture, range(1500, 3000), least)
    assert sum(formed) - before <= 1500 * (GROWTH + 1)


def test_up_to_thirty_two_members_each_counts_at_once(fixture: AssemblerFixture, formed: list[int]) -> None:
    one_by_one(fixture, range(GROWTH), 2)
    assert formed == list(range(1, GROWTH + 1))


def test_the_last_member_of_a_large_gang_has_it_formed_at_once(fixture: AssemblerFixture) -> None:
    """There is credit for it, unless others have just used it up."""
    fixture.waits(*(a_member(f"m{i:05}", least=2000) for i in range(1999)))
    assert fixture.place(GANG) is QueueState.GATED
    fixture.waits(a_member("m01999", least=2000))
    assert fixture.place(GANG) is QueueState.ACTIVE


def test_without_credit_it_is_formed_as_soon_as_there_is_some(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2010) for i in range(2000)))
    one_by_one(fixture, range(2000, 2010), 2010)
    fixture.waits(a_member("m02010", least=2010))
    assert len(names(fixture.job(GANG))) == 2010, "ten times two thousand are the credit"
    due = fixture.assembler.next_due()
    assert due is not None
    assert 0 < due - fixture.clock.now() <= 2011 / PER_SECOND
    fixture.clock.advance(due - fixture.clock.now())
    assert fixture.assembler.next_due() == fixture.clock.now()
    assert len(turned(fixture).job.pods) == 2011


def test_a_member_that_is_gone_counts_at_once_whatever_the_credit(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2) for i in range(2000)))
    one_by_one(fixture, range(2000, 2020), 2)
    fixture.gone("m00007")
    assert len(names(fixture.job(GANG))) == 2019


def edited(i: int, change: str, number: int) -> Pod:
    if change == "minimum":
        return a_member(f"m{i:05}", least=2 + number % 100)
    if change == "image":
        return a_member(f"m{i:05}", least=2, image=f"v{number}")
    fields: dict[str, Any] = {change: {"x": str(number)}}
    return a_member(f"m{i:05}", least=2, **fields)


@pytest.mark.parametrize("change", ["labels", "annotations", "image", "minimum"])
@pytest.mark.parametrize("members", [1, 2000], ids=["of one member", "of all members"])
def test_edits_do_not_have_all_members_gone_through_each_time(
    fixture: AssemblerFixture, formed: list[int], members: int, change: str
) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2) for i in range(2000)))
    fixture.assembler.build_changed()
    before = sum(formed)
    for number in range(1, 1001):
        fixture.waits(edited(number % members, change, number))
        fixture.assembler.build_changed()
    assert sum(formed) - before <= 1000 * (GROWTH + 1) + CREDIT


def test_an_edit_counts_at_once_or_as_soon_as_there_is_credit(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2) for i in range(1900)))
    fixture.assembler.build_changed()
    for number in range(1, 12):
        fixture.waits(edited(0, "labels", number))
        job = fixture.job(GANG)
        assert job is not None
        assert job.pods[0].metadata.labels["x"] == str(min(number, 10)), "ten times nineteen hundred are the credit"
    due = fixture.assembler.next_due()
    assert due is not None
    assert 0 < due - fixture.clock.now() <= 1900 / PER_SECOND
    fixture.clock.advance(due - fixture.clock.now())
    assert turned(fixture).job.pods[0].metadata.labels["x"] == "11"


@pytest.mark.parametrize("event", ["it grows", "a gate opens", "a member is bound", "a member is made again"])
def test_edits_without_end_do_not_hold_up_what_else_happens_to_a_gang(fixture: AssemblerFixture, event: str) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2) for i in range(1999)), a_member("m01999", least=2, gates=["wait"]))
    fixture.assembler.build_changed()
    for number in range(1, 12):
        fixture.waits(edited(0, "labels", number))
        fixture.assembler.build_changed()
    match event:
        case "it grows":
            fixture.waits(a_member("m02000", least=2))
        case "a gate opens":
            fixture.waits(a_member("m01999", least=2))
        case "a member is bound":
            fixture.bound(a_member("m00007", least=2))
        case _:
            fixture.waits(a_member("m00007", least=2, uid="another"))
    job = fixture.job(GANG)
    assert job is not None
    assert job.pods[0].metadata.labels["x"] == "11"


def test_gangs_that_are_small_do_not_wait_for_large_ones(fixture: AssemblerFixture) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2) for i in range(2000)))
    one_by_one(fixture, range(2000, 2020), 2)
    fixture.waits(*(a_member(f"small-{i}", "small", 3) for i in range(3)))
    assert fixture.place("gang/small") is QueueState.ACTIVE


def test_a_gang_larger_than_any_credit_comes_to_its_turn() -> None:
    pacing = RebuildPacing()
    assert pacing.allows(3 * CREDIT, now=100.0)
    assert not pacing.allows(3 * CREDIT, now=101.0)
    assert pacing.allows(3 * CREDIT, now=pacing.due(3 * CREDIT))


def test_a_gang_with_more_members_than_any_may_have_is_held_and_not_gone_through(
    fixture: AssemblerFixture, formed: list[int]
) -> None:
    fixture.waits(*(a_member(f"m{i:05}", least=2) for i in range(MAX_MEMBERS + 1)))
    assert fixture.why(GANG) == "gang has more than 10000 members, which is the limit"
    assert names(fixture.job(GANG)) == ["m00000"]
    assert formed == []
    fixture.gone("m00000")
    assert fixture.place(GANG) is QueueState.ACTIVE
    assert len(names(fixture.job(GANG))) == MAX_MEMBERS


def test_members_that_run_count_and_hold_nothing(fixture: AssemblerFixture) -> None:
    """A gang that grew beyond the limit while all its members have nodes waits for nothing."""
    for i in range(MAX_MEMBERS + 1):
        fixture.bound(a_member(f"m{i:05}", least=2))
    assert fixture.job(GANG) is None
