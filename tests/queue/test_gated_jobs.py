"""Jobs at a gate: in no line, never tried, and let in as soon as their gate opens."""

from collections.abc import Callable
from typing import ClassVar

import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Verdict
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.object_events import WILDCARD_EVENT
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import NODE, WAKES, QueueFixture, a_gang, job_of

OPENS = ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD)


def test_a_gated_job_is_not_tried() -> None:
    fixture = QueueFixture()
    key = fixture.add("p", gates=["g"])
    assert fixture.queue.state(key) is QueueState.GATED
    assert fixture.queue.pending(QueueState.GATED) == (1, 1)
    verdict = fixture.queue.gate_verdict(key)
    assert verdict is not None
    assert (verdict.plugin, verdict.reasons) == ("Gate", ("not yet",))
    assert fixture.queue.pop() is None


def test_it_comes_in_when_its_gates_are_taken_away() -> None:
    fixture = QueueFixture()
    fixture.add("p", gates=["g", "h"], since=1.0)
    assert fixture.queue.add(job_of("p", gates=["h"])) is QueueState.GATED
    assert fixture.queue.add(job_of("p")) is QueueState.ACTIVE
    assert fixture.pop().since == 1.0
    assert fixture.queue.pending(QueueState.GATED) == (0, 0)


def test_one_gated_member_gates_its_gang() -> None:
    fixture = QueueFixture()
    gang = a_gang("g", 3)
    gated = job_of("g-2", kind="g", gates=["x"]).pods[0]
    assert fixture.queue.add(Job(gang.key, (*gang.pods[:2], gated), 3)) is QueueState.GATED
    assert fixture.queue.pending(QueueState.GATED) == (1, 3)
    assert fixture.queue.add(gang) is QueueState.ACTIVE


def test_events_of_the_gates_plugin_have_it_asked_again() -> None:
    fixture = QueueFixture()
    fixture.gate.shut.add("default/p")
    key = fixture.add("p")
    fixture.queue.on_event(OPENS)
    assert fixture.queue.state(key) is QueueState.GATED
    fixture.gate.shut.clear()
    fixture.queue.on_event(NODE)
    assert fixture.queue.state(key) is QueueState.GATED, "not an event of this gate"
    fixture.queue.on_event(OPENS)
    assert fixture.queue.state(key) is QueueState.ACTIVE


def test_an_event_for_all_has_every_gate_asked_again() -> None:
    fixture = QueueFixture()
    fixture.gate.shut.add("default/p")
    key = fixture.add("p")
    fixture.gate.shut.clear()
    fixture.queue.on_event(WILDCARD_EVENT)
    assert fixture.queue.state(key) is QueueState.ACTIVE


def test_so_does_activating_the_job_and_every_flush() -> None:
    fixture = QueueFixture()
    fixture.gate.shut.update(["default/p", "default/q"])
    p, q = fixture.add("p"), fixture.add("q")
    assert fixture.queue.activate(p) is QueueState.GATED
    assert fixture.queue.next_due() == 400.0
    fixture.gate.shut.clear()
    assert fixture.queue.activate(p) is QueueState.ACTIVE
    fixture.clock.advance(300)
    fixture.queue.tick()
    assert fixture.queue.state(q) is QueueState.ACTIVE


def test_a_job_that_became_gated_while_it_waited_is_stopped_at_the_door() -> None:
    fixture = QueueFixture()
    first, second = fixture.add("p", since=1.0), fixture.add("q", since=2.0)
    fixture.gate.shut.add(first)
    assert fixture.pop().job.key == second
    assert fixture.queue.state(first) is QueueState.GATED
    assert fixture.queue.attempts(first) == 0


def test_a_waiting_job_whose_update_gates_it_leaves_its_line() -> None:
    fixture = QueueFixture()
    fixture.add("p", kind="k")
    fixture.add("q", kind="k")
    fixture.refuse("Room")
    assert fixture.queue.add(job_of("p", kind="k", gates=["g"])) is QueueState.GATED
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE) == (1, 1)
    assert fixture.queue.add(job_of("p", kind="k")) is QueueState.UNSCHEDULABLE, "its kind is still refused"


def test_a_gate_that_fails_is_shut() -> None:
    class Broken:
        name: ClassVar[str] = "Gate"
        reads: ClassVar[tuple[str, ...]] = ()

        def pre_enqueue(self, pod: Pod) -> Verdict | None:
            raise RuntimeError("no idea")

    fixture = QueueFixture()
    fixture.profile._gates = (Broken(),)
    key = fixture.add("p")
    verdict = fixture.queue.gate_verdict(key)
    assert verdict is not None
    assert (verdict.plugin, verdict.reasons) == ("Gate", ("RuntimeError: no idea",))


def test_a_gated_job_can_be_deleted() -> None:
    fixture = QueueFixture()
    key = fixture.add("p", gates=["g"])
    assert fixture.queue.delete(key)
    assert (len(fixture.queue), fixture.queue.pending(QueueState.GATED), fixture.queue.next_due()) == (0, (0, 0), None)


def test_gates_are_asked_a_bounded_number_at_a_time() -> None:
    fixture = QueueFixture(BackoffPolicy(pop_from_backoff=False, portion=3))
    for i in range(7):
        fixture.add(f"p{i}", gates=["g"])
    fixture.clock.advance(300)
    due = []
    for _ in range(3):
        due.append(fixture.queue.next_due() == 400.0)
        fixture.queue.tick()
    assert due == [True, True, True]
    assert fixture.queue.next_due() == 700.0


class PricedGate:
    """Jobs behind a gate with a hint. Counts the calls of the hint and of the gate."""

    def __init__(self, jobs: int, helps: bool = True, terms: int = 0) -> None:
        self.questions = self.calls = 0
        opens = ClusterEventWithHint(OPENS.resource, OPENS.action, self._hint)
        self.fixture, self._helps = QueueFixture(wakes={**WAKES, "Gate": (opens,)}), helps
        near = [f"app=a{i} per zone" for i in range(terms)]
        self.fixture.gate.shut.update(f"default/p{i}" for i in range(jobs))
        self.keys = [self.fixture.add(f"p{i}", kind="like all", near=near) for i in range(jobs)]
        self.fixture.queue.tick()
        gate = self.fixture.gate.pre_enqueue
        self.fixture.gate.pre_enqueue = lambda pod: self._call(gate, pod)  # type: ignore[method-assign]

    def _hint(self, pod: Pod, event: ClusterEvent) -> bool:
        self.questions += 1
        return self._helps

    def _call(self, gate: Callable[[Pod], Verdict | None], pod: Pod) -> Verdict | None:
        self.calls += 1
        return gate(pod)


@pytest.mark.parametrize("helps", [True, False], ids=["all may be helped", "none is"])
def test_one_turn_asks_the_hints_of_gates_as_far_as_its_allowance_goes(helps: bool) -> None:
    gate = PricedGate(2_000, helps)
    portion = gate.fixture.queue.policy.portion
    for _ in range(100):
        gate.fixture.queue.on_event(OPENS)
    assert gate.questions <= portion
    for _ in range(20):
        before = gate.questions, gate.calls
        gate.fixture.queue.tick()
        assert gate.questions - before[0] + gate.calls - before[1] <= portion
    assert not gate.fixture.queue._enqueuer.any_to_ask


def test_a_hint_about_a_large_pod_costs_more_of_the_allowance() -> None:
    gate = PricedGate(500, terms=200)
    gate.fixture.queue.on_event(OPENS)
    assert gate.questions <= 15


def test_no_event_is_lost_when_the_allowance_is_spent() -> None:
    gate = PricedGate(2_000)
    gate.fixture.queue.on_event(OPENS)
    gate.fixture.gate.shut.clear()
    gate.fixture.happens(OPENS)
    assert {gate.fixture.queue.state(key) for key in gate.keys} == {QueueState.ACTIVE}


def test_a_gate_that_was_called_after_the_event_is_not_called_again_for_it() -> None:
    gate = PricedGate(2_000, helps=False)
    gate.fixture.happens(OPENS)
    gate.fixture.happens(WILDCARD_EVENT)
    assert gate.calls <= 2 * 2_000
    before = gate.calls
    for _ in range(5):
        gate.fixture.queue.tick()
    assert gate.calls == before
