"""A waiting job changes: it stands where one like it would, and is tried again only if that may help."""

import pytest

from kubenexus.queue.entry import Place
from tests.queue.easy import LEFT, NODE, Easy, a_gang, job_of


def test_a_change_that_helps_has_the_job_tried_after_its_backoff() -> None:
    easy = Easy()
    easy.add("p", kind="big", cpu=8)
    easy.refuse("Room")
    assert easy.room.add(job_of("p", kind="small", cpu=1)) is Place.BACKOFF
    assert easy.room.next_time() == 101.0


def test_and_at_once_if_that_is_over() -> None:
    easy = Easy()
    easy.add("p", kind="big", cpu=8)
    easy.refuse("Room")
    easy.clock.advance(60)
    assert easy.room.add(job_of("p", kind="small", cpu=1)) is Place.ACTIVE


def test_a_change_that_cannot_help_whoever_refused_it_leaves_it_waiting() -> None:
    easy = Easy()
    easy.add("p", kind="small", cpu=1)
    easy.refuse("Room")
    easy.clock.advance(60)
    assert easy.room.add(job_of("p", kind="big", cpu=8)) is Place.UNSCHEDULABLE
    easy.room.on_event(NODE)
    assert easy.room.place("default/p") is Place.ACTIVE, "for the same events as before"


def test_but_another_job_of_the_new_kind_is_tried_since_that_kind_never_was() -> None:
    easy = Easy()
    easy.add("p", kind="small", cpu=1)
    easy.refuse("Room")
    easy.room.add(job_of("p", kind="big", cpu=8))
    assert easy.room.place(easy.add("q", kind="big", cpu=8)) is Place.ACTIVE


def test_a_change_into_a_kind_that_is_refused_needs_no_attempt() -> None:
    easy = Easy()
    easy.add("q", kind="small", cpu=1)
    easy.refuse("Ports")
    easy.add("p", kind="big", cpu=8)
    easy.refuse("Room")
    easy.clock.advance(60)
    assert easy.room.add(job_of("p", kind="small", cpu=1)) is Place.UNSCHEDULABLE
    easy.room.on_event(LEFT)
    assert easy.room.place("default/p") is Place.ACTIVE, "now it waits for what its new kind waits for"


def test_two_that_changed_into_one_kind_wait_for_what_may_help_either() -> None:
    easy = Easy()
    for name, plugin in (("p", "Room"), ("q", "Ports")):
        easy.add(name)
        easy.refuse(plugin)
    easy.clock.advance(60)
    for name in ("p", "q"):
        assert easy.room.add(job_of(name, kind="new")) is Place.UNSCHEDULABLE
    easy.room.on_event(LEFT)
    assert easy.room.waiting(Place.ACTIVE).jobs == 2


def test_a_change_that_helps_but_leaves_the_kind_as_it_is_concerns_this_job_alone() -> None:
    easy = Easy()
    easy.add("p", kind="k", cpu=8)
    easy.add("q", kind="k", cpu=8)
    easy.refuse("Room")
    easy.clock.advance(60)
    assert easy.room.add(job_of("q", kind="k", cpu=1)) is Place.ACTIVE
    assert easy.room.place("default/p") is Place.UNSCHEDULABLE


def test_an_active_job_that_changes_stays_active_and_keeps_its_turn() -> None:
    easy = Easy()
    easy.add("p", since=1.0)
    easy.add("q", since=2.0)
    assert easy.room.add(job_of("p", kind="other")) is Place.ACTIVE
    assert easy.popped() == ["p", "q"]


def test_an_active_job_that_becomes_like_a_refused_one_is_refused_with_it() -> None:
    easy = Easy()
    easy.add("q", kind="k")
    easy.refuse("Room")
    easy.add("p")
    assert easy.room.add(job_of("p", kind="k")) is Place.UNSCHEDULABLE


def test_a_job_that_backs_off_goes_on_doing_so() -> None:
    easy = Easy()
    easy.add("p")
    easy.refuse("Room")
    easy.room.on_event(NODE)
    assert easy.room.add(job_of("p", kind="other")) is Place.BACKOFF
    assert easy.room.next_time() == 101.0


def test_a_job_whose_bind_failed_goes_on_backing_off_alone() -> None:
    easy = Easy()
    easy.add("p")
    easy.room.failed(easy.pop())
    assert easy.room.add(job_of("p", kind="other")) is Place.BACKOFF
    assert easy.room.place(easy.add("q", kind="other")) is Place.ACTIVE


def test_an_update_of_a_job_we_do_not_know_adds_it() -> None:
    easy = Easy()
    assert easy.room.add(job_of("p")) is Place.ACTIVE


def test_a_pod_made_again_under_its_name_is_another_job() -> None:
    easy = Easy()
    easy.add("p", uid="one", since=1.0)
    easy.refuse("Room")
    easy.add("p", uid="two", since=5.0)
    turn = easy.pop()
    assert (turn.job.pods[0].metadata.uid, turn.attempt, turn.since) == ("two", 1, 5.0)
    assert len(easy.room) == 1


def test_a_gang_grows_member_by_member_as_one_entry() -> None:
    easy = Easy()
    gang = a_gang("g", 5)
    for size in range(1, 6):
        easy.room.add(type(gang)(gang.key, gang.pods[:size], 5), since=9.0)
    assert (len(easy.room), easy.room.waiting(Place.ACTIVE)) == (1, (1, 5))
    assert len(easy.room._lines) == 1, "the kinds it was on the way are forgotten"


def test_a_gang_whose_last_member_is_gone_is_gone() -> None:
    easy = Easy()
    gang = a_gang("g", 2)
    easy.room.add(gang)
    assert easy.room.add(type(gang)(gang.key, (), 2)) is Place.GONE
    assert (len(easy.room), len(easy.room._lines)) == (0, 0)


def test_a_refused_gang_that_shrinks_waits_on() -> None:
    easy = Easy()
    gang = a_gang("g", 3, minimum=1)
    easy.room.add(gang)
    easy.refuse("Room")
    assert easy.room.add(type(gang)(gang.key, gang.pods[:2], 1)) is Place.UNSCHEDULABLE
    assert easy.room.waiting(Place.UNSCHEDULABLE) == (1, 2)


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable", "failing"])
def test_a_job_can_be_deleted_wherever_it_is(where: str) -> None:
    easy = Easy()
    key, other = easy.add("p", kind="k", since=1.0), easy.add("q", kind="k", since=2.0)
    if where == "failing":
        easy.room.failed(easy.pop())
    elif where != "active":
        easy.refuse("Room")
    if where == "backoff":
        easy.room.on_event(NODE)
    assert easy.room.delete(key)
    assert not easy.room.delete(key)
    assert (len(easy.room), easy.room.place(key)) == (1, Place.GONE)
    easy.clock.advance(400)
    assert easy.pop().job.key == other
