"""Who is next: by priority, then by the age of the job; one entry for a job, however many members it has."""

import itertools
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.plugins import profile_plugins
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import NODE, QueueFixture, a_gang, by_image


def test_more_priority_goes_first_and_then_who_is_older() -> None:
    fixture = QueueFixture()
    fixture.add("young", since=20.0)
    fixture.add("old", since=10.0)
    fixture.add("urgent", since=30.0, priority=5)
    assert fixture.popped() == ["urgent", "old", "young"]


def test_jobs_of_the_same_second_go_in_the_order_we_heard_of_them() -> None:
    fixture = QueueFixture()
    names = [f"p{i}" for i in (3, 1, 2, 5, 4)]
    for name in names:
        fixture.add(name, since=7.0)
    assert fixture.popped() == names


def test_a_job_keeps_its_age_when_it_is_refused_and_comes_back() -> None:
    fixture = QueueFixture()
    fixture.add("first", since=1.0)
    fixture.refuse("Room")
    fixture.add("second", since=2.0)
    fixture.clock.advance(60)
    fixture.queue.on_event(NODE)
    assert fixture.popped() == ["first", "second"]


def test_jobs_of_different_kinds_share_one_order() -> None:
    fixture = QueueFixture()
    for i in range(6):
        fixture.add(f"p{i}", kind="even" if i % 2 == 0 else "odd", since=float(i))
    assert fixture.popped() == [f"p{i}" for i in range(6)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from("abc")), max_size=30))
def test_the_order_is_that_of_the_jobs_whatever_lines_they_stand_in(jobs: list[tuple[int, int, str]]) -> None:
    fixture = QueueFixture()
    for i, (priority, since, kind) in enumerate(jobs):
        fixture.add(f"p{i}", kind=kind, since=float(since), priority=priority)
    expected = sorted(range(len(jobs)), key=lambda i: (-jobs[i][0], jobs[i][1], i))
    assert fixture.popped() == [f"p{i}" for i in expected]


def test_who_comes_before_whom_wherever_they_are() -> None:
    fixture = QueueFixture()
    for name, priority in (("first", 2), ("second", 1), ("third", 0)):
        fixture.add(name, priority=priority)
    fixture.pop()  # in flight
    fixture.refuse("Room")  # parked
    order = ["default/first", "default/second", "default/third"]
    assert [fixture.queue.is_before(a, b) for a, b in itertools.pairwise(order)] == [True, True]
    assert [fixture.queue.is_before(b, a) for a, b in itertools.pairwise(order)] == [False, False]
    assert fixture.queue.is_before("default/third", "default/nobody")
    assert not fixture.queue.is_before("default/nobody", "default/third")


def test_a_gang_is_one_entry_however_many_members_it_has() -> None:
    fixture = QueueFixture()
    fixture.queue.add(a_gang("g", 64))
    assert len(fixture.queue) == 1
    assert fixture.queue.pending(QueueState.ACTIVE) == (1, 64)
    assert len(fixture.pop().job.pods) == 64
    assert not fixture.queue.has_ready


def test_a_gang_is_as_urgent_as_its_most_urgent_member() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 2)
    urgent = a_gang("u", 1, priority=9).pods[0]
    fixture.add("single", priority=5)
    fixture.queue.add(type(gang)(gang.key, (*gang.pods, urgent), 3))
    assert fixture.popped() == ["g", "single"]


class UpsideDown:
    """The least urgent first, and of those the youngest."""

    name: ClassVar[str] = "UpsideDown"
    reads: ClassVar[tuple[str, ...]] = ()

    def sort_key(self, priority: int, since: float) -> tuple[float, ...]:
        return (priority, -since)


def test_the_order_is_the_one_of_the_profile() -> None:
    profile = QueueProfile.of(profile_plugins(), by_image)
    priority, age = profile_plugins().queue_sort[0].sort_key(3, 9.0)
    assert profile.order(3, 9.0) == (priority, 0, age)
    assert profile.order(3, 9.0, 20) == (priority, -20, age)
    upside_down = QueueFixture()
    upside_down.profile._sort = UpsideDown()
    upside_down.add("old", since=1.0)
    upside_down.add("young", since=2.0)
    assert upside_down.popped() == ["young", "old"]


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_turn_knows_how_often_the_job_was_tried(attempts: int) -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    for _ in range(attempts - 1):
        fixture.refuse("Room")
        fixture.clock.advance(60)
        fixture.queue.on_event(NODE)
    attempt = fixture.pop()
    assert (attempt.attempt_number, fixture.queue.attempts(key)) == (attempts, attempts)
