"""An assembly with its waiting room and a ledger of three lines, for tests."""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, POD_GROUP, TopologyRequest
from kubenexus.api.gangs.resolver import Gang
from kubenexus.api.workloads import PodGroup
from kubenexus.framework.job import Job
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.gangs.bound_members import BoundMember
from kubenexus.queue.gangs.gang_registry import GangRegistry
from kubenexus.queue.gangs.job_assembler import PORTION, JobAssembler
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.queued_job import QueueState, SchedulingAttempt
from kubenexus.state.footprint import Footprint
from kubenexus.state.pod_group_store import PodGroupStore
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from tests.queue.queue_fixture import EXACT, QueueFixture, placement


class AnyProfile:
    """All schedulers' names."""

    def __contains__(self, name: object) -> bool:
        return True


class NoHolds:
    """Nothing is held for lost members."""

    def keys_of(self, gang: str) -> tuple[str, ...]:
        return ()

    def release_gang(self, gang: str) -> None:
        pass


class AssemblyRecord:
    """Keeps warnings, and raises what kept a gang from being built."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def pod_queued(self, pod: Pod, state: QueueState) -> None:
        pass

    def gang_queued(self, key: str, state: QueueState) -> None:
        pass

    def gang_warning(self, pod: Pod, text: str) -> None:
        self.warnings.append(text)

    def group_complete(self, group: PodGroup, at: float) -> bool:
        return True

    def gang_complete(self, gang: Gang, member: BoundMember) -> None:
        pass

    def build_failed(self, gang: str, error: Exception) -> None:
        raise error


class AssemblerFixture:
    """Pods are told of as the feed would; `land` is what the landing does."""

    def __init__(
        self, policy: BackoffPolicy = EXACT, usual: TopologyRequest = NO_TOPOLOGY_REQUEST, *, portion: int = PORTION
    ) -> None:
        self.fixture = QueueFixture(policy)
        self.queue, self.clock = self.fixture.queue, self.fixture.clock
        self.groups, self.records = PodGroupStore(), dict[str, PodRecord]()
        self.observer = AssemblyRecord()
        registry = GangRegistry()
        self.waiting = WaitingPods(self.queue, registry, self.records)
        self.assembler = JobAssembler(
            self.queue,
            registry,
            self.waiting,
            self.groups,
            holds=NoHolds(),
            observer=self.observer,
            default_topology=lambda pod: usual,
            profiles=AnyProfile(),
            portion=portion,
        )

    @property
    def heard(self) -> list[str]:
        """The warnings."""
        return self.observer.warnings

    def pop(self) -> SchedulingAttempt | None:
        """As the loop does."""
        self.assembler.build_changed()
        return self.queue.pop(rebuilder=self.assembler)

    def waits(self, *pods: Pod, since: float | None = None) -> None:
        for pod in pods:
            self.assembler.add_waiting(pod, since)

    def bound(self, pod: Pod, node: str = "n") -> None:
        """The watch says that it has a node."""
        there = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        self.records[pod.key] = pod_record(there, node, PodStage.BOUND, Footprint())
        self.assembler.add_bound(there, there, None)

    def gone(self, *keys: str) -> None:
        for key in keys:
            self.assembler.remove(f"default/{key}")
            self.records.pop(f"default/{key}", None)

    def group(self, group: PodGroup) -> None:
        self.groups.seen(POD_GROUP, group)
        self.assembler.group_changed(POD_GROUP, f"{group.metadata.namespace}/{group.metadata.name}")

    def assume(self, attempt: SchedulingAttempt, *, most: int | None = None) -> list[Pod]:
        """The job was placed, or so many of it: they count on their nodes from now on."""
        seated = list(attempt.job.pods[:most])
        for pod in seated:
            self.records[pod.key] = pod_record(pod, f"n-{pod.metadata.name}", PodStage.ASSUMED, Footprint())
        return seated

    def land(self, attempt: SchedulingAttempt, seated: list[Pod], failed: tuple[str, ...] = ()) -> None:
        """All binds were answered; those of `failed`, by name, in vain."""
        for pod in seated:
            if pod.metadata.name in failed and self.records.get(pod.key) is not None:
                del self.records[pod.key]
        kept = [pod for pod in seated if pod.metadata.name not in failed]
        if kept:
            self.queue.done(attempt, placement(attempt, kept))
        else:
            self.queue.bind_failed(attempt)
        self.assembler.attempt_finished(attempt.job.key)

    def job(self, key: str) -> Job | None:
        self.assembler.build_changed()
        return self.queue.job(f"default/{key}")

    def place(self, key: str) -> QueueState:
        self.assembler.build_changed()
        return self.queue.state(f"default/{key}")

    def why(self, key: str) -> str:
        self.assembler.build_changed()
        verdict = self.queue.gate_verdict(f"default/{key}")
        return "" if verdict is None else verdict.reasons[0]


def names(job: Job | None) -> list[str]:
    return [] if job is None else [pod.metadata.name for pod in job.pods]


def short(gang: str, have: int, need: int) -> str:
    waiting = "waiting for minCount pods from a gang to appear in scheduling queue"
    return f"{waiting}: gang default/{gang} has {have} of at least {need}"


def turned(fixture: AssemblerFixture) -> SchedulingAttempt:
    attempt = fixture.pop()
    assert attempt is not None, "nobody is ready"
    return attempt
