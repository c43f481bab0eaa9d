"""Thousands of questions about pods: each pod is held against those that may mean it; what nobody asks is forgotten."""

import numpy as np
import pytest

from kubenexus.api.selectors import NOTHING, LabelSelector, LabelSelectorRequirement, compile_selector
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.footprint import footprint_of
from kubenexus.state.labels import LabelColumns
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.pod_queries import PodQueries, PodQuery
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.testing.builders import a_pod


def asking(**labels: str) -> PodQuery:
    return (PodSelectorTerm(frozenset({"default"}), compile_selector(LabelSelector(match_labels=labels)), NOTHING),)


def whoever_has(key: str) -> PodQuery:
    exists = LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator="Exists")])
    return (PodSelectorTerm(frozenset({"default"}), compile_selector(exists), NOTHING),)


def a_counter() -> PodCounter:
    return PodCounter(np.zeros(1, np.int64), LabelColumns(1))


def running(**labels: str) -> PodRecord:
    pod = a_pod("p", labels=labels)
    return pod_record(pod, "n", PodStage.BOUND, footprint_of(pod))


class Asked:
    """Questions that are held on to, and the terms that pods were held against."""

    def __init__(self) -> None:
        self.terms: list[PodSelectorTerm] = []
        self.queries = PodQueries(self._answers)
        self.held: dict[PodQuery, PodCounter] = {}

    def ask(self, question: PodQuery) -> PodCounter:
        counter = self.held[question] = a_counter()
        self.queries.add(question, counter)
        return counter

    def moved_by(self, record: PodRecord) -> list[PodCounter]:
        return [reference() for reference in self.queries.counters_for(record)]

    def _answers(self, term: PodSelectorTerm, record: PodRecord) -> bool:
        self.terms.append(term)
        return term.selector.matches(record.labels)


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
    assert asked.queries.keys == ("app",)
    assert asked.queries._by_label.keys() == {("app", name) for name in "abcd"}


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
