"""An assembly with its waiting room and a ledger of three lines, for tests."""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import POD_GROUP, UNSAID, Nearness
from kubenexus.api.workloads import PodGroup
from kubenexus.framework.job import Job
from kubenexus.queue.assembly import Assembly
from kubenexus.queue.entry import Place, Turn
from kubenexus.queue.policy import Policy
from kubenexus.state.footprint import Footprint
from kubenexus.state.groups import Groups
from kubenexus.state.pods import PodRecord, Stage, record_of
from tests.queue.easy import EXACT, Easy, placement


class Hall:
    """Pods are told of as the feed would; `land` is what the landing does."""

    def __init__(self, policy: Policy = EXACT, usual: Nearness = UNSAID) -> None:
        self.easy = Easy(policy)
        self.room, self.clock = self.easy.room, self.easy.clock
        self.groups, self.records = Groups(), dict[str, PodRecord]()
        self.assembly = Assembly(self.room, self.groups, self.records, lambda pod: usual)
        self.heard: list[str] = []
        self.assembly.warned = lambda pod, text: self.heard.append(text)

    def waits(self, *pods: Pod, since: float | None = None) -> None:
        for pod in pods:
            self.assembly.waits(pod, since)

    def bound(self, pod: Pod, node: str = "n") -> None:
        """The watch says that it has a node."""
        there = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        self.records[pod.key] = record_of(there, node, Stage.BOUND, Footprint())
        self.assembly.placed(there, there, None)

    def gone(self, *keys: str) -> None:
        for key in keys:
            self.assembly.gone(f"default/{key}")
            self.records.pop(f"default/{key}", None)

    def group(self, group: PodGroup) -> None:
        self.groups.seen(POD_GROUP, group)
        self.assembly.group_changed(POD_GROUP, f"{group.metadata.namespace}/{group.metadata.name}")

    def assume(self, turn: Turn, *, most: int | None = None) -> list[Pod]:
        """The job was placed, or so many of it: they count on their nodes from now on."""
        seated = list(turn.job.pods[:most])
        for pod in seated:
            self.records[pod.key] = record_of(pod, f"n-{pod.metadata.name}", Stage.ASSUMED, Footprint())
        return seated

    def land(self, turn: Turn, seated: list[Pod], failed: tuple[str, ...] = ()) -> None:
        """All binds were answered; those of `failed`, by name, in vain."""
        for pod in seated:
            if pod.metadata.name in failed and self.records.get(pod.key) is not None:
                del self.records[pod.key]
        kept = [pod for pod in seated if pod.metadata.name not in failed]
        if kept:
            self.room.done(turn, placement(turn, kept))
        else:
            self.room.failed(turn)
        self.assembly.landed(turn.job.key)

    def job(self, key: str) -> Job | None:
        self.assembly.flush()
        return self.room.job(f"default/{key}")

    def place(self, key: str) -> Place:
        self.assembly.flush()
        return self.room.place(f"default/{key}")

    def why(self, key: str) -> str:
        self.assembly.flush()
        verdict = self.room.gate(f"default/{key}")
        return "" if verdict is None else verdict.reasons[0]


def names(job: Job | None) -> list[str]:
    return [] if job is None else [pod.metadata.name for pod in job.pods]


def short(gang: str, have: int, need: int) -> str:
    waiting = "waiting for minCount pods from a gang to appear in scheduling queue"
    return f"{waiting}: gang default/{gang} has {have} of at least {need}"


def turned(hall: Hall) -> Turn:
    turn = hall.room.pop()
    assert turn is not None, "nobody is ready"
    return turn
