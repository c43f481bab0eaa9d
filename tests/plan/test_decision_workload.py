"""A decision carries the kind of work of its job, and metrics of GPUs have it as a label."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.profile import EnabledPlugin, Factory, ProfilePlugins
from kubenexus.observe.metrics import Metrics
from kubenexus.plan.decide import CLASSIFIER, Planner
from kubenexus.plan.device_outcomes import device_results
from kubenexus.plugins import BUILT_IN, shipped_profile
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.framework.rules import Rule, lineup_with


class Classifier(Rule):
    """As ProfileClassifier: it only signs the kind of work."""

    name = CLASSIFIER

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return str(workload_of(pod).type)


def a_kind(kind: str, name: str = "p", **more: Any) -> Pod:
    return a_pod(name, cpu=1, labels={"workload.kubenexus.io/type": kind}, **more)


def decided(job: Job, *rules: type[Any]) -> Decision:
    return Planner(lineup_with(*rules)).decide(job, a_ledger([a_node("n", cpu=4)]).snapshot(), 0.0)


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        pytest.param(Job.of(a_kind("training")), "training", id="a pod that is placed"),
        pytest.param(Job.of(a_kind("batch", selects={"no": "node"})), "batch", id="a pod that is refused"),
        pytest.param(Job.of(a_pod("p", cpu=1)), "service", id="a pod that says nothing"),
        pytest.param(
            Job(key="g", pods=tuple(a_kind("training", f"g{i}") for i in range(3)), minimum=3), "training", id="a gang"
        ),
        pytest.param(
            Job(key="g", pods=tuple(a_kind("batch", f"g{i}") for i in range(9)), minimum=9),
            "batch",
            id="a refused gang",
        ),
        pytest.param(Job(key="g", pods=(a_kind("batch"),), minimum=2), "batch", id="a gang without all its members"),
    ],
)
def test_the_kind_of_work_of_a_decision(job: Job, kind: str) -> None:
    decision = decided(job, Classifier)
    assert decision.workload == kind
    assert msgspec.json.decode(msgspec.json.encode(decision))["workload"] == kind


def test_a_profile_that_does_not_classify_pays_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubenexus.plan.decide.workload_of", lambda pod: pytest.fail("classified"))
    assert decided(Job.of(a_kind("training"))).workload == ""


def test_metrics_of_gpus_have_the_kind_of_work() -> None:
    ledger = a_ledger([a_node("n", cpu=4, gpu=2, labels={"gpu.kubenexus.io/model": "H100"})])
    profile = shipped_profile()
    classifier: type[Any] = Classifier
    known: dict[str, Factory] = {**BUILT_IN, CLASSIFIER: classifier}
    enabled = (*(each for each in profile.plugins if each.name != CLASSIFIER), EnabledPlugin(CLASSIFIER, 0))
    planner = Planner(ProfilePlugins(msgspec.structs.replace(profile, plugins=enabled), known))
    job = Job.of(a_kind("inference", gpu=2))
    results = device_results(planner.decide(job, ledger.snapshot(), 0.0), job, ledger.nodes)
    assert results.workload == "inference"
    metrics = Metrics()
    metrics.devices.placed(results)
    metrics.devices.refused("insufficient_vram", "training")
    metrics.devices.refused("insufficient_vram")
    assert metrics.devices.allocations.labels("inference", "2", "false").value == 1
    assert metrics.devices.failures.labels("insufficient_vram", "training").value == 1
    assert metrics.devices.failures.labels("insufficient_vram", "unknown").value == 1
    assert metrics.devices.vram_decisions.labels("insufficient_vram", "training", "").value == 1
