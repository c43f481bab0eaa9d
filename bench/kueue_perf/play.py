"""Plays a scenario in virtual time: the queue, the tree of queues and the planner are those of a running scheduler.

A ClusterQueue is a queue with its quota as guarantee and Kueue's borrowing limit, a cohort the queue above with the sum
of the quotas as limit, so queues borrow from each other within the cohort. A workload is admitted when it is placed
and ends after its runtime. Decisions take no virtual time; the processor time of all of them is counted beside it.
"""

import heapq
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.cluster import BenchError
from bench.kueue_perf.scenario import Arrival, Scenario, Workloads, arrivals, milli_cpu, queues_of
from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.api.queues.settings import QueueSettings
from kubenexus.app.queue_profiles import queue_profile
from kubenexus.base.clock import VirtualClock
from kubenexus.config.tenant_settings import TenantSettings
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.node_backoff import NodeBackoff
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.queue.object_events import pod_forgotten
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

NODES, CPU = 640, 96  # of a scenario without a topology of its own, as the one with a topology has
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"
COHORT = "-all"  # ends the names of cohorts
LEVELS = (TopologyLevel("rack", (RACK,)), TopologyLevel("block", (BLOCK,)))


class Result(NamedTuple):
    """`seconds` is the virtual time until the last workload has ended, `admitted` until the last was admitted, `cpu`
    the processor time of the scheduler. `waits` are the means by class; `use` is that of quotas, in percent; `most` the
    most CPUs that a cohort used, in parts of its quota."""

    workloads: int
    seconds: float
    admitted: float
    cpu: float
    waits: dict[str, float]
    use: float
    most: float


class KueuePerf:
    def __init__(self, scenario: Scenario) -> None:
        self.clock, self.ledger = VirtualClock(0.0), Ledger()
        for node in _nodes(scenario):
            self.ledger.upsert_node(node)
        self._quota: dict[str, int] = {}
        for settings in _queues(scenario):
            self.ledger.queues.set_queue(settings)
            self._quota[settings.name] = settings.guaranteed.get("cpu", 0)
        self._planner = Planner(profile_plugins(shipped_profile()), levels=LEVELS)
        profile = queue_profile(self._planner, self.ledger, NodeBackoff(self.clock), None, TenantSettings())
        self._queue = SchedulingQueue({"": profile}, self.clock, queues=self.ledger.queues)
        self._ends: list[tuple[float, int, tuple[tuple[Pod, str], ...]]] = []
        self._waiting: dict[str, tuple[float, Workloads]] = {}
        self._waits: dict[str, list[float]] = {}
        self._admitted = self._most = 0.0
        self._count = 0

    def play(self, coming: list[Arrival]) -> Result:
        """Plays these workloads until all have ended."""
        waiting = sorted(coming, reverse=True, key=lambda each: (each.at, each.name))
        before = time.process_time()
        while waiting or self._ends or self._waiting:
            self._advance(waiting)
            while waiting and waiting[-1].at <= self.clock.now():
                self._arrive(waiting.pop())
            while self._ends and self._ends[0][0] <= self.clock.now():
                self._end(heapq.heappop(self._ends)[2])
            self._schedule()
        work, seconds = time.process_time() - before, self.clock.now()
        waits = {name: sum(each) / len(each) for name, each in sorted(self._waits.items())}
        return Result(len(coming), seconds, self._admitted, work, waits, self._use(coming, seconds), self._most)

    def _advance(self, waiting: list[Arrival]) -> None:
        """Lets time go on to the next arrival, end, or time when the queue has something to do."""
        times = [each for each in (self._queue.next_due(),) if each is not None]
        times += [waiting[-1].at] if waiting else []
        times += [self._ends[0][0]] if self._ends else []
        if not times:
            raise BenchError(f"{len(self._waiting)} workloads wait for nothing")
        self.clock.advance(max(min(times) - self.clock.now(), 0.0))

    def _arrive(self, each: Arrival) -> None:
        job = _job(each)
        self._waiting[job.key] = self.clock.now(), each.workload
        self._queue.add(job, self.clock.now())

    def _end(self, pods: tuple[tuple[Pod, str], ...]) -> None:
        for pod, node in pods:
            self.ledger.remove_pod(pod.key)
            self._queue.on_event(pod_forgotten(pod, node))

    def _schedule(self) -> None:
        """Tries jobs until none may be tried now."""
        while True:
            self._queue.tick()
            attempt = self._queue.pop()
            if attempt is None:
                if not self._queue.has_ready:
                    return
                continue
            now = self.clock.now()
            decision = self._planner.decide(attempt.job, self.ledger.snapshot(), now)
            if decision.placed:
                commit(decision, attempt.job, self.ledger, now)
                self._admit(attempt.job, {each.pod: each.node for each in decision.placements})
            self._queue.done(attempt, decision)

    def _admit(self, job: Job, nodes: dict[str, str]) -> None:
        now, (since, workload) = self.clock.now(), self._waiting.pop(job.key)
        self._admitted, self._count = now, self._count + 1
        self._waits.setdefault(workload.class_name, []).append(now - since)
        pods = tuple([(pod, nodes[pod.key]) for pod in job.pods])
        heapq.heappush(self._ends, (now + workload.runtime_ms / 1000, self._count, pods))
        for node in self.ledger.queues.queue_of(job.namespace).path():
            if node.name in self._quota and node.children:
                self._most = max(self._most, node.used["cpu"] / node.most["cpu"])

    def _use(self, coming: list[Arrival], seconds: float) -> float:
        """Returns how much of all quotas was used on average, in percent."""
        work = sum(each.workload.runtime_ms / 1000 * _cpus(each.workload) for each in coming)
        leaves = [amount for name, amount in self._quota.items() if amount and not name.endswith(COHORT)]
        return 100 * work / (sum(leaves) * seconds) if seconds else 0.0


def _queues(scenario: Scenario) -> Iterator[QueueSettings]:
    sums: dict[str, int] = {}
    for cohort, queue, queues in queues_of(scenario):
        quota, name = milli_cpu(queues.nominal_quota), f"{cohort}-{queue}"
        sums[cohort] = sums.get(cohort, 0) + quota
        most = {"cpu": quota + milli_cpu(queues.borrowing_limit)}
        yield QueueSettings(name, f"{cohort}{COHORT}", guaranteed={"cpu": quota}, most=most, namespaces=(name,))
    for cohort, quota in sums.items():
        yield QueueSettings(f"{cohort}{COHORT}", guaranteed={"cpu": quota}, most={"cpu": quota})


def _nodes(scenario: Scenario) -> Iterator[Node]:
    levels = scenario.topology.levels
    racks, each = (levels[1].count, levels[2].count) if len(levels) > 2 else (10, NODES // 10)
    cpu = levels[2].capacity["cpu"] if len(levels) > 2 else str(CPU)
    for rack in range(racks):
        for i in range(each):
            yield a_node(f"r{rack}-n{i}", cpu=cpu, memory="256Gi", labels={BLOCK: "b0", RACK: f"r{rack}"})


def _cpus(workload: Workloads) -> int:
    return milli_cpu(workload.request) * workload.pod_count


def _job(each: Arrival) -> Job:
    workload, cpu = each.workload, f"{milli_cpu(each.workload.request)}m"
    pods = tuple(
        [
            a_pod(f"{each.name}-{i}", namespace=each.queue, cpu=cpu, memory="0", priority=workload.priority)
            for i in range(workload.pod_count)
        ]
    )
    if len(pods) == 1:
        return Job.of(pods[0])
    # Kueue's "balanced" prefers its level, too, and spreads within it.
    request = NO_TOPOLOGY_REQUEST
    if workload.tas_level:
        required = workload.tas_constraint == "required"
        request = TopologyRequest(required=RACK) if required else TopologyRequest(preferred=RACK)
    return Job(f"{each.queue}/kueue-perf/{each.name}", pods, len(pods), request)


def play(scenario: Scenario, part: float = 1.0) -> Result:
    """Plays a part of a scenario."""
    return KueuePerf(scenario).play(list(arrivals(scenario, part)))
