"""An event that concerns thousands of kinds: each turn of the loop asks a bounded number of them, and none is lost.
Counted in answers of hints, not in seconds."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kubenexus.framework.events import Action, Event, Resource
from kubenexus.framework.verdict import Code
from kubenexus.queue.changes import EVERYTHING
from kubenexus.queue.entry import Place, Turn
from kubenexus.queue.policy import Policy
from kubenexus.queue.watching import Watching
from kubenexus.testing.builders import a_pod
from tests.queue.easy import LEFT, NODE, Easy, job_of

PORTION = 50
# Who looks closer wants the labels to be the same: the first helps jobs without labels, the second does not.
HELPS = Event(Resource.NODE, Action.ADD, new=a_pod(labels={}))
HELPS_NOT = Event(Resource.NODE, Action.ADD, new=a_pod(labels={"a": "b"}))


def crowd(
    kinds: int, namespace: str = "crowd", easy: Easy | None = None, *, priority: int = 0, pause: float = 60
) -> Easy:
    """So many jobs, each of a kind of its own, all refused by one who looks closer. After the pause their backoffs are
    over."""
    easy = easy or Easy(Policy(eager=False, portion=PORTION))
    for i in range(kinds):
        easy.add(f"p{i}-{priority}", f"{namespace}-{i}", namespace=namespace, priority=priority)
    for _ in range(kinds):
        easy.refuse("Picky")
    easy.clock.advance(pause)
    easy.room.tick()
    return easy


def answers(easy: Easy) -> int:
    return easy.rules.hints.total()


def turns_until_all_are_awake(easy: Easy) -> list[int]:
    """How many were asked in each turn, several jobs popped in each."""
    found = list[int]()
    for _ in range(100):
        if not easy.room.waiting(Place.UNSCHEDULABLE).jobs:
            return found
        before = answers(easy)
        easy.room.tick()
        for _ in range(3):
            turn = easy.room.pop()
            if turn is not None:
                easy.place(turn)
        found.append(answers(easy) - before)
    raise AssertionError("some sleep on")


@pytest.mark.parametrize("events", [1, 20], ids=["one event", "a batch of events before the next turn"])
def test_a_turn_asks_no_more_than_a_portion_whatever_happened(events: int) -> None:
    easy = crowd(10 * PORTION)
    for _ in range(events):
        easy.room.on_event(HELPS)
    assert answers(easy) == PORTION
    assert easy.room.ready, "the loop goes on at once, without waiting"
    asked = turns_until_all_are_awake(easy)
    assert max(asked) == PORTION
    assert sum(asked) == 9 * PORTION, "each is asked once: the first event helps"


def test_events_that_help_no_line_are_asked_about_in_portions_and_then_forgotten() -> None:
    easy = crowd(4 * PORTION)
    assert easy.happens(HELPS_NOT) == 0
    assert answers(easy) == 4 * PORTION
    watching = easy.room._lines.places.watching
    assert not watching._events
    assert not watching.any_unheard
    assert easy.room.next_time() is not None
    assert not easy.room.ready


@pytest.mark.parametrize("due", ["flush", "backoff"])
def test_what_time_brings_is_done_in_portions_too(due: str) -> None:
    easy = crowd(4 * PORTION, pause=0.5)
    if due == "backoff":
        easy.happens(EVERYTHING)
        assert easy.room.waiting(Place.BACKOFF).jobs == 4 * PORTION
    easy.clock.advance(400)
    active = []
    for _ in range(4):
        easy.room.tick()
        easy.room.pop()
        active.append(easy.room.waiting(Place.ACTIVE).jobs + len(easy.room._turns.flight))
    assert active == [PORTION, 2 * PORTION, 3 * PORTION, 4 * PORTION]


@pytest.mark.parametrize("first", [True, False], ids=["of the same event", "of an event that comes meanwhile"])
def test_a_namespace_with_many_kinds_does_not_delay_one_with_a_single_kind(first: bool) -> None:
    easy = crowd(10 * PORTION)
    crowd(1, "other", easy)
    if not first:
        easy.room.on_event(HELPS_NOT)
        easy.room.tick()
    easy.room.on_event(HELPS)
    easy.room.tick()
    assert easy.room.place("other/p0-0") is Place.ACTIVE
    assert easy.room.waiting(Place.UNSCHEDULABLE).jobs >= 8 * PORTION


def test_those_of_more_priority_are_asked_first() -> None:
    """Else a job of less priority would take the room that the event gives to them."""
    easy = crowd(2 * PORTION)
    crowd(2, "crowd", easy, priority=1)
    easy.room.on_event(HELPS)
    turn = easy.pop()
    assert turn.job.pods[0].spec.priority == 1


def test_what_is_too_much_to_remember_wakes_without_being_asked() -> None:
    easy = crowd(3)
    easy.room._lines.places.watching = watching = Watching(limit=10)
    for line in list(easy.room._lines.places):
        watching.put(line)
    easy.room._allowance.left = 0
    for _ in range(100):
        easy.room.on_event(HELPS_NOT)
        assert max(map(len, watching._events.values())) <= 10
    easy.room.tick()
    assert easy.room.waiting(Place.ACTIVE).jobs == 3


def test_gates_are_asked_again_in_portions_after_an_event_for_all() -> None:
    easy = Easy(Policy(eager=False, portion=PORTION))
    for i in range(3 * PORTION):
        easy.gate.shut.add(easy.add(f"p{i}", gates=["g"]))
        easy.room.add(job_of(f"p{i}"))
    easy.gate.shut.clear()
    easy.room.tick()
    gated = []
    easy.room.on_event(EVERYTHING)
    for _ in range(3):
        gated.append(easy.room.waiting(Place.GATED).jobs)
        easy.room.tick()
    assert gated == [2 * PORTION, PORTION, 0]


def _moves(easy: Easy) -> None:
    """It is of another kind now, of which nothing is known."""
    easy.room.add(job_of("a", "another", labels={"c": "d"}))


def _comes_to(easy: Easy) -> None:
    """Another job becomes one of its kind, which was refused by others."""
    easy.room.add(job_of("b", "kind", labels={"c": "d"}))


def _is_refused_again(easy: Easy) -> None:
    """One of its kind was in flight, and is refused by a plugin that the event does not concern."""
    turn = easy.room._entries["default/twin"].turn
    job = easy.room.job("default/twin")
    assert job is not None
    easy.refuse("Ports", turn=Turn(turn, job, 1, 0.0))


def _is_made_again(easy: Easy) -> None:
    """It is another pod of the same name, which is tried for the first time."""
    easy.room.add(job_of("a", "kind", uid="another"))


def _is_gone(easy: Easy) -> None:
    easy.room.delete("default/a")


@pytest.mark.parametrize("meanwhile", [_moves, _comes_to, _is_refused_again, _is_made_again, _is_gone])
@pytest.mark.parametrize("event", [HELPS, HELPS_NOT], ids=["helped", "not helped"])
def test_what_befalls_a_job_whose_line_has_yet_to_be_asked(meanwhile: Callable[[Easy], None], event: Event) -> None:
    """It ends as if it had been asked at once."""
    ends = []
    for left in (PORTION, 0):
        easy = Easy(Policy(eager=False, portion=PORTION))
        easy.add("a", "kind")
        easy.add("twin", "kind")
        first, _ = easy.pop(), easy.pop()
        easy.refuse("Picky", turn=first)
        easy.add("b")
        easy.refuse("Ports")
        easy.clock.advance(60)
        easy.room._allowance.left = left
        easy.room.on_event(event)
        meanwhile(easy)
        easy.room.tick()
        ends.append([(easy.room.place(f"default/{name}"), easy.room.verdict(f"default/{name}")) for name in NAMED])
    assert ends[0] == ends[1]


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
        Event(Resource.ASSIGNED_POD, Action.DELETE, old=LEFT.old, ceiling=0),
        EVERYTHING,
    ]
)


class AsIfAtOnce(RuleBasedStateMachine):
    """Two rooms that live through the same: one asks all lines at once, the other one line in each turn. After as many
    turns as that takes each job is in the same place, has been tried as often, and the same job is the next."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.then = (Easy(Policy(eager=False, flush_after=60.0, portion=most)) for most in (10**9, 1))
        self.rooms = (self.now.room, self.then.room)
        self.turns: dict[str, tuple[Turn, Turn]] = {}

    @rule(name=NAMES, namespace=NAMESPACES, kind=KINDS, cpu=st.integers(1, 2), labels=LABELS)
    def put(self, name: str, namespace: str, kind: str, cpu: int, labels: dict[str, str]) -> None:
        """It comes, or changes, and may be of another kind then."""
        self._passes(0.01)
        job = job_of(name, kind, namespace=namespace, cpu=cpu, labels=labels, uid=f"{namespace}/{name}")
        for room in self.rooms:
            room.add(job)

    @rule(name=NAMES, namespace=NAMESPACES)
    def delete(self, name: str, namespace: str) -> None:
        for room in self.rooms:
            room.delete(f"{namespace}/{name}")
        self.turns.pop(f"{namespace}/{name}", None)

    @rule(event=EVENTS, turns=st.integers(0, 2))
    def happen(self, event: Event, turns: int) -> None:
        """Some lines are asked before something else happens."""
        self._passes(0.01)
        for easy in (self.now, self.then):
            easy.room.on_event(event)
            for _ in range(turns):
                easy.room._lines.ask(easy.room._allowance, easy.clock.now())
                easy.room._allowance.renew()

    @rule(name=NAMES, namespace=NAMESPACES)
    def activate(self, name: str, namespace: str) -> None:
        key = f"{namespace}/{name}"
        self._drain()
        for room in self.rooms:
            room.activate(key)

    @rule(seconds=st.sampled_from([0.3, 7.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self._passes(seconds)

    @rule()
    def pop(self) -> None:
        self._passes(0.01)
        self._drain()
        turns = [room.pop() for room in self.rooms]
        if turns[0] is None or turns[1] is None:
            assert turns == [None, None]
            return
        assert turns[0].job == turns[1].job
        assert turns[0].flushed == turns[1].flushed
        self.turns[turns[0].job.key] = (turns[0], turns[1])

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), by=PLUGINS, code=CODES)
    def refuse(self, data: st.DataObject, by: list[str], code: Code) -> None:
        self._passes(0.01)
        one, other = self.turns.pop(data.draw(st.sampled_from(sorted(self.turns))))
        self.now.refuse(*by, turn=one, code=code)
        self.then.refuse(*by, turn=other, code=code)

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
        for easy in (self.now, self.then):
            easy.clock.advance(seconds)

    def _drain(self) -> None:
        for easy in (self.now, self.then):
            easy.room.tick()
            for _ in range(1000):
                due = easy.room.next_time()
                if due is None or due > easy.clock.now():
                    break
                easy.room.tick()
            else:
                raise AssertionError("something is always due")
        one, other = (
            {key: (room.place(key), room.attempts(key), room.verdict(key)) for key in room._entries}
            for room in self.rooms
        )
        assert one == other


TestAsIfAtOnce = AsIfAtOnce.TestCase
TestAsIfAtOnce.settings = settings(stateful_step_count=40)
