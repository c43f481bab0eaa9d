"""A stated tier of a tenant comes before demand: demand chooses among nodes of one hardware tier."""

import random

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.demand_learner import DemandLearner
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.plugins.devices.demand.scoring import MIDDLE, WITHOUT_GPUS
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.plugins.tenant.hardware_affinity import BEFORE_DEMAND, TenantHardwareAffinityScore
from kubenexus.state.demand import Demand, DemandShape, SlotDemand
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

PROFILE = "kubenexus-scheduler"
PLUGINS = profile_plugins(shipped_profile(PROFILE))
TIER, MODEL = "tenant.kubenexus.io/tier", "gpu.kubenexus.io/model"
ORDERS = {"gold": ("H100", "V100", "T4"), "silver": ("V100", "T4", "H100"), "bronze": ("T4", "V100", "H100")}


def a_ledger(**tiers: str) -> Ledger:
    """Eight nodes of each model; namespaces with these tiers, "" for none."""
    ledger = Ledger()
    for model, gpus in (("H100", 8), ("V100", 4), ("T4", 4)):
        for i in range(8):
            ledger.upsert_node(a_node(f"{model.lower()}-{i}", cpu=64, memory="256Gi", gpu=gpus, labels={MODEL: model}))
    ledger.read_devices()
    for namespace, tier in tiers.items():
        ledger.nodes.tenants.set_namespace(namespace, {TIER: tier} if tier else {})
    return ledger


@pytest.mark.parametrize("seed", range(4))
def test_no_pod_of_a_tenant_with_a_tier_gets_other_hardware_while_its_own_is_free(seed: int) -> None:
    draws, ledger = random.Random(seed), a_ledger(**{tier: tier for tier in ORDERS})
    planner, learner = Planner(PLUGINS), DemandLearner([PROFILE])
    for i in range(160):
        tier, gpus = draws.choice(sorted(ORDERS)), draws.choice((1, 1, 1, 2, 4, 8))
        pod = a_pod(f"p{i}", namespace=tier, cpu=draws.choice((1, 4, 12)), gpu=gpus, scheduler_name=PROFILE)
        decision = planner.decide(Job(key=pod.key, pods=(pod,)), ledger.snapshot(), float(i))
        feasible = ClassCache(PLUGINS).lookup(pod, ledger.nodes).table.feasible
        models = {ledger.nodes.names[row].partition("-")[0].upper() for row in np.flatnonzero(feasible)}
        wanted = next((model for model in ORDERS[tier] if model in models), None)
        assert (decision.placements[0].node.partition("-")[0].upper() if decision.placed else None) == wanted
        if decision.placed:
            commit(decision, Job(key=pod.key, pods=(pod,)), ledger, float(i))
        learner.decided(Job(key=pod.key, pods=(pod,)), ledger, placed=decision.placed)
    assert ledger.nodes.demand is not None


@pytest.mark.parametrize(
    ("tier", "node"),
    [
        pytest.param("bronze", "t4", id="a tenant with a tier stays on its hardware"),
        pytest.param("", "v100", id="a tenant that is bronze by default leaves scarce GPUs to pods that need them"),
    ],
)
def test_demand_chooses_the_hardware_of_tenants_without_a_tier_only(tier: str, node: str) -> None:
    ledger = a_ledger(team=tier)
    ledger.set_demand(Demand(1, ((DemandShape(1000, 1, 1000), 1.0),), (), (("T4", 4),), (("T4", 1000),)))
    pod = a_pod("p", namespace="team", cpu=1, gpu=1)
    decision = Planner(PLUGINS).decide(Job(key=pod.key, pods=(pod,)), ledger.snapshot(), 0.0)
    assert decision.placements[0].node.startswith(node)


def test_the_tier_of_a_tenant_counts_as_before_while_there_is_no_demand() -> None:
    ledger, pod = a_ledger(team="bronze"), a_pod("p", namespace="team", gpu=1)
    planner = Planner(PLUGINS)
    assert _tier_points(planner, pod, ledger) == 100
    ledger.set_demand(Demand(1, ((DemandShape(1000, 1, 1000), 1.0),), (SlotDemand(8, 1000, 1, 8, 0),)))
    assert _tier_points(planner, pod, ledger) == 100 * BEFORE_DEMAND


def test_one_point_of_the_tier_is_more_than_all_that_demand_counts() -> None:
    weights = {each.name: each.weight for each in shipped_profile().plugins}
    most = weights[ResourceFragmentationScore.name] * (2 * MIDDLE + WITHOUT_GPUS)
    assert weights[TenantHardwareAffinityScore.name] * BEFORE_DEMAND > most


def _tier_points(planner: Planner, pod: Pod, ledger: Ledger) -> int:
    decision = planner.decide(Job(key=pod.key, pods=(pod,)), ledger.snapshot(), 0.0)
    (found,) = [each for each in decision.placements[0].scores if each.plugin == TenantHardwareAffinityScore.name]
    return found.normalized
