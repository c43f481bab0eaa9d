"""The story of examples/traces/slots.jsonl on a real API server: the nodes are those that the simulator chose.

Time is left out: a step ends the pods and creates those that the simulator does, and waits until the same pods run.
"""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.sim.replay.cluster import ReplayCluster, ledger_of
from kubenexus.sim.replay.fragmentation import FragmentationMeter
from kubenexus.sim.replay.policies.named import policy_plugins
from kubenexus.sim.replay.timeline import Timeline
from kubenexus.sim.replay.timeline_result import TimelineResult
from kubenexus.sim.replay.traces.json_lines import read_lines
from kubenexus.sim.replay.traces.trace import Trace, TraceJob, TraceNode
from kubenexus.testing.controlplane import ClusterClient, Object, Objects
from tests.e2e.scheduling import NAME, Start, a_node, a_pod, condition, make_nodes, placed, pods

SLOTS = Path(__file__).parents[2] / "examples" / "traces" / "slots.jsonl"
# Equal nodes in the order of their names: a hash of the class would differ, since the API server adds fields to pods.
CONFIG = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: {NAME}
  pluginConfig: [{{name: KubeNexus, args: {{tieBreak: name}}}}]
"""
GPU = "nvidia.com/gpu"


class Step(NamedTuple):
    """What happens at one time: jobs end, others come, and some of those that wait get a node."""

    ended: list[str]
    arrived: list[TraceJob]
    running: dict[str, str]


class LoggedCluster(ReplayCluster):
    """A simulated cluster that keeps which pod runs where, and which ended."""

    running: dict[str, str]
    ended: list[str]

    def try_made(self, made: Job, now: float, ahead: Reservation | None = None) -> Decision:
        decision = super().try_made(made, now, ahead)
        self.running |= {each.pod.partition("/")[2]: each.node for each in decision.placements}
        return decision

    def end(self, decision: Decision) -> None:
        super().end(decision)
        for each in decision.placements:
            self.ended.append(each.pod.partition("/")[2])
            del self.running[self.ended[-1]]


def simulated(trace: Trace, config: Path) -> list[Step]:
    """What the simulator does, step by step."""
    cluster = LoggedCluster(ledger_of(trace.nodes, shared=False), policy_plugins(NAME, trace, 0, config))
    cluster.running, cluster.ended, steps = {}, [], []
    result = TimelineResult.of(trace, NAME, 0, cluster)
    timeline = Timeline(trace, cluster, result, FragmentationMeter(trace))
    before = 0
    while timeline.step():
        steps.append(Step(cluster.ended, [*trace.jobs[before : timeline.arrived]], dict(cluster.running)))
        before, cluster.ended = timeline.arrived, []
    return steps


def node(made: TraceNode) -> Object:
    found = a_node(made.name, cpu=f"{made.cpu}m", pods="1000", **{"gpu.kubenexus.io/model": made.model})
    for amounts in (found["status"]["capacity"], found["status"]["allocatable"]):
        amounts |= {GPU: str(made.gpus), "memory": str(made.memory)}
    return found


def pod(job: TraceJob) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": job.name, "controller": True}
    metadata: dict[str, Any] = {"labels": {"gpus": str(job.shape.gpus)}, "ownerReferences": [owner]}
    found = a_pod(job.name, metadata=metadata)
    amounts = {"cpu": f"{job.shape.cpu}m", "memory": str(job.shape.memory)}
    gpus = {GPU: str(job.shape.gpus)}
    found["spec"]["containers"][0]["resources"] = {"requests": amounts | gpus, "limits": gpus}
    return found


def test_the_nodes_are_those_of_the_simulator(
    scheduler: Start, cluster: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    nodes, jobs = read_lines(SLOTS)
    trace = Trace("slots", nodes, tuple(msgspec.structs.replace(job, tenant=namespace) for job in jobs))
    steps = simulated(trace, config)
    assert {len(jobs), sum(len(step.ended) for step in steps)} == {100}
    make_nodes(cluster, *(node(each) for each in nodes))
    scheduler(f"--config={config}")
    path = pods(namespace)
    for number, step in enumerate(steps):
        for name in step.ended:
            cluster.delete(f"{path}/{name}", grace=0)
        for job in step.arrived:
            cluster.create(pod(job), namespace)

        def all_decided(found: Objects, step: Step = step) -> bool:
            waiting = found.keys() - step.running.keys()
            return placed(found).keys() >= step.running.keys() and all(condition(found, name) for name in waiting)

        found = cluster.until(path, all_decided, f"step {number} is decided: {step}", seconds=60)
        assert placed(found) == step.running, f"step {number}: {step}"
