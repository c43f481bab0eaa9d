"""Whatever happens, in whatever order: no job is lost, none is in two places, each has a time or an event that will
wake it, and the next one is always the one it should be."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import UNSAID, Nearness
from kubenexus.framework.events import Event
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.queue.changes import EVERYTHING
from kubenexus.queue.entry import Entry, Place, Turn
from kubenexus.queue.line import Line
from kubenexus.queue.policy import Policy
from kubenexus.queue.rules import NOBODY
from tests.queue.easy import LEFT, NODE, WAKES, Easy, a_gang, by_image, job_of

NAMES = st.sampled_from([f"p{i}" for i in range(8)])
KINDS = st.sampled_from(["red", "green", "blue"])
PLUGINS = st.lists(st.sampled_from(["Room", "Ports", "Picky", "Stranger"]), unique=True, max_size=2)
EVENTS = st.sampled_from([NODE, LEFT, EVERYTHING])
REFUSALS = st.sampled_from([Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING, Code.ERROR])
WAITING = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)


def _by_order(entry: Entry) -> tuple[float, ...]:
    return (-max(pod.spec.priority for pod in entry.job.pods), entry.since, entry.number)


def _tried(entry: Entry) -> bool:
    """Whether its line was refused, or the first of it had a turn."""
    line = entry.standing
    return line.refusals > 0 or min(line.members, key=_by_order).attempts > 0


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.era = self.selected = self.scope = 0
        policy = Policy(flush_after=60.0, portion=2)
        self.easy = Easy(
            policy,
            context=lambda: self.era,
            sign=self._sign,
            selectors=lambda: self.selected,
            scope=lambda namespace: self.scope,
        )
        self.room = self.easy.room
        self.jobs: dict[str, Job] = {}
        self.turns: dict[str, Turn] = {}

    def _sign(self, pod: Pod) -> bytes:
        return by_image(pod) + repr((self.era if pod.metadata.labels else 0, self.scope)).encode()

    # --- what may happen ------------------------------------------------------------------------------------------

    @rule(name=NAMES, kind=KINDS, priority=st.integers(0, 2), cpu=st.integers(1, 2), age=st.integers(0, 3))
    def put(self, name: str, kind: str, priority: int, cpu: int, age: int) -> None:
        """Added, or changed if it is known."""
        gates = ["g"] if cpu == 2 and age == 0 else []
        labels = {"x": "y"} if age == 1 else {}
        job = job_of(name, kind, priority=priority, cpu=cpu, gates=gates, labels=labels)
        self._add(job, float(age))

    @rule(name=NAMES, kind=KINDS, uid=st.integers(0, 2))
    def make_again(self, name: str, kind: str, uid: int) -> None:
        self._add(job_of(name, kind, uid=f"uid {uid}"))

    def _add(self, job: Job, since: float | None = None) -> None:
        """A pod of another UID is another job: whatever was being decided is no longer about it."""
        known = self.jobs.get(job.key)
        if known is not None and not {p.metadata.uid for p in known.pods} & {p.metadata.uid for p in job.pods}:
            self.turns.pop(job.key, None)
        self.room.add(job, since)
        self.jobs[job.key] = job

    @rule(name=st.sampled_from(["gang", "horde"]), size=st.integers(1, 4), near=st.booleans(), there=st.integers(0, 1))
    def gang(self, name: str, size: int, near: bool, there: int) -> None:
        """Made, or changed: it has other members, and some where they are."""
        topology = Nearness(required="rack") if near else UNSAID
        made = a_gang(name, size, minimum=max(1, size - there))
        self._add(msgspec.structs.replace(made, topology=topology, anchors=("n",) * there))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        key = f"default/{name}"
        assert self.room.delete(key) is (self.jobs.pop(key, None) is not None)
        self.turns.pop(key, None)

    @rule()
    def pop(self) -> None:
        self._tick()
        expected = self._next()
        turn = self.easy.next()
        if turn is None:
            assert not self.room.ready
            return
        if expected is not None:
            assert turn.job.key == expected
        assert turn.job == self.jobs[turn.job.key]
        assert self.room._late._until.get(turn.job.key, 0.0) <= self.easy.clock.now(), "none is tried before its time"
        self.turns[turn.job.key] = turn

    def _next(self) -> str | None:
        """Whose turn it is; None where the door may still turn somebody away, or everybody backs off, or one is to come
        last."""
        if self.room.any_late:
            return None
        active = [e for e in self.room._entries.values() if e.place is Place.ACTIVE and not e.standing.aside]
        homes = [e for e in active if e.standing.alone or self.room._lines.is_home(e.standing)]
        if not active or len(homes) < len(active) or any(self.easy.gate.gate(p) for e in active for p in e.job.pods):
            return None
        first = min(active, key=_by_order)
        shares, fresh = self.room._lines.shares, [e for e in active if not _tried(e)]
        if not _tried(first):
            return first.job.key
        if shares._passed and fresh and first.standing.priority <= max(e.standing.priority for e in fresh):
            return min(fresh, key=_by_order).job.key
        if shares._rotates:
            heads = [e for e in active if _tried(e) and e is min(e.standing.members, key=_by_order)]
            ages = {e.job.key: (-e.standing.priority, e.standing.parked_at) for e in heads}
            oldest = [key for key, age in ages.items() if age == min(ages.values())]
            return oldest[0] if len(oldest) == 1 else None
        return first.job.key

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), by=PLUGINS, code=REFUSALS)
    def refuse(self, data: st.DataObject, by: list[str], code: Code) -> None:
        key, turn = self._turn(data)
        missed = self.room._turns.flight.missed(turn.number)
        kin = self.room._entries[key].standing
        self.easy.refuse(*by, turn=turn, code=code)
        assert self.room.place(key) in WAITING
        if self.room.place(key) is Place.UNSCHEDULABLE and self.room._entries[key].line is kin:
            assert all(entry.place is Place.UNSCHEDULABLE for entry in kin.members), "with all that are like it"
            assert missed is not None

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), some=st.booleans())
    def place(self, data: st.DataObject, some: bool) -> None:
        key, turn = self._turn(data)
        seated = turn.job.pods[:1] if some else turn.job.pods
        self.easy.place(turn, seated)
        uids = {pod.metadata.uid for pod in seated}
        left = tuple(pod for pod in self.jobs[key].pods if pod.metadata.uid not in uids)
        if left:
            self.jobs[key] = msgspec.structs.replace(self.jobs[key], pods=left, minimum=1)
        else:
            del self.jobs[key]

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        turn = self._turn(data)[1]
        assert self.room.failed(turn) is Place.BACKOFF

    def _turn(self, data: st.DataObject) -> tuple[str, Turn]:
        key = data.draw(st.sampled_from(sorted(self.turns)))
        return key, self.turns.pop(key)

    @rule(event=EVENTS)
    def happen(self, event: Event) -> None:
        self.easy.happens(event)
        for line in self._lines():
            if line.place is Place.UNSCHEDULABLE:
                assert not self._may_help(line, event), "nobody sleeps through what may help him"

    @rule(event=EVENTS)
    def happen_and_be_heard_later(self, event: Event) -> None:
        """Whatever comes next comes before all lines were asked."""
        self.room.on_event(event)

    def _tick(self) -> None:
        """As many turns of the loop as it takes until nothing is due."""
        self.room.tick()
        for _ in range(1000):
            due = self.room.next_time()
            if due is None or due > self.easy.clock.now():
                return
            self.room.tick()
        raise AssertionError("something is always due")

    def _may_help(self, line: Line, event: Event) -> bool:
        if event is EVERYTHING or NOBODY in line.blamed:
            return True
        wakes = [wake for plugin in line.blamed for wake in WAKES[plugin] if wake.matches(event)]
        return any(wake.hint is None or wake.hint(pod, event) for wake in wakes for pod in line.kind.specimens)

    @rule(seconds=st.sampled_from([0.3, 1.0, 7.0, 61.0]))
    def wait(self, seconds: float) -> None:
        now = self.easy.clock.advance(seconds)
        self._tick()
        due = self.room.next_time()
        assert due is None or due > now, "what was due is done"

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        self.room.activate(f"default/{name}")

    @rule(name=NAMES, seconds=st.sampled_from([0.5, 5.0, 50.0]))
    def postpone(self, name: str, seconds: float) -> None:
        """A decision about it took too long, whether it is here or not."""
        self.room.postpone(f"default/{name}", self.easy.clock.now() + seconds)

    @rule(name=NAMES)
    def in_time(self, name: str) -> None:
        self.room.in_time(f"default/{name}")

    @rule()
    def admit_none(self) -> None:
        """All that are ready are set aside, a few a turn."""
        for _ in range(1000):
            self.room.tick()
            assert self.room.pop(lambda job: False) is None
            if not self.room.ready:
                return
        raise AssertionError("some are never set aside")

    @rule(kinds=st.integers(0, 3))
    def release(self, kinds: int) -> None:
        before = len(self._aside())
        self.room.release("default", kinds)
        assert len(self._aside()) == max(0, before - kinds)

    @rule()
    def set_the_first_aside(self) -> None:
        self.room.tick()
        before = len(self._aside())
        refused = [False, True]
        turn = self.room.pop(lambda job: refused.pop() if refused else False)
        if turn is not None:
            self.turns[turn.job.key] = turn
        assert len(self._aside()) >= before

    def _aside(self) -> list[Line]:
        return [line for line in self._lines() if line.aside]

    @rule(name=NAMES, shut=st.booleans())
    def gate(self, name: str, shut: bool) -> None:
        (self.easy.gate.shut.add if shut else self.easy.gate.shut.discard)(f"default/{name}")

    @rule()
    def sign_again(self) -> None:
        self.era += 1

    @rule(scope=st.integers(0, 2))
    def speak_of_its_namespace(self, scope: int) -> None:
        self.scope = scope

    @rule()
    def select_otherwise(self) -> None:
        """No event says whom it concerns: all that were refused are woken, two lines a call."""
        refused = [line for line in self._lines() if line.watched]
        self.selected += 1
        self._tick()
        assert not any(line.place is Place.UNSCHEDULABLE for line in refused)
        assert not self.room._lines.any_to_ask

    # --- what always holds ----------------------------------------------------------------------------------------

    @invariant()
    def no_job_is_lost(self) -> None:
        assert {key: entry.job for key, entry in self.room._entries.items()} == self.jobs
        assert {key for key in self.jobs if self.room.place(key) is Place.IN_FLIGHT} == self.turns.keys()

    @invariant()
    def none_is_in_two_places(self) -> None:
        found: Counter[Entry] = Counter(self.room._reception.gates)
        for line in self._lines():
            found.update(line.members)
        assert all(count == 1 for count in found.values())
        assert {entry.job.key for entry in found} == self.jobs.keys() - self.turns.keys()
        assert len(self.room._turns.flight) == len(self.turns)

    @invariant()
    def each_has_a_time_or_an_event_that_will_wake_it(self) -> None:
        due, flush = self.room.next_time(), self.room.policy.flush_after
        for key in self.jobs:
            entry = self.room._entries[key]
            match entry.place:
                case Place.ACTIVE:
                    assert self.room.ready or entry.standing.aside
                case Place.BACKOFF:
                    assert due is not None
                    assert due <= entry.standing.until
                case Place.UNSCHEDULABLE:
                    assert due is not None
                    assert due <= entry.standing.parked_at + flush
                    watching = self.room._lines.places.watching
                    assert all(entry.standing in watching.of(self.easy.rules, by) for by in entry.standing.blamed)
                case Place.GATED:
                    assert due is not None
                    assert due <= entry.asked_at + flush

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        jobs: Counter[Place] = Counter(self.room.place(key) for key in self.jobs)
        pods: Counter[Place] = Counter()
        for key, job in self.jobs.items():
            pods[self.room.place(key)] += len(job.pods)
        assert {p: self.room.waiting(p) for p in WAITING} == {p: (jobs[p], pods[p]) for p in WAITING}

    @invariant()
    def nothing_is_kept_that_nobody_needs(self) -> None:
        room, places = self.room, self.room._lines.places
        needed = set(self._lines()) | {room._entries[key].standing for key in self.turns}
        assert set(room._lines._by_kind.values()) <= needed
        assert len(places.fresh) + len(places.retries) == len(places.active)
        assert all(line.tried for line in places.retries)
        assert not any(line.tried for line in places.fresh)
        assert {line for lines in places.aside.values() for line in lines} == set(self._aside())
        assert all(lines for lines in places.aside.values())
        shares = [lines for shares in places.watching._lines.values() for lines in shares.values()]
        assert all(lines for lines in shares)
        assert {line for lines in shares for line in lines} <= set(self._lines())
        assert all([line.heard for line in lines] == sorted(line.heard for line in lines) for lines in shares)
        if not self.turns:
            assert room._turns.flight.remembered == 0

    def _lines(self) -> list[Line]:
        lines = list(self.room._lines.places)
        assert len(lines) == len(set(lines))
        assert all(line.members for line in lines)
        return lines

    def teardown(self) -> None:
        """At last everybody is let in and placed: all come out, each once."""
        self.easy.gate.shut.clear()
        self.room.release("default", 1000)
        for key in [key for key, job in self.jobs.items() if any(pod.spec.scheduling_gates for pod in job.pods)]:
            self.room.delete(key)
            self.turns.pop(key, None)
            del self.jobs[key]
        for key, turn in self.turns.items():
            self.easy.refuse("Room", turn=turn)
            assert self.room.place(key) in WAITING
        out: list[Any] = []
        late = len(self.room._late)
        for _ in range(4 + late):  # those that are late go one at a time, each when no other is ready
            self.easy.clock.advance(61.0)
            out += self.easy.popped()
        assert sorted(f"default/{name}" for name in out) == sorted(self.jobs)
        assert len(self.room) == 0
        assert len(self.room._lines) == 0


TestMachine = Machine.TestCase
TestMachine.settings = settings(stateful_step_count=60)
