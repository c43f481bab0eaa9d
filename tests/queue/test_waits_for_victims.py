"""Jobs that wait for the end of other pods are tried when these are gone, and seldom before."""

import pytest

from kubenexus.framework.verdict import Code
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import NODE, QueueFixture


def tries(fixture: QueueFixture, seconds: int) -> int:
    """How often the job is tried in so many seconds, and waits again."""
    count = 0
    for _ in range(seconds):
        fixture.clock.advance(1)
        if (attempt := fixture.next()) is not None:
            fixture.queue.wait_for_victims(attempt)
            count += 1
    return count


def test_it_is_tried_once_in_the_longest_backoff() -> None:
    fixture = QueueFixture()
    fixture.add("p")
    assert fixture.queue.wait_for_victims(fixture.pop()) is QueueState.BACKOFF
    assert tries(fixture, 30) == 3
    fixture.add("q")
    fixture.queue.bind_failed(fixture.pop())
    assert tries(fixture, 1) == 1, "one whose bind failed is tried after a second"


def test_it_is_tried_at_once_when_they_are_gone() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.queue.wait_for_victims(fixture.pop())
    assert fixture.next() is None
    fixture.queue.activate(key)
    assert fixture.pop().job.key == key


def test_others_like_it_do_not_wait() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="k", since=1.0)
    other = fixture.add("q", kind="k", since=2.0)
    fixture.queue.wait_for_victims(fixture.pop())
    assert fixture.pop().job.key == other


@pytest.mark.parametrize(("failures", "seconds"), [(0, 1.0), (1, 2.0), (9, 10.0)])
def test_once_the_victims_are_given_up_its_own_backoff_begins(failures: int, seconds: float) -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    for _ in range(failures):
        fixture.queue.bind_failed(fixture.pop())
        fixture.clock.advance(10)
    fixture.queue.wait_for_victims(fixture.pop())
    fixture.queue.victims_given_up(key)
    assert fixture.queue.next_due() == fixture.clock.now() + seconds
    fixture.clock.advance(seconds)
    assert fixture.pop().job.key == key


def test_giving_up_changes_nothing_for_jobs_that_do_not_wait() -> None:
    fixture = QueueFixture()
    fixture.queue.victims_given_up("default/nowhere")
    active, refused, flying = fixture.add("a"), fixture.add("r"), fixture.add("f")
    attempts = {attempt.job.key: attempt for attempt in (fixture.pop(), fixture.pop(), fixture.pop())}
    fixture.refuse("Room", attempt=attempts[refused])
    fixture.queue.done(attempts[active])
    active = fixture.add("a")
    for key, state in (
        (active, QueueState.ACTIVE),
        (refused, QueueState.UNSCHEDULABLE),
        (flying, QueueState.IN_FLIGHT),
    ):
        fixture.queue.victims_given_up(key)
        assert fixture.queue.state(key) is state
    fixture.refuse("Room", attempt=attempts[flying], code=Code.UNSCHEDULABLE)
    assert fixture.happens(NODE)
