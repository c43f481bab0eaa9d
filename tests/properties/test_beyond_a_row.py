"""Rules that look beyond a row: whatever happens, a cached table is a fresh one, and counters are recounts."""

import gc
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubenexus.api.core import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import Namespace, Service, ServiceSpec
from kubenexus.cycle.scores import code_counts
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.properties.table_content import fresh_table_of, table_of
from tests.rounds import rounds

ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
RULES = profile_plugins()


def selector(rng: random.Random) -> LabelSelector | None:
    return rng.choice([None, LabelSelector(), *(LabelSelector(match_labels={"app": app}) for app in "ab")])


def term(rng: random.Random) -> PodAffinityTerm:
    everywhere = rng.choice([None, None, LabelSelector(), LabelSelector(match_labels={"team": "x"})])
    return PodAffinityTerm(
        topology_key=rng.choice([ZONE, HOST]), label_selector=selector(rng), namespace_selector=everywhere
    )


def affinity(rng: random.Random) -> PodAffinity | None:
    if rng.random() < 0.5:
        return None
    preferred = [WeightedPodAffinityTerm(weight=rng.randint(1, 5), pod_affinity_term=term(rng))]
    return PodAffinity(
        required=[term(rng) for _ in range(rng.choice([0, 0, 1, 2]))], preferred=rng.choice([[], preferred])
    )


def spread(rng: random.Random) -> list[TopologySpreadConstraint]:
    return [
        TopologySpreadConstraint(
            max_skew=rng.randint(1, 2),
            topology_key=rng.choice([ZONE, HOST]),
            when_unsatisfiable=rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
            label_selector=selector(rng),
            min_domains=rng.choice([None, 3]),
            node_taints_policy=rng.choice(["Ignore", "Honor"]),
        )
        for _ in range(rng.choice([0, 0, 1, 2]))
    ]


def wishing(pod: Pod, wishes: dict[str, Any]) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **wishes))


def pod(rng: random.Random, name: str, **more: Any) -> Pod:
    plain = a_pod(
        name,
        namespace=rng.choice(["default", "other"]),
        cpu=rng.choice(["100m", "1"]),
        labels={"app": rng.choice("ab"), "index": name},
        topology_spread_constraints=spread(rng),
        **more,
    )
    wishes = Affinity(pod_affinity=affinity(rng), pod_anti_affinity=affinity(rng))
    return wishing(plain, {"affinity": wishes})


def event(rng: random.Random, ledger: Ledger, planner: Planner) -> None:
    name, key = f"n{rng.randint(0, 5)}", f"{rng.choice(['default', 'other'])}/p{rng.randint(0, 9)}"
    labels = rng.choice([{ZONE: rng.choice("xyz")}, {ZONE: "x"}, {}])
    taints = rng.choice([[], [], ["k=v:NoSchedule"]])
    happening = rng.randint(0, 6)
    if happening == 0:
        ledger.upsert_node(a_node(name, cpu=2, labels=labels, taints=taints))
    elif happening == 1:
        ledger.remove_node(name)
    elif happening == 2:
        ledger.remove_pod(key)
    elif happening == 3:
        ledger.upsert_pod(pod(rng, f"p{rng.randint(0, 9)}", node=name))
    elif happening == 4:
        team = rng.choice([{}, {"team": "x"}])
        ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=rng.choice(["default", "other"]), labels=team)))
    elif happening == 5:
        meta = ObjectMeta(name="s", namespace="default")
        ledger.upsert_owner(Service(metadata=meta, spec=ServiceSpec(selector=rng.choice([{}, {"app": "a"}]))))
    else:
        job = Job.of(pod(rng, f"q{rng.randint(0, 10**6)}"))
        decision = planner.decide(job, ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, job, ledger, 0.0)


@pytest.mark.parametrize("seed", range(rounds(15, 40)))
def test_a_cached_answer_is_a_fresh_one_and_counters_are_recounts(seed: int) -> None:
    rng = random.Random(seed)
    ledger, planner = Ledger(), Planner(RULES)
    for i in range(4):
        ledger.upsert_node(a_node(f"n{i}", cpu=2, labels={ZONE: "xyz"[i % 3]}))
    watched = [pod(rng, f"watched-{i}") for i in range(4)] + [a_pod("plain", labels={"app": "a"})]
    for _ in range(4):
        event(rng, ledger, planner)
        for each in rng.sample(watched, 2):
            assert table_of(each, ledger, planner.class_cache) == fresh_table_of(each, ledger, RULES)
        generation = ledger.generation
        assert [found for each in ledger.nodes.pods.queries for found in ledger.audit_query(each)] == []
        assert ledger.generation == generation


def like(weight: int, topology: str) -> WeightedPodAffinityTerm:
    selects = LabelSelector(match_labels={"app": "a"})
    return WeightedPodAffinityTerm(
        weight=weight, pod_affinity_term=PodAffinityTerm(topology_key=topology, label_selector=selects)
    )


def evenly(topology: str) -> TopologySpreadConstraint:
    selects = LabelSelector(match_labels={"app": "a"})
    return TopologySpreadConstraint(
        max_skew=1, topology_key=topology, when_unsatisfiable="ScheduleAnyway", label_selector=selects
    )


WORKLOADS: dict[str, dict[str, Any]] = {
    "together on a node": {"affinity": Affinity(pod_affinity=PodAffinity(preferred=[like(1, HOST)]))},
    "apart by node": {"affinity": Affinity(pod_anti_affinity=PodAffinity(preferred=[like(7, HOST)]))},
    "together in a zone": {"affinity": Affinity(pod_affinity=PodAffinity(preferred=[like(3, ZONE)]))},
    "together in a zone, apart by node": {
        "affinity": Affinity(
            pod_affinity=PodAffinity(preferred=[like(2, ZONE)]),
            pod_anti_affinity=PodAffinity(preferred=[like(5, HOST)]),
        )
    },
    "together in a zone, apart by rack": {
        "affinity": Affinity(
            pod_affinity=PodAffinity(preferred=[like(2, ZONE)]),
            pod_anti_affinity=PodAffinity(preferred=[like(5, RACK)]),
        )
    },
    "spread by default": {},
    "spread over nodes": {"topology_spread_constraints": [evenly(HOST)]},
    "spread, and together on a node": {
        "topology_spread_constraints": [evenly(ZONE), evenly(HOST)],
        "affinity": Affinity(pod_affinity=PodAffinity(preferred=[like(1, HOST)])),
    },
}


@pytest.mark.parametrize("most", [16, 2, -1], ids=lambda most: f"up to {most} codes are few")
@pytest.mark.parametrize("wishes", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("seed", range(rounds(2, 4)))
def test_as_a_workload_grows_its_table_is_a_fresh_one(
    seed: int, wishes: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pod by pod, until nodes are full, with some that go, and nodes that somebody else has for a while; and of two
    sizes, which share what they count."""
    monkeypatch.setattr(code_counts, "_MAX_CODES", most)
    rng, ledger, planner = random.Random(seed), Ledger(), Planner(RULES)
    meta = ObjectMeta(name="s", namespace="default")
    ledger.upsert_owner(Service(metadata=meta, spec=ServiceSpec(selector={"app": "a"})))
    for i in range(9):
        where = {ZONE: "xyz"[i % 3]} | ({RACK: f"r{i // 2}"} if i > 3 else {}) if i else {}
        ledger.upsert_node(a_node(f"n{i}", cpu=2, labels={HOST: f"n{i}", **where}))
    placed: list[str] = []
    for i in range(30):
        sizes = [wishing(a_pod(f"p{i}", cpu=cpu, labels={"app": "a"}), wishes) for cpu in ("500m", "400m")]
        next_one = sizes[rng.random() < 0.2]
        decision = planner.decide(Job.of(next_one), ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, Job.of(next_one), ledger, 0.0)
            placed.append(next_one.key)
        if rng.random() < 0.2:
            ledger.remove_pod(placed.pop(rng.randrange(len(placed))))
        if rng.random() < 0.3:
            large = a_pod(f"large-{rng.randrange(3)}", cpu=2, node=f"n{rng.randrange(9)}")
            if large.key in ledger.pods:
                ledger.remove_pod(large.key)
            else:
                ledger.upsert_pod(large)
        for each in sizes[: rng.choice([0, 1, 2])]:
            assert table_of(each, ledger, planner.class_cache) == fresh_table_of(each, ledger, RULES)
    assert len(placed) > 12


def test_a_node_that_comes_back_has_the_points_it_would_have_had() -> None:
    """Its zone's points changed and changed back meanwhile, and those of no other node did."""
    ledger, planner = Ledger(), Planner(RULES)
    for zone in "xyz":
        ledger.upsert_node(a_node(zone, cpu=8, labels={ZONE: zone}))
    drawn = wishing(a_pod("p", cpu=1), WORKLOADS["together in a zone"])
    for i, zone in enumerate("yyyyzz"):
        ledger.upsert_pod(a_pod(f"a{i}", labels={"app": "a"}, node=zone))
    moments: list[Callable[[], object]] = [
        lambda: None,
        lambda: (ledger.upsert_pod(a_pod("large", cpu=8, node="z")), ledger.upsert_pod(another("y"))),
        lambda: (ledger.remove_pod("default/large"), ledger.remove_pod(another("y").key)),
    ]
    for moment in moments:
        moment()
        assert table_of(drawn, ledger, planner.class_cache) == fresh_table_of(drawn, ledger, RULES)


def another(node: str) -> Pod:
    return a_pod("another", labels={"app": "a"}, node=node)


def test_a_row_in_two_domains_that_changed_is_counted_once() -> None:
    ledger, planner = Ledger(), Planner(RULES)
    for i in range(12):
        ledger.upsert_node(a_node(f"n{i}", labels={HOST: f"n{i}", ZONE: "xy"[i // 6]}))
    shy = a_pod("shy", apart=[f"app=a per {HOST}", f"app=a per {ZONE}"])
    assert table_of(shy, ledger, planner.class_cache)["feasible"] == 12
    ledger.upsert_pod(a_pod("p", labels={"app": "a"}, node="n2"))
    assert table_of(shy, ledger, planner.class_cache) == fresh_table_of(shy, ledger, RULES)
    assert table_of(shy, ledger, planner.class_cache)["feasible"] == 6


def test_a_question_nobody_asks_any_more_is_dropped() -> None:
    ledger, planner = Ledger(), Planner(RULES)
    ledger.upsert_node(a_node("n1"))
    near = a_pod("p", labels={"app": "a"}, near=[f"app=a per {HOST}"])
    planner.decide(Job.of(near), ledger.snapshot(), 0.0)
    assert len(ledger.nodes.pods._queries) == 1
    del planner
    gc.collect()
    assert len(ledger.nodes.pods._queries) == 0
