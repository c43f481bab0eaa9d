"""The policies of papers: each decision is the best node by the same score in plain Python, ties by name."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.cluster import ReplayCluster, ledger_of
from kubenexus.sim.replay.objects import size_of
from kubenexus.sim.replay.policies.fgd import target_workload
from kubenexus.sim.replay.policies.named import NAMES, policy_plugins
from kubenexus.sim.replay.traces.trace import JobShape, Trace, TraceJob, TraceNode
from tests.sim.replay import reference
from tests.sim.replay.reference import State

NODES = (
    TraceNode("a", 32_000, 1 << 40, 4, "A"),
    TraceNode("b", 16_000, 1 << 40, 2, "B"),
    TraceNode("c", 64_000, 1 << 40, 8, "A"),
    TraceNode("d", 8_000, 1 << 40, 0, ""),
    TraceNode("e", 16_000, 1 << 40, 2, "B"),
)
SHAPES = (
    JobShape(cpu=1000, gpus=1, gpu_milli=250),
    JobShape(cpu=2000, gpus=1, gpu_milli=600),
    JobShape(cpu=4000, gpus=1),
    JobShape(cpu=4000, gpus=1, models=("B",)),
    JobShape(cpu=8000, gpus=2),
    JobShape(cpu=16_000, gpus=4, models=("A", "B")),
    JobShape(cpu=4000),
)


def a_trace(picks: list[int]) -> Trace:
    return Trace("t", NODES, tuple(TraceJob(f"job-{i}", SHAPES[pick]) for i, pick in enumerate(picks)))


class Follower:
    """The cluster as plain states, brought up to date with the decisions."""

    def __init__(self, trace: Trace) -> None:
        self.states = {node.name: State(node.cpu, (1000,) * node.gpus, node.model) for node in trace.nodes}
        self.sizes: dict[str, list[str]] = {node.name: [] for node in trace.nodes}
        self.mix = [
            (JobShape(cpu, 0, number, milli or 1000, tuple(filter(None, models.split("|")))), share)
            for cpu, number, milli, models, share in target_workload(trace)
        ]

    def feasible(self, shape: JobShape) -> list[str]:
        def fits(state: State) -> bool:
            allowed = not shape.models or state.model in shape.models
            return allowed and state.cpu >= shape.cpu and sum(g >= shape.gpu_milli for g in state.gpus) >= shape.gpus

        return [name for name, state in self.states.items() if fits(state)]

    def score(self, policy: str, name: str, shape: JobShape) -> int:
        state = self.states[name]
        if policy == "fgd":
            return reference.fgd(state, shape, self.mix)[0]
        if policy == "clustering":
            return reference.clustering(state, shape, self.sizes[name], size_of(shape))
        return {"bestfit": reference.bestfit, "dotprod": reference.dotprod, "packing": reference.packing}[policy](
            state, shape
        )

    def place(self, policy: str, name: str, shape: JobShape) -> None:
        gpu = reference.fgd(self.states[name], shape, self.mix)[1] if policy == "fgd" else None
        self.states[name] = reference.after(self.states[name], shape, gpu)
        if shape.gpus:
            self.sizes[name].append(size_of(shape))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("policy", ["fgd", "bestfit", "dotprod", "packing", "clustering"])
@given(picks=st.lists(st.integers(0, len(SHAPES) - 1), min_size=1, max_size=40))
def test_a_decision_is_the_best_node_by_the_reference(policy: str, picks: list[int]) -> None:
    trace = a_trace(picks)
    cluster = ReplayCluster(ledger_of(NODES, shared=True), policy_plugins(policy, trace, 1))
    follower = Follower(trace)
    for job in trace.jobs:
        feasible = follower.feasible(job.shape)
        decision = cluster.try_job(job, 0.0)
        if not feasible:
            assert not decision.placed
            continue
        wanted = min(feasible, key=lambda name: (-follower.score(policy, name, job.shape), name))
        assert [placement.node for placement in decision.placements] == [wanted]
        follower.place(policy, wanted, job.shape)
    left = {row: cluster.ledger.nodes.devices.share[:, i] for row, i in cluster.ledger.nodes.row_of.items()}
    for name, state in follower.states.items():
        assert sorted(left[name].tolist())[8 - len(state.gpus) :] == sorted(state.gpus)


def test_random_takes_feasible_nodes_about_equally_often() -> None:
    nodes = tuple(TraceNode(f"n{i}", 1000 * 1000, 1 << 50, 2, "A") for i in range(4))
    trace = Trace("t", nodes, tuple(TraceJob(f"job-{i}", JobShape(cpu=1, memory=1)) for i in range(400)))
    cluster = ReplayCluster(ledger_of(nodes, shared=True), policy_plugins("random", trace, 3))
    taken = [cluster.try_job(job, 0.0).placements[0].node for job in trace.jobs]
    assert all(70 <= taken.count(node.name) <= 130 for node in nodes)
    assert len(set(taken[:20])) == 4


def test_random_follows_from_the_seed() -> None:
    jobs = [random.Random(1).randrange(len(SHAPES)) for _ in range(30)]

    def run(seed: int) -> list[str]:
        cluster = ReplayCluster(ledger_of(NODES, shared=True), policy_plugins("random", a_trace(jobs), seed))
        decisions = [cluster.try_job(job, 0.0) for job in a_trace(jobs).jobs]
        return [placement.node for decision in decisions for placement in decision.placements]

    assert run(1) == run(1) != run(2)


@pytest.mark.parametrize("policy", NAMES)
def test_every_policy_places_a_pod(policy: str) -> None:
    trace = a_trace([0])
    cluster = ReplayCluster(ledger_of(NODES, shared=True), policy_plugins(policy, trace, 1))
    assert cluster.try_job(trace.jobs[0], 0.0).placed


def test_an_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(KubeNexusError, match="unknown policy 'best'; known: shipped, kube-scheduler, fgd"):
        policy_plugins("best", a_trace([0]), 1)
