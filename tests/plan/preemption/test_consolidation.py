"""Preemptible pods move to other nodes so that a waiting job fits; nothing is evicted that would not fit elsewhere."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.api.meta import OwnerReference
from kubenexus.api.workloads import PodDisruptionBudget
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod

PREEMPTIBLE = {"workload.kubenexus.io/preemptible": "true"}
CONTROLLER = OwnerReference(api_version="batch/v1", kind="Job", name="sweep", uid="sweep", controller=True)


def small(name: str, node: str = "", *, owner: OwnerReference | None = CONTROLLER, **fields: Any) -> Pod:
    """A preemptible pod of a Job, of two CPUs unless the fields differ."""
    fields = {"cpu": 2, "labels": PREEMPTIBLE, "scheduler_name": "default-scheduler", **fields}
    pod = a_pod(name, node=node, **fields)
    owners = [] if owner is None else [owner]
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners))


def cluster(*pods: Pod, nodes: int = 2, keeps: bool = True) -> Ledger:
    """Nodes of four CPUs."""
    ledger = Ledger(keeps_movable=keeps)
    for i in range(nodes):
        ledger.upsert_node(a_node(f"n{i}", cpu=4))
    for pod in pods:
        ledger.upsert_pod(pod)
    return ledger


def decided(ledger: Ledger, job: Job, **policy: Any) -> Decision:
    planner = Planner(profile_plugins(), gang_preemption=PreemptionPolicy(**{"max_moves": 16, **policy}))
    return planner.decide(job, ledger.snapshot(), 0.0)


def moved(decision: Decision) -> list[str]:
    return [] if decision.preemption is None else sorted(each.pod for each in decision.preemption.victims)


def whole(name: str = "whole", **fields: Any) -> Pod:
    return a_pod(name, scheduler_name="default-scheduler", **{"cpu": 4, **fields})


def test_a_pod_moves_where_there_is_room_and_the_job_gets_its_node() -> None:
    ledger = cluster(small("a", "n0"), small("b", "n1"))
    decision = decided(ledger, Job.of(whole()))
    assert len(moved(decision)) == 1
    assert decision.diagnosis.post_filter == "consolidation: 1 pod has to move to another node first."
    (nomination,) = decision.preemption.nominations if decision.preemption is not None else ()
    assert ledger.pods[moved(decision)[0]].node == nomination.node


def test_a_gang_gets_nodes_of_its_own() -> None:
    ledger = cluster(*(small(f"p{i}", f"n{i}") for i in range(4)), nodes=4)
    gang = Job("gang/default/g", (whole("g0"), whole("g1")), minimum=2)
    decision = decided(ledger, gang)
    assert len(moved(decision)) == 2
    assert decision.diagnosis.post_filter == "consolidation: 2 pods have to move to other nodes first."


def a_gang_member(name: str, node: str) -> Pod:
    labels = {**PREEMPTIBLE, "pod-group.scheduling.kubenexus.io/name": "g"}
    return small(name, node, labels={**labels, "pod-group.scheduling.kubenexus.io/min-available": "2"})


DAEMON = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="d", controller=True)


@pytest.mark.parametrize(
    ("pods", "job", "policy"),
    [
        pytest.param([small("a", "n0"), small("b", "n1")], whole(), {"max_moves": 0}, id="it is not configured"),
        pytest.param(
            [small("a", "n0", labels={}), small("b", "n1", labels={})], whole(), {}, id="they did not agree to it"
        ),
        pytest.param(
            [small("a", "n0", owner=None), small("b", "n1", owner=None)],
            whole(),
            {},
            id="no controller makes them again",
        ),
        pytest.param(
            [small("a", "n0", owner=DAEMON), small("b", "n1", owner=DAEMON)],
            whole(),
            {},
            id="they belong to their nodes",
        ),
        pytest.param(
            [small("a", "n0", priority=5), small("b", "n1", priority=5)], whole(), {}, id="they have more priority"
        ),
        pytest.param([a_gang_member("a", "n0"), a_gang_member("b", "n1")], whole(), {}, id="they are a gang"),
        pytest.param(
            [small("a", "n0", scheduler_name="other"), small("b", "n1", scheduler_name="other")],
            whole(),
            {},
            id="another scheduler would place them",
        ),
        pytest.param(
            [small("a", "n0", selects={"kubernetes.io/hostname": "n0"}), small("b", "n1", labels={})],
            whole(),
            {},
            id="the one that agreed fits nowhere else",
        ),
        pytest.param(
            [small("a", "n0", cpu=3), small("b", "n1", cpu=3)], whole(), {}, id="there is no room for them elsewhere"
        ),
        pytest.param([small("a", "n0"), small("b", "n1")], whole(labels=PREEMPTIBLE), {}, id="the job may move, too"),
        pytest.param(
            [small("a", "n0"), small("b", "n1")],
            whole(preemption_policy="Never"),
            {},
            id="the job does not want others evicted",
        ),
        pytest.param(
            [small(f"{node}{i}", node, cpu=1) for node in ("n0", "n1") for i in range(2)],
            whole(),
            {"max_moves": 1},
            id="more would have to move than may",
        ),
        pytest.param([small("a", "n0"), small("b", "n1")], whole(cpu=5), {}, id="the job fits on no node at all"),
    ],
)
def test_nothing_moves_if(pods: list[Pod], job: Pod, policy: dict[str, Any]) -> None:
    decision = decided(cluster(*pods), Job.of(job), **policy)
    assert not decision.placed
    assert moved(decision) == []


def test_a_disruption_budget_holds_also_where_budgets_are_only_preferred() -> None:
    ledger = cluster(small("a", "n0"), small("b", "n1"))
    document = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": PREEMPTIBLE}},
        "status": {"disruptionsAllowed": 0, "observedGeneration": 0},
    }
    ledger.upsert_disruption_budget(msgspec.convert(document, PodDisruptionBudget))
    assert moved(decided(ledger, Job.of(whole()), hard_budgets=False)) == []


def test_pods_of_lower_priority_go_before_others_move() -> None:
    """Preemption comes first: what it evicts need not fit elsewhere."""
    ledger = cluster(small("a", "n0"), small("b", "n1", priority=-1))
    assert moved(decided(ledger, Job.of(whole()))) == ["default/b"]
    assert decided(ledger, Job.of(whole())).diagnosis.post_filter.startswith("preemption:")


def test_a_pod_that_was_placed_by_us_may_move_once_its_binding_is_confirmed() -> None:
    ledger = cluster(small("b", "n1"))
    waiting = small("a")
    ledger.assume(waiting, "n0", 0.0)
    bound = msgspec.structs.replace(waiting, spec=msgspec.structs.replace(waiting.spec, node_name="n0"))
    ledger.upsert_pod(bound)
    assert all(record.pod is not None and not record.pod.spec.node_name for record in ledger.pods.values())
    assert len(moved(decided(ledger, Job.of(whole())))) == 1


def test_a_ledger_without_consolidation_keeps_no_pods() -> None:
    ledger = cluster(small("a", "n0"), keeps=False)
    assert [record.pod for record in ledger.pods.values()] == [None]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.booleans()), max_size=12),
    st.integers(1, 3),
    st.integers(2, 4),
)
def test_after_the_moves_the_job_and_all_moved_pods_fit(
    placed: list[tuple[int, int, bool]], members: int, cpu: int
) -> None:
    free = dict.fromkeys(range(5), 4)
    pods = []
    for i, (node, size, agrees) in enumerate(placed):
        if free[node] >= size:
            free[node] -= size
            pods.append(small(f"p{i}", f"n{node}", cpu=size, labels=PREEMPTIBLE if agrees else {}))
    ledger = cluster(*pods, nodes=5)
    by_key = {pod.key: pod for pod in pods}
    sizes = {key: record.footprint.amounts for key, record in ledger.pods.items()}
    job = Job("gang/default/g", tuple(whole(f"g{i}", cpu=cpu) for i in range(members)), minimum=members)
    decision = decided(ledger, job)
    victims = moved(decision)
    assert len(victims) <= 16
    if not victims:
        return
    assert all(by_key[key].metadata.labels for key in victims), "only pods that agreed"
    for key in victims:
        ledger.remove_pod(key)
    again = decided(ledger, job)
    assert again.placed
    commit(again, job, ledger, 0.0)
    for key in sorted(victims, key=lambda each: sizes[each], reverse=True):
        pod = by_key[key]
        single = Job.of(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="")))
        replaced = decided(ledger, single)
        assert replaced.placed, f"{key} has no place"
        commit(replaced, single, ledger, 0.0)
