"""Who would have to go for a pod, as `explain` says it: own pods by name, those of other namespaces as a number."""

from kubenexus.explain.eviction_section import cost_text
from kubenexus.explain.explanation import explain, render_text
from kubenexus.framework.decision import VictimCost
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

URGENT = a_pod("urgent", namespace="ml", cpu=2, priority=10)


def test_own_pods_are_named_and_others_are_counted() -> None:
    pods = [a_pod("batch", namespace="ml", node="n1", cpu=1), a_pod("secret", namespace="other", node="n1", cpu=1)]
    planner = Planner(profile_plugins(), gang_preemption=PreemptionPolicy())
    found = explain(URGENT, {pod.key: pod for pod in pods}, a_ledger([a_node("n1", cpu=2)], pods), planner, 0.0)
    text = render_text(found)
    assert "EVICT    ml/batch, 1 of other namespaces\n" in text
    assert "COST     priority 0, 2 jobs, tier bronze, 2 pods\n" in text
    assert "THEN ON  n1\n" in text
    assert "secret" not in text
    assert found.decision.preemption is not None
    assert [victim.pod for victim in found.decision.preemption.victims] == ["ml/batch"]


def test_a_cost_in_words() -> None:
    cost = VictimCost(pdb_violations=1, priority=50, jobs=1, tier=3, work=3600.4, pods=2)
    assert cost_text(cost) == "1 violated budget, priority 50, 1 job, tier gold, 3600 s of work, 2 pods"
