"""What kube-scheduler's metrics are made of: who waits where, who came in by which event, what hints said."""

import msgspec

from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.verdict import Code
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import NODE, QueueFixture, a_gang, job_of


def incoming(fixture: QueueFixture) -> dict[tuple[str, str], tuple[int, int]]:
    return {(each.queue, each.event): (each.jobs, each.pods) for each in fixture.queue.drain_incoming()}


def test_every_way_in_is_counted_under_kube_schedulers_labels() -> None:
    fixture = QueueFixture(BackoffPolicy())
    fixture.add("p", kind="k")
    fixture.add("q", kind="k")
    assert incoming(fixture) == {("active", "UnscheduledPodAdd"): (2, 2)}
    fixture.refuse("Room")
    assert incoming(fixture) == {("unschedulable", "ScheduleAttemptFailure"): (2, 2)}
    fixture.queue.on_event(NODE)
    assert incoming(fixture) == {("backoff", "NodeAdd"): (2, 2)}
    fixture.refuse("Room")
    assert incoming(fixture)["active", "PopFromBackoffQ"] == (2, 2)
    fixture.clock.advance(300)
    fixture.queue.tick()
    assert incoming(fixture) == {("active", "UnschedulableTimeout"): (2, 2)}
    fixture.queue.bind_failed(fixture.pop())
    fixture.clock.advance(10)
    fixture.queue.tick()
    assert incoming(fixture) == {("backoff", "ScheduleAttemptFailure"): (1, 1), ("active", "BackoffComplete"): (1, 1)}


def test_a_gated_job_comes_in_as_an_unschedulable_one_but_is_counted_apart() -> None:
    fixture = QueueFixture()
    fixture.add("p", gates=["g"])
    assert incoming(fixture) == {("unschedulable", "UnscheduledPodAdd"): (1, 1)}
    assert (fixture.queue.pending(QueueState.GATED).pods, fixture.queue.pending(QueueState.UNSCHEDULABLE).pods) == (
        1,
        0,
    )
    fixture.queue.add(job_of("p"))
    assert incoming(fixture) == {("active", "TargetPodUpdatePodSchedulingGatesEliminated"): (1, 1)}


def test_a_gang_counts_as_one_job_and_all_its_pods() -> None:
    fixture = QueueFixture()
    fixture.queue.add(a_gang("g", 8))
    assert incoming(fixture) == {("active", "UnscheduledPodAdd"): (1, 8)}


def test_what_hints_answered_is_counted() -> None:
    def broken(pod: object, event: object) -> bool:
        raise RuntimeError

    fixture = QueueFixture(
        wakes={
            "Yes": (ClusterEventWithHint(EventResource.NODE, ActionType.ADD),),
            "No": (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, lambda pod, event: False),),
            "Broken": (ClusterEventWithHint(EventResource.NODE, ActionType.ADD, broken),),
        }
    )
    for plugin in ("Yes", "No", "Broken"):
        fixture.add(plugin)
        fixture.refuse(plugin)
    fixture.clock.advance(60)
    assert fixture.queue.on_event(NODE) == 2, "a hint that fails wakes"
    assert fixture.profile.hints == {
        ("Yes", "NodeAdd", "Queue"): 1,
        ("No", "NodeAdd", "QueueSkip"): 1,
        ("Broken", "NodeAdd", "Error"): 1,
    }


def test_who_waits_where_is_counted_as_lines_move() -> None:
    fixture = QueueFixture()
    for i in range(4):
        fixture.add(f"p{i}", kind="k")
    fixture.queue.add(msgspec.structs.replace(a_gang("g", 3), key="default/gang/g"))
    fixture.add("e", since=0.0)
    fixture.refuse(code=Code.ERROR)
    fixture.refuse("Room")
    counts = {state.value: tuple(fixture.queue.pending(state)) for state in QueueState}
    assert counts["backoff"] == (1, 1)
    assert counts["unschedulable"] == (4, 4)
    assert counts["active"] == (1, 3)
    assert [fixture.queue.pending_gangs(state) for state in (QueueState.ACTIVE, QueueState.UNSCHEDULABLE)] == [1, 0]


def test_who_is_tried_only_because_of_the_time_is_known_until_the_next_refusal() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name, kind="k")
    assert not fixture.refuse("Room").after_timeout
    fixture.clock.advance(fixture.queue.policy.flush_after)
    assert fixture.place().after_timeout
    assert fixture.refuse("Room").after_timeout, "the next one, which was refused with it"
    fixture.clock.advance(60)
    fixture.queue.on_event(NODE)
    assert not fixture.place().after_timeout, "something has happened"
    assert not fixture.place().after_timeout
