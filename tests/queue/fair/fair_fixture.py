"""A queue with a tree above it, and a cluster of one node: jobs in few words, each placed if the node has room."""

from typing import Any

from kubenexus.api.core import Pod
from kubenexus.api.queues.settings import QueueSettings
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.queue.object_events import pod_gone
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.queue.queue_fixture import EXACT, WAKES, placement, refusal

NODE = "n"


def sign(pod: Pod) -> bytes:
    """As the scheduler signs jobs while there are queues: those of different namespaces differ."""
    return f"{pod.spec.containers[0].image} of {pod.metadata.namespace}".encode()


class FairFixture:
    def __init__(self, *queues: QueueSettings, cpu: int = 1000, memory: str = "1000Gi", half_life: float = 0.0) -> None:
        self.ledger, self.clock = Ledger(), VirtualClock(100.0)
        self.ledger.upsert_node(a_node(NODE, cpu=str(cpu), memory=memory, pods="100000"))
        for queue in queues:
            self.tree.set_queue(queue)
        self.queue = SchedulingQueue({"": QueueProfile(sign, WAKES)}, self.clock, EXACT, self.tree, half_life)
        self.running: dict[str, Pod] = {}

    @property
    def tree(self) -> Any:
        return self.ledger.queues

    def add(self, name: str, namespace: str, cpu: float = 1, since: float | None = None, **fields: Any) -> Job:
        """A job of one pod. Jobs with the same requests and the same name before a dash are alike."""
        kind = f"{name.partition('-')[0]} {cpu} {fields}"
        job = Job.of(a_pod(name, namespace=namespace, cpu=str(cpu), image=kind, **fields))
        self.queue.add(job, since)
        return job

    def pop(self) -> SchedulingAttempt | None:
        for _ in range(100):
            self.queue.tick()
            attempt = self.queue.pop()
            if attempt is not None or not self.queue.has_ready:
                return attempt
        raise AssertionError("jobs are ready, and none has its turn")

    def place(self, attempt: SchedulingAttempt) -> str:
        """Places a job on the node, whatever is free there."""
        pod = attempt.job.pods[0]
        self.ledger.assume(pod, NODE, 0.0)
        self.running[pod.key] = pod
        self.queue.done(attempt, placement(attempt))
        return pod.key

    def has_room(self, pod: Pod) -> bool:
        row, resources = self.ledger.nodes.row_of[NODE], self.ledger.nodes.resources
        asked = dict(_amounts(pod))
        return all(
            resources.used[r, row] + asked.get(name, 0) <= resources.alloc[r, row]
            for name, r in resources.index.items()
            if name and name in asked
        )

    def run(self, most: int = 10_000) -> list[str]:
        """Jobs in order, each placed or refused, until no job may be tried. Returns those that were placed."""
        placed: list[str] = []
        for _ in range(most):
            attempt = self.pop()
            if attempt is None:
                break
            if self.has_room(attempt.job.pods[0]):
                placed.append(self.place(attempt))
            else:
                self.queue.done(attempt, refusal(attempt, "Ports"))
        return placed

    def end(self, key: str) -> None:
        """A pod ends, and the queue gets the event."""
        pod = self.running.pop(key)
        self.ledger.remove_pod(key)
        self.queue.on_event(pod_gone(pod))
        self.clock.advance(60.0)

    def cpus(self) -> dict[str, float]:
        """What queues use."""
        return {node.name: node.used.get("cpu", 0) / 1000 for node in self.tree.queues()}


def _amounts(pod: Pod) -> tuple[tuple[str, int], ...]:
    from kubenexus.state.footprint import footprint_of

    return footprint_of(pod).amounts


def names(keys: list[str]) -> list[str]:
    return [key.partition("/")[2] for key in keys]
