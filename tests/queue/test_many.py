"""Twenty thousand waiting jobs of ten kinds: counted in decisions and hints, not in seconds."""

from collections import Counter

from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.plugins import profile_plugins
from kubenexus.queue.object_events import node_added, pod_gone
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.testing.builders import a_node, a_pod
from tests.queue.queue_fixture import EXACT, QueueFixture, refusal

JOBS, KINDS = 20_000, 10
LEFT = pod_gone(a_pod("gone", cpu=1, node="n"))


class Crowd(QueueFixture):
    """Pods of ten templates under the built-in rules. Few pod objects, many jobs: this is about the queue."""

    def __init__(self, jobs: int = JOBS) -> None:
        self.clock = VirtualClock(100.0)
        plugins = profile_plugins()
        self.profile = QueueProfile.of(plugins, PodSigner(plugins.reads).sign)
        self.queue = SchedulingQueue({"": self.profile}, self.clock, EXACT)
        self.templates = [a_pod(f"t{kind}", cpu=kind + 1, memory="1Gi") for kind in range(KINDS)]
        for i in range(jobs):
            self.queue.add(Job(f"default/job-{i}", (self.templates[i % KINDS],)), since=float(i))

    def refuse_all(self) -> int:
        """Every job that may be tried is refused for want of room. Returns how many had to be."""
        decisions = 0
        while (attempt := self.queue.pop()) is not None:
            self.queue.done(attempt, refusal(attempt, "NodeResourcesFit"))
            decisions += 1
        return decisions


def test_a_crowd_costs_as_many_decisions_and_hints_as_it_has_kinds() -> None:
    crowd = Crowd()
    assert crowd.queue.pending(QueueState.ACTIVE).jobs == JOBS
    assert crowd.refuse_all() == KINDS
    assert crowd.queue.pending(QueueState.UNSCHEDULABLE).jobs == JOBS
    for event in range(3):
        crowd.clock.advance(60)
        assert crowd.queue.on_event(LEFT) == KINDS
        assert crowd.profile.hints.total() == KINDS * (event + 1)
        assert crowd.refuse_all() == KINDS
    crowd.clock.advance(300)
    assert crowd.refuse_all() == KINDS, "the flush, too"
    assert crowd.queue.pending(QueueState.UNSCHEDULABLE).jobs == JOBS


def test_an_event_that_helps_some_kinds_wakes_only_those() -> None:
    crowd = Crowd(1_000)
    crowd.refuse_all()
    crowd.clock.advance(60)
    assert crowd.queue.on_event(node_added(a_node(cpu=4))) == 4
    assert crowd.queue.pending(QueueState.ACTIVE).jobs == 400
    asked = Counter({said: count for (_, _, said), count in crowd.profile.hints.items()})
    assert asked == {"Queue": 4, "QueueSkip": 6}


def test_room_for_some_is_given_to_the_oldest_and_one_refusal_ends_the_round() -> None:
    crowd = Crowd(1_000)
    crowd.refuse_all()
    crowd.clock.advance(60)
    crowd.queue.on_event(LEFT)
    for i in range(5):
        attempt = crowd.pop()
        assert attempt.job.key == f"default/job-{i}"
        crowd.place(attempt)
    assert crowd.refuse_all() == KINDS
    assert crowd.queue.pending(QueueState.UNSCHEDULABLE).jobs == 995


def test_a_crowd_that_comes_while_its_kinds_are_refused_is_never_tried() -> None:
    crowd = Crowd(KINDS)
    crowd.refuse_all()
    for i in range(KINDS, 5_000):
        state = crowd.queue.add(Job(f"default/job-{i}", (crowd.templates[i % KINDS],)), since=float(i))
        assert state is QueueState.UNSCHEDULABLE
    assert crowd.refuse_all() == 0
