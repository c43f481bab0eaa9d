"""What kube-scheduler's metrics are made of: who waits where, who came in by which event, what hints said."""

import msgspec

from kubenexus.framework.events import Action, Resource, Wake
from kubenexus.framework.verdict import Code
from kubenexus.queue.entry import Place
from kubenexus.queue.policy import Policy
from tests.queue.easy import NODE, Easy, a_gang, job_of


def incoming(easy: Easy) -> dict[tuple[str, str], tuple[int, int]]:
    return {(each.queue, each.event): (each.jobs, each.pods) for each in easy.room.incoming()}


def test_every_way_in_is_counted_under_kube_schedulers_labels() -> None:
    easy = Easy(Policy())
    easy.add("p", kind="k")
    easy.add("q", kind="k")
    assert incoming(easy) == {("active", "UnscheduledPodAdd"): (2, 2)}
    easy.refuse("Room")
    assert incoming(easy) == {("unschedulable", "ScheduleAttemptFailure"): (2, 2)}
    easy.room.on_event(NODE)
    assert incoming(easy) == {("backoff", "NodeAdd"): (2, 2)}
    easy.refuse("Room")
    assert incoming(easy)["active", "PopFromBackoffQ"] == (2, 2)
    easy.clock.advance(300)
    easy.room.tick()
    assert incoming(easy) == {("active", "UnschedulableTimeout"): (2, 2)}
    easy.room.failed(easy.pop())
    easy.clock.advance(10)
    easy.room.tick()
    assert incoming(easy) == {("backoff", "ScheduleAttemptFailure"): (1, 1), ("active", "BackoffComplete"): (1, 1)}


def test_a_gated_job_comes_in_as_an_unschedulable_one_but_is_counted_apart() -> None:
    easy = Easy()
    easy.add("p", gates=["g"])
    assert incoming(easy) == {("unschedulable", "UnscheduledPodAdd"): (1, 1)}
    assert (easy.room.waiting(Place.GATED).pods, easy.room.waiting(Place.UNSCHEDULABLE).pods) == (1, 0)
    easy.room.add(job_of("p"))
    assert incoming(easy) == {("active", "TargetPodUpdatePodSchedulingGatesEliminated"): (1, 1)}


def test_a_gang_counts_as_one_job_and_all_its_pods() -> None:
    easy = Easy()
    easy.room.add(a_gang("g", 8))
    assert incoming(easy) == {("active", "UnscheduledPodAdd"): (1, 8)}


def test_what_hints_answered_is_counted() -> None:
    def broken(pod: object, event: object) -> bool:
        raise RuntimeError

    easy = Easy(
        wakes={
            "Yes": (Wake(Resource.NODE, Action.ADD),),
            "No": (Wake(Resource.NODE, Action.ADD, lambda pod, event: False),),
            "Broken": (Wake(Resource.NODE, Action.ADD, broken),),
        }
    )
    for plugin in ("Yes", "No", "Broken"):
        easy.add(plugin)
        easy.refuse(plugin)
    easy.clock.advance(60)
    assert easy.room.on_event(NODE) == 2, "a hint that fails wakes"
    assert easy.rules.hints == {
        ("Yes", "NodeAdd", "Queue"): 1,
        ("No", "NodeAdd", "QueueSkip"): 1,
        ("Broken", "NodeAdd", "Error"): 1,
    }


def test_who_waits_where_is_counted_as_lines_move() -> None:
    easy = Easy()
    for i in range(4):
        easy.add(f"p{i}", kind="k")
    easy.room.add(msgspec.structs.replace(a_gang("g", 3), key="default/gang/g"))
    easy.add("e", since=0.0)
    easy.refuse(code=Code.ERROR)
    easy.refuse("Room")
    counts = {place.value: tuple(easy.room.waiting(place)) for place in Place}
    assert counts["backoff"] == (1, 1)
    assert counts["unschedulable"] == (4, 4)
    assert counts["active"] == (1, 3)
    assert [easy.room.gangs(place) for place in (Place.ACTIVE, Place.UNSCHEDULABLE)] == [1, 0]


def test_who_is_tried_only_because_of_the_time_is_known_until_the_next_refusal() -> None:
    easy = Easy()
    for name in ("a", "b", "c"):
        easy.add(name, kind="k")
    assert not easy.refuse("Room").flushed
    easy.clock.advance(easy.room.policy.flush_after)
    assert easy.place().flushed
    assert easy.refuse("Room").flushed, "the next one, which was refused with it"
    easy.clock.advance(60)
    easy.room.on_event(NODE)
    assert not easy.place().flushed, "something has happened"
    assert not easy.place().flushed
