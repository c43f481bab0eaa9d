"""Whatever happens, in whatever order: no job is lost, none is in two places, each has a time or an event that will
wake it, and the next one is always the one it should be."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.job_class import JobClass
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.queue_profile import ANY_PLUGIN
from kubenexus.queue.queued_job import QueuedJob, QueueState, SchedulingAttempt
from tests.queue.queue_fixture import LEFT, NODE, WAKES, QueueFixture, a_gang, by_image, job_of

NAMES = st.sampled_from([f"p{i}" for i in range(8)])
KINDS = st.sampled_from(["red", "green", "blue"])
PLUGINS = st.lists(st.sampled_from(["Room", "Ports", "Picky", "Stranger"]), unique=True, max_size=2)
EVENTS = st.sampled_from([NODE, LEFT, WILDCARD_EVENT])
REFUSALS = st.sampled_from([Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING, Code.ERROR])
WAITING = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED)


def _by_order(queued: QueuedJob) -> tuple[float, ...]:
    return (-max(pod.spec.priority for pod in queued.job.pods), -queued.boost, queued.added_at, queued.number)


def _tried(queued: QueuedJob) -> bool:
    """Whether its line was refused, or the first of it had a turn."""
    job_class = queued.require_class
    return job_class.refusals > 0 or min(job_class.members, key=_by_order).attempts > 0


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.era = self.selected = self.scope = 0
        policy = BackoffPolicy(flush_after=60.0, portion=2)
        self.fixture = QueueFixture(
            policy,
            context=lambda: self.era,
            sign=self._sign,
            selectors=lambda: self.selected,
            scope=lambda pod: (self.scope, self._boost(pod)),
            boost=self._boost,
        )
        self.boosts: dict[str, int] = {}
        self.queue = self.fixture.queue
        self.jobs: dict[str, Job] = {}
        self.turns: dict[str, SchedulingAttempt] = {}

    def _sign(self, pod: Pod) -> bytes:
        seen = (self.era if pod.metadata.labels else 0, self.scope, self._boost(pod))
        return by_image(pod) + repr(seen).encode()

    def _boost(self, pod: Pod) -> int:
        return self.boosts.get(pod.spec.containers[0].image, 0)

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
        self.queue.add(job, since)
        self.jobs[job.key] = job

    @rule(name=st.sampled_from(["gang", "horde"]), size=st.integers(1, 4), near=st.booleans(), there=st.integers(0, 1))
    def gang(self, name: str, size: int, near: bool, there: int) -> None:
        """Made, or changed: it has other members, and some where they are."""
        topology = TopologyRequest(required="rack") if near else NO_TOPOLOGY_REQUEST
        made = a_gang(name, size, minimum=max(1, size - there))
        self._add(msgspec.structs.replace(made, topology=topology, bound_nodes=("n",) * there))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        key = f"default/{name}"
        assert self.queue.delete(key) is (self.jobs.pop(key, None) is not None)
        self.turns.pop(key, None)

    @rule()
    def pop(self) -> None:
        self._tick()
        expected = self._next()
        attempt = self.fixture.next()
        if attempt is None:
            assert not self.queue.has_ready
            return
        if expected is not None:
            assert attempt.job.key == expected
        assert attempt.job == self.jobs[attempt.job.key]
        assert self.queue._postponed._until.get(attempt.job.key, 0.0) <= self.fixture.clock.now(), (
            "none is tried before its time"
        )
        self.turns[attempt.job.key] = attempt

    def _next(self) -> str | None:
        """Whose turn it is; None where the door may still turn somebody away, or everybody backs off, or one is to come
        last."""
        if self.queue.any_late:
            return None
        active = [
            e
            for e in self.queue._queued_jobs.values()
            if e.state is QueueState.ACTIVE and not e.require_class.set_aside_for
        ]
        homes = [e for e in active if e.require_class.single_job or self.queue._job_classes.is_current(e.require_class)]
        if (
            not active
            or len(homes) < len(active)
            or any(self.fixture.gate.pre_enqueue(p) for e in active for p in e.job.pods)
        ):
            return None
        first = min(active, key=_by_order)
        retry_turns, fresh = self.queue._job_classes.retry_turns, [e for e in active if not _tried(e)]
        if not _tried(first):
            return first.job.key
        if (
            retry_turns._passed
            and fresh
            and first.require_class.priority <= max(e.require_class.priority for e in fresh)
        ):
            return min(fresh, key=_by_order).job.key
        if retry_turns._rotates:
            heads = [e for e in active if _tried(e) and e is min(e.require_class.members, key=_by_order)]
            ages = {e.job.key: (-e.require_class.priority, e.require_class.unschedulable_since) for e in heads}
            oldest = [key for key, age in ages.items() if age == min(ages.values())]
            return oldest[0] if len(oldest) == 1 else None
        return first.job.key

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), by=PLUGINS, code=REFUSALS)
    def refuse(self, data: st.DataObject, by: list[str], code: Code) -> None:
        key, attempt = self._turn(data)
        missed = self.queue._attempts.in_flight_events.events_since(attempt.id)
        kin = self.queue._queued_jobs[key].require_class
        self.fixture.refuse(*by, attempt=attempt, code=code)
        assert self.queue.state(key) in WAITING
        if self.queue.state(key) is QueueState.UNSCHEDULABLE and self.queue._queued_jobs[key].job_class is kin:
            assert all(queued.state is QueueState.UNSCHEDULABLE for queued in kin.members), "with all that are like it"
            assert missed is not None

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), some=st.booleans())
    def place(self, data: st.DataObject, some: bool) -> None:
        key, attempt = self._turn(data)
        seated = attempt.job.pods[:1] if some else attempt.job.pods
        self.fixture.place(attempt, seated)
        uids = {pod.metadata.uid for pod in seated}
        left = tuple(pod for pod in self.jobs[key].pods if pod.metadata.uid not in uids)
        if left:
            self.jobs[key] = msgspec.structs.replace(self.jobs[key], pods=left, minimum=1)
        else:
            del self.jobs[key]

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        attempt = self._turn(data)[1]
        assert self.queue.bind_failed(attempt) is QueueState.BACKOFF

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def wait_for_victims(self, data: st.DataObject) -> None:
        attempt = self._turn(data)[1]
        assert self.queue.wait_for_victims(attempt) is QueueState.BACKOFF

    @rule(name=NAMES)
    def victims_given_up(self, name: str) -> None:
        before = self.queue.state(f"default/{name}")
        self.queue.victims_given_up(f"default/{name}")
        assert self.queue.state(f"default/{name}") is before

    def _turn(self, data: st.DataObject) -> tuple[str, SchedulingAttempt]:
        key = data.draw(st.sampled_from(sorted(self.turns)))
        return key, self.turns.pop(key)

    @rule(event=EVENTS)
    def happen(self, event: ClusterEvent) -> None:
        self.fixture.happens(event)
        for job_class in self._lines():
            if job_class.state is QueueState.UNSCHEDULABLE:
                assert not self._may_help(job_class, event), "nobody sleeps through what may help him"

    @rule(event=EVENTS)
    def happen_and_be_heard_later(self, event: ClusterEvent) -> None:
        """Whatever comes next comes before all lines were asked."""
        self.queue.on_event(event)

    def _tick(self) -> None:
        """As many turns of the loop as it takes until nothing is due."""
        self.queue.tick()
        for _ in range(1000):
            due = self.queue.next_due()
            if due is None or due > self.fixture.clock.now():
                return
            self.queue.tick()
        raise AssertionError("something is always due")

    def _may_help(self, job_class: JobClass, event: ClusterEvent) -> bool:
        if event is WILDCARD_EVENT or ANY_PLUGIN in job_class.unschedulable_plugins:
            return True
        wakes = [wake for plugin in job_class.unschedulable_plugins for wake in WAKES[plugin] if wake.matches(event)]
        return any(
            wake.hint is None or wake.hint(pod, event) for wake in wakes for pod in job_class.signature.sample_pods
        )

    @rule(seconds=st.sampled_from([0.3, 1.0, 7.0, 61.0]))
    def wait(self, seconds: float) -> None:
        now = self.fixture.clock.advance(seconds)
        self._tick()
        due = self.queue.next_due()
        assert due is None or due > now, "what was due is done"

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        self.queue.activate(f"default/{name}")

    @rule(name=NAMES, seconds=st.sampled_from([0.5, 5.0, 50.0]))
    def postpone(self, name: str, seconds: float) -> None:
        """A decision about it took too long, whether it is here or not."""
        self.queue.postpone(f"default/{name}", self.fixture.clock.now() + seconds)

    @rule(name=NAMES)
    def in_time(self, name: str) -> None:
        self.queue.in_time(f"default/{name}")

    @rule()
    def admit_none(self) -> None:
        """All that are ready are set aside, a few a turn."""
        for _ in range(1000):
            self.queue.tick()
            assert self.queue.pop(lambda job: False) is None
            if not self.queue.has_ready:
                return
        raise AssertionError("some are never set aside")

    @rule(kinds=st.integers(0, 3))
    def release(self, kinds: int) -> None:
        before = len(self._aside())
        self.queue.release("default", kinds)
        assert len(self._aside()) == max(0, before - kinds)

    @rule()
    def set_the_first_aside(self) -> None:
        self.queue.tick()
        before = len(self._aside())
        refused = [False, True]
        attempt = self.queue.pop(lambda job: refused.pop() if refused else False)
        if attempt is not None:
            self.turns[attempt.job.key] = attempt
        assert len(self._aside()) >= before

    def _aside(self) -> list[JobClass]:
        return [job_class for job_class in self._lines() if job_class.set_aside_for]

    @rule(name=NAMES, shut=st.booleans())
    def gate(self, name: str, shut: bool) -> None:
        (self.fixture.gate.shut.add if shut else self.fixture.gate.shut.discard)(f"default/{name}")

    @rule()
    def sign_again(self) -> None:
        self.era += 1

    @rule(scope=st.integers(0, 2))
    def speak_of_its_namespace(self, scope: int) -> None:
        self.scope = scope

    @rule(kind=st.one_of(KINDS, st.just("gang")), boost=st.sampled_from([0, 10, 20]))
    def boost(self, kind: str, boost: int) -> None:
        """Its tenant has another tier. A few of the jobs are sorted again at once."""
        self.boosts[kind] = boost
        self.queue.on_tenant_change("default")

    @rule()
    def select_otherwise(self) -> None:
        """No event says whom it concerns: all that were refused are woken, two lines a call."""
        refused = [job_class for job_class in self._lines() if job_class.waits_for_event]
        self.selected += 1
        self._tick()
        assert not any(job_class.state is QueueState.UNSCHEDULABLE for job_class in refused)
        assert not self.queue._job_classes.any_to_ask

    # --- what always holds ----------------------------------------------------------------------------------------

    @invariant()
    def no_job_is_lost(self) -> None:
        assert {key: queued.job for key, queued in self.queue._queued_jobs.items()} == self.jobs
        assert {key for key in self.jobs if self.queue.state(key) is QueueState.IN_FLIGHT} == self.turns.keys()

    @invariant()
    def none_is_in_two_places(self) -> None:
        found: Counter[QueuedJob] = Counter(self.queue._enqueuer.gated_jobs)
        for job_class in self._lines():
            found.update(job_class.members)
        assert all(count == 1 for count in found.values())
        assert {queued.job.key for queued in found} == self.jobs.keys() - self.turns.keys()
        assert len(self.queue._attempts.in_flight_events) == len(self.turns)

    @invariant()
    def each_has_a_time_or_an_event_that_will_wake_it(self) -> None:
        due, flush = self.queue.next_due(), self.queue.policy.flush_after
        for key in self.jobs:
            queued = self.queue._queued_jobs[key]
            match queued.state:
                case QueueState.ACTIVE:
                    assert self.queue.has_ready or queued.require_class.set_aside_for
                case QueueState.BACKOFF:
                    assert due is not None
                    assert due <= queued.require_class.backoff_until
                case QueueState.UNSCHEDULABLE:
                    assert due is not None
                    assert due <= queued.require_class.unschedulable_since + flush
                    event_waiters = self.queue._job_classes.sub_queues.refused_by
                    assert all(
                        queued.require_class in event_waiters.waiting_for(self.fixture.profile, by)
                        for by in queued.require_class.unschedulable_plugins
                    )
                case QueueState.GATED:
                    assert due is not None
                    assert due <= queued.gate_checked_at + flush

    @invariant()
    def all_of_a_line_have_one_boost(self) -> None:
        for job_class in self._lines():
            assert len({queued.boost for queued in job_class.members}) == 1 or self.queue._namespace_jobs
        if not self.queue._namespace_jobs:
            waiting = [e for e in self.queue._queued_jobs.values() if e.job_class is not None and not e.attempt_id]
            assert all(queued.boost == self._boost(queued.job.pods[0]) for queued in waiting)

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        jobs: Counter[QueueState] = Counter(self.queue.state(key) for key in self.jobs)
        pods: Counter[QueueState] = Counter()
        for key, job in self.jobs.items():
            pods[self.queue.state(key)] += len(job.pods)
        assert {p: self.queue.pending(p) for p in WAITING} == {p: (jobs[p], pods[p]) for p in WAITING}

    @invariant()
    def nothing_is_kept_that_nobody_needs(self) -> None:
        queue, sub_queues = self.queue, self.queue._job_classes.sub_queues
        needed = set(self._lines()) | {queue._queued_jobs[key].require_class for key in self.turns}
        assert set(queue._job_classes._by_kind.values()) <= needed
        assert len(sub_queues.fresh) + len(sub_queues.retries) == len(sub_queues.active)
        assert all(job_class.tried for job_class in sub_queues.retries)
        assert not any(job_class.tried for job_class in sub_queues.fresh)
        assert {job_class for job_classes in sub_queues.aside.values() for job_class in job_classes} == set(
            self._aside()
        )
        assert all(job_classes for job_classes in sub_queues.aside.values())
        shares = [job_classes for shares in sub_queues.refused_by._lines.values() for job_classes in shares.values()]
        assert all(job_classes for job_classes in shares)
        assert {job_class for job_classes in shares for job_class in job_classes} <= set(self._lines())
        assert all(
            [job_class.last_event for job_class in job_classes]
            == sorted(job_class.last_event for job_class in job_classes)
            for job_classes in shares
        )
        if not self.turns:
            assert queue._attempts.in_flight_events.remembered == 0

    def _lines(self) -> list[JobClass]:
        job_classes = list(self.queue._job_classes.sub_queues)
        assert len(job_classes) == len(set(job_classes))
        assert all(job_class.members for job_class in job_classes)
        return job_classes

    def teardown(self) -> None:
        """At last everybody is let in and placed: all come out, each once."""
        self.fixture.gate.shut.clear()
        self.queue.release("default", 1000)
        for key in [key for key, job in self.jobs.items() if any(pod.spec.scheduling_gates for pod in job.pods)]:
            self.queue.delete(key)
            self.turns.pop(key, None)
            del self.jobs[key]
        for key, attempt in self.turns.items():
            self.fixture.refuse("Room", attempt=attempt)
            assert self.queue.state(key) in WAITING
        out: list[Any] = []
        late = len(self.queue._postponed)
        for _ in range(4 + late):  # those that are late go one at a time, each when no other is ready
            self.fixture.clock.advance(61.0)
            out += self.fixture.popped()
        assert sorted(f"default/{name}" for name in out) == sorted(self.jobs)
        assert len(self.queue) == 0
        assert len(self.queue._job_classes) == 0


TestMachine = Machine.TestCase
TestMachine.settings = settings(stateful_step_count=60)
