"""InterPodAffinity says of each node what its reference says, whatever happened before."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubenexus.api.core import Affinity, Pod, PodAffinity, WeightedPodAffinityTerm
from kubenexus.framework.extension_points import custom_normalize
from kubenexus.plugins.inter_pod_affinity import class_affinity, plugin, scoring
from kubenexus.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubenexus.plugins.inter_pod_affinity.scoring import AffinityScores
from kubenexus.state import carried_terms, existing_terms
from kubenexus.state.affinity_terms import AffinityKind, PodSelectorTerm
from kubenexus.state.pod_columns import PodColumns
from kubenexus.state.selected_terms import SelectedTerms
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod, a_pod_term
from tests.plugins.checked_cluster import PluginCluster, only
from tests.plugins.oracle_check import BEFORE, caught, compare, judge
from tests.plugins.reference_affinity import (
    FAR,
    NEAR,
    UNWELCOME,
    ReferenceAffinity,
    away,
    means,
    near,
    placed,
    together,
)

seeds = st.integers(0, 2**32)
affinity = partial(judge, plugin="InterPodAffinity")
Patch = pytest.MonkeyPatch


@given(seed=seeds)
def test_affinity_says_of_each_node_what_its_reference_says(seed: int) -> None:
    affinity(seed, plugin_reference=ReferenceAffinity())


@given(seed=seeds, weight=st.sampled_from([0, 1, 7, 100]), own_only=st.booleans())
def test_affinity_follows_its_arguments(seed: int, weight: int, own_only: bool) -> None:
    arguments: dict[str, Any] = {"hardPodAffinityWeight": weight, "ignorePreferredTermsOfExistingPods": own_only}
    affinity(seed, plugin_reference=ReferenceAffinity(weight, own_only), steps=3, **arguments)


@given(seed=seeds)
def test_affinity_keeps_saying_so_after_many_events(seed: int) -> None:
    affinity(seed, plugin_reference=ReferenceAffinity(), steps=40, pods=5, looks=0.2)


@given(seed=seeds, few=st.sampled_from([0, 1]), most=st.sampled_from([3, 200]))
def test_affinity_says_so_however_many_domains_there_are(seed: int, few: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "_FEW_DOMAINS", few)
        patch.setattr(scoring, "_MAX_POINTS", most)
        affinity(seed, plugin_reference=ReferenceAffinity(), steps=10)


def test_classes_that_wish_the_same_follow_the_pods_together(monkeypatch: Patch) -> None:
    """They differ in what they ask for; whichever is looked at first after a pod came, the other is right too. In the
    end there are more of them on one node than the codes have room for."""
    monkeypatch.setattr(scoring, "_FEW_DOMAINS", 0)
    cluster = PluginCluster(only(*BEFORE, "InterPodAffinity"))
    for number in range(5):
        cluster.upsert_node(a_node(f"n{number}", zone=f"z{number % 2}"))
    together = [WeightedPodAffinityTerm(weight=1, pod_affinity_term=a_pod_term(f"app=web per {HOSTNAME}"))]
    apart = [WeightedPodAffinityTerm(weight=2, pod_affinity_term=a_pod_term(f"app=web per {ZONE}"))]
    wishes = Affinity(pod_affinity=PodAffinity(preferred=together), pod_anti_affinity=PodAffinity(preferred=apart))
    plain = [a_pod(cpu=cpu, labels={"app": "web"}) for cpu in ("100m", "200m", "300m")]
    classes = [replace(pod, spec=replace(pod.spec, affinity=wishes)) for pod in plain]
    for number in range(60):
        cluster.bound(a_pod(f"p{number}", labels={"app": "web"}), f"n{number % 3 * 2}")
        for pod in (classes[number % 3], classes[0], classes[-1]):
            compare(cluster, pod, "InterPodAffinity", ReferenceAffinity())


# --- do these tests look at anything? ---------------------------------------------------------------------------------


def seen(cluster: PluginCluster, pod: Pod) -> Iterator[str]:
    """Which of the less common things there are to see."""
    joins, avoids = near(pod).required, away(pod).required
    friends = [(p, n) for p, n in placed(cluster) if joins and all(means(t, pod, p, cluster) for t in joins)]
    refused = {name: ReferenceAffinity().refusal(pod, node, cluster) for name, node in cluster.nodes.items()}
    if joins and not all(refused.values()):
        yield "joins" if friends else "is the first"
    if len(joins) > 1 and friends and not all(refused.values()):
        yield "joins by two terms"
    for term in (*joins, *avoids):
        for other, _ in placed(cluster):
            if other.metadata.namespace != pod.metadata.namespace and means(term, pod, other, cluster):
                yield "across namespaces"
                if term.namespace_selector is not None and term.namespace_selector.match_labels:
                    yield "by a namespace's labels"
    for name, node in cluster.nodes.items():
        near_it = [p for p, n in placed(cluster) for t in avoids if means(t, pod, p, cluster) and together(t, node, n)]
        if refused[name] == NEAR and all(p.metadata.deletion_timestamp for p in near_it):
            yield "avoids one that is being deleted"
    points = ReferenceAffinity().scores(pod, list(cluster.nodes.values()), cluster) or {}
    if min(points.values(), default=0) < 0 < max(points.values(), default=0):
        yield "good and bad points"


RARE = ["joins by two terms", "by a namespace's labels", "avoids one that is being deleted", "is the first"]
COMMON = [
    FAR[0],
    NEAR[0],
    UNWELCOME[0],
    "accepted",
    "joins",
    "across namespaces",
    "good and bad points",
    "scores differ",
]


def test_all_that_can_happen_happens() -> None:
    counts: Counter[str] = sum(
        (affinity(seed, plugin_reference=ReferenceAffinity(), watch=seen) for seed in range(40)), Counter()
    )
    assert {what: counts[what] for what in RARE if counts[what] < 5} == {}
    assert {what: counts[what] for what in COMMON if counts[what] < 50} == {}


def _without_signs(patch: Patch) -> None:
    same = {AffinityKind.PREFERRED_AFFINITY: 1, AffinityKind.PREFERRED_ANTI_AFFINITY: 1}
    patch.setattr(class_affinity, "_SIGNS", same)


def _missing_label_is_a_domain(patch: Patch) -> None:
    def there(topology: str, counter: Any, node: Any) -> bool:
        code = node.columns.labels.column(topology).codes.item(node.row)
        return bool(counter.by_domain(topology).item(code) > 0)

    patch.setattr(plugin, "has_pod_in_domain", there)


def _stale(attribute: str, answer: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(InterPodAffinity, attribute, lambda *_: answer)


MUTANTS: dict[str, Callable[[Patch], None]] = {
    "anybody may be the first": lambda p: p.setattr(
        class_affinity.ClassAffinity, "_all_select_itself", lambda *_: True
    ),
    "nobody may be the first": lambda p: p.setattr(
        class_affinity.ClassAffinity, "_all_select_itself", lambda *_: False
    ),
    "wishes to be apart count as wishes to be near": _without_signs,
    "nodes without the label are neighbours": _missing_label_is_a_domain,
    "filters are never asked again": _stale("touched_rows", np.zeros(0, np.int64)),
    "answers are never old": _stale("stamp", 0),
    "namespaces are not selected by label": lambda p: p.setattr(
        PodSelectorTerm, "covers", lambda self, namespace, labels: namespace in self.namespaces
    ),
    "pods that come are not counted": lambda p: p.setattr(PodColumns, "_answers", lambda *_: False),
    "points do not follow the pods": lambda p: p.setattr(AffinityScores, "_step", lambda *_: True),
    "others' terms are not looked at": lambda p: p.setattr(PodColumns, "carriers_of", lambda *_: []),
    "points are rounded up": lambda p: p.setattr(
        InterPodAffinity,
        "normalize",
        custom_normalize(plugin._least_and_most, lambda raw, e: -(-100 * (raw - e[0]) // max(e[1] - e[0], 1))),
    ),
}


def _counted_together(patch: Patch) -> None:
    """As if more terms selected each pod than are checked one by one."""
    patch.setattr(existing_terms, "MAX_TERMS_CHECKED", 0)


TOGETHER_MUTANTS: dict[str, Callable[[Patch], None]] = {
    "others' terms are not looked at": lambda p: p.setattr(SelectedTerms, "_recount", lambda *_: None),
    "a carrier that comes is not counted": lambda p: p.setattr(SelectedTerms, "_add", lambda *_: None),
    "points to be apart count as points to be near": lambda p: p.setattr(
        class_affinity.ClassAffinity, "_points", lambda *_: 1
    ),
    "labels are not compared": lambda p: p.setattr(carried_terms._Slots, "arrays", lambda *_: []),
}


@pytest.mark.parametrize("seed", range(20))
def test_the_terms_of_others_counted_together_decide_as_one_by_one(seed: int, monkeypatch: Patch) -> None:
    _counted_together(monkeypatch)
    affinity(seed, plugin_reference=ReferenceAffinity())


@pytest.mark.parametrize("mutate", TOGETHER_MUTANTS.values(), ids=TOGETHER_MUTANTS)
def test_the_reference_finds_a_rule_among_terms_counted_together_where(
    mutate: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    _counted_together(monkeypatch)
    mutate(monkeypatch)
    assert caught(partial(affinity, plugin_reference=ReferenceAffinity()))


@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS)
def test_the_reference_finds_a_rule_where(mutate: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutate(monkeypatch)
    assert caught(partial(affinity, plugin_reference=ReferenceAffinity()))
