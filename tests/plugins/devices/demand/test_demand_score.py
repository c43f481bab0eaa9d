"""Scores by demand are the same over all rows, some rows and one row, cached and computed from scratch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import SINGLE_POD_VIEW, Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.demand_learner import DemandLearner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.plugins.devices.demand.scoring import MIDDLE
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.state.demand import Demand, DemandShape, SlotDemand
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster
from tests.plugins.devices.device_cluster import device_clusters, device_pods

MIX = (
    (DemandShape(2000, 1, 1000), 0.6),
    (DemandShape(1000, 1, 300), 0.3),
    (DemandShape(4000, 8, 1000), 0.05),
    (DemandShape(1000), 0.05),
)
SLOTS = (SlotDemand(2, 1000, 1, 5, 30), SlotDemand(8, 4000, 12, 9, 8000))
DEMAND = Demand(1, MIX, SLOTS, types=(("A100", 8),), type_prices=(("A100", 500),), on_gpu_nodes=True)
PLUGINS = profile_plugins(shipped_profile())
SIZES = (1, 2, 1, 0, 1, 1, 8, 0, 1)


def scores(pod: Pod, ledger: Ledger, plugin: Any = None) -> Any:
    """The scores of all rows, after checking that each row has the same alone."""
    rule = plugin or ResourceFragmentationScore({})
    pod_class = ClassCache(PLUGINS).lookup(pod, ledger.nodes).table.pod
    found = rule.score(pod_class, Nodes(ledger.nodes), SINGLE_POD_VIEW)
    column = np.broadcast_to(found, ledger.nodes.size)
    for row in np.flatnonzero(ledger.nodes.alive[: ledger.nodes.size]).tolist():
        alone = rule.score(pod_class, Nodes(ledger.nodes, np.array([row])), SINGLE_POD_VIEW)
        plain = rule.score(pod_class, OneNode(ledger.nodes, row), SINGLE_POD_VIEW)
        assert column[row] == np.broadcast_to(alone, 1)[0] == plain
    return column


@given(cluster=device_clusters(), pod=device_pods() | st.just(a_pod(cpu=1)))
def test_a_row_has_the_same_score_among_others_and_alone(cluster: CheckedCluster, pod: Pod) -> None:
    cluster.ledger.set_demand(DEMAND)
    scores(pod, cluster.ledger)


def a_ledger(*gpus: int) -> Ledger:
    ledger = Ledger()
    for i, number in enumerate(gpus):
        labels = {"gpu.kubenexus.io/model": "A100"} if number else {}
        ledger.upsert_node(a_node(f"n{i}", cpu=64, gpu=number, labels=labels))
    ledger.read_devices()
    return ledger


@pytest.mark.parametrize(
    ("pod", "used", "better"),
    [
        pytest.param(a_pod(cpu=2, gpu=1), 2, "n1", id="one GPU goes where no slot of eight is lost"),
        pytest.param(a_pod(cpu=4, gpu=8), 0, "n0", id="eight GPUs need a slot of eight"),
        pytest.param(a_pod(cpu=30), 2, "n2", id="a pod without GPUs leaves GPU nodes to others"),
    ],
)
def test_the_better_node(pod: Pod, used: int, better: str) -> None:
    ledger = a_ledger(8, 8, 0)
    if used:
        ledger.assume(a_pod("other", cpu=2, gpu=used), "n1", 0.0)
    ledger.set_demand(DEMAND)
    found = scores(pod, ledger)
    rows = range(3 if better == "n2" else 2)
    assert ledger.nodes.names[max(rows, key=lambda row: found[row])] == better


def test_without_a_demand_or_with_the_argument_the_rules_of_islands_decide() -> None:
    ledger = a_ledger(8)
    by_rules = scores(a_pod(gpu=1), ledger)[0]
    ledger.set_demand(DEMAND)
    assert scores(a_pod(gpu=1), ledger, ResourceFragmentationScore({"byDemand": False}))[0] == by_rules <= 100
    assert scores(a_pod(gpu=1), ledger)[0] > MIDDLE // 10


def test_a_planner_with_caches_decides_as_one_without() -> None:
    ledger, learner = a_ledger(*[8] * 12, 4, 2), DemandLearner(["kubenexus-scheduler"])
    cached = Planner(PLUGINS)
    for i in range(64):
        pod = a_pod(f"p{i}", cpu=2, gpu=SIZES[i % len(SIZES)] or None, scheduler_name="kubenexus-scheduler")
        job = Job(key=pod.key, pods=(pod,))
        decision = cached.decide(job, ledger.snapshot(), float(i))
        if i % 6 == 5:
            assert decision == Planner(PLUGINS).decide(job, ledger.snapshot(), float(i))
        if decision.placed:
            commit(decision, job, ledger, float(i))
        learner.decided(job, ledger, placed=decision.placed)
    assert ledger.nodes.demand is not None
