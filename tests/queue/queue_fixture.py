"""A waiting room with rules of three lines, for tests: plugins are names, pods are alike if their image is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from kubenexus.api.core import Pod
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from kubenexus.framework.decision import Decision, Diagnosis, PodPlacement
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.footprint import Footprint
from kubenexus.testing.builders import a_node, a_pod

# Only new nodes help whom Room refused, only pods that leave help whom Ports refused; Picky looks closer.
WAKES: dict[str, Sequence[ClusterEventWithHint]] = {
    "Room": (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_DOWN),
    ),
    "Ports": (ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),),
    "Picky": (
        ClusterEventWithHint(
            EventResource.NODE, ActionType.ADD, lambda pod, event: pod.metadata.labels == event.new.metadata.labels
        ),
    ),
    "Gate": (ClusterEventWithHint(EventResource.STORAGE_CLASS, ActionType.ADD),),
}
NODE = ClusterEvent(EventResource.NODE, ActionType.ADD, new=a_node("n"))
LEFT = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=a_pod("gone", node="n"))
# Fixed steps instead of whole seconds, and no hurry when idle: each thing by itself.
EXACT = BackoffPolicy(pop_from_backoff=False)


class Gate:
    """Shut for the pods in `shut`, by key."""

    name: ClassVar[str] = "Gate"
    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.shut: set[str] = set()

    def pre_enqueue(self, pod: Pod) -> Verdict | None:
        return Verdict(Code.UNRESOLVABLE, ("not yet",)) if pod.key in self.shut or pod.spec.scheduling_gates else None


def by_image(pod: Pod) -> bytes:
    return pod.spec.containers[0].image.encode()


class QueueFixture:
    """The room, its clock and its gate; jobs and decisions in few words."""

    def __init__(
        self,
        policy: BackoffPolicy = EXACT,
        wakes: Mapping[str, Sequence[ClusterEventWithHint]] = WAKES,
        context: Callable[[], Any] | None = None,
        sign: Callable[[Pod], bytes] = by_image,
        selectors: Callable[[], Any] | None = None,
        scope: Callable[[Pod], Any] | None = None,
        boost: Callable[[Pod], int] | None = None,
        by_content: bool = False,
    ) -> None:
        self.clock = VirtualClock(100.0)
        self.gate = Gate()
        self.profile = QueueProfile(
            sign,
            wakes,
            [self.gate],
            context=context,
            selectors=selectors,
            scope=scope,
            boost=boost,
            by_content=by_content,
        )
        self.queue = SchedulingQueue({"": self.profile}, self.clock, policy)

    def add(self, name: str, kind: str = "", since: float | None = None, **fields: Any) -> str:
        """A job of one pod; those of one kind are alike. Returns its key."""
        job = job_of(name, kind, **fields)
        self.queue.add(job, since)
        return job.key

    def happens(self, event: ClusterEvent) -> int:
        """An event, and as many turns of the loop as it takes until each line was asked; returns how many it woke."""
        before = self.queue._job_classes.woken
        self.queue.on_event(event)
        for _ in range(1000):
            if not (self.queue._job_classes.any_to_ask or self.queue._enqueuer.any_to_ask):
                return self.queue._job_classes.woken - before
            self.queue.tick()
        raise AssertionError("some are never asked")

    def next(self) -> SchedulingAttempt | None:
        """Whose turn it is, in as many turns of the loop as it takes: one wakes and signs only so many."""
        for _ in range(1000):
            self.queue.tick()
            attempt = self.queue.pop()
            if attempt is not None or not self.queue.has_ready:
                return attempt
        raise AssertionError("jobs are ready, and none has its turn")

    def pop(self) -> SchedulingAttempt:
        attempt = self.next()
        assert attempt is not None, "nobody is ready"
        return attempt

    def refuse(
        self, *by: str, attempt: SchedulingAttempt | None = None, code: Code = Code.UNSCHEDULABLE
    ) -> SchedulingAttempt:
        """The next job is tried and refused by these plugins."""
        attempt = attempt or self.pop()
        self.queue.done(attempt, refusal(attempt, *by, code=code))
        return attempt

    def place(self, attempt: SchedulingAttempt | None = None, pods: Iterable[Pod] | None = None) -> SchedulingAttempt:
        attempt = attempt or self.pop()
        self.queue.done(attempt, placement(attempt, pods))
        return attempt

    def popped(self) -> list[str]:
        """Whoever is ready now, in order; all of them placed."""
        found = []
        while (attempt := self.next()) is not None:
            found.append(self.place(attempt).job.key.partition("/")[2])
        return found


def job_of(name: str, kind: str = "", **fields: Any) -> Job:
    return Job.of(a_pod(name, image=kind or name, **fields))


def a_gang(name: str, size: int, minimum: int | None = None, **fields: Any) -> Job:
    pods = tuple(a_pod(f"{name}-{i}", image=name, **fields) for i in range(size))
    return Job(f"default/{name}", pods, size if minimum is None else minimum)


def refusal(attempt: SchedulingAttempt, *by: str, code: Code = Code.UNSCHEDULABLE) -> Decision:
    return Decision(attempt.job.key, code, 0, 0.0, diagnosis=Diagnosis(nodes=1, refused_by=by))


def placement(attempt: SchedulingAttempt, pods: Iterable[Pod] | None = None) -> Decision:
    seats = [
        PodPlacement(p.key, p.metadata.uid, "n", Footprint()) for p in (attempt.job.pods if pods is None else pods)
    ]
    return Decision(attempt.job.key, Code.SUCCESS, 0, 0.0, placements=tuple(seats))
