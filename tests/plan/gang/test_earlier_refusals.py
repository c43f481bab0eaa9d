"""A gang's refusal names the plugins that refuse nodes now, not those that refused one in an earlier decision."""

from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

PLUGINS = profile_plugins()


def test_a_plugin_that_no_longer_refuses_a_node_is_not_named() -> None:
    ledger = a_ledger([a_node("n1", cpu=2), a_node("n2", cpu=2, cordoned=True), a_node("n3", cpu=8)])
    ledger.upsert_pod(a_pod("full", cpu=8, node="n3"))
    gang = Job("default/gang/g", tuple(a_pod(f"m{i}", cpu=1) for i in range(5)), 5)
    planner = Planner(PLUGINS)
    before = planner.decide(gang, ledger.snapshot(), 0.0).diagnosis.refused_by
    ledger.upsert_node(a_node("n2", cpu=2))
    after = planner.decide(gang, ledger.snapshot(), 0.0).diagnosis.refused_by
    assert "NodeUnschedulable" in before
    assert after == Planner(PLUGINS).decide(gang, ledger.snapshot(), 0.0).diagnosis.refused_by
    assert "NodeUnschedulable" not in after


def test_a_node_that_is_gone_no_longer_counts() -> None:
    ledger = a_ledger([a_node("n1", cpu=2), a_node("n2", cpu=2, cordoned=True), a_node("n3", cpu=8)])
    ledger.upsert_pod(a_pod("full", cpu=8, node="n3"))
    gang = Job("default/gang/g", tuple(a_pod(f"m{i}", cpu=1) for i in range(5)), 5)
    planner = Planner(PLUGINS)
    planner.decide(gang, ledger.snapshot(), 0.0)
    ledger.remove_node("n2")
    after = planner.decide(gang, ledger.snapshot(), 0.0)
    assert after.diagnosis.refused_by == Planner(PLUGINS).decide(gang, ledger.snapshot(), 0.0).diagnosis.refused_by
