"""Questions about events are weighed: a turn of the loop spends a bounded amount on them, however large the pods are
that wait and however much happened. Counted in answers of hints, not in seconds."""

from typing import Any

import pytest

from kubenexus.api.core import Pod, PodAffinityTerm, TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.job import Job
from kubenexus.plugins.inter_pod_affinity import hints as affinity_hints
from kubenexus.plugins.pod_topology_spread import hints as spread_hints
from kubenexus.plugins.pod_topology_spread.constraints import parse_constraint
from kubenexus.queue import job_classes
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.event_waiters import EventWaiters
from kubenexus.queue.in_flight_events import InFlightEvents
from kubenexus.queue.job_classes import MAX_AT_ONCE, MAX_BEHIND
from kubenexus.queue.object_events import pod_bound, pod_changed
from kubenexus.queue.question_cost import MAX_PRICE, QuestionCost, event_cost, question_cost
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.work_allowance import MAX_DEBT, WorkAllowance
from kubenexus.state.affinity_terms import affinity_terms
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.queue.queue_fixture import WAKES, QueueFixture, a_gang
from tests.queue.test_event_waiters import HELPS, HELPS_NOT, PORTION, answers, crowd

EVERYWHERE = LabelSelector()


def lacking(key: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator="DoesNotExist")])


def near_all_but_one(terms: int, own: str = "") -> list[PodAffinityTerm]:
    """All terms but the last select every pod; the last selects none."""
    selectors = [lacking(f"x{number}") for number in range(terms - 1)]
    selectors.append(LabelSelector(match_labels={"nobody": f"has{own}"}))
    return [PodAffinityTerm(topology_key=HOSTNAME, label_selector=s, namespace_selector=EVERYWHERE) for s in selectors]


def spread(constraints: int) -> list[TopologySpreadConstraint]:
    return [
        TopologySpreadConstraint(
            max_skew=1, topology_key="t", when_unsatisfiable="DoNotSchedule", label_selector=lacking(f"x{number}")
        )
        for number in range(constraints)
    ]


# --- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "least", "most"),
    [
        ([a_pod()], 1, 1),
        ([a_pod(near=near_all_but_one(3))], 1, 1),
        ([a_pod(), a_pod()], 2, 2),
        ([a_pod(near=near_all_but_one(400))], 5, 10),
        ([a_pod(near=near_all_but_one(400))] * 2, 10, 20),
        ([a_pod(topology_spread_constraints=spread(400))], 5, 10),
        ([a_pod(selects={f"k{number}": "v" for number in range(400)})], 50, 150),
        ([a_pod()] * 5000, MAX_PRICE, MAX_PRICE + 1),
    ],
    ids=["plain", "few terms", "two", "terms", "two with terms", "constraints", "node labels", "a gang of many kinds"],
)
def test_a_question_costs_what_the_pods_have_entries(pods: list[Pod], least: int, most: int) -> None:
    assert least <= question_cost(pods).each <= most


def test_parsing_is_paid_once_and_then_in_part() -> None:
    assert question_cost([a_pod()]) == (0, 0, 1)
    cost = question_cost([a_pod(near=near_all_but_one(400))])
    assert cost.first > 4.5e-3 / 40e-6
    assert 0 < cost.again < cost.first


def test_an_event_weighs_what_its_objects_hold() -> None:
    small, labelled = a_pod(), a_pod(labels={f"label-{number}": "v" for number in range(8_000)})
    annotated, large = a_pod(annotations={"a": "x" * 200_000}), a_pod(near=near_all_but_one(400))
    assert event_cost(pod_bound(small)) < (8 << 10, 1)
    assert event_cost(pod_bound(labelled)).size > 1 << 20
    assert event_cost(pod_bound(annotated)).size > 200_000
    both = event_cost(pod_changed(labelled, large)[0])
    assert both.size > event_cost(pod_bound(labelled)).size + event_cost(pod_bound(small)).size
    assert both.price > 100, "the terms of a pod that changed or went are parsed"
    assert event_cost(pod_bound(large)).price == 0, "those of one that came are not"


# --- what a turn spends -----------------------------------------------------------------------------------------------


def test_debt_is_carried_into_the_next_turns() -> None:
    allowance = WorkAllowance(50)
    allowance.spend(170)
    for _ in range(3):
        assert not allowance
        allowance.renew()
    assert allowance.left == 30
    allowance.renew()
    assert allowance.left == 50, "what is not used is not saved"
    allowance.spend(50 + MAX_DEBT)
    assert allowance.overdrawn


def test_a_turn_ends_in_the_middle_of_the_events_of_one_class_and_the_next_goes_on() -> None:
    fixture = crowd(1)
    fixture.queue._work_allowance.left = 0
    for event in (*[HELPS_NOT] * (6 * PORTION), HELPS):
        fixture.queue.on_event(event)
    asked = []
    while fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs:
        before = answers(fixture)
        fixture.queue.tick()
        asked.append(answers(fixture) - before)
    assert max(asked) <= PORTION + 1
    assert sum(asked) == 6 * PORTION + 1, "about each event once, and the last one helps"


def test_a_class_in_the_middle_of_its_events_does_not_keep_other_namespaces_waiting() -> None:
    fixture = crowd(1)
    crowd(1, "other", fixture)
    fixture.queue._work_allowance.left = 0
    for event in (*[HELPS_NOT] * (20 * PORTION), HELPS):
        fixture.queue.on_event(event)
    for _ in range(41):
        fixture.queue.tick()
    assert fixture.queue.pending(QueueState.ACTIVE).jobs == 2


@pytest.mark.parametrize("between", [True, False], ids=["and others of its share wait", "alone"])
def test_a_class_that_leaves_in_the_middle_of_its_events_leaves_nothing_behind(between: bool) -> None:
    fixture = crowd(2 if between else 1)
    fixture.queue._work_allowance.left = 0
    for _ in range(4 * PORTION):
        fixture.queue.on_event(HELPS_NOT)
    fixture.queue.tick()
    for name in ("p0-0", "p1-0"):
        fixture.queue.delete(f"crowd/{name}")
    fixture.happens(HELPS_NOT)
    event_waiters = fixture.queue._job_classes.sub_queues.refused_by
    assert not event_waiters._partly
    assert not event_waiters.has_unchecked


LARGE: dict[str, Any] = {"near": near_all_but_one(400), "labels": {}}
PARKED = BackoffPolicy(pop_from_backoff=False)


def parked(**fields: Any) -> QueueFixture:
    """One job, refused by a plugin that looks closer; its backoff is over."""
    fixture = QueueFixture(PARKED)
    fixture.add("p", **fields)
    fixture.refuse("Picky")
    fixture.clock.advance(60)
    fixture.queue.tick()
    return fixture


@pytest.mark.parametrize(
    ("fields", "asked"),
    [(LARGE, 0), ({}, 1500)],
    ids=["large pods are woken without a question", "ordinary pods are asked about all"],
)
def test_a_class_that_is_too_far_behind_for_its_price_is_woken(fields: dict[str, Any], asked: int) -> None:
    fixture = parked(**fields)
    fixture.queue._work_allowance.left = 0
    for _ in range(1500):
        fixture.queue.on_event(HELPS_NOT)
    for _ in range(10):
        fixture.queue.tick()
    assert answers(fixture) == asked
    assert fixture.queue.pending(QueueState.ACTIVE).jobs == (0 if asked else 1)
    assert 1500 < MAX_BEHIND < 1500 * 5


def test_a_gang_of_more_kinds_than_a_turn_may_ask_about_is_woken_by_any_event() -> None:
    fixture = QueueFixture(PARKED)
    pods = tuple(a_pod(f"g-{number}", image=f"{number}") for number in range(MAX_PRICE + 1))
    fixture.queue.add(Job("default/g", pods, len(pods)))
    fixture.refuse("Picky")
    fixture.clock.advance(60)
    fixture.happens(HELPS_NOT)
    assert answers(fixture) == 0
    assert fixture.queue.state("default/g") is QueueState.ACTIVE


def test_a_job_that_comes_back_is_asked_about_so_much_and_no_more() -> None:
    fixture = QueueFixture(PARKED)
    key = fixture.add("p")
    attempt = fixture.pop()
    for _ in range(5_000):
        fixture.queue.on_event(HELPS_NOT)
    fixture.refuse("Picky", attempt=attempt)
    assert answers(fixture) <= MAX_AT_ONCE
    assert fixture.queue.state(key) is QueueState.BACKOFF, "some of it may have helped"


def test_updates_of_many_jobs_that_have_yet_to_be_asked_spend_no_more_than_a_turn_may() -> None:
    fixture = crowd(100)
    fixture.queue._work_allowance.left = 0
    for _ in range(100):
        fixture.queue.on_event(HELPS_NOT)
    for number in range(100):
        pod = a_pod(f"p{number}-0", image=f"crowd-{number}", namespace="crowd", annotations={"seen": "yes"})
        fixture.queue.add(Job.of(pod))
    assert answers(fixture) <= MAX_DEBT + 100
    assert fixture.queue.pending(QueueState.ACTIVE).jobs > 90, "the others are woken without a question"


@pytest.mark.parametrize(
    ("plugin", "counted", "state"),
    [("Ports", 0, QueueState.UNSCHEDULABLE), ("Room", 1, QueueState.ACTIVE)],
    ids=["which concern no plugin that refused", "which concern one"],
)
def test_changes_of_all_members_of_a_gang_are_not_priced_one_by_one(
    plugin: str, counted: int, state: QueueState, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced = list[int]()

    def counting(pods: tuple[Pod, ...]) -> QuestionCost:
        priced.append(len(pods))
        return question_cost(pods)

    monkeypatch.setattr(job_classes, "question_cost", counting)
    fixture = QueueFixture(PARKED)
    fixture.queue.add(a_gang("g", 800, cpu=2))
    fixture.refuse(plugin)
    fixture.clock.advance(60)
    fixture.queue.add(a_gang("g", 800, cpu=1))
    assert (len(priced), fixture.queue.state("default/g")) == (counted, state)


# --- what is kept -----------------------------------------------------------------------------------------------------


def relabelled(number: int) -> ClusterEvent:
    labels = {f"label-{each}": str(number) for each in range(1_000)}
    return pod_changed(a_pod("x", node="n"), a_pod("x", node="n", labels=labels))[0]


def test_events_for_jobs_in_flight_are_kept_by_weight() -> None:
    in_flight_events = InFlightEvents(max_bytes=3_000_000)
    lost = in_flight_events.start()
    for number in range(100):
        event = relabelled(number)
        in_flight_events.record(event, event_cost(event).size)
        assert in_flight_events.weight <= 3_000_000
    assert 2 < in_flight_events.remembered < 15
    assert in_flight_events.events_since(lost) is None, "too much to keep: anything may have happened"
    late, event = in_flight_events.start(), relabelled(0)
    in_flight_events.record(event, event_cost(event).size)
    assert in_flight_events.events_since(late) == [event]
    in_flight_events.finish(lost)
    in_flight_events.finish(late)
    assert (in_flight_events.remembered, in_flight_events.weight) == (0, 0)


def test_a_job_in_flight_is_tried_again_after_large_events_that_could_not_be_kept() -> None:
    fixture = QueueFixture()
    fixture.queue._attempts.in_flight_events._max_bytes = 3_000_000
    key = fixture.add("p")
    attempt = fixture.pop()
    for number in range(40):
        labels = {f"label-{each}": str(number) for each in range(1_000)}
        gone = a_pod("x", node="n", labels=labels)
        fixture.queue.on_event(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=gone))
    assert fixture.queue._attempts.in_flight_events.remembered < 15
    fixture.refuse("Room", attempt=attempt)
    assert fixture.queue.state(key) is QueueState.BACKOFF


def test_events_for_classes_that_have_yet_to_be_asked_are_kept_by_weight() -> None:
    wakes = {**WAKES, "Picky": (ClusterEventWithHint(EventResource.POD, ActionType.ALL, lambda pod, event: False),)}
    fixture = QueueFixture(PARKED, wakes)
    key = fixture.add("p")
    fixture.refuse("Picky")
    fixture.clock.advance(60)
    fixture.queue._job_classes.sub_queues.refused_by = event_waiters = EventWaiters(max_bytes=3_000_000)
    for job_class in list(fixture.queue._job_classes.sub_queues):
        event_waiters.add(job_class)
    fixture.queue._work_allowance.left = 0
    for number in range(100):
        fixture.queue.on_event(relabelled(number))
        assert max(map(len, event_waiters._events.values())) < 15
        assert max(event_waiters._bytes.values()) <= 3_000_000
    fixture.queue.tick()
    assert fixture.queue.state(key) is QueueState.ACTIVE, "what is forgotten may have helped"


# --- what hints parse -------------------------------------------------------------------------------------------------


def test_the_terms_of_a_pod_are_parsed_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[Pod]()

    def counting(pod: Pod) -> Any:
        parsed.append(pod)
        return affinity_terms(pod)

    monkeypatch.setattr(affinity_hints, "affinity_terms", counting)
    pod = a_pod(near=near_all_but_one(40))
    for number in range(100):
        assert not affinity_hints.neighbour_changed(None, pod, pod_bound(a_pod(f"p{number}", node="n")))
    assert len(parsed) == 1
    joins = a_pod("joins", node="n", labels={"nobody": "has"})
    assert affinity_hints.neighbour_changed(None, pod, pod_bound(joins)), "whichever term was asked first"


def test_the_constraints_of_a_pod_are_parsed_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[Any]()

    def counting(*given: Any) -> Any:
        parsed.append(given)
        return parse_constraint(*given)

    monkeypatch.setattr(spread_hints, "parse_constraint", counting)
    pod = a_pod(topology_spread_constraints=spread(10))
    for number in range(100):
        assert spread_hints.pod_counted(None, pod, pod_bound(a_pod(f"p{number}", node="n")))
    assert len(parsed) == 10


# --- a whole scheduler ------------------------------------------------------------------------------------------------


def test_gangs_with_many_terms_cost_a_turn_no_more_than_its_allowance_while_pods_of_others_are_bound() -> None:
    """24 pods in 12 gangs of 2, each with 100 required terms of which one selects no pod; 1,000 pods of others come.
    Without prices a turn had up to 24,000 answers, each of which parsed 100 terms."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{number}", cpu=64) for number in range(20)))
        for number in range(24):
            group = "pod-group.scheduling.kubenexus.io/name"
            labels = {group: f"g{number // 2}", "pod-group.scheduling.kubenexus.io/min-available": "2"}
            near = near_all_but_one(100, str(number))
            fixture.pods(a_pod(f"large-{number}", namespace="large", cpu="1m", labels=labels, near=near))
        for _ in range(20):
            await fixture.work()
            fixture.clock.advance(0.01)
        assert fixture.queue.pending(QueueState.UNSCHEDULABLE) == (12, 24)
        hints = [profile.hints for profile in fixture.queue._profiles]
        most, portion = 0, fixture.queue.policy.portion
        for batch in range(5):
            before = sum(each.total() for each in hints)
            for number in range(200 * batch, 200 * batch + 200):
                pod = a_pod(f"p{number}", namespace="others", cpu="1m", node=f"n{number % 20}")
                fixture.handlers.on_pod_update(pod)
            fixture.queue.tick()
            most = max(most, sum(each.total() for each in hints) - before)
        assert 0 < most <= 2 * portion

    scheduler_test(life)
