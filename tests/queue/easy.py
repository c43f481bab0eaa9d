"""A waiting room with rules of three lines, for tests: plugins are names, pods are alike if their image is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from kubenexus.api.core import Pod
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.decision import Decision, Diagnosis, Placement
from kubenexus.framework.events import Action, Event, Resource, Wake
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.queue.entry import Turn
from kubenexus.queue.policy import Policy
from kubenexus.queue.room import WaitingRoom
from kubenexus.queue.rules import Rules
from kubenexus.state.footprint import Footprint
from kubenexus.testing.builders import a_node, a_pod

# Only new nodes help whom Room refused, only pods that leave help whom Ports refused; Picky looks closer.
WAKES: dict[str, Sequence[Wake]] = {
    "Room": (Wake(Resource.NODE, Action.ADD), Wake(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)),
    "Ports": (Wake(Resource.ASSIGNED_POD, Action.DELETE),),
    "Picky": (Wake(Resource.NODE, Action.ADD, lambda pod, event: pod.metadata.labels == event.new.metadata.labels),),
    "Gate": (Wake(Resource.STORAGE_CLASS, Action.ADD),),
}
NODE = Event(Resource.NODE, Action.ADD, new=a_node("n"))
LEFT = Event(Resource.ASSIGNED_POD, Action.DELETE, old=a_pod("gone", node="n"))
# Fixed steps instead of whole seconds, and no hurry when idle: each thing by itself.
EXACT = Policy(eager=False)


class Gate:
    """Shut for the pods in `shut`, by key."""

    name: ClassVar[str] = "Gate"
    reads: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.shut: set[str] = set()

    def gate(self, pod: Pod) -> Verdict | None:
        return Verdict(Code.UNRESOLVABLE, ("not yet",)) if pod.key in self.shut or pod.spec.scheduling_gates else None


def by_image(pod: Pod) -> bytes:
    return pod.spec.containers[0].image.encode()


class Easy:
    """The room, its clock and its gate; jobs and decisions in few words."""

    def __init__(
        self,
        policy: Policy = EXACT,
        wakes: Mapping[str, Sequence[Wake]] = WAKES,
        context: Callable[[], Any] | None = None,
        sign: Callable[[Pod], bytes] = by_image,
        selectors: Callable[[], Any] | None = None,
        scope: Callable[[str], Any] | None = None,
    ) -> None:
        self.clock = VirtualClock(100.0)
        self.gate = Gate()
        self.rules = Rules(sign, wakes, [self.gate], context=context, selectors=selectors, scope=scope)
        self.room = WaitingRoom({"": self.rules}, self.clock, policy)

    def add(self, name: str, kind: str = "", since: float | None = None, **fields: Any) -> str:
        """A job of one pod; those of one kind are alike. Returns its key."""
        job = job_of(name, kind, **fields)
        self.room.add(job, since)
        return job.key

    def happens(self, event: Event) -> int:
        """An event, and as many turns of the loop as it takes until each line was asked; returns how many it woke."""
        before = self.room._lines.woken
        self.room.on_event(event)
        for _ in range(1000):
            if not (self.room._lines.any_to_ask or self.room._reception.any_to_ask):
                return self.room._lines.woken - before
            self.room.tick()
        raise AssertionError("some are never asked")

    def next(self) -> Turn | None:
        """Whose turn it is, in as many turns of the loop as it takes: one wakes and signs only so many."""
        for _ in range(1000):
            self.room.tick()
            turn = self.room.pop()
            if turn is not None or not self.room.ready:
                return turn
        raise AssertionError("jobs are ready, and none has its turn")

    def pop(self) -> Turn:
        turn = self.next()
        assert turn is not None, "nobody is ready"
        return turn

    def refuse(self, *by: str, turn: Turn | None = None, code: Code = Code.UNSCHEDULABLE) -> Turn:
        """The next job is tried and refused by these plugins."""
        turn = turn or self.pop()
        self.room.done(turn, refusal(turn, *by, code=code))
        return turn

    def place(self, turn: Turn | None = None, pods: Iterable[Pod] | None = None) -> Turn:
        turn = turn or self.pop()
        self.room.done(turn, placement(turn, pods))
        return turn

    def popped(self) -> list[str]:
        """Whoever is ready now, in order; all of them placed."""
        found = []
        while self.room.ready:
            found.append(self.place().job.key.partition("/")[2])
        return found


def job_of(name: str, kind: str = "", **fields: Any) -> Job:
    return Job.of(a_pod(name, image=kind or name, **fields))


def a_gang(name: str, size: int, minimum: int | None = None, **fields: Any) -> Job:
    pods = tuple(a_pod(f"{name}-{i}", image=name, **fields) for i in range(size))
    return Job(f"default/{name}", pods, size if minimum is None else minimum)


def refusal(turn: Turn, *by: str, code: Code = Code.UNSCHEDULABLE) -> Decision:
    return Decision(turn.job.key, code, 0, 0.0, diagnosis=Diagnosis(nodes=1, refused_by=by))


def placement(turn: Turn, pods: Iterable[Pod] | None = None) -> Decision:
    seats = [Placement(p.key, p.metadata.uid, "n", Footprint()) for p in (turn.job.pods if pods is None else pods)]
    return Decision(turn.job.key, Code.SUCCESS, 0, 0.0, placements=tuple(seats))
