"""An event that concerns thousands of kinds: each turn of the loop asks a bounded number of them, and none is lost.
Counted in answers of hints, not in seconds."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.framework.verdict import Code
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.event_waiters import EventWaiters
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.queued_job import QueueState, SchedulingAttempt
from kubenexus.testing.builders import a_pod
from tests.queue.queue_fixture import LEFT, NODE, QueueFixture, job_of

PORTION = 50
# Who looks closer wants the labels to be the same: the first helps jobs without labels, the second does not.
HELPS = ClusterEvent(EventResource.NODE, ActionType.ADD, new=a_pod(labels={}))
HELPS_NOT = ClusterEvent(EventResource.NODE, ActionType.ADD, new=a_pod(labels={"a": "b"}))


def crowd(
    kinds: int, namespace: str = "crowd", fixture: QueueFixture | None = None, *, priority: int = 0, pause: float = 60
) -> QueueFixture:
    """So many jobs, each of a kind of its own, all refused by one who looks closer. After the pause their backoffs are
    over."""
    fixture = fixture or QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=PORTION))
    for i in range(kinds):
        fixture.add(f"p{i}-{priority}", f"{namespace}-{i}", namespace=namespace, priority=priority)
    for _ in range(kinds):
        fixture.refuse("Picky")
    fixture.clock.advance(pause)
    fixture.queue.tick()
    return fixture


def answers(fixture: QueueFixture) -> int:
    return fixture.profile.hints.total()


def turns_until_all_are_awake(fixture: QueueFixture) -> list[int]:
    """How many were asked in each turn, several jobs popped in each."""
    found = list[int]()
    for _ in range(100):
        if not fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs:
            return found
        before = answers(fixture)
        fixture.queue.tick()
        for _ in range(3):
            attempt = fixture.queue.pop()
            if attempt is not None:
                fixture.place(attempt)
        found.append(answers(fixture) - before)
    raise AssertionError("some sleep on")


@pytest.mark.parametrize("events", [1, 20], ids=["one event", "a batch of events before the next turn"])
def test_a_turn_asks_no_more_than_a_portion_whatever_happened(events: int) -> None:
    fixture = crowd(10 * PORTION)
    for _ in range(events):
        fixture.queue.on_event(HELPS)
    assert answers(fixture) == PORTION
    assert fixture.queue.has_ready, "the loop goes on at once, without waiting"
    asked = turns_until_all_are_awake(fixture)
    assert max(asked) == PORTION
    assert sum(asked) == 9 * PORTION, "each is asked once: the first event helps"


def test_events_that_help_no_line_are_asked_about_in_portions_and_then_forgotten() -> None:
    fixture = crowd(4 * PORTION)
    assert fixture.happens(HELPS_NOT) == 0
    assert answers(fixture) == 4 * PORTION
    event_waiters = fixture.queue._job_classes.sub_queues.refused_by
    assert not event_waiters._events
    assert not event_waiters.has_unchecked
    assert fixture.queue.next_due() is not None
    assert not fixture.queue.has_ready


@pytest.mark.parametrize("due", ["flush", "backoff"])
def test_what_time_brings_is_done_in_portions_too(due: str) -> None:
    fixture = crowd(4 * PORTION, pause=0.5)
    if due == "backoff":
        fixture.happens(WILDCARD_EVENT)
        assert fixture.queue.pending(QueueState.BACKOFF).jobs == 4 * PORTION
    fixture.clock.advance(400)
    active = []
    for _ in range(4):
        fixture.queue.tick()
        fixture.queue.pop()
        active.append(fixture.queue.pending(QueueState.ACTIVE).jobs + len(fixture.queue._attempts.in_flight_events))
    assert active == [PORTION, 2 * PORTION, 3 * PORTION, 4 * PORTION]


@pytest.mark.parametrize("first", [True, False], ids=["of the same event", "of an event that comes meanwhile"])
def test_a_namespace_with_many_kinds_does_not_delay_one_with_a_single_kind(first: bool) -> None:
    fixture = crowd(10 * PORTION)
    crowd(1, "other", fixture)
    if not first:
        fixture.queue.on_event(HELPS_NOT)
        fixture.queue.tick()
    fixture.queue.on_event(HELPS)
    fixture.queue.tick()
    assert fixture.queue.state("other/p0-0") is QueueState.ACTIVE
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs >= 8 * PORTION


def test_those_of_more_priority_are_asked_first() -> None:
    """Else a job of less priority would take the room that the event gives to them."""
    fixture = crowd(2 * PORTION)
    crowd(2, "crowd", fixture, priority=1)
    fixture.queue.on_event(HELPS)
    attempt = fixture.pop()
    assert attempt.job.pods[0].spec.priority == 1


def test_what_is_too_much_to_remember_wakes_without_being_asked() -> None:
    fixture = crowd(3)
    fixture.queue._job_classes.sub_queues.refused_by = event_waiters = EventWaiters(limit=10)
    for job_class in list(fixture.queue._job_classes.sub_queues):
        event_waiters.add(job_class)
    fixture.queue._work_allowance.left = 0
    for _ in range(100):
        fixture.queue.on_event(HELPS_NOT)
        assert max(map(len, event_waiters._events.values())) <= 10
    fixture.queue.tick()
    assert fixture.queue.pending(QueueState.ACTIVE).jobs == 3


def test_gates_are_asked_again_in_portions_after_an_event_for_all() -> None:
    fixture = QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=PORTION))
    for i in range(3 * PORTION):
        fixture.gate.shut.add(fixture.add(f"p{i}", gates=["g"]))
        fixture.queue.add(job_of(f"p{i}"))
    fixture.gate.shut.clear()
    fixture.queue.tick()
    gated = []
    fixture.queue.on_event(WILDCARD_EVENT)
    for _ in range(3):
        gated.append(fixture.queue.pending(QueueState.GATED).jobs)
        fixture.queue.tick()
    assert gated == [2 * PORTION, PORTION, 0]


def _moves(fixture: QueueFixture) -> None:
    """It is of another kind now, of which nothing is known."""
    fixture.queue.add(job_of("a", "another", labels={"c": "d"}))


def _comes_to(fixture: QueueFixture) -> None:
    """Another job becomes one of its kind, which was refused by others."""
    fixture.queue.add(job_of("b", "kind", labels={"c": "d"}))


def _is_refused_again(fixture: QueueFixture) -> None:
    """One of its kind was in flight, and is refused by a plugin that the event does not concern."""
    turn = fixture.queue._queued_jobs["default/twin"].attempt_id
    job = fixture.queue.job("default/twin")
    assert job is not None
    fixture.refuse("Ports", attempt=SchedulingAttempt(turn, job, 1, 0.0))


def _is_made_again(fixture: QueueFixture) -> None:
    """It is another pod of the same name, which is tried for the first time."""
    fixture.queue.add(job_of("a", "kind", uid="another"))


def _is_gone(fixture: QueueFixture) -> None:
    fixture.queue.delete("default/a")


@pytest.mark.parametrize("meanwhile", [_moves, _comes_to, _is_refused_again, _is_made_again, _is_gone])
@pytest.mark.parametrize("event", [HELPS, HELPS_NOT], ids=["helped", "not helped"])
def test_what_befalls_a_job_whose_line_has_yet_to_be_asked(
    meanwhile: Callable[[QueueFixture], None], event: ClusterEvent
) -> None:
    """It ends as if it had been asked at once."""
    ends = []
    for left in (PORTION, 0):
        fixture = QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=PORTION))
        fixture.add("a", "kind")
        fixture.add("twin", "kind")
        first, _ = fixture.pop(), fixture.pop()
        fixture.refuse("Picky", attempt=first)
        fixture.add("b")
        fixture.refuse("Ports")
        fixture.clock.advance(60)
        fixture.queue._work_allowance.left = left
        fixture.queue.on_event(event)
        meanwhile(fixture)
        fixture.queue.tick()
        ends.append(
            [(fixture.queue.state(f"default/{name}"), fixture.queue.last_decision(f"default/{name}")) for name in NAMED]
        )
    assert ends[0] == ends[1]


@pytest.mark.parametrize("left", [PORTION, 0], ids=["asked at once", "asked later"])
@pytest.mark.parametrize("by", [("Room",), ()], ids=["refused by a plugin", "refused by none"])
def test_a_new_job_does_not_share_a_refusal_that_an_event_has_ended(by: tuple[str, ...], left: int) -> None:
    """Its class is still in backoff, and is tried for the new job nevertheless."""
    fixture = QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=PORTION))
    fixture.add("a", "kind")
    fixture.refuse(*by)
    fixture.queue._work_allowance.left = left
    fixture.queue.on_event(NODE)
    assert fixture.queue.state(fixture.add("new", "kind")) is QueueState.ACTIVE


NAMED = ("a", "twin", "b")
NAMES = st.sampled_from([f"p{i}" for i in range(4)])
KINDS = st.sampled_from(["red", "blue"])
NAMESPACES = st.sampled_from(["a", "b"])
PLUGINS = st.lists(st.sampled_from(["Room", "Ports", "Picky", "Stranger"]), unique=True, max_size=2)
LABELS = st.sampled_from([{}, {"a": "b"}])
CODES = st.sampled_from([Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING, Code.ERROR])
EVENTS = st.sampled_from(
    [
        NODE,
        HELPS,
        HELPS_NOT,
        LEFT,
        ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=LEFT.old, max_priority=0),
        WILDCARD_EVENT,
    ]
)


class AsIfAtOnce(RuleBasedStateMachine):
    """Two rooms that live through the same: one asks all lines at once, the other one line in each turn. After as many
    turns as that takes each job is in the same place, has been tried as often, and the same job is the next."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.then = (
            QueueFixture(BackoffPolicy(pop_from_backoff=False, flush_after=60.0, portion=most)) for most in (10**9, 1)
        )
        self.rooms = (self.now.queue, self.then.queue)
        self.turns: dict[str, tuple[SchedulingAttempt, SchedulingAttempt]] = {}

    @rule(name=NAMES, namespace=NAMESPACES, kind=KINDS, cpu=st.integers(1, 2), labels=LABELS)
    def put(self, name: str, namespace: str, kind: str, cpu: int, labels: dict[str, str]) -> None:
        """It comes, or changes, and may be of another kind then."""
        self._passes(0.01)
        job = job_of(name, kind, namespace=namespace, cpu=cpu, labels=labels, uid=f"{namespace}/{name}")
        for queue in self.rooms:
            queue.add(job)

    @rule(name=NAMES, namespace=NAMESPACES)
    def delete(self, name: str, namespace: str) -> None:
        for queue in self.rooms:
            queue.delete(f"{namespace}/{name}")
        self.turns.pop(f"{namespace}/{name}", None)

    @rule(event=EVENTS, turns=st.integers(0, 2))
    def happen(self, event: ClusterEvent, turns: int) -> None:
        """Some lines are asked before something else happens."""
        self._passes(0.01)
        for fixture in (self.now, self.then):
            fixture.queue.on_event(event)
            for _ in range(turns):
                fixture.queue._job_classes.ask(fixture.queue._work_allowance, fixture.clock.now())
                fixture.queue._work_allowance.renew()

    @rule(name=NAMES, namespace=NAMESPACES)
    def activate(self, name: str, namespace: str) -> None:
        key = f"{namespace}/{name}"
        self._drain()
        for queue in self.rooms:
            queue.activate(key)

    @rule(seconds=st.sampled_from([0.3, 7.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self._passes(seconds)

    @rule()
    def pop(self) -> None:
        self._passes(0.01)
        self._drain()
        turns = [queue.pop() for queue in self.rooms]
        if turns[0] is None or turns[1] is None:
            assert turns == [None, None]
            return
        assert turns[0].job == turns[1].job
        assert turns[0].after_timeout == turns[1].after_timeout
        self.turns[turns[0].job.key] = (turns[0], turns[1])

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), by=PLUGINS, code=CODES)
    def refuse(self, data: st.DataObject, by: list[str], code: Code) -> None:
        self._passes(0.01)
        one, other = self.turns.pop(data.draw(st.sampled_from(sorted(self.turns))))
        self.now.refuse(*by, attempt=one, code=code)
        self.then.refuse(*by, attempt=other, code=code)

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        one, other = self.turns.pop(data.draw(st.sampled_from(sorted(self.turns))))
        self.now.place(one)
        self.then.place(other)

    @rule()
    def compare(self) -> None:
        self._drain()

    def teardown(self) -> None:
        self._drain()

    def _passes(self, seconds: float) -> None:
        for fixture in (self.now, self.then):
            fixture.clock.advance(seconds)

    def _drain(self) -> None:
        for fixture in (self.now, self.then):
            fixture.queue.tick()
            for _ in range(1000):
                due = fixture.queue.next_due()
                if due is None or due > fixture.clock.now():
                    break
                fixture.queue.tick()
            else:
                raise AssertionError("something is always due")
        one, other = (
            {key: (queue.state(key), queue.attempts(key), queue.last_decision(key)) for key in queue._queued_jobs}
            for queue in self.rooms
        )
        assert one == other


TestAsIfAtOnce = AsIfAtOnce.TestCase
TestAsIfAtOnce.settings = settings(stateful_step_count=40)
