"""Where a job goes after each outcome, what brings it back, and when."""

import pytest

from kubenexus.framework.verdict import Code
from kubenexus.queue.entry import Place
from kubenexus.queue.policy import Policy
from tests.queue.easy import EXACT, LEFT, NODE, Easy, a_gang


def test_a_refused_job_waits_for_an_event_of_a_plugin_that_refused_it() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room")
    assert easy.room.place(key) is Place.UNSCHEDULABLE
    easy.clock.advance(60)
    assert easy.room.on_event(LEFT) == 0
    assert easy.room.place(key) is Place.UNSCHEDULABLE
    assert easy.room.on_event(NODE) == 1
    assert easy.room.place(key) is Place.ACTIVE


def test_any_of_those_who_refused_it_may_let_it_in() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room", "Ports")
    easy.clock.advance(60)
    easy.room.on_event(LEFT)
    assert easy.room.place(key) is Place.ACTIVE


def test_a_job_that_is_woken_too_soon_backs_off_first() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room")
    easy.clock.advance(0.5)
    easy.room.on_event(NODE)
    assert easy.room.place(key) is Place.BACKOFF
    assert easy.room.pop() is None
    assert easy.room.next_time() == 101.0
    easy.clock.advance_to(101.0)
    assert easy.pop().job.key == key


def test_a_pending_job_is_tried_as_soon_as_it_is_woken() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room", code=Code.PENDING)
    assert easy.room.place(key) is Place.UNSCHEDULABLE
    easy.room.on_event(NODE)
    assert easy.room.place(key) is Place.ACTIVE


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNRESOLVABLE])
def test_both_ways_of_being_unschedulable_wait_alike(code: Code) -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room", code=code)
    assert easy.room.place(key) is Place.UNSCHEDULABLE


def test_an_error_is_tried_again_after_a_backoff_and_nobody_is_blamed() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room", code=Code.ERROR)
    assert easy.room.place(key) is Place.BACKOFF
    easy.room.on_event(NODE)
    assert easy.room.place(key) is Place.BACKOFF, "an event is no reason to hurry"
    easy.clock.advance(1.0)
    assert easy.pop().job.key == key


def test_a_refusal_that_nobody_gave_is_tried_again_after_a_backoff() -> None:
    """As when there are no nodes at all."""
    easy = Easy()
    key = easy.add("p")
    easy.refuse()
    assert easy.room.place(key) is Place.BACKOFF
    easy.clock.advance(1.0)
    assert easy.pop().job.key == key


def test_a_refusal_by_a_plugin_we_have_no_events_for_is_nobodys() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Stranger")
    assert easy.room.place(key) is Place.BACKOFF


def test_a_placed_job_is_gone() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.place()
    assert easy.room.place(key) is Place.GONE
    assert key not in easy.room
    assert len(easy.room) == 0
    assert easy.room.next_time() is None


def test_a_turn_without_a_decision_ends_with_the_job_gone() -> None:
    easy = Easy()
    key = easy.add("p")
    assert easy.room.done(easy.pop()) is Place.GONE
    assert key not in easy.room


def test_members_that_found_no_place_wait_on_as_a_job_of_the_same_age() -> None:
    easy = Easy()
    gang = a_gang("g", 4, minimum=2)
    easy.room.add(gang, since=5.0)
    turn = easy.pop()
    easy.place(turn, gang.pods[:3])
    assert easy.room.place(gang.key) is Place.ACTIVE
    rest = easy.pop()
    assert [pod.metadata.name for pod in rest.job.pods] == ["g-3"]
    assert (rest.job.minimum, rest.since) == (1, 5.0)


def test_members_that_came_while_their_gang_was_in_flight_follow_it() -> None:
    easy = Easy()
    gang = a_gang("g", 3)
    easy.room.add(type(gang)(gang.key, gang.pods[:2], 2))
    turn = easy.pop()
    assert easy.room.add(gang) is Place.IN_FLIGHT
    easy.place(turn)
    assert [pod.metadata.name for pod in easy.pop().job.pods] == ["g-2"]


# --- backoff ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "pods", "pauses"),
    [
        pytest.param(Policy(), 1, [1, 2, 4, 8, 10, 10], id="from one second, doubling, to ten"),
        pytest.param(Policy(initial_backoff=3, max_backoff=7), 1, [3, 6, 7, 7], id="as configured"),
        pytest.param(Policy(), 4, [1, 2, 4, 8, 16, 20, 20], id="a gang's longest wait grows with the root of its size"),
        pytest.param(
            Policy(), 1000, [1, 2, 4, 8, 16, 30, 30], id="but to three times at most: its room would be gone by then"
        ),
        pytest.param(Policy(max_backoff=0), 1, [0, 0, 0], id="a maximum of zero means no backoff"),
        pytest.param(Policy(initial_backoff=20), 1, [10, 10], id="never more than the maximum"),
    ],
)
def test_how_long_a_backoff_lasts(policy: Policy, pods: int, pauses: list[float]) -> None:
    assert [policy.pause(count, pods) for count in range(1, len(pauses) + 1)] == pauses
    assert policy.pause(10_000) <= policy.max_backoff
    assert policy.pause(0) == 0


@pytest.mark.parametrize(
    ("began", "ends"),
    [
        pytest.param(100.0, 101.0, id="on the second"),
        pytest.param(100.3, 102.0, id="within a second: with all others of that second"),
    ],
)
def test_backoffs_end_together_at_the_end_of_a_window(began: float, ends: float) -> None:
    assert Policy().until(began, 1) == ends
    assert EXACT.until(began, 1) == began + 1


def test_each_refusal_of_a_kind_doubles_its_backoff_until_one_of_it_is_placed() -> None:
    easy = Easy()
    easy.add("a", kind="k", since=1.0)
    easy.add("b", kind="k", since=2.0)
    waits = []
    for outcome in ("refuse", "refuse", "refuse", "place", "refuse"):
        if outcome == "place":
            easy.place()
            continue
        easy.refuse("Room")
        easy.room.on_event(NODE)
        waits.append((easy.room.next_time() or 0) - easy.clock.now())
        easy.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 1]


def test_errors_in_a_row_back_off_longer_and_longer() -> None:
    easy = Easy()
    easy.add("p")
    waits = []
    for _ in range(5):
        easy.refuse(code=Code.ERROR)
        waits.append((easy.room.next_time() or 0) - easy.clock.now())
        easy.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 10]


def test_when_nothing_else_is_to_do_a_backoff_need_not_be_over() -> None:
    easy = Easy(Policy())
    easy.add("low", since=1.0)
    easy.refuse("Room")
    easy.add("high", since=2.0, priority=5)
    easy.refuse("Room")
    easy.room.on_event(NODE)
    easy.add("fresh", since=3.0)
    assert easy.room.waiting(Place.BACKOFF).jobs == 2
    assert easy.popped() == ["fresh", "high", "low"]


def test_but_an_error_waits_its_time_even_then() -> None:
    easy = Easy(Policy())
    easy.add("p")
    easy.refuse(code=Code.ERROR)
    assert not easy.room.ready
    assert easy.room.pop() is None


# --- flush --------------------------------------------------------------------------------------------------------


def test_after_five_minutes_a_refused_job_is_tried_whatever_happened() -> None:
    easy = Easy()
    key = easy.add("p")
    easy.refuse("Room")
    assert easy.room.next_time() == 400.0
    easy.clock.advance_to(399.9)
    easy.room.flush()
    assert easy.room.place(key) is Place.UNSCHEDULABLE
    easy.clock.advance_to(400.0)
    easy.room.flush()
    assert easy.room.place(key) is Place.ACTIVE


def test_the_flush_tries_each_kind_once_not_each_job() -> None:
    easy = Easy()
    for i in range(50):
        easy.add(f"p{i}", kind=f"k{i % 2}")
    easy.refuse("Room")
    easy.refuse("Room")
    easy.clock.advance(300)
    easy.refuse("Room")
    easy.refuse("Room")
    assert easy.room.pop() is None


def test_the_time_of_the_flush_is_as_configured() -> None:
    easy = Easy(Policy(flush_after=30.0))
    easy.add("p")
    easy.refuse("Room")
    assert easy.room.next_time() == 130.0
