"""What pods ask for is learned from decisions: bounded, deterministic, and not steered by pods that never run."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.plan import demand_learner
from kubenexus.plan.demand_learner import DemandLearner, shape_of
from kubenexus.state.demand import Demand, DemandShape
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

PROFILE = "kubenexus-scheduler"


def gpu_pod(name: str = "p", gpus: int = 1, cpu: str = "4", namespace: str = "default") -> Pod:
    return a_pod(name, cpu=cpu, gpu=gpus, namespace=namespace, scheduler_name=PROFILE)


def a_ledger(nodes: int = 4) -> Ledger:
    ledger = Ledger()
    for i in range(nodes):
        ledger.upsert_node(a_node(f"n{i}", cpu=64, gpu=8, labels={"gpu.kubenexus.io/model": "A100"}))
    ledger.read_devices()
    return ledger


def learned(*decided: tuple[Pod, int, bool], ledger: Ledger | None = None) -> Demand | None:
    """The demand after so many decisions for each pod, placed or refused."""
    cluster, learner = ledger or a_ledger(), DemandLearner([PROFILE])
    for pod, times, placed in decided:
        for _ in range(times):
            learner.decided(Job(key=pod.key, pods=(pod,)), cluster, placed=placed)
    return cluster.nodes.demand


def share_of(demand: Demand | None, gpus: int, cpu: int = 4000) -> float:
    assert demand is not None
    return sum(share for shape, share in demand.mix if shape.gpus == gpus and shape.cpu == cpu)


@pytest.mark.parametrize(
    ("decided", "there"),
    [
        pytest.param([(gpu_pod(), demand_learner.FIRST - 1, True)], False, id="too few pods"),
        pytest.param([(gpu_pod(), demand_learner.FIRST, True)], True, id="enough pods with GPUs"),
        pytest.param([(a_pod(cpu=1, scheduler_name=PROFILE), 500, True)], False, id="pods without GPUs teach nothing"),
        pytest.param([(gpu_pod(), 500, False)], False, id="pods that never run teach nothing"),
        pytest.param([(a_pod(gpu=1, scheduler_name="other"), 99, True)], False, id="another profile"),
        pytest.param([(a_pod(cpu="x", scheduler_name=PROFILE), 99, True)], False, id="pods that cannot be read"),
    ],
)
def test_there_is_a_demand_once_enough_pods_with_gpus_were_placed(
    decided: list[tuple[Pod, int, bool]], there: bool
) -> None:
    assert (learned(*decided) is not None) is there


def test_a_cluster_without_gpus_learns_nothing() -> None:
    ledger = Ledger()
    ledger.upsert_node(a_node("n", cpu=8))
    assert learned((gpu_pod(), 500, True), ledger=ledger) is None


def test_the_mix_is_that_of_the_pods_and_the_prior_keeps_large_slots_in_it() -> None:
    demand = learned((gpu_pod(), 256, True))
    assert share_of(demand, 1) > 0.85
    assert share_of(demand, 8, cpu=64_000) > 0
    assert demand is not None
    assert any(shape.types == ("A100",) for shape, _ in demand.mix)
    assert sum(share for _, share in demand.mix) == pytest.approx(1.0)


def test_what_was_refused_counts_at_most_as_much_as_the_namespace_has_placed() -> None:
    ours = (gpu_pod(), 256, True)
    hostile = (gpu_pod("h", gpus=8, namespace="hostile"), 5000, False)
    assert share_of(learned(ours, hostile, ours), 8) <= demand_learner.WAITING_ALLOWED / 500
    assert share_of(learned(ours, (gpu_pod("w", gpus=8), 256, False), ours), 8) > 0.2


def test_odd_shapes_and_namespaces_are_bounded() -> None:
    learner, ledger = DemandLearner([PROFILE]), a_ledger(1)
    for i in range(3000):
        pod = gpu_pod(f"p{i}", cpu=str(1 + i % 500), namespace=f"ns{i % 700}")
        learner.decided(Job(key=pod.key, pods=(pod,)), ledger, placed=True)
    assert len(learner._counts) <= demand_learner.MAX_NAMESPACES + 1
    assert all(len(each.placed) <= demand_learner.MAX_SHAPES for each in learner._counts.values())
    demand = ledger.nodes.demand
    assert demand is not None
    assert len(demand.mix) <= demand_learner.MAX_MIX


def test_old_counts_fade(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_learner, "MAX_COUNTED", 256)
    assert share_of(learned((gpu_pod(), 400, True), (gpu_pod(gpus=2), 400, True)), 2) > 0.6


def test_slots_have_a_price_when_they_are_fewer_than_the_pods_expected() -> None:
    few, many = (learned((gpu_pod(gpus=8), 64, True), ledger=a_ledger(nodes)) for nodes in (1, 1))
    assert few == many, "the same decisions give the same demand"
    assert few is not None
    assert {slot.size: slot.price > 0 for slot in few.slots} == {2: False, 4: False, 8: True}


@pytest.mark.parametrize(
    ("pod", "shape"),
    [
        pytest.param(a_pod(cpu="1500m"), DemandShape(2000), id="cpu in whole cores"),
        pytest.param(gpu_pod(gpus=2), DemandShape(4000, 2, 1000), id="whole GPUs"),
        pytest.param(
            a_pod(cpu=1, annotations={"scheduling.kubenexus.io/gpu-fraction": "0.33"}),
            DemandShape(1000, 1, 350),
            id="a part",
        ),
        pytest.param(
            a_pod(cpu=1, gpu=1, selects={"nvidia.com/gpu.product": "T4"}),
            DemandShape(1000, 1, 1000, ("T4",)),
            id="a GPU type",
        ),
    ],
)
def test_the_shape_of_a_pod(pod: Pod, shape: DemandShape) -> None:
    assert shape_of(pod) == shape
