"""The namespaces of a query: counted exactly, at a cost that does not depend on namespaces that it does not concern."""

import pytest

from kubenexus.api.selectors import EVERYTHING, NOTHING, LabelSelector, Selector, compile_selector
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.footprint import footprint_of
from kubenexus.state.labels import LabelColumns
from kubenexus.state.pod_columns import PodColumns
from kubenexus.state.pods import PodRecord, PodStage, pod_record
from kubenexus.testing.builders import a_pod

MANY = 200
GOLD = compile_selector(LabelSelector(match_labels={"tier": "gold"}))


def running(namespace: str) -> PodRecord:
    pod = a_pod("p", namespace=namespace)
    return pod_record(pod, "n", PodStage.BOUND, footprint_of(pod))


@pytest.fixture
def pods() -> PodColumns:
    """A pod in each of many namespaces, on the row of its number; each third namespace is gold."""
    made = PodColumns(LabelColumns(256))
    for i in range(MANY):
        made.upsert_namespace(f"ns-{i}", {"tier": "gold"} if i % 3 == 0 else {})
        made.add(running(f"ns-{i}"), i)
    return made


@pytest.mark.parametrize(
    ("named", "selected", "expected"),
    [
        pytest.param({"ns-7"}, NOTHING, [7], id="one"),
        pytest.param({"ns-7", "ns-8", "none"}, NOTHING, [7, 8], id="some"),
        pytest.param({"none"}, NOTHING, [], id="one without pods"),
        pytest.param(set[str](), EVERYTHING, range(MANY), id="all"),
        pytest.param({"ns-7"}, GOLD, sorted({7, *range(0, MANY, 3)}), id="one and those with a label"),
        pytest.param(set[str](), NOTHING, [], id="none"),
    ],
)
def test_pods_are_counted_in_the_namespaces_that_are_meant(
    pods: PodColumns, named: set[str], selected: Selector, expected: list[int]
) -> None:
    counter = pods.counter((PodSelectorTerm(frozenset(named), EVERYTHING, selected),))
    assert counter.rows.nonzero()[0].tolist() == list(expected)


def test_a_query_that_names_its_namespaces_is_not_compared_with_others(
    pods: PodColumns, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = list[str]()
    covers = PodSelectorTerm.covers

    def counting(term: PodSelectorTerm, namespace: str, labels: dict[str, str] | None) -> bool:
        compared.append(namespace)
        return covers(term, namespace, labels)

    monkeypatch.setattr(PodSelectorTerm, "covers", counting)
    assert pods.counter((PodSelectorTerm(frozenset({"ns-7", "none"}), EVERYTHING, NOTHING),)).total == 1
    assert len(compared) <= 2


def test_namespaces_that_come_and_go_leave_nothing_behind() -> None:
    pods = PodColumns(LabelColumns(8))
    stays = running("stays")
    pods.add(stays, 1)
    for i in range(1_000):
        passing = running(f"ci-{i}")
        pods.add(passing, 2)
        assert pods.has_pods(f"ci-{i}")
        question = (PodSelectorTerm(frozenset({f"ci-{i}"}), EVERYTHING, NOTHING),)
        assert pods.counter(question).rows.nonzero()[0].tolist() == [2]
        pods.remove(passing, 2)
        assert not pods.has_pods(f"ci-{i}")
    assert len(pods._namespace_codes) + len(pods._free_codes) == 2
    assert pods.counter((PodSelectorTerm(frozenset({"stays"}), EVERYTHING, NOTHING),)).total == 1


def test_a_new_counter_is_work_that_a_burst_of_decisions_is_charged_for(pods: PodColumns) -> None:
    question = (PodSelectorTerm(frozenset({"ns-7"}), EVERYTHING, NOTHING),)
    before = pods.compared
    counter = pods.counter(question)
    assert pods.compared - before == MANY
    assert pods.counter(question) is counter
    assert pods.compared - before == MANY
