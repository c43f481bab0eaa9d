"""Results of decisions for the metrics of devices: what placed pods got, and why others were refused."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from kubenexus.explain.cluster_dump import ClusterDump, read_dump
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.observe.metrics import Metrics
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.device_outcomes import DeviceOutcome, DeviceResults, device_refusal, device_results
from kubenexus.plugins import profile_plugins, shipped_profile
from tests.explain.device_dump import FRACTION, H100, NVLINK, cards, gpu_node, gpu_pod

VRAM = "scheduling.kubenexus.io/vram-request"
JOINED = {NVLINK: "required"}


def dumped(items: Iterable[Any]) -> ClusterDump:
    return read_dump(json.dumps({"kind": "List", "items": list(items)}).encode(), "test")


def decided(items: list[Any], pod: str = "p") -> tuple[Decision, DeviceResults]:
    dump = dumped(items)
    job = Job.of(dump.pods[f"ml/{pod}"])
    decision = Planner(profile_plugins(shipped_profile())).decide(job, dump.ledger.snapshot(), 0.0)
    return decision, device_results(decision, job, dump.ledger.nodes)


def outcome_of(items: list[Any]) -> DeviceOutcome:
    decision, results = decided(items)
    assert decision.placed
    ((outcome, pods),) = results.outcomes
    assert pods == 1
    return outcome


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(
            [gpu_node("n", 8, H100), gpu_pod("p", 8)],
            {"number": 8, "level": "NVLink", "closeness": 100, "fills": True, "was_whole": True, "score": 100},
            id="a whole island",
        ),
        pytest.param(
            [gpu_node("n", 8, H100), gpu_pod("p", 1)],
            {"number": 1, "level": "", "breaks": True, "fills": False, "score": 0, "island": 8},
            id="one GPU breaks an island",
        ),
        pytest.param(
            [gpu_node("n", 8, H100), gpu_pod("a", 6, "n", cards(*(f"gpu-{i}" for i in range(6)))), gpu_pod("p", 2)],
            {"fills": True, "was_whole": False, "breaks": False, "score": 100},
            id="the last two of an island",
        ),
        pytest.param(
            [gpu_node("n", 8, H100), gpu_pod("a", 1, "n"), gpu_pod("p", 2)],
            {"was_whole": False, "breaks": False},
            id="an island with a pod without names is not whole",
        ),
        pytest.param(
            [gpu_node("n", 2), gpu_pod("p", 2)],
            {"level": "none", "closeness": 30, "link": "", "sources": ("allocatable",), "memory_source": ""},
            id="cards of which nothing is known",
        ),
        pytest.param(
            [gpu_node("n", 4, H100), gpu_pod("p", 4, "", {**JOINED, VRAM: "70Gi"})],
            {"link_required": True, "memory": 70 << 30, "card_memory": 81559 << 20, "memory_source": "gfd"},
            id="what the pod asked for",
        ),
        pytest.param(
            [gpu_node("n", 1, {**H100, "gpu.kubenexus.io/shared": "true"}), gpu_pod("p", 0, "", {FRACTION: "0.5"})],
            {"is_part": True, "score": -1, "fills": False},
            id="a part",
        ),
    ],
)
def test_what_a_placed_pod_got(items: list[Any], expected: dict[str, Any]) -> None:
    outcome = outcome_of(items)
    assert {field: getattr(outcome, field) for field in expected} == expected


def test_a_pod_without_devices_has_no_results() -> None:
    assert decided([gpu_node("n", 8, H100), gpu_pod("p")])[1].outcomes == ()


def test_whole_islands_are_noticed() -> None:
    small = gpu_node("small", 2, H100)
    assert decided([small, gpu_node("n", 8, H100), gpu_pod("p", 2)])[1].whole_islands
    assert not decided([small, gpu_pod("p", 2)])[1].whole_islands


def test_members_alike_share_an_outcome_and_see_each_other() -> None:
    dump = dumped([gpu_node(f"n{i}", 8, H100) for i in range(2)] + [gpu_pod(f"g{i}", 4) for i in range(4)])
    pods = tuple(dump.pods.values())
    job = Job(key="ml/g", pods=pods, minimum=4)
    decision = Planner(profile_plugins(shipped_profile())).decide(job, dump.ledger.snapshot(), 0.0)
    results = device_results(decision, job, dump.ledger.nodes)
    commit(decision, job, dump.ledger, 0.0)
    assert {(outcome.fills, outcome.was_whole): pods for outcome, pods in results.outcomes} == {
        (False, True): 2,
        (True, False): 2,
    }


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        pytest.param([gpu_node("n", 2, H100), gpu_pod("p", 4)], "insufficient_gpus", id="too few"),
        pytest.param(
            [gpu_node("n", 2, H100), gpu_pod("p", 1, "", {VRAM: "141Gi"})], "insufficient_vram", id="too small"
        ),
        pytest.param([gpu_node("n", 2), gpu_pod("p", 1, "", {VRAM: "1Gi"})], "no_gpu_info", id="memory not known"),
        pytest.param([gpu_node("n", 2), gpu_pod("p", 2, "", JOINED)], "not_joined", id="not joined"),
        pytest.param(
            [gpu_node("n", 2, H100), gpu_pod("p", 0, "", {FRACTION: "0.5"})], "no_shared_gpu", id="not shared"
        ),
        pytest.param(
            [gpu_node("n", 2, H100), gpu_pod("p", 1, "", {"gpu.kubenexus.io/type": "a100"})], "wrong_type", id="type"
        ),
        pytest.param(
            [gpu_node("n", 2, {**H100, "tenant.kubenexus.io/reserved-tier": "gold"}), gpu_pod("p", 1)],
            "reserved_tier",
            id="reserved",
        ),
        pytest.param([{**gpu_node("n", 2), "spec": {"unschedulable": True}}, gpu_pod("p", 1)], "", id="another reason"),
    ],
)
def test_why_a_pod_was_refused(items: list[Any], reason: str) -> None:
    decision, results = decided(items)
    assert not decision.placed
    assert (device_refusal(decision), results.outcomes) == (reason, ())


def test_a_gang_is_one_refusal() -> None:
    dump = dumped([gpu_node("n", 2, H100), *(gpu_pod(f"g{i}", 2) for i in range(2))])
    job = Job(key="ml/g", pods=tuple(dump.pods.values()), minimum=2)
    decision = Planner(profile_plugins(shipped_profile())).decide(job, dump.ledger.snapshot(), 0.0)
    assert device_refusal(decision) == "gang"


def test_refusals_and_outcomes_as_metrics() -> None:
    metrics = Metrics()
    for reason in ("not_joined", "insufficient_vram", "reserved_tier", ""):
        metrics.devices.refused(reason)
    large = decided([gpu_node("n", 32, H100), gpu_pod("p", 24)])[1]
    metrics.devices.placed(msgspec.structs.replace(large, workload="training"))
    metrics.devices.placed(decided([gpu_node("n", 8, H100), gpu_pod("p", 1)])[1])
    devices = metrics.devices
    assert devices.topology_decisions.labels("NVLink", "false", "required").value == 1
    assert devices.vram_decisions.labels("insufficient_vram", "unknown", "").value == 1
    assert devices.island_protection.labels("tenant_mismatch", "true").value == 1
    assert devices.island_protection.labels("pristine_island", "false").value == 1
    assert devices.allocations.labels("training", "16+", "true").value == 1
    assert devices.source_usage.labels("gfd").value == 2
