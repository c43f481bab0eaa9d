"""Rules that look beyond a row: whatever happens, a cached table is a fresh one, and counters are recounts."""

import gc
import random
from typing import Any

import msgspec
import numpy as np
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
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plugins import lineup
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from tests.laws.looking import fresh_table_of, table_of

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
RULES = lineup()


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
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, affinity=wishes))


def event(rng: random.Random, ledger: Ledger, planner: Planner) -> None:
    name, key = f"n{rng.randint(0, 5)}", f"{rng.choice(['default', 'other'])}/p{rng.randint(0, 9)}"
    labels = rng.choice([{ZONE: rng.choice("xyz")}, {ZONE: "x"}, {}])
    taints = rng.choice([[], [], ["k=v:NoSchedule"]])
    happening = rng.randint(0, 6)
    if happening == 0:
        ledger.node_seen(a_node(name, cpu=2, labels=labels, taints=taints))
    elif happening == 1:
        ledger.node_gone(name)
    elif happening == 2:
        ledger.pod_gone(key)
    elif happening == 3:
        ledger.pod_seen(pod(rng, f"p{rng.randint(0, 9)}", node=name))
    elif happening == 4:
        team = rng.choice([{}, {"team": "x"}])
        ledger.namespace_seen(Namespace(metadata=ObjectMeta(name=rng.choice(["default", "other"]), labels=team)))
    elif happening == 5:
        meta = ObjectMeta(name="s", namespace="default")
        ledger.owner_seen(Service(metadata=meta, spec=ServiceSpec(selector=rng.choice([{}, {"app": "a"}]))))
    else:
        job = Job.of(pod(rng, f"q{rng.randint(0, 10**6)}"))
        decision = planner.decide(job, ledger.snapshot(), 0.0)
        if decision.placed:
            commit(decision, job, ledger, 0.0)


@pytest.mark.parametrize("seed", range(40))
def test_a_cached_answer_is_a_fresh_one_and_counters_are_recounts(seed: int) -> None:
    rng = random.Random(seed)
    ledger, planner = Ledger(), Planner(RULES)
    for i in range(4):
        ledger.node_seen(a_node(f"n{i}", cpu=2, labels={ZONE: "xyz"[i % 3]}))
    watched = [pod(rng, f"watched-{i}") for i in range(4)] + [a_pod("plain", labels={"app": "a"})]
    for _ in range(25):
        event(rng, ledger, planner)
        for each in rng.sample(watched, 2):
            assert table_of(each, ledger, planner.bench) == fresh_table_of(each, ledger, RULES)
        pods = ledger.nodes.pods
        for question, counter in pods._questions:
            recount = pods._count(question)
            size = max(len(recount), len(counter.rows))
            assert np.array_equal(np.resize(_padded(recount, size), size), _padded(counter.rows, size))
            assert counter.total == recount.sum()


def _padded(rows: Any, size: int) -> Any:
    return np.concatenate([rows, np.zeros(size - len(rows), np.int64)])


def test_a_question_nobody_asks_any_more_is_dropped() -> None:
    ledger, planner = Ledger(), Planner(RULES)
    ledger.node_seen(a_node("n1"))
    near = a_pod("p", labels={"app": "a"}, near=[f"app=a per {HOST}"])
    planner.decide(Job.of(near), ledger.snapshot(), 0.0)
    assert len(ledger.nodes.pods._questions) == 1
    del planner
    gc.collect()
    assert len(ledger.nodes.pods._questions) == 0
