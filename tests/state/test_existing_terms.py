"""Terms that pods carry against others: which of them speak of a pod is known at any time, and cheaply."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import PodAffinityTerm
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement, Selector
from kubenexus.api.workloads import Namespace
from kubenexus.state import existing_terms
from kubenexus.state.affinity_terms import AffinityKind, AffinityTerm
from kubenexus.state.footprint import Footprint
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage, pod_record
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from kubenexus.testing.harness import a_ledger

NAMESPACES = ("red", "blue", "grey")
LABELS = st.dictionaries(st.sampled_from(["app", "index"]), st.sampled_from(["0", "1", "2"]))
WANTED = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(["app", "index"]),
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(st.sampled_from(["0", "1", "7"]), min_size=1, max_size=2, unique=True),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(["app", "index"]),
        operator=st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
SELECTORS = st.builds(LabelSelector, match_expressions=st.lists(WANTED, max_size=2))
BY_LABEL = [None, LabelSelector(), LabelSelector(match_labels={"team": "a"}), LabelSelector(match_labels={"team": "b"})]
TERMS = st.builds(
    PodAffinityTerm,
    topology_key=st.just(HOSTNAME),
    label_selector=st.one_of(st.none(), SELECTORS),
    namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True),
    namespace_selector=st.sampled_from(BY_LABEL),
)
STEPS = st.tuples(
    st.sampled_from(["runs", "waits for the node", "gone", "relabelled"]),
    st.integers(0, 3),
    st.sampled_from(NAMESPACES),
    st.lists(TERMS, max_size=2),
)


def terms_of(ledger: Ledger) -> set[AffinityTerm]:
    """By looking at every pod."""
    nominated = ledger._nominations.on("n").values()
    waiting = {
        each for record in nominated for each in record.terms if each.kind is AffinityKind.REQUIRED_ANTI_AFFINITY
    }
    return {each for record in ledger.pods.values() for each in record.terms} | waiting


def about(ledger: Ledger, namespaces: dict[str, dict[str, str]], namespace: str, labels: dict[str, str]) -> list[str]:
    found = [
        each
        for each in terms_of(ledger)
        if each.term.covers(namespace, namespaces.get(namespace, {})) and each.term.selector.matches(labels)
    ]
    return sorted(ledger.nodes.pods.terms.token(each) for each in found)


def play(ledger: Ledger, namespaces: dict[str, dict[str, str]], steps: Iterable[tuple[str, int, str, Any]]) -> None:
    for what, number, namespace, terms in steps:
        if what == "gone":
            ledger.remove_pod(f"{namespace}/p{number}")
        elif what == "relabelled":
            namespaces[namespace] = {"team": "ab"[number % 2]}
            ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=namespace, labels=namespaces[namespace])))
        else:
            where: dict[str, Any] = {"node": "n"} if what == "runs" else {"nominated": "n"}
            ledger.upsert_pod(a_pod(f"p{number}", namespace=namespace, apart=terms, **where))


@given(st.lists(STEPS, max_size=8), st.sampled_from(NAMESPACES), LABELS)
def test_what_is_said_of_a_pod_is_said_by_the_terms_that_mean_it(
    steps: list[tuple[str, int, str, list[PodAffinityTerm]]], namespace: str, labels: dict[str, str]
) -> None:
    ledger, namespaces = a_ledger([a_node("n")]), dict[str, dict[str, str]]()
    for step in steps:
        play(ledger, namespaces, [step])
        said = ledger.nodes.pods.terms.about(namespace, labels)
        assert list(said) == about(ledger, namespaces, namespace, labels)


@given(st.lists(STEPS, max_size=8), st.sampled_from(NAMESPACES), LABELS, LABELS)
def test_where_too_many_may_speak_of_them_pods_that_look_alike_to_all_are_alike(
    steps: list[tuple[str, int, str, list[PodAffinityTerm]]], namespace: str, one: dict[str, str], other: dict[str, str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(existing_terms, "MAX_TERMS_CHECKED", 1)
        ledger, namespaces = a_ledger([a_node("n")]), dict[str, dict[str, str]]()
        play(ledger, namespaces, steps)
        terms = ledger.nodes.pods.terms
        said = terms.about(namespace, one)
        if said == terms.about(namespace, other):
            assert about(ledger, namespaces, namespace, one) == about(ledger, namespaces, namespace, other)
        if isinstance(said, dict):
            pods = ledger.nodes.pods
            selecting = pods.carried_terms.selecting(namespace, said)
            found = [terms.token(each.carried) for each in pods.existing_terms.values() if selecting[each.slot]]
            running = {terms.token(each) for record in ledger.pods.values() for each in record.terms}
            assert sorted(found) == [t for t in about(ledger, namespaces, namespace, one) if t in running]


@given(st.lists(STEPS, max_size=6), st.lists(TERMS, max_size=3), st.lists(TERMS, max_size=3))
def test_a_trial_that_is_taken_back_leaves_no_trace(
    steps: list[tuple[str, int, str, list[PodAffinityTerm]]], one: list[PodAffinityTerm], other: list[PodAffinityTerm]
) -> None:
    ledger = a_ledger([a_node("n")])
    play(ledger, {}, steps)
    terms = ledger.nodes.pods.terms
    before = [terms.scope(namespace) for namespace in NAMESPACES]
    with ledger.snapshot().attempt() as transaction:
        for name, apart in (("x", one), ("y", other)):
            transaction.add_pod(
                0, pod_record(a_pod(name, namespace="red", apart=apart), "n", PodStage.ASSUMED, Footprint())
            )
    assert [terms.scope(namespace) for namespace in NAMESPACES] == before


def test_a_namespace_is_in_the_scope_of_terms_about_it_alone() -> None:
    ledger = a_ledger([a_node("n")])
    terms = ledger.nodes.pods.terms
    ledger.upsert_pod(a_pod("p", namespace="red", node="n", apart=[f"app=x per {HOSTNAME}"]))
    assert (bool(terms.scope("red")), terms.scope("blue")) == (True, ())
    red = terms.scope("red")
    ledger.upsert_pod(a_pod("q", namespace="blue", node="n", apart=[f"app=x per {HOSTNAME}"]))
    assert terms.scope("red") == red
    ledger.remove_pod("red/p")
    ledger.remove_pod("blue/q")
    assert (terms.scope("red"), terms.scope("blue"), len(terms)) == ((), (), 0)


def test_a_term_of_its_own_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, reads = a_ledger([a_node("n")]), list[str]()
    matches = Selector.matches

    def read(selector: Selector, labels: Any) -> bool:
        reads.append(selector.text)
        return matches(selector, labels)

    monkeypatch.setattr(Selector, "matches", read)
    for number in range(200):
        ledger.upsert_pod(a_pod(f"p{number}", node="n", apart=[f"app=a{number} per {HOSTNAME}"]))
        ledger.nodes.pods.terms.about("default", {"app": f"a{number}", "index": "7"})
    assert len(reads) == 200
    assert len(ledger.nodes.pods.existing_terms) == 200
