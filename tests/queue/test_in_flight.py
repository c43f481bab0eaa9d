"""What happens while a job is being decided is not lost, and not kept longer than somebody may need it."""

from typing import Any

from kubenexus.base.heap import Heap
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.queue.in_flight_events import InFlightEvents
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.sub_queues import SubQueues
from kubenexus.testing.builders import a_pod
from tests.queue.queue_fixture import LEFT, NODE, QueueFixture, job_of

IDLE = ClusterEvent(EventResource.CSI_DRIVER, ActionType.ADD)


def test_an_event_during_a_decision_wakes_the_job_when_it_comes_back() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    attempt = fixture.pop()
    fixture.queue.on_event(NODE)
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.BACKOFF
    fixture.clock.advance(1.0)
    assert fixture.pop().job.key == key


def test_an_event_that_does_not_help_does_not() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    attempt = fixture.pop()
    fixture.queue.on_event(LEFT)
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE


def test_an_event_before_the_turn_does_not() -> None:
    fixture = QueueFixture()
    fixture.add("other")
    busy = fixture.pop()
    key = fixture.add("p")
    fixture.queue.on_event(NODE)
    fixture.refuse("Room")
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE
    fixture.refuse("Room", attempt=busy)
    assert fixture.queue.state("default/other") is QueueState.BACKOFF


def test_hints_are_asked_about_events_during_a_decision_too() -> None:
    fixture = QueueFixture()
    helped, other = fixture.add("helped", labels=NODE.new.metadata.labels), fixture.add("other")
    turns = [fixture.pop(), fixture.pop()]
    fixture.queue.on_event(NODE)
    for attempt in turns:
        fixture.refuse("Picky", attempt=attempt)
    assert (fixture.queue.state(helped), fixture.queue.state(other)) == (QueueState.BACKOFF, QueueState.UNSCHEDULABLE)


def test_an_event_after_one_of_a_kind_was_refused_is_not_lost_on_one_still_in_flight() -> None:
    fixture = QueueFixture()
    fixture.add("a", kind="k", since=1.0)
    fixture.add("b", kind="k", since=2.0)
    first, second = fixture.pop(), fixture.pop()
    fixture.refuse("Room", attempt=first)
    fixture.queue.on_event(NODE)
    fixture.refuse("Room", attempt=second)
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs == 0


def test_two_of_a_kind_in_flight_count_as_one_refusal() -> None:
    fixture = QueueFixture()
    fixture.add("a", kind="k", since=1.0)
    fixture.add("b", kind="k", since=2.0)
    first, second = fixture.pop(), fixture.pop()
    fixture.refuse("Room", attempt=first)
    fixture.refuse("Room", attempt=second)
    fixture.queue.on_event(NODE)
    assert fixture.queue.next_due() == 101.0


def test_an_update_during_a_decision_is_what_comes_back() -> None:
    fixture = QueueFixture()
    key = fixture.add("p", kind="old")
    attempt = fixture.pop()
    assert fixture.queue.add(job_of("p", kind="new")) is QueueState.IN_FLIGHT
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.ACTIVE, "the decision was about another kind of job"
    assert fixture.pop().job.pods[0].spec.containers[0].image == "new"


def test_an_update_that_makes_no_difference_changes_nothing() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    attempt = fixture.pop()
    fixture.queue.add(job_of("p", annotations={"seen": "yes"}))
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.UNSCHEDULABLE
    job = fixture.queue.job(key)
    assert job is not None
    assert job.pods[0].metadata.annotations == {"seen": "yes"}


def test_a_job_deleted_during_its_decision_is_gone_whatever_was_decided() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    attempt = fixture.pop()
    assert fixture.queue.delete(key)
    assert fixture.queue.done(attempt) is QueueState.GONE
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.bind_failed(attempt) is QueueState.GONE
    assert (len(fixture.queue), len(fixture.queue._attempts.in_flight_events)) == (0, 0)


def test_an_old_turn_says_nothing_about_a_job_made_again_under_the_same_name() -> None:
    fixture = QueueFixture()
    key = fixture.add("p", uid="one")
    old = fixture.pop()
    fixture.add("p", uid="two")
    new = fixture.pop()
    assert new.job.pods[0].metadata.uid == "two"
    fixture.refuse("Room", attempt=old)
    assert fixture.queue.state(key) is QueueState.IN_FLIGHT
    fixture.place(new)
    assert fixture.queue.state(key) is QueueState.GONE


def test_a_job_recalled_during_its_decision_is_tried_again() -> None:
    fixture = QueueFixture()
    key = fixture.add("p")
    attempt = fixture.pop()
    assert fixture.queue.activate(key) is QueueState.IN_FLIGHT
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.BACKOFF


# --- memory -------------------------------------------------------------------------------------------------------


def test_events_are_kept_only_while_somebody_in_flight_may_need_them() -> None:
    fixture, in_flight_events = QueueFixture(), None
    in_flight_events = fixture.queue._attempts.in_flight_events
    fixture.queue.on_event(NODE)
    assert in_flight_events.remembered == 0, "nobody is in flight"
    fixture.add("a", since=1.0)
    fixture.add("b", since=2.0)
    first = fixture.pop()
    fixture.queue.on_event(NODE)
    second = fixture.pop()
    fixture.queue.on_event(NODE)
    assert in_flight_events.remembered == 2
    fixture.place(first)
    assert in_flight_events.remembered == 1, "the later one never needs what came before it"
    fixture.place(second)
    assert in_flight_events.remembered == 0


def test_events_that_no_plugin_asks_for_are_not_kept() -> None:
    fixture = QueueFixture()
    fixture.add("p")
    fixture.pop()
    fixture.queue.on_event(IDLE)
    assert fixture.queue._attempts.in_flight_events.remembered == 0


def test_f61_pods_that_are_popped_and_skipped_and_made_again_leave_nothing_behind() -> None:
    """kubernetes#138316: whoever was popped and then neither bound nor returned stayed in flight for ever."""
    fixture = QueueFixture()
    sizes = []
    for i in range(300):
        key = fixture.add("p", uid=f"uid-{i}", kind=f"k{i}")
        attempt = fixture.pop()
        fixture.queue.on_event(NODE)
        match i % 4:
            case 0:
                fixture.queue.done(attempt)
            case 1:
                fixture.queue.delete(key)
            case 2:
                fixture.refuse("Room", attempt=attempt)
            case 3:
                pass  # forgotten: the next one of the same name shows that it is gone
        sizes.append(footprint(fixture))
    fixture.queue.delete("default/p")
    assert max(sizes[100:]) <= max(sizes[:8])
    assert footprint(fixture) == (0, 0, 0, 0, 0)
    sub_queues = fixture.queue._job_classes.sub_queues
    assert max(len(heap._slots) for heap in heaps_of(sub_queues)) < 20


def heaps_of(sub_queues: SubQueues) -> tuple[Heap[Any], ...]:
    retries: list[Heap[Any]] = [sub_queues.retries._turns, *sub_queues.retries._classes.values()]
    active, fresh = sub_queues.active, sub_queues.fresh
    assert isinstance(active, Heap)
    assert isinstance(fresh, Heap), "there are no queues here"
    return (active, fresh, *retries, sub_queues.backoff, sub_queues.error_backoff)


def footprint(fixture: QueueFixture) -> tuple[int, ...]:
    queue = fixture.queue
    sub_queues, in_flight_events = queue._job_classes.sub_queues, queue._attempts.in_flight_events
    heaps = sum(len(heap) for heap in heaps_of(sub_queues))
    return (
        len(queue),
        len(queue._job_classes),
        heaps + len(sub_queues.unschedulable),
        len(sub_queues.refused_by._lines) + len(sub_queues.refused_by._events) + len(sub_queues.refused_by._unchecked),
        len(in_flight_events) + in_flight_events.remembered,
    )


def test_a_turn_that_never_ends_costs_a_bounded_number_of_events_and_no_wake() -> None:
    in_flight_events = InFlightEvents(limit=10)
    lost, event = in_flight_events.start(), ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=a_pod("x"))
    for _ in range(1000):
        in_flight_events.record(event)
    assert in_flight_events.remembered <= 10
    assert in_flight_events.events_since(lost) is None, "too much to remember: anything may have happened"
    late = in_flight_events.start()
    in_flight_events.record(event)
    assert in_flight_events.events_since(late) == [event]
    in_flight_events.finish(lost)
    assert in_flight_events.remembered == 1


def test_who_was_away_too_long_is_tried_again() -> None:
    fixture = QueueFixture()
    fixture.queue._attempts.in_flight_events._limit = 4
    key = fixture.add("p")
    attempt = fixture.pop()
    for _ in range(10):
        fixture.queue.on_event(LEFT)
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.BACKOFF
