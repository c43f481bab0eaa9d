"""A waiting job changes: it stands where one like it would, and is tried again only if that may help."""

import pytest

from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import LEFT, NODE, QueueFixture, a_gang, job_of


def test_a_change_that_helps_has_the_job_tried_after_its_backoff() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="big", cpu=8)
    fixture.refuse("Room")
    assert fixture.queue.add(job_of("p", kind="small", cpu=1)) is QueueState.BACKOFF
    assert fixture.queue.next_due() == 101.0


def test_and_at_once_if_that_is_over() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="big", cpu=8)
    fixture.refuse("Room")
    fixture.clock.advance(60)
    assert fixture.queue.add(job_of("p", kind="small", cpu=1)) is QueueState.ACTIVE


def test_a_change_that_cannot_help_whoever_refused_it_leaves_it_waiting() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="small", cpu=1)
    fixture.refuse("Room")
    fixture.clock.advance(60)
    assert fixture.queue.add(job_of("p", kind="big", cpu=8)) is QueueState.UNSCHEDULABLE
    fixture.queue.on_event(NODE)
    assert fixture.queue.state("default/p") is QueueState.ACTIVE, "for the same events as before"


def test_but_another_job_of_the_new_kind_is_tried_since_that_kind_never_was() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="small", cpu=1)
    fixture.refuse("Room")
    fixture.queue.add(job_of("p", kind="big", cpu=8))
    assert fixture.queue.state(fixture.add("q", kind="big", cpu=8)) is QueueState.ACTIVE


def test_a_change_into_a_kind_that_is_refused_needs_no_attempt() -> None:
    fixture = QueueFixture()
    fixture.add("q", kind="small", cpu=1)
    fixture.refuse("Ports")
    fixture.add("p", kind="big", cpu=8)
    fixture.refuse("Room")
    fixture.clock.advance(60)
    assert fixture.queue.add(job_of("p", kind="small", cpu=1)) is QueueState.UNSCHEDULABLE
    fixture.queue.on_event(LEFT)
    assert fixture.queue.state("default/p") is QueueState.ACTIVE, "now it waits for what its new kind waits for"


def test_two_that_changed_into_one_kind_wait_for_what_may_help_either() -> None:
    fixture = QueueFixture()
    for name, plugin in (("p", "Room"), ("q", "Ports")):
        fixture.add(name)
        fixture.refuse(plugin)
    fixture.clock.advance(60)
    for name in ("p", "q"):
        assert fixture.queue.add(job_of(name, kind="new")) is QueueState.UNSCHEDULABLE
    fixture.queue.on_event(LEFT)
    assert fixture.queue.pending(QueueState.ACTIVE).jobs == 2


def test_a_change_that_helps_but_leaves_the_kind_as_it_is_concerns_this_job_alone() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="k", cpu=8)
    fixture.add("q", kind="k", cpu=8)
    fixture.refuse("Room")
    fixture.clock.advance(60)
    assert fixture.queue.add(job_of("q", kind="k", cpu=1)) is QueueState.ACTIVE
    assert fixture.queue.state("default/p") is QueueState.UNSCHEDULABLE


def test_an_active_job_that_changes_stays_active_and_keeps_its_turn() -> None:
    fixture = QueueFixture()
    fixture.add("p", since=1.0)
    fixture.add("q", since=2.0)
    assert fixture.queue.add(job_of("p", kind="other")) is QueueState.ACTIVE
    assert fixture.popped() == ["p", "q"]


def test_an_active_job_that_becomes_like_a_refused_one_is_refused_with_it() -> None:
    fixture = QueueFixture()
    fixture.add("q", kind="k")
    fixture.refuse("Room")
    fixture.add("p")
    assert fixture.queue.add(job_of("p", kind="k")) is QueueState.UNSCHEDULABLE


def test_a_job_that_backs_off_goes_on_doing_so() -> None:
    fixture = QueueFixture()
    fixture.add("p")
    fixture.refuse("Room")
    fixture.queue.on_event(NODE)
    assert fixture.queue.add(job_of("p", kind="other")) is QueueState.BACKOFF
    assert fixture.queue.next_due() == 101.0


def test_a_job_whose_bind_failed_goes_on_backing_off_alone() -> None:
    fixture = QueueFixture()
    fixture.add("p")
    fixture.queue.bind_failed(fixture.pop())
    assert fixture.queue.add(job_of("p", kind="other")) is QueueState.BACKOFF
    assert fixture.queue.state(fixture.add("q", kind="other")) is QueueState.ACTIVE


def test_an_update_of_a_job_we_do_not_know_adds_it() -> None:
    fixture = QueueFixture()
    assert fixture.queue.add(job_of("p")) is QueueState.ACTIVE


def test_a_pod_made_again_under_its_name_is_another_job() -> None:
    fixture = QueueFixture()
    fixture.add("p", uid="one", since=1.0)
    fixture.refuse("Room")
    fixture.add("p", uid="two", since=5.0)
    attempt = fixture.pop()
    assert (attempt.job.pods[0].metadata.uid, attempt.attempt_number, attempt.since) == ("two", 1, 5.0)
    assert len(fixture.queue) == 1


def test_a_gang_grows_member_by_member_as_one_entry() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 5)
    for size in range(1, 6):
        fixture.queue.add(type(gang)(gang.key, gang.pods[:size], 5), since=9.0)
    assert (len(fixture.queue), fixture.queue.pending(QueueState.ACTIVE)) == (1, (1, 5))
    assert len(fixture.queue._job_classes) == 1, "the kinds it was on the way are forgotten"


def test_a_gang_whose_last_member_is_gone_is_gone() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 2)
    fixture.queue.add(gang)
    assert fixture.queue.add(type(gang)(gang.key, (), 2)) is QueueState.GONE
    assert (len(fixture.queue), len(fixture.queue._job_classes)) == (0, 0)


def test_a_refused_gang_that_shrinks_waits_on() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 3, minimum=1)
    fixture.queue.add(gang)
    fixture.refuse("Room")
    assert fixture.queue.add(type(gang)(gang.key, gang.pods[:2], 1)) is QueueState.UNSCHEDULABLE
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE) == (1, 2)


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable", "failing"])
def test_a_job_can_be_deleted_wherever_it_is(where: str) -> None:
    fixture = QueueFixture()
    key, other = fixture.add("p", kind="k", since=1.0), fixture.add("q", kind="k", since=2.0)
    if where == "failing":
        fixture.queue.bind_failed(fixture.pop())
    elif where != "active":
        fixture.refuse("Room")
    if where == "backoff":
        fixture.queue.on_event(NODE)
    assert fixture.queue.delete(key)
    assert not fixture.queue.delete(key)
    assert (len(fixture.queue), fixture.queue.state(key)) == (1, QueueState.GONE)
    fixture.clock.advance(400)
    assert fixture.pop().job.key == other
