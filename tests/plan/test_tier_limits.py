"""Gangs and preemption beside limits of hardware tiers: a limit counts for a job as a whole."""

from typing import Any

import pytest

from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.state.queues.queue_objects import a_queue

TIER, GPU = "hardware.kubenexus.io/tier", "nvidia.com/gpu"


def a_ledger(*queues: Any, plain: int = 8) -> Ledger:
    ledger = Ledger()
    ledger.upsert_node(a_node("good", cpu="64", gpu=8, labels={TIER: "premium"}))
    ledger.upsert_node(a_node("plain", cpu="64", gpu=plain, labels={TIER: "economy"}))
    for queue in queues:
        ledger.queues.set_queue(queue)
    return ledger


def run(ledger: Ledger, namespace: str, node: str, pods: int) -> None:
    for i in range(pods):
        ledger.upsert_pod(a_pod(f"{namespace}{node}{i}", namespace=namespace, node=node, cpu="1", gpu=1))


def decide(ledger: Ledger, members: int, priority: int = 0, *, reclaim: bool = False) -> Decision:
    pods = tuple(a_pod(f"m{i}", namespace="a", cpu="1", gpu=1, priority=priority) for i in range(members))
    job = Job("a/x/job", pods, members, TopologyRequest()) if members > 1 else Job.of(pods[0])
    planner = Planner(profile_plugins(), gang_preemption=PreemptionPolicy(reclaim=reclaim))
    return planner.decide(job, ledger.snapshot(), 0.0)


def limit(**amounts: Any) -> Any:
    return a_queue("ml", namespaces=["a"], tiers={"premium": amounts})


@pytest.mark.parametrize("members", [1, 4, 8])
def test_a_gang_that_would_exceed_the_limit_of_a_tier_goes_to_the_other(members: int) -> None:
    found = decide(a_ledger(limit(limit={GPU: members - 1})), members)
    assert {each.node for each in found.placements} == {"plain"}


def test_a_gang_is_not_divided_by_a_limit() -> None:
    found = decide(a_ledger(limit(limit={GPU: 4}), plain=4), 6)
    assert not found.placed
    assert "queue ml may use 4 nvidia.com/gpu at most on premium nodes, and the job asks for 6" in found.sentence("a")


def test_no_pod_goes_for_a_job_on_nodes_that_are_closed_to_it() -> None:
    ledger = a_ledger(limit(limit={GPU: 0}))
    run(ledger, "b", "good", 8)
    run(ledger, "b", "plain", 8)
    for members in (1, 3):
        found = decide(ledger, members, priority=9).preemption
        assert found is not None
        assert {ledger.pods[each.pod].node for each in found.victims} == {"plain"}
        assert {each.node for each in found.nominations} == {"plain"}


def test_a_guarantee_of_a_tier_is_taken_back_there() -> None:
    ledger = a_ledger(limit(guaranteed={GPU: 2}), a_queue("web", namespaces=["b"]))
    run(ledger, "b", "good", 8)
    run(ledger, "b", "plain", 8)
    found = decide(ledger, 2, reclaim=True).preemption
    assert found is not None
    assert len(found.victims) == 2
    run(ledger, "a", "plain", 3)
    found = decide(ledger, 2, reclaim=True).preemption
    assert found is not None, "it has GPUs enough, and none of that tier"
    assert {ledger.pods[each.pod].node for each in found.victims} == {"good"}
    assert decide(ledger, 3, reclaim=True).preemption is None, "more than its guarantee there"


def test_what_another_queue_is_guaranteed_of_a_tier_is_not_taken() -> None:
    web = a_queue("web", namespaces=["b"], tiers={"premium": {"guaranteed": {GPU: 8}}})
    ledger = a_ledger(limit(guaranteed={GPU: 2}), web)
    run(ledger, "b", "good", 8)
    run(ledger, "b", "plain", 8)
    run(ledger, "a", "plain", 3)
    assert decide(ledger, 1, reclaim=True).preemption is None
