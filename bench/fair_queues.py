"""What queues cost: the next job of 100,000 in 1,000 queues, beside the same jobs without queues; and what it costs to
count a pod, beside a tree of 10 queues.

The jobs are of ten workloads in as many namespaces as there are queues. Nothing is decided: a job that is popped is
placed, and counts in its queue. Between two rounds it is queued again.
"""

import itertools
from collections.abc import Callable, Iterator

import msgspec

from bench import objects
from bench.cluster import BenchError, mixture
from bench.measure import Round, clock
from bench.queue import WORKLOADS, placement
from kubenexus.api.codec import decode_pod
from kubenexus.api.core import Pod
from kubenexus.api.queues.settings import QueueSettings
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.framework.pod_signature import PodSigner
from kubenexus.plugins import profile_plugins
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.footprint import footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, PodStage, readable_pod_record
from kubenexus.testing.builders import a_node

QUEUES = 1_000
DEPARTMENTS = 10  # queues at the top; all others are below them
FEW = 10
POPS = 200  # in a round
COUNTS = 1_000
NODE = "worker"


def tree(queues: int) -> Iterator[QueueSettings]:
    """Departments and teams below these: the namespace `team-i` is in the queue `team-i`. Half of the teams have
    guarantees, and all queues have limits, which no job reaches."""
    amounts = {"cpu": 10**9, "memory": 10**15}
    for i in range(DEPARTMENTS):
        yield QueueSettings(f"department-{i}", weight=1 + i % 3, most=amounts)
    for i in range(queues):
        name, guaranteed = f"team-{i}", {"cpu": 1_000} if i % 2 else {}
        yield QueueSettings(name, f"department-{i % DEPARTMENTS}", 1 + i % 4, guaranteed, amounts, namespaces=(name,))


def a_ledger(queues: int) -> Ledger:
    ledger = Ledger()
    ledger.upsert_node(a_node(NODE, cpu="1000000", memory="1000000Gi", pods="1000000"))
    for settings in tree(queues):
        ledger.queues.set_queue(settings)
    ledger.queues.settle()
    return ledger


def a_job(template: objects.Template, number: int, namespaces: int) -> Job:
    pod = decode_pod(objects.pod(template, number).encode())
    meta = msgspec.structs.replace(pod.metadata, namespace=f"team-{number % namespaces}")
    return Job.of(msgspec.structs.replace(pod, metadata=meta))


def a_record(pod: Pod) -> PodRecord:
    return readable_pod_record(pod, NODE, PodStage.ASSUMED, footprint_of(pod))[0]


class Crowd:
    """All these jobs in a queue, ready to be tried."""

    def __init__(self, jobs: list[Job], queues: int) -> None:
        plugins, clock = profile_plugins(), VirtualClock(0.0)
        signer = PodSigner(plugins.reads)

        def sign(pod: Pod) -> bytes:
            signature = signer.sign(pod)
            return signature if not queues else b"%b in %b" % (signature, pod.metadata.namespace.encode())

        self.tree = a_ledger(queues).queues if queues else None
        self.queue = SchedulingQueue({"": QueueProfile.of(plugins, sign)}, clock, queues=self.tree)
        self.records = {job.key: a_record(job.pods[0]) for job in jobs} if queues else {}
        for job in jobs:
            self.queue.add(job)
        self.queue.tick()

    def pop(self, calls: int) -> float:
        """Pops and places so many jobs, and queues them again; seconds for each pop."""
        queue, count, popped = self.queue, None if self.tree is None else self.tree.count, []
        spent = 0.0
        for _ in range(calls):
            start = clock()
            attempt = queue.pop()
            spent += clock() - start
            if attempt is None:
                raise BenchError("no job is ready")
            placed = placement(attempt.job)
            start = clock()
            if count is not None:
                count(self.records[attempt.job.key], +1)
            queue.done(attempt, placed)
            spent += clock() - start
            popped.append(attempt.job)
        for job in popped:
            if count is not None:
                count(self.records[job.key], -1)
            queue.add(job)
        queue.tick()
        return spent / calls


def pops(waiting: int) -> tuple[Round, Round]:
    """A job is popped and placed; with queues and without them."""
    queues = min(QUEUES, max(1, waiting // 100))
    templates, numbers = mixture(WORKLOADS), itertools.count()
    jobs = [a_job(templates[i // queues % WORKLOADS], next(numbers), queues) for i in range(waiting)]
    fair, plain = Crowd(jobs, queues), Crowd(jobs, 0)
    calls = min(POPS, waiting // 2)
    return lambda: fair.pop(calls), lambda: plain.pop(calls)


def counts(waiting: int) -> tuple[Round, Round]:
    """A pod is placed and ends; with many queues and with few."""

    def counting(queues: int) -> Round:
        ledger = a_ledger(queues)
        template = mixture(1)[0]
        records = [a_record(a_job(template, i, queues).pods[0]) for i in range(COUNTS)]

        def round_() -> float:
            count = ledger.queues.count
            start = clock()
            for record in records:
                count(record, +1)
            for record in records:
                count(record, -1)
            return (clock() - start) / (2 * COUNTS)

        return round_

    return counting(min(QUEUES, waiting)), counting(FEW)


# By bench and case: made with the number of waiting jobs; beside its yardstick.
CASES: dict[tuple[str, str], Callable[[int], tuple[Round, Round]]] = {
    ("queue.fair", "100,000 in 1,000 queues"): pops,
    ("queue.usage", "1,000 queues"): counts,
}
