"""Where a job goes after each outcome, what brings it back, and when."""

import pytest

from kubenexus.framework.verdict import Code
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import EXACT, LEFT, NODE, QueueFixture, a_gang


def test_a_refused_job_waits_for_an_event_of_a_plugin_that_refused_it() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room")
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE
    fixture.clock.advance(60)
    assert fixture.queue.on_event(LEFT) == 0
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE
    assert fixture.queue.on_event(NODE) == 1
    assert fixture.queue.state(key) is QueueState.ACTIVE


def test_any_of_those_who_refused_it_may_let_it_in() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room", "Ports")
    fixture.clock.advance(60)
    fixture.queue.on_event(LEFT)
    assert fixture.queue.state(key) is QueueState.ACTIVE


def test_a_job_that_is_woken_too_soon_backs_off_first() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room")
    fixture.clock.advance(0.5)
    fixture.queue.on_event(NODE)
    assert fixture.queue.state(key) is QueueState.BACKOFF
    assert fixture.queue.pop() is None
    assert fixture.queue.next_due() == 101.0
    fixture.clock.advance_to(101.0)
    assert fixture.pop().job.key == key


def test_a_pending_job_is_tried_as_soon_as_it_is_woken() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room", code=Code.PENDING)
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE
    fixture.queue.on_event(NODE)
    assert fixture.queue.state(key) is QueueState.ACTIVE


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNRESOLVABLE])
def test_both_ways_of_being_unschedulable_wait_alike(code: Code) -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room", code=code)
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE


def test_an_error_is_tried_again_after_a_backoff_and_nobody_is_blamed() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room", code=Code.ERROR)
    assert fixture.queue.state(key) is QueueState.BACKOFF
    fixture.queue.on_event(NODE)
    assert fixture.queue.state(key) is QueueState.BACKOFF, "an event is no reason to hurry"
    fixture.clock.advance(1.0)
    assert fixture.pop().job.key == key


def test_a_refusal_that_nobody_gave_is_tried_again_after_a_backoff() -> None:
    """As when there are no nodes at all."""
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse()
    assert fixture.queue.state(key) is QueueState.BACKOFF
    fixture.clock.advance(1.0)
    assert fixture.pop().job.key == key


def test_a_refusal_by_a_plugin_we_have_no_events_for_is_nobodys() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Stranger")
    assert fixture.queue.state(key) is QueueState.BACKOFF


def test_a_placed_job_is_gone() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.place()
    assert fixture.queue.state(key) is QueueState.GONE
    assert key not in fixture.queue
    assert len(fixture.queue) == 0
    assert fixture.queue.next_due() is None


def test_a_turn_without_a_decision_ends_with_the_job_gone() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    assert fixture.queue.done(fixture.pop()) is QueueState.GONE
    assert key not in fixture.queue


def test_members_that_found_no_place_wait_on_as_a_job_of_the_same_age() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 4, minimum=2)
    fixture.queue.add(gang, since=5.0)
    attempt = fixture.pop()
    fixture.place(attempt, gang.pods[:3])
    assert fixture.queue.state(gang.key) is QueueState.ACTIVE
    rest = fixture.pop()
    assert [pod.metadata.name for pod in rest.job.pods] == ["g-3"]
    assert (rest.job.minimum, rest.since) == (1, 5.0)


def test_members_that_came_while_their_gang_was_in_flight_follow_it() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 3)
    fixture.queue.add(type(gang)(gang.key, gang.pods[:2], 2))
    attempt = fixture.pop()
    assert fixture.queue.add(gang) is QueueState.IN_FLIGHT
    fixture.place(attempt)
    assert [pod.metadata.name for pod in fixture.pop().job.pods] == ["g-2"]


# --- backoff ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "pods", "pauses"),
    [
        pytest.param(BackoffPolicy(), 1, [1, 2, 4, 8, 10, 10], id="from one second, doubling, to ten"),
        pytest.param(BackoffPolicy(initial_backoff=3, max_backoff=7), 1, [3, 6, 7, 7], id="as configured"),
        pytest.param(
            BackoffPolicy(), 4, [1, 2, 4, 8, 16, 20, 20], id="a gang's longest wait grows with the root of its size"
        ),
        pytest.param(
            BackoffPolicy(),
            1000,
            [1, 2, 4, 8, 16, 30, 30],
            id="but to three times at most: its room would be gone by then",
        ),
        pytest.param(BackoffPolicy(max_backoff=0), 1, [0, 0, 0], id="a maximum of zero means no backoff"),
        pytest.param(BackoffPolicy(initial_backoff=20), 1, [10, 10], id="never more than the maximum"),
    ],
)
def test_how_long_a_backoff_lasts(policy: BackoffPolicy, pods: int, pauses: list[float]) -> None:
    assert [policy.duration(count, pods) for count in range(1, len(pauses) + 1)] == pauses
    assert policy.duration(10_000) <= policy.max_backoff
    assert policy.duration(0) == 0


@pytest.mark.parametrize(
    ("began", "ends"),
    [
        pytest.param(100.0, 101.0, id="on the second"),
        pytest.param(100.3, 102.0, id="within a second: with all others of that second"),
    ],
)
def test_backoffs_end_together_at_the_end_of_a_window(began: float, ends: float) -> None:
    assert BackoffPolicy().ends_at(began, 1) == ends
    assert EXACT.ends_at(began, 1) == began + 1


def test_each_refusal_of_a_kind_doubles_its_backoff_until_one_of_it_is_placed() -> None:
    fixture = QueueFixture()
    fixture.add("a", kind="k", since=1.0)
    fixture.add("b", kind="k", since=2.0)
    waits = []
    for outcome in ("refuse", "refuse", "refuse", "place", "refuse"):
        if outcome == "place":
            fixture.place()
            continue
        fixture.refuse("Room")
        fixture.queue.on_event(NODE)
        waits.append((fixture.queue.next_due() or 0) - fixture.clock.now())
        fixture.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 1]


def test_errors_in_a_row_back_off_longer_and_longer() -> None:
    fixture = QueueFixture()
    fixture.add("p")
    waits = []
    for _ in range(5):
        fixture.refuse(code=Code.ERROR)
        waits.append((fixture.queue.next_due() or 0) - fixture.clock.now())
        fixture.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 10]


def test_when_nothing_else_is_to_do_a_backoff_need_not_be_over() -> None:
    fixture = QueueFixture(BackoffPolicy())
    fixture.add("low", since=1.0)
    fixture.refuse("Room")
    fixture.add("high", since=2.0, priority=5)
    fixture.refuse("Room")
    fixture.queue.on_event(NODE)
    fixture.add("fresh", since=3.0)
    assert fixture.queue.pending(QueueState.BACKOFF).jobs == 2
    assert fixture.popped() == ["fresh", "high", "low"]


def test_but_an_error_waits_its_time_even_then() -> None:
    fixture = QueueFixture(BackoffPolicy())
    fixture.add("p")
    fixture.refuse(code=Code.ERROR)
    assert not fixture.queue.has_ready
    assert fixture.queue.pop() is None


# --- flush --------------------------------------------------------------------------------------------------------


def test_after_five_minutes_a_refused_job_is_tried_whatever_happened() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    fixture.refuse("Room")
    assert fixture.queue.next_due() == 400.0
    fixture.clock.advance_to(399.9)
    fixture.queue._due_work.flush()
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE
    fixture.clock.advance_to(400.0)
    fixture.queue._due_work.flush()
    assert fixture.queue.state(key) is QueueState.ACTIVE


def test_the_flush_tries_each_kind_once_not_each_job() -> None:
    fixture = QueueFixture()
    for i in range(50):
        fixture.add(f"p{i}", kind=f"k{i % 2}")
    fixture.refuse("Room")
    fixture.refuse("Room")
    fixture.clock.advance(300)
    fixture.refuse("Room")
    fixture.refuse("Room")
    assert fixture.queue.pop() is None


def test_the_time_of_the_flush_is_as_configured() -> None:
    fixture = QueueFixture(BackoffPolicy(flush_after=30.0))
    fixture.add("p")
    fixture.refuse("Room")
    assert fixture.queue.next_due() == 130.0
