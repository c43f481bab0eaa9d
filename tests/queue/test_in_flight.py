"""What happens while a job is being decided is not lost, and not kept longer than somebody may need it."""

from kubenexus.base.heap import Heap
from kubenexus.framework.events import Action, Event, Resource
from kubenexus.queue.entry import Place
from kubenexus.queue.flight import Flight
from kubenexus.queue.line import Line
from kubenexus.queue.places import Places
from kubenexus.testing.builders import a_pod
from tests.queue.easy import LEFT, NODE, Easy, job_of

IDLE = Event(Resource.CSI_DRIVER, Action.ADD)


def test_an_event_during_a_decision_wakes_the_job_when_it_comes_back() -> None:
    easy = Easy()
    key = easy.add("p")
    turn = easy.pop()
    easy.room.on_event(NODE)
    easy.refuse("Room", turn=turn)
    assert easy.room.place(key) is Place.BACKOFF
    easy.clock.advance(1.0)
    assert easy.pop().job.key == key


def test_an_event_that_does_not_help_does_not() -> None:
    easy = Easy()
    key = easy.add("p")
    turn = easy.pop()
    easy.room.on_event(LEFT)
    easy.refuse("Room", turn=turn)
    assert easy.room.place(key) is Place.UNSCHEDULABLE


def test_an_event_before_the_turn_does_not() -> None:
    easy = Easy()
    easy.add("other")
    busy = easy.pop()
    key = easy.add("p")
    easy.room.on_event(NODE)
    easy.refuse("Room")
    assert easy.room.place(key) is Place.UNSCHEDULABLE
    easy.refuse("Room", turn=busy)
    assert easy.room.place("default/other") is Place.BACKOFF


def test_hints_are_asked_about_events_during_a_decision_too() -> None:
    easy = Easy()
    helped, other = easy.add("helped", labels=NODE.new.metadata.labels), easy.add("other")
    turns = [easy.pop(), easy.pop()]
    easy.room.on_event(NODE)
    for turn in turns:
        easy.refuse("Picky", turn=turn)
    assert (easy.room.place(helped), easy.room.place(other)) == (Place.BACKOFF, Place.UNSCHEDULABLE)


def test_an_event_after_one_of_a_kind_was_refused_is_not_lost_on_one_still_in_flight() -> None:
    easy = Easy()
    easy.add("a", kind="k", since=1.0)
    easy.add("b", kind="k", since=2.0)
    first, second = easy.pop(), easy.pop()
    easy.refuse("Room", turn=first)
    easy.room.on_event(NODE)
    easy.refuse("Room", turn=second)
    assert easy.room.waiting(Place.UNSCHEDULABLE).jobs == 0


def test_two_of_a_kind_in_flight_count_as_one_refusal() -> None:
    easy = Easy()
    easy.add("a", kind="k", since=1.0)
    easy.add("b", kind="k", since=2.0)
    first, second = easy.pop(), easy.pop()
    easy.refuse("Room", turn=first)
    easy.refuse("Room", turn=second)
    easy.room.on_event(NODE)
    assert easy.room.next_time() == 101.0


def test_an_update_during_a_decision_is_what_comes_back() -> None:
    easy = Easy()
    key = easy.add("p", kind="old")
    turn = easy.pop()
    assert easy.room.add(job_of("p", kind="new")) is Place.IN_FLIGHT
    easy.refuse("Room", turn=turn)
    assert easy.room.place(key) is Place.ACTIVE, "the decision was about another kind of job"
    assert easy.pop().job.pods[0].spec.containers[0].image == "new"


def test_an_update_that_makes_no_difference_changes_nothing() -> None:
    easy = Easy()
    key = easy.add("p")
    turn = easy.pop()
    easy.room.add(job_of("p", annotations={"seen": "yes"}))
    easy.refuse("Room", turn=turn)
    assert easy.room.place(key) is Place.UNSCHEDULABLE
    job = easy.room.job(key)
    assert job is not None
    assert job.pods[0].metadata.annotations == {"seen": "yes"}


def test_a_job_deleted_during_its_decision_is_gone_whatever_was_decided() -> None:
    easy = Easy()
    key = easy.add("p")
    turn = easy.pop()
    assert easy.room.delete(key)
    assert easy.room.done(turn) is Place.GONE
    easy.refuse("Room", turn=turn)
    assert easy.room.failed(turn) is Place.GONE
    assert (len(easy.room), len(easy.room._turns.flight)) == (0, 0)


def test_an_old_turn_says_nothing_about_a_job_made_again_under_the_same_name() -> None:
    easy = Easy()
    key = easy.add("p", uid="one")
    old = easy.pop()
    easy.add("p", uid="two")
    new = easy.pop()
    assert new.job.pods[0].metadata.uid == "two"
    easy.refuse("Room", turn=old)
    assert easy.room.place(key) is Place.IN_FLIGHT
    easy.place(new)
    assert easy.room.place(key) is Place.GONE


def test_a_job_recalled_during_its_decision_is_tried_again() -> None:
    easy = Easy()
    key = easy.add("p")
    turn = easy.pop()
    assert easy.room.activate(key) is Place.IN_FLIGHT
    easy.refuse("Room", turn=turn)
    assert easy.room.place(key) is Place.BACKOFF


# --- memory -------------------------------------------------------------------------------------------------------


def test_events_are_kept_only_while_somebody_in_flight_may_need_them() -> None:
    easy, flight = Easy(), None
    flight = easy.room._turns.flight
    easy.room.on_event(NODE)
    assert flight.remembered == 0, "nobody is in flight"
    easy.add("a", since=1.0)
    easy.add("b", since=2.0)
    first = easy.pop()
    easy.room.on_event(NODE)
    second = easy.pop()
    easy.room.on_event(NODE)
    assert flight.remembered == 2
    easy.place(first)
    assert flight.remembered == 1, "the later one never needs what came before it"
    easy.place(second)
    assert flight.remembered == 0


def test_events_that_no_plugin_asks_for_are_not_kept() -> None:
    easy = Easy()
    easy.add("p")
    easy.pop()
    easy.room.on_event(IDLE)
    assert easy.room._turns.flight.remembered == 0


def test_f61_pods_that_are_popped_and_skipped_and_made_again_leave_nothing_behind() -> None:
    """kubernetes#138316: whoever was popped and then neither bound nor returned stayed in flight for ever."""
    easy = Easy()
    sizes = []
    for i in range(300):
        key = easy.add("p", uid=f"uid-{i}", kind=f"k{i}")
        turn = easy.pop()
        easy.room.on_event(NODE)
        match i % 4:
            case 0:
                easy.room.done(turn)
            case 1:
                easy.room.delete(key)
            case 2:
                easy.refuse("Room", turn=turn)
            case 3:
                pass  # forgotten: the next one of the same name shows that it is gone
        sizes.append(footprint(easy))
    easy.room.delete("default/p")
    assert max(sizes[100:]) <= max(sizes[:8])
    assert footprint(easy) == (0, 0, 0, 0, 0)
    places = easy.room._lines.places
    assert max(len(heap._slots) for heap in heaps_of(places)) < 20


def heaps_of(places: Places) -> tuple[Heap[Line], ...]:
    return (places.active, places.fresh, places.retries, places.backoff, places.failing)


def footprint(easy: Easy) -> tuple[int, ...]:
    room = easy.room
    places, flight = room._lines.places, room._turns.flight
    heaps = sum(len(heap) for heap in heaps_of(places))
    return (
        len(room),
        len(room._lines),
        heaps + len(places.parked),
        len(places.watching._lines) + len(places.watching._events) + len(places.watching._unheard),
        len(flight) + flight.remembered,
    )


def test_a_turn_that_never_ends_costs_a_bounded_number_of_events_and_no_wake() -> None:
    flight = Flight(limit=10)
    lost, event = flight.depart(), Event(Resource.ASSIGNED_POD, Action.DELETE, old=a_pod("x"))
    for _ in range(1000):
        flight.note(event)
    assert flight.remembered <= 10
    assert flight.missed(lost) is None, "too much to remember: anything may have happened"
    late = flight.depart()
    flight.note(event)
    assert flight.missed(late) == [event]
    flight.land(lost)
    assert flight.remembered == 1


def test_who_was_away_too_long_is_tried_again() -> None:
    easy = Easy()
    easy.room._turns.flight._limit = 4
    key = easy.add("p")
    turn = easy.pop()
    for _ in range(10):
        easy.room.on_event(LEFT)
    easy.refuse("Room", turn=turn)
    assert easy.room.place(key) is Place.BACKOFF
