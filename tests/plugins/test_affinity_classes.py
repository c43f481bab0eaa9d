"""Which pods are alike to InterPodAffinity: those of which the same terms speak, whatever their labels say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubenexus.api.core import Affinity, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.api.workloads import Namespace
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plugins import profile_plugins
from kubenexus.state import existing_terms
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.plugins.checked_cluster import PluginCluster, only
from tests.plugins.reference_affinity import ReferenceAffinity
from tests.state.test_existing_terms import LABELS, NAMESPACES, TERMS

INDEX = "batch.kubernetes.io/job-completion-index"
ANYWHERE = LabelSelector()


def a_term(operator: str, *values: str, key: str = INDEX, **where: Any) -> PodAffinityTerm:
    wanted = LabelSelectorRequirement(key=key, operator=operator, values=list(values))
    selector = LabelSelector(match_expressions=[wanted])
    return PodAffinityTerm(topology_key=HOSTNAME, label_selector=selector, **where)


def with_terms(pod: Pod, terms: list[tuple[str, PodAffinityTerm]]) -> Pod:
    def side(must: str, may: str) -> PodAffinity:
        preferred = [WeightedPodAffinityTerm(weight=3, pod_affinity_term=term) for kind, term in terms if kind == may]
        return PodAffinity(required=[term for kind, term in terms if kind == must], preferred=preferred)

    affinity = Affinity(pod_affinity=side("near", "likes"), pod_anti_affinity=side("away", "dislikes"))
    return replace(pod, spec=replace(pod.spec, affinity=affinity)) if terms else pod


def carrying(name: str, terms: list[PodAffinityTerm], **fields: Any) -> Pod:
    """A pod of another tenant that would rather be away from those its terms mean."""
    return with_terms(a_pod(name, namespace="mallory", **fields), [("dislikes", term) for term in terms])


def indexed(number: int, **fields: Any) -> Pod:
    return a_pod(f"m{number}", namespace="victim", cpu=1, labels={INDEX: str(number), "app": "train"}, **fields)


def classes(pods: list[Pod], *placed: Pod) -> int:
    ledger, class_cache = a_ledger([a_node("n", cpu=100)], placed), Planner(profile_plugins()).class_cache
    return len({class_cache.signature(pod, ledger.nodes) for pod in pods})


NUMBERS = [str(number) for number in range(20)]


@pytest.mark.parametrize(
    ("terms", "wanted"),
    [
        pytest.param([], 1, id="no pod carries terms"),
        pytest.param([a_term("Exists")], 1, id="a term about its own namespace, whether the label is there"),
        pytest.param([a_term("In", "1", "2")], 1, id="a term about its own namespace, what the label is"),
        pytest.param([a_term("Exists", namespaces=["victim"])], 1, id="whether the label is there, in this namespace"),
        pytest.param([a_term("Exists", namespace_selector=ANYWHERE)], 1, id="whether the label is there, anywhere"),
        pytest.param([a_term("In", *NUMBERS, namespace_selector=ANYWHERE)], 1, id="all the numbers, anywhere"),
        pytest.param([a_term("NotIn", "x", namespace_selector=ANYWHERE)], 1, id="another value, anywhere"),
        pytest.param([a_term("In", "3", namespace_selector=ANYWHERE)], 2, id="one of the numbers, anywhere"),
        pytest.param(
            [a_term("NotIn", f"x{i}", namespace_selector=ANYWHERE) for i in range(400)], 1, id="hundreds of terms"
        ),
    ],
)
def test_a_tenant_does_not_take_apart_the_pods_of_others(terms: list[PodAffinityTerm], wanted: int) -> None:
    assert classes([indexed(i) for i in range(20)], *([carrying("evil", terms, node="n")] if terms else [])) == wanted


def test_pods_in_other_namespaces_are_as_they_are() -> None:
    pods = [a_pod(f"p{i}", namespace=f"team-{i}", labels={"app": "x"}) for i in range(5)]
    assert classes(pods, carrying("evil", [a_term("Exists", key="app")], node="n")) == 1


def test_one_that_is_nominated_sets_apart_those_it_avoids() -> None:
    avoiding = a_pod("w", namespace="victim", apart=[f"{INDEX}=3 per {HOSTNAME}"], nominated="n")
    assert classes([indexed(i) for i in range(20)], avoiding) == 2


def test_the_first_of_a_workload_leaves_the_class_of_the_others_as_it_is() -> None:
    ledger, class_cache = a_ledger([a_node("n", cpu=100)]), Planner(profile_plugins()).class_cache
    before = class_cache.signature(indexed(1, apart=[f"app=train per {HOSTNAME}"]), ledger.nodes)
    ledger.upsert_pod(indexed(0, apart=[f"app=train per {HOSTNAME}"], node="n"))
    assert class_cache.signature(indexed(2, apart=[f"app=train per {HOSTNAME}"]), ledger.nodes) == before


def test_a_gang_of_an_indexed_job_is_planned_whatever_label_another_tenant_asks_about() -> None:
    evil = carrying("evil", [a_term("Exists"), a_term("Exists", namespace_selector=ANYWHERE)], node="n0")
    ledger = a_ledger([a_node(f"n{i}", cpu=8) for i in range(40)], [evil])
    gang = Job("victim/gang/g", tuple(indexed(i) for i in range(200)), 200)
    assert len(Planner(profile_plugins()).decide(gang, ledger.snapshot(), 0.0).placements) == 200


# --- alike in class, alike in all ---------------------------------------------------------------------------------

KINDS = st.sampled_from(["near", "away", "likes", "dislikes"])


OWN = st.lists(st.tuples(KINDS, TERMS), max_size=2)
RUNNING = st.lists(st.tuples(st.sampled_from(NAMESPACES), LABELS, OWN, st.integers(0, 2)), max_size=5)
WAITING = st.lists(st.tuples(st.sampled_from(NAMESPACES), LABELS), min_size=2, max_size=6)


def test_a_term_that_means_every_pod_counts_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too many terms would have to be looked at, a pod is signed by what they see of its labels: nothing, if they
    ask for none. That is not the same as that no term speaks of it."""
    monkeypatch.setattr(existing_terms, "MAX_TERMS_CHECKED", 1)
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=LabelSelector(), namespace_selector=ANYWHERE)
    terms = [("away", term), ("away", replace(term, namespaces=["victim"]))]
    away = with_terms(a_pod("evil", namespace="mallory", node="n"), terms)
    ledger = a_ledger([a_node("n", cpu=8), a_node("m", cpu=8)], [away])
    classified = Planner(profile_plugins()).class_cache.lookup(a_pod("web", namespace="victim"), ledger.nodes)
    assert classified.table.feasible.tolist() == [False, True]


@pytest.mark.parametrize("most", [existing_terms.MAX_TERMS_CHECKED, 1], ids=["few terms", "more than are looked at"])
@given(RUNNING, WAITING, OWN)
def test_pods_of_one_class_are_judged_alike(most: int, running: Any, waiting: Any, own: Any) -> None:
    cluster, reference = PluginCluster(only("InterPodAffinity")), ReferenceAffinity()
    for i in range(3):
        cluster.upsert_node(a_node(f"n{i}", cpu=100, labels={ZONE: "ab"[i % 2]}))
    for name in NAMESPACES[:2]:
        cluster.upsert_namespace(Namespace(metadata=ObjectMeta(name=name, labels={"team": "ab"[name == "red"]})))
    for i, (namespace, labels, terms, node) in enumerate(running):
        pod = with_terms(a_pod(f"r{i}", namespace=namespace, labels=labels, node=f"n{node}"), terms)
        cluster.pods[f"r{i}"] = pod
        cluster.ledger.upsert_pod(pod)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(existing_terms, "MAX_TERMS_CHECKED", most)
        nodes, found = list(cluster.nodes.values()), dict[bytes, Any]()
        for i, (namespace, labels) in enumerate(waiting):
            pod = with_terms(a_pod(f"w{i}", namespace=namespace, labels=labels), own)
            classified = cluster.planner.class_cache.lookup(pod, cluster.ledger.nodes)
            refusals = [reference.refusal(pod, node, cluster) for node in nodes]
            assert [each is None for each in refusals] == classified.table.feasible.tolist()
            judged = (refusals, reference.scores(pod, nodes, cluster))
            assert found.setdefault(classified.table.pod.signature, judged) == judged


# --- gangs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
@pytest.mark.parametrize("cpu", [(3, 0), (2, 1), (2, 2)], ids=str)
def test_a_member_that_avoids_one_of_several_alike_is_not_put_with_it(order: str, cpu: tuple[int, int]) -> None:
    pods = {
        "a": a_pod("a", cpu=1, labels={"role": "writer"}),
        "b": a_pod("b", cpu=1, labels={"role": "reader"}),
        "c": a_pod("c", cpu=1, apart=[f"role=writer per {HOSTNAME}"]),
    }
    ledger = a_ledger([a_node("n0", cpu=cpu[0]), a_node("n1", cpu=cpu[1])])
    job = Job("default/gang/g", tuple(pods[name] for name in order), 3)
    decision = Planner(profile_plugins()).decide(job, ledger.snapshot(), 0.0)
    where = {each.pod: each.node for each in decision.placements}
    assert len(where) == (0 if cpu == (3, 0) else 3)
    assert not where or where["default/a"] != where["default/c"]
