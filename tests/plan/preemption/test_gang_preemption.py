"""Who has to go for a job in the shipped profile, and who never does. Numbers of bugs are those of an earlier
implementation, which must not come back (PRE-1 to PRE-10)."""

from collections.abc import Collection, Iterable
from random import Random
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Node, Pod, PodCondition, SchedulingGroup
from kubenexus.api.gangs.declaration import POD_GROUP, TopologyRequest
from kubenexus.api.keys import gpu
from kubenexus.api.meta import ObjectMeta, OwnerReference
from kubenexus.api.workloads import (
    DisruptionChoice,
    DisruptionMode,
    GangPolicy,
    Namespace,
    PodGroup,
    PodGroupSpec,
    SchedulingPolicy,
)
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plugins import profile_plugins, shipped_profile
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.plan.preemption.small_clusters import RACK, a_budget, in_gang
from tests.state.devices.slices import a_gpu_node

URGENT = a_pod("urgent", cpu=2, priority=100)
NOW = 1_800_000_000.0
LATE, EARLY = "2026-12-31T00:00:00Z", "2026-01-01T00:00:00Z"


def two_cpus(*names: str) -> list[Node]:
    return [a_node(name, cpu=2) for name in names]


def full(node: str, name: str = "", **more: Any) -> Pod:
    """A pod that leaves no room on a node of 2 CPUs."""
    return a_pod(name or f"on-{node}", node=node, **{"cpu": 2, "priority": 0, **more})


def with_meta(pod: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **fields))


def owned(pod: Pod, kind: str, api_version: str = "apps/v1") -> Pod:
    owner = OwnerReference(api_version=api_version, kind=kind, name="o", uid="o", controller=True)
    return with_meta(pod, owner_references=[owner])


def gang(
    members: int, cpu: int = 2, minimum: int | None = None, required: str = "", priority: int = 100, **more: Any
) -> Job:
    pods = tuple(a_pod(f"m{i}", cpu=cpu, priority=priority, **more) for i in range(members))
    return Job("default/x/job", pods, minimum or members, TopologyRequest(required=required))


def decide(
    job: Job | Pod,
    ledger: Ledger,
    policy: PreemptionPolicy | None = None,
    *,
    spared: Collection[str] = (),
    shipped: bool = False,
) -> Decision:
    rules = profile_plugins(shipped_profile()) if shipped else profile_plugins()
    planner = Planner(rules, gang_preemption=policy or PreemptionPolicy())
    before = digest(ledger)
    whole = Job.of(job) if isinstance(job, Pod) else job
    decision = planner.decide(whole, ledger.snapshot(), NOW, spared=spared)
    assert digest(ledger) == before
    return decision


def victims(decision: Decision) -> list[str]:
    found = decision.preemption
    return [] if found is None else sorted(each.pod.removeprefix("default/") for each in found.victims)


def nominated(decision: Decision) -> dict[str, str]:
    found = decision.preemption
    return {} if found is None else {each.pod.removeprefix("default/"): each.node for each in found.nominations}


# --- who may be a victim ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(full("n1", priority=100), id="a pod of the same priority"),
        pytest.param(full("n1", namespace="kube-system"), id="a pod of kube-system (PRE-2)"),
        pytest.param(full("n1", namespace="kubenexus-system"), id="the scheduler itself"),
        pytest.param(full("n1", priority_class_name="system-node-critical"), id="a system-critical class (PRE-2)"),
        pytest.param(owned(full("n1"), "DaemonSet"), id="a pod of a DaemonSet (PRE-2)"),
        pytest.param(owned(full("n1"), "Node", "v1"), id="a static pod (PRE-2)"),
        pytest.param(
            with_meta(full("n1"), annotations={"kubernetes.io/config.mirror": "x"}), id="a mirror pod (PRE-2)"
        ),
        pytest.param(with_meta(full("n1"), deletion_timestamp=LATE), id="a pod that terminates (PRE-2)"),
        pytest.param(full("n1", labels={**in_gang("g", 3), "spark-role": "driver"}), id="a driver whose gang forms"),
    ],
)
def test_these_are_never_victims(pod: Pod) -> None:
    assert victims(decide(URGENT, a_ledger(two_cpus("n1"), [pod]))) == []


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            with_meta(full("n1"), annotations={"kubernetes.io/config.source": "file"}), id="the mark of a static pod"
        ),
        pytest.param(owned(full("n1"), "DaemonSet", "example.com/v1"), id="a DaemonSet of another API group"),
        pytest.param(owned(full("n1"), "Node", "example.com/v1"), id="a Node of another API group"),
    ],
)
def test_what_a_tenant_can_write_does_not_keep_its_pods_from_being_victims(pod: Pod) -> None:
    assert victims(decide(URGENT, a_ledger(two_cpus("n1"), [pod]))) == ["on-n1"]


@pytest.mark.parametrize("priority", [2_000_000_000, 2_000_001_000])
def test_critical_priorities_are_never_victims_of_higher_ones(priority: int) -> None:
    most = a_pod("most", cpu=2, priority=priority + 1)
    assert victims(decide(most, a_ledger(two_cpus("n1"), [full("n1", priority=priority)]))) == []


def test_a_driver_may_go_once_its_gang_is_complete() -> None:
    driver = full("n1", labels={**in_gang("g", 1), "spark-role": "driver"})
    assert victims(decide(URGENT, a_ledger(two_cpus("n1"), [driver]))) == ["on-n1"]


def test_a_driver_may_go_if_its_gang_has_not_formed_for_ten_minutes() -> None:
    labels = {**in_gang("g", 3), "spark-role": "driver"}
    young, old = (
        full("n1", labels=labels, status=started(at)) for at in ("2027-01-15T07:55:00Z", "2027-01-15T07:45:00Z")
    )
    assert victims(decide(URGENT, a_ledger(two_cpus("n1"), [young]))) == []
    assert victims(decide(URGENT, a_ledger(two_cpus("n1"), [old]))) == ["on-n1"]


def test_a_pod_with_policy_never_preempts_none() -> None:
    decision = decide(a_pod("u", cpu=2, priority=9, preemption_policy="Never"), a_ledger(two_cpus("n1"), [full("n1")]))
    assert decision.preemption is None
    assert decision.diagnosis.post_filter == "preemption: not tried, since preemptionPolicy is Never."


def test_members_of_the_own_gang_are_no_victims() -> None:
    labels = in_gang("own", 2)
    running = full("n1", labels=labels, priority=0)
    waiting = a_pod("waiting", cpu=2, priority=100, labels=labels)
    key = next(iter(a_ledger(two_cpus("n1"), [running]).nodes.pods.victims.kinds.gangs.codes))
    job = Job(key, (waiting,), 1, bound_nodes=("n1",))
    assert victims(decide(job, a_ledger(two_cpus("n1"), [running]))) == []


def test_spared_pods_stay_and_the_refusal_is_about_this_job_alone() -> None:
    ledger = a_ledger(two_cpus("n1", "n2"), [full("n1"), full("n2")])
    assert victims(decide(URGENT, ledger, spared={full("n1").metadata.uid})) == ["on-n2"]
    decision = decide(URGENT, ledger, spared={full("n1").metadata.uid, full("n2").metadata.uid})
    assert (decision.preemption, decision.alone) == (None, True)


# --- equal priorities -------------------------------------------------------------------------------------------------


def in_tiers(pods: Iterable[Pod]) -> Ledger:
    ledger = Ledger()
    for tier in ("gold", "silver", "bronze"):
        labels = {"tenant.kubenexus.io/tier": tier}
        ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=tier, labels=labels)))
    for node in two_cpus("n1"):
        ledger.upsert_node(node)
    for pod in pods:
        ledger.upsert_pod(pod)
    return ledger


@pytest.mark.parametrize(
    ("preemptor", "victim", "priority", "goes"),
    [
        pytest.param("gold", "bronze", 0, True, id="gold outranks bronze at equal priority"),
        pytest.param("gold", "silver", 0, True, id="gold outranks silver"),
        pytest.param("silver", "bronze", 0, True, id="silver outranks bronze"),
        pytest.param("bronze", "silver", 0, False, id="bronze outranks none"),
        pytest.param("gold", "gold", 0, False, id="a tier does not outrank itself"),
        pytest.param("gold", "bronze", 1, False, id="no tier outranks a higher priority (PRE-2)"),
    ],
)
def test_tiers_count_at_equal_priority_if_the_policy_says_so(
    preemptor: str, victim: str, priority: int, goes: bool
) -> None:
    ledger = in_tiers([full("n1", namespace=victim, priority=priority)])
    job = a_pod("u", cpu=2, namespace=preemptor, priority=0)
    assert bool(victims(decide(job, ledger, PreemptionPolicy(tier_preemption=True)))) == goes
    assert victims(decide(job, ledger)) == []


def test_the_tier_of_a_victim_is_that_of_its_namespace_now() -> None:
    """PRE-8: not a guess by its name."""
    ledger = in_tiers([full("n1", namespace="team")])
    job, policy = a_pod("u", cpu=2, namespace="silver"), PreemptionPolicy(tier_preemption=True)
    assert victims(decide(job, ledger, policy)) == ["team/on-n1"]
    ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name="team", labels={"tenant.kubenexus.io/tier": "gold"})))
    assert victims(decide(job, ledger, policy)) == []


def test_services_take_from_batch_at_equal_priority_if_the_policy_says_so() -> None:
    batch = owned(full("n1", restart_policy="OnFailure"), "Job", "batch/v1")
    service = a_pod("web", cpu=2, restart_policy="Always")
    ledger = a_ledger(two_cpus("n1"), [batch])
    assert victims(decide(service, ledger)) == []
    policy = PreemptionPolicy(services_preempt_batch=True)
    assert victims(decide(service, ledger, policy)) == ["on-n1"]
    assert victims(decide(a_pod("job", cpu=2, restart_policy="OnFailure"), ledger, policy)) == []


# --- units ------------------------------------------------------------------------------------------------------------


def test_a_gang_without_spare_members_goes_as_a_whole() -> None:
    """PRE-6."""
    pods = [full(f"n{i}", labels=in_gang("g", 2)) for i in (1, 2)]
    assert victims(decide(URGENT, a_ledger(two_cpus("n1", "n2"), pods))) == ["on-n1", "on-n2"]


def test_a_gang_is_left_alone_if_one_member_may_not_go() -> None:
    pods = [full("n1", labels=in_gang("g", 2)), full("n2", labels=in_gang("g", 2), priority=200)]
    assert victims(decide(URGENT, a_ledger(two_cpus("n1", "n2"), pods))) == []


def test_a_single_pod_goes_before_a_gang() -> None:
    pods = [full(f"n{i}", labels=in_gang("g", 2)) for i in (1, 2)]
    assert victims(decide(URGENT, a_ledger(two_cpus("n1", "n2", "n3"), [*pods, full("n3")]))) == ["on-n3"]


def test_spare_members_go_one_by_one() -> None:
    pods = [full(f"n{i}", labels=in_gang("g", 2)) for i in (1, 2, 3)]
    assert len(victims(decide(URGENT, a_ledger(two_cpus("n1", "n2", "n3"), pods)))) == 1
    assert len(victims(decide(gang(2), a_ledger(two_cpus("n1", "n2", "n3"), pods)))) == 3


@pytest.mark.parametrize(
    ("mode", "number"),
    [
        pytest.param(None, 1, id="without a mode the spare member goes"),
        pytest.param(DisruptionMode(all=DisruptionChoice()), 3, id="all: the group goes as a whole"),
        pytest.param(DisruptionMode(single=DisruptionChoice()), 1, id="single: one by one"),
    ],
)
def test_the_disruption_mode_of_a_pod_group_is_honoured(mode: DisruptionMode | None, number: int) -> None:
    pods = [full(f"n{i}", scheduling_group=SchedulingGroup(pod_group_name="g")) for i in (1, 2, 3)]
    ledger = a_ledger(two_cpus("n1", "n2", "n3"), pods)
    policy = SchedulingPolicy(gang=GangPolicy(min_count=2))
    spec = PodGroupSpec(scheduling_policy=policy, disruption_mode=mode)
    ledger.groups.seen(POD_GROUP, PodGroup(metadata=ObjectMeta(name="g", namespace="default"), spec=spec))
    assert len(victims(decide(URGENT, ledger))) == number


# --- which ------------------------------------------------------------------------------------------------------------


def started(when: str) -> dict[str, Any]:
    return {"start_time": when}


@pytest.mark.parametrize(
    ("pods", "goes"),
    [
        pytest.param([full("n1", priority=5), full("n2", priority=1)], ["on-n2"], id="the lower priority"),
        pytest.param(
            [full("n1", "a", cpu=1), full("n1", "b", cpu=1), full("n2", priority=0)],
            ["on-n2"],
            id="one job before two of the same priority",
        ),
        pytest.param(
            [full("n1", "a", cpu=1), full("n1", "b", cpu=1), full("n2", priority=1)],
            ["a", "b"],
            id="two jobs before one of a higher priority",
        ),
        pytest.param(
            [full("n1", status=started(EARLY)), full("n2", status=started("2026-12-30T00:00:00Z"))],
            ["on-n2"],
            id="the one that loses less work",
        ),
        pytest.param(
            [
                full("n1", status=started(EARLY), annotations={"scheduling.kubenexus.io/last-checkpoint": LATE}),
                full("n2", status=started("2026-12-30T00:00:00Z")),
            ],
            ["on-n1"],
            id="work is lost since the last checkpoint",
        ),
    ],
)
def test_the_least_cost_wins(pods: list[Pod], goes: list[str]) -> None:
    assert victims(decide(URGENT, a_ledger(two_cpus("n1", "n2"), pods))) == goes


def test_the_lower_tier_goes_first() -> None:
    ledger = in_tiers([full("n1", namespace="gold"), full("n2", namespace="bronze")])
    ledger.upsert_node(a_node("n2", cpu=2))
    assert victims(decide(URGENT, ledger)) == ["bronze/on-n2"]


def test_no_victim_goes_that_frees_nothing_useful() -> None:
    """PRE-3 and PRE-5: free capacity counts, and only what is needed goes."""
    pods = [full("n1", f"p{i}", cpu=1) for i in range(3)]
    assert len(victims(decide(URGENT, a_ledger([a_node("n1", cpu=4)], pods)))) == 1


def test_room_on_many_nodes_is_no_room_for_one_pod() -> None:
    """PRE-4: eight CPUs on eight nodes do not hold a pod of eight."""
    nodes = [a_node(f"n{i}", cpu=8) for i in range(8)]
    pods = [
        full(f"n{i}", f"{kind}{i}", cpu=cpu, priority=p)
        for i in range(8)
        for kind, cpu, p in (("a", 1, 0), ("b", 7, 200))
    ]
    decision = decide(a_pod("big", cpu=8, priority=100), a_ledger(nodes, pods))
    assert victims(decision) == []
    assert decision.diagnosis.post_filter == (
        "preemption: would not help: without all pods that may be evicted, the closest node still lacks 7 cpu."
    )


# --- gangs that preempt -----------------------------------------------------------------------------------------------


def test_every_member_of_a_gang_is_nominated() -> None:
    """PRE-7."""
    decision = decide(gang(3), a_ledger(two_cpus("n1", "n2", "n3", "n4"), [full("n1"), full("n2"), full("n3")]))
    assert len(victims(decision)) == 2
    assert sorted(nominated(decision)) == ["m0", "m1", "m2"]
    assert len(set(nominated(decision).values())) == 3


def test_nothing_goes_if_the_whole_gang_does_not_fit() -> None:
    pods = [full("n1"), full("n2"), full("n3", priority=200)]
    decision = decide(gang(3), a_ledger(two_cpus("n1", "n2", "n3"), pods))
    assert decision.preemption is None
    assert decision.diagnosis.post_filter == (
        "preemption: would not help: without all pods that may be evicted, at most 2 of at least 3 members fit."
    )


def test_members_beyond_the_minimum_evict_none() -> None:
    pods = [full("n1"), full("n2"), full("n3")]
    assert len(victims(decide(gang(3, minimum=2), a_ledger(two_cpus("n1", "n2", "n3"), pods)))) == 2


def test_a_gang_stays_within_its_required_domain() -> None:
    nodes = [a_node(f"n{i}", cpu=2, labels={RACK: f"r{i // 2}"}) for i in range(4)]
    pods = [full("n0"), full("n1", priority=200), full("n2"), full("n3", priority=3)]
    decision = decide(gang(2, required="rack"), a_ledger(nodes, pods))
    assert victims(decision) == ["on-n2", "on-n3"]
    assert set(nominated(decision).values()) == {"n2", "n3"}


def test_members_that_avoid_each_other_get_a_node_each() -> None:
    job = gang(2, cpu=1, labels={"app": "x"}, apart=[f"app=x per {HOSTNAME}"])
    decision = decide(job, a_ledger(two_cpus("n1", "n2"), [full("n1"), full("n2")]))
    assert victims(decision) == ["on-n1", "on-n2"]
    assert set(nominated(decision).values()) == {"n1", "n2"}


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "hard", "prefer"),
    [
        pytest.param([0], [], ["on-n1"], id="none may go: a violation only where budgets are preferred"),
        pytest.param([1], ["on-n1"], ["on-n1"], id="one may go"),
        pytest.param([1, 1], [], ["on-n1"], id="a pod of two budgets cannot be evicted by the API server"),
    ],
)
def test_budgets_are_a_limit_or_a_preference(allowed: list[int], hard: list[str], prefer: list[str]) -> None:
    ledger = a_ledger(two_cpus("n1"), [full("n1", labels={"app": "a"})])
    for i, number in enumerate(allowed):
        budget = a_budget("a", number)
        ledger.upsert_disruption_budget(with_meta_of(budget, f"b{i}"))
    assert victims(decide(URGENT, ledger)) == hard
    decision = decide(URGENT, ledger, PreemptionPolicy(hard_budgets=False))
    assert victims(decision) == prefer
    assert decision.preemption is not None
    assert decision.preemption.pdb_violations == (0 if hard else 1)


def with_meta_of(budget: Any, name: str) -> Any:
    return msgspec.structs.replace(budget, metadata=ObjectMeta(name=name, namespace="default"))


def test_a_gang_takes_no_more_of_an_application_than_its_budget_allows() -> None:
    pods = [full(f"n{i}", labels={"app": "a"}) for i in (1, 2)] + [full(f"n{i}", priority=5) for i in (3, 4)]
    ledger = a_ledger(two_cpus("n1", "n2", "n3", "n4"), pods)
    ledger.upsert_disruption_budget(a_budget("a", 1))
    found = victims(decide(gang(2), ledger))
    assert len(found) == 2
    assert sum(name in ("on-n1", "on-n2") for name in found) <= 1


def test_budgets_are_followed_as_they_change() -> None:
    ledger = a_ledger(two_cpus("n1"), [full("n1", labels={"app": "a"})])
    ledger.upsert_disruption_budget(a_budget("a", 0))
    assert victims(decide(URGENT, ledger)) == []
    ledger.upsert_disruption_budget(a_budget("a", 1))
    assert victims(decide(URGENT, ledger)) == ["on-n1"]
    ledger.upsert_disruption_budget(a_budget("a", 0))
    ledger.remove_disruption_budget("default/a")
    assert victims(decide(URGENT, ledger)) == ["on-n1"]


# --- other limits than resources --------------------------------------------------------------------------------------


def test_a_host_port_is_freed() -> None:
    pods = [full("n1", cpu=1, ports=[80], priority=3), full("n1", "other", cpu=0)]
    decision = decide(a_pod("u", cpu=1, ports=[80], priority=9), a_ledger(two_cpus("n1"), pods))
    assert victims(decision) == ["on-n1"]


def test_anti_affinity_is_freed_with_the_least_priority() -> None:
    nodes = two_cpus("n1", "n2")
    pods = [full(f"n{i}", cpu=1, labels={"app": "x"}, priority=i) for i in (1, 2)]
    decision = decide(a_pod("u", cpu=1, priority=9, apart=[f"app=x per {HOSTNAME}"]), a_ledger(nodes, pods))
    assert (victims(decision), nominated(decision)) == (["on-n1"], {"u": "n1"})


def test_gpus_are_freed() -> None:
    nodes = [a_node(f"n{i}", cpu=8, gpu=4) for i in (1, 2)]
    pods = [a_pod(f"p{i}{j}", node=f"n{i}", gpu=2, priority=i) for i in (1, 2) for j in range(2)]
    decision = decide(a_pod("u", gpu=4, priority=9), a_ledger(nodes, pods), shipped=True)
    assert victims(decision) == ["p10", "p11"]


def test_parts_of_a_gpu_are_freed() -> None:
    """Amounts of resources do not show them: the node is tried with all filters."""
    rules = profile_plugins(shipped_profile())
    ledger = a_ledger([a_gpu_node("n", 1, shared=True)])
    halves = [a_pod(f"half-{i}", priority=i, annotations={gpu.FRACTION.key: "0.5"}) for i in range(2)]
    for pod in halves:
        placed = Planner(rules).decide(Job.of(pod), ledger.snapshot(), NOW)
        commit(placed, Job.of(pod), ledger, NOW)
    half = a_pod("u", priority=9, annotations={gpu.FRACTION.key: "0.5"})
    assert victims(decide(half, ledger, shipped=True)) == ["half-0"]
    whole = a_pod("u", priority=9, annotations={gpu.FRACTION.key: "0.8"})
    assert victims(decide(whole, ledger, shipped=True)) == ["half-0", "half-1"]


def test_capacity_that_is_promised_to_others_is_not_free() -> None:
    waiting = a_pod("waiting", cpu=1, priority=100, nominated="n1")
    pods = [full("n1", "a", cpu=1), full("n1", "b", cpu=1)]
    ledger = a_ledger([a_node("n1", cpu=3)], [*pods, waiting])
    assert victims(decide(URGENT, ledger)) == ["a", "b"]


def test_a_preemptor_waits_for_its_victims() -> None:
    gone = with_meta(
        full(
            "n1",
            status={
                "conditions": [PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")]
            },
        ),
        deletion_timestamp=LATE,
    )
    ledger = a_ledger(two_cpus("n1", "n2"), [gone, full("n2")])
    decision = decide(a_pod("urgent", cpu=2, priority=100, nominated="n1"), ledger)
    assert (decision.preemption, decision.alone) == (None, True)


# --- limits and words -------------------------------------------------------------------------------------------------


def test_no_more_victims_than_allowed() -> None:
    pods = [full("n1", f"p{i}", cpu=1) for i in range(2)]
    ledger = a_ledger(two_cpus("n1"), pods)
    assert victims(decide(URGENT, ledger, PreemptionPolicy(max_victims=1))) == []


def test_the_decision_says_what_it_costs_and_names_none() -> None:
    ledger = a_ledger(two_cpus("n1", "n2"), [full("n1", status=started(LATE)), full("n2", priority=3)])
    decision = decide(URGENT, ledger)
    assert decision.preemption is not None
    assert decision.preemption.evicts
    cost = decision.preemption.cost
    assert cost is not None
    assert (cost.priority, cost.jobs, cost.pods) == (0, 1, 1)
    assert decision.sentence() == ("0/2 nodes are available: 2 Insufficient cpu. preemption: 1 pod has to go first.")


def test_nothing_is_said_where_no_pod_may_go() -> None:
    decision = decide(URGENT, a_ledger(two_cpus("n1"), [full("n1", priority=100)]))
    assert decision.sentence() == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize("seed", range(3))
def test_equal_clusters_give_equal_victims_in_any_order_of_arrival(seed: int) -> None:
    nodes, pods = two_cpus("n1", "n2", "n3"), [full("n1"), full("n2"), full("n3")]
    expected = victims(decide(URGENT, a_ledger(nodes, pods)))
    rng = Random(seed)
    rng.shuffle(nodes)
    rng.shuffle(pods)
    assert victims(decide(URGENT, a_ledger(nodes, pods))) == expected
