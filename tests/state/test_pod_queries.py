"""Thousands of questions about pods: each pod is held against those that may mean it; what nobody asks is forgotten."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.selectors import EVERYTHING, NOTHING, LabelSelector, LabelSelectorRequirement, compile_selector
from kubenexus.state import pod_queries
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.footprint import footprint_of
from kubenexus.state.labels import LabelColumns
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.pod_queries import MovedPod, PodQueries, PodQuery
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.testing.builders import a_pod


def asking(**labels: str) -> PodQuery:
    return (PodSelectorTerm(frozenset({"default"}), compile_selector(LabelSelector(match_labels=labels)), NOTHING),)


def whoever_has(key: str) -> PodQuery:
    exists = LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator="Exists")])
    return (PodSelectorTerm(frozenset({"default"}), compile_selector(exists), NOTHING),)


def about(operator: str, key: str, *values: str, namespace: str = "default", selecting: bool = False) -> PodQuery:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=list(values))
    selector = compile_selector(LabelSelector(match_expressions=[requirement]))
    named = frozenset[str]() if selecting else frozenset({namespace})
    return (PodSelectorTerm(named, selector, EVERYTHING if selecting else NOTHING),)


def a_counter() -> PodCounter:
    return PodCounter(np.zeros(1, np.int64), LabelColumns(1))


def running(namespace: str = "default", **labels: str) -> PodRecord:
    pod = a_pod("p", namespace=namespace, labels=labels)
    return pod_record(pod, "n", PodStage.BOUND, footprint_of(pod))


class Asked:
    """Questions that are held on to, and the terms that pods were held against."""

    def __init__(self) -> None:
        self.terms: list[PodSelectorTerm] = []
        self.queries = PodQueries(self._answers, lambda question: np.zeros(1, np.int64))
        self.held: dict[PodQuery, PodCounter] = {}

    def ask(self, question: PodQuery) -> PodCounter:
        counter = self.held[question] = a_counter()
        self.queries.add(question, counter)
        return counter

    def moved_by(self, record: PodRecord) -> list[PodCounter]:
        return [reference() for reference in self.queries.counters_for(record)]

    def _answers(self, term: PodSelectorTerm, record: PodRecord | MovedPod) -> bool:
        self.terms.append(term)
        return term.covers(record.namespace, {}) and term.selector.matches(record.labels)


def test_a_pod_is_held_against_those_that_ask_for_a_label_it_has() -> None:
    asked = Asked()
    for number in range(1000):
        asked.ask(asking(app=f"a{number}"))
    mine, anybody = asked.held[asking(app="a7")], asked.ask(whoever_has("app"))
    assert asked.moved_by(running(app="a7", tier="web")) == [anybody, mine]
    assert len(asked.terms) == 2


def test_and_its_siblings_against_none() -> None:
    asked = Asked()
    mine = asked.ask(asking(app="a"))
    for name in ("one", "other"):
        assert asked.moved_by(running(app="a", **{"pod-name": name})) == [mine]
    assert len(asked.terms) == 1


@pytest.mark.parametrize("question", [asking(app="a"), whoever_has("app")], ids=["of one label", "of a key"])
def test_a_new_question_is_heard_by_pods_like_those_before(question: PodQuery) -> None:
    asked = Asked()
    first = asked.ask(asking(app="a", tier="web"))
    web = running(app="a", tier="web")
    assert set(map(id, asked.moved_by(web))) == {id(first)}
    second = asked.ask(question)
    assert set(map(id, asked.moved_by(web))) == {id(first), id(second)}


def crowded(queries: int = 200, keys: int = 15) -> Asked:
    """Queries of one namespace, each about keys of its own that no pod has."""
    asked = Asked()
    for number in range(queries):
        wanted = [LabelSelectorRequirement(key=f"k{number}-{i}", operator="DoesNotExist") for i in range(keys)]
        selector = compile_selector(LabelSelector(match_expressions=wanted))
        asked.ask((PodSelectorTerm(frozenset({"crowd"}), selector, NOTHING),))
    return asked


def test_queries_of_one_namespace_cost_pods_of_others_nothing() -> None:
    asked = crowded()
    mine = asked.ask(asking(app="a"))
    assert asked.moved_by(running(app="a", tier="web")) == [mine]
    assert len(asked.terms) == 1
    assert [len(key) for key in asked.queries._moves] == [4], "and its key holds what queries see of its labels"


def test_a_pod_is_kept_by_the_values_that_queries_tell_apart() -> None:
    asked = Asked()
    named, rest = asked.ask(asking(job="j7")), asked.ask(whoever_has("job"))
    for number in range(100):
        moved = asked.moved_by(running(job=f"j{number}"))
        assert moved == ([rest, named] if number == 7 else [rest])
    assert len(asked.queries._moves) == 2


def test_what_is_kept_about_pods_is_bounded_by_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_queries, "_MAX_REMEMBERED", 500)
    asked = Asked()
    for number in range(50):
        asked.ask(about("NotIn", "app", f"a{number}"))
    for number in range(50):
        assert len(asked.moved_by(running(app=f"a{number}"))) == 49
        assert sum(len(key) + len(moved) for key, moved in asked.queries._moves.items()) <= 500


def test_queries_about_new_keys_are_added_without_a_look_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, tidy = list[int](), PodQueries._tidy

    def counting(queries: PodQueries) -> None:
        looks.append(len(queries))
        tidy(queries)

    monkeypatch.setattr(PodQueries, "_tidy", counting)
    asked = crowded()
    assert len(asked.queries.keys) == 200 * 15
    assert sum(looks) < 5 * 200


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ({"app": "a"}, {"app": "a", "x": "1"}, False),
        ({"x": "1"}, {"x": "2"}, False),
        ({"app": "a"}, {"app": "b"}, True),
        ({"app": "a"}, {}, True),
        ({}, {"app": "a", "x": "1"}, True),
    ],
    ids=["another comes", "another changes", "changes", "goes", "comes"],
)
def test_a_change_of_labels_is_seen_if_a_query_is_about_one(
    before: dict[str, str], after: dict[str, str], seen: bool
) -> None:
    asked = Asked()
    asked.ask(asking(app="c"))
    assert asked.queries.sees_change(before, after) is seen


KEYS, VALUES, NAMESPACES = st.sampled_from("ab"), st.sampled_from("123"), st.sampled_from(["default", "other"])
QUERIES = st.builds(
    lambda operator, key, values, namespace, selecting: about(
        operator, key, *(values if "In" in operator else ()), namespace=namespace, selecting=selecting
    ),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    KEYS,
    st.lists(VALUES, min_size=1, max_size=2, unique=True),
    NAMESPACES,
    st.booleans(),
)


@given(
    st.lists(st.lists(QUERIES, min_size=1, max_size=2).map(lambda parts: sum(parts, ())), max_size=8),
    st.lists(st.tuples(NAMESPACES, st.dictionaries(KEYS, VALUES)), max_size=6),
)
def test_a_pod_changes_the_counters_of_all_queries_that_select_it(
    queries: list[PodQuery], pods: list[tuple[str, dict[str, str]]]
) -> None:
    asked = Asked()
    for query in queries:
        for namespace, labels in pods:
            record = running(namespace, **labels)
            selecting = {
                id(counter)
                for each, counter in asked.held.items()
                if all(term.covers(namespace, {}) and term.selector.matches(labels) for term in each)
            }
            assert set(map(id, asked.moved_by(record))) == selecting
        asked.ask(query)


def test_what_nobody_asks_about_any_more_is_forgotten() -> None:
    """When half of those there are have come since the last look, at the latest."""
    asked = Asked()
    for number in range(100):
        asked.ask(asking(job=f"j{number}"))
    kept = asked.ask(asking(app="a"))
    asked.held = {asking(app="a"): kept}
    assert len(asked.queries) == 1
    for name in "bcd":
        asked.ask(asking(app=name))
    assert asked.queries.keys == {"app"}
    assert asked.queries._by_place.keys() == {("default", "app", name) for name in "abcd"}


def test_a_count_by_a_label_that_was_forgotten_is_made_anew() -> None:
    """Hundreds of other labels were asked for meanwhile, and the cluster has grown."""
    labels = LabelColumns(2)
    labels.set(1, {"zone": "a"})
    counter = PodCounter(np.zeros(2, np.int64), labels)
    counter.add(1, +1)
    assert counter.by_domain("zone").tolist()[:2] == [0, 1]
    for number in range(300):
        labels.column(f"label-{number}")
    labels.grow(4)
    labels.set(3, {"zone": "b"})
    counter.add(3, +1)
    zones = labels.column("zone")
    assert [counter.by_domain("zone").item(zones.codes.item(row)) for row in (1, 3)] == [1, 1]
