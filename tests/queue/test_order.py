"""Who is next: by priority, then by the age of the job; one entry for a job, however many members it has."""

import itertools
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.plugins import lineup
from kubenexus.queue.entry import Place
from kubenexus.queue.rules import Rules
from tests.queue.easy import NODE, Easy, a_gang, by_image


def test_more_priority_goes_first_and_then_who_is_older() -> None:
    easy = Easy()
    easy.add("young", since=20.0)
    easy.add("old", since=10.0)
    easy.add("urgent", since=30.0, priority=5)
    assert easy.popped() == ["urgent", "old", "young"]


def test_jobs_of_the_same_second_go_in_the_order_we_heard_of_them() -> None:
    easy = Easy()
    names = [f"p{i}" for i in (3, 1, 2, 5, 4)]
    for name in names:
        easy.add(name, since=7.0)
    assert easy.popped() == names


def test_a_job_keeps_its_age_when_it_is_refused_and_comes_back() -> None:
    easy = Easy()
    easy.add("first", since=1.0)
    easy.refuse("Room")
    easy.add("second", since=2.0)
    easy.clock.advance(60)
    easy.room.on_event(NODE)
    assert easy.popped() == ["first", "second"]


def test_jobs_of_different_kinds_share_one_order() -> None:
    easy = Easy()
    for i in range(6):
        easy.add(f"p{i}", kind="even" if i % 2 == 0 else "odd", since=float(i))
    assert easy.popped() == [f"p{i}" for i in range(6)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from("abc")), max_size=30))
def test_the_order_is_that_of_the_jobs_whatever_lines_they_stand_in(jobs: list[tuple[int, int, str]]) -> None:
    easy = Easy()
    for i, (priority, since, kind) in enumerate(jobs):
        easy.add(f"p{i}", kind=kind, since=float(since), priority=priority)
    expected = sorted(range(len(jobs)), key=lambda i: (-jobs[i][0], jobs[i][1], i))
    assert easy.popped() == [f"p{i}" for i in expected]


def test_who_comes_before_whom_wherever_they_are() -> None:
    easy = Easy()
    for name, priority in (("first", 2), ("second", 1), ("third", 0)):
        easy.add(name, priority=priority)
    easy.pop()  # in flight
    easy.refuse("Room")  # parked
    order = ["default/first", "default/second", "default/third"]
    assert [easy.room.precedes(a, b) for a, b in itertools.pairwise(order)] == [True, True]
    assert [easy.room.precedes(b, a) for a, b in itertools.pairwise(order)] == [False, False]
    assert easy.room.precedes("default/third", "default/nobody")
    assert not easy.room.precedes("default/nobody", "default/third")


def test_a_gang_is_one_entry_however_many_members_it_has() -> None:
    easy = Easy()
    easy.room.add(a_gang("g", 64))
    assert len(easy.room) == 1
    assert easy.room.waiting(Place.ACTIVE) == (1, 64)
    assert len(easy.pop().job.pods) == 64
    assert not easy.room.ready


def test_a_gang_is_as_urgent_as_its_most_urgent_member() -> None:
    easy = Easy()
    gang = a_gang("g", 2)
    urgent = a_gang("u", 1, priority=9).pods[0]
    easy.add("single", priority=5)
    easy.room.add(type(gang)(gang.key, (*gang.pods, urgent), 3))
    assert easy.popped() == ["g", "single"]


class UpsideDown:
    """The least urgent first, and of those the youngest."""

    name: ClassVar[str] = "UpsideDown"
    reads: ClassVar[tuple[str, ...]] = ()

    def order(self, priority: int, since: float) -> tuple[float, ...]:
        return (priority, -since)


def test_the_order_is_the_one_of_the_profile() -> None:
    rules = Rules.of(lineup(), by_image)
    assert rules.order(3, 9.0) == lineup().sorts[0].order(3, 9.0)
    upside_down = Easy()
    upside_down.rules._sort = UpsideDown()
    upside_down.add("old", since=1.0)
    upside_down.add("young", since=2.0)
    assert upside_down.popped() == ["young", "old"]


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_turn_knows_how_often_the_job_was_tried(attempts: int) -> None:
    easy = Easy()
    key = easy.add("p")
    for _ in range(attempts - 1):
        easy.refuse("Room")
        easy.clock.advance(60)
        easy.room.on_event(NODE)
    turn = easy.pop()
    assert (turn.attempt, easy.room.attempts(key)) == (attempts, attempts)
