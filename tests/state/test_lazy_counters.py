"""A pod is added at a bounded cost whatever queries exist; counters beyond that are brought up to date when read."""

import random
from collections.abc import Callable, Mapping

import pytest

from kubenexus.api.core import PodAffinityTerm
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement
from kubenexus.api.workloads import Namespace
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import profile_plugins
from kubenexus.state import pod_queries
from kubenexus.state.affinity_terms import PodSelectorTerm, affinity_terms
from kubenexus.state.lazy_counter import MAX_LOGGED, LazyCounter
from kubenexus.state.ledger import Ledger
from kubenexus.state.pod_columns import PodColumns
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.pod_queries import MAX_CHECKED, PodQuery
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.rounds import rounds

ZONE = "zone"


def asking(operator: str, key: str, *values: str, namespaces: LabelSelector | None = None) -> PodAffinityTerm:
    wanted = LabelSelectorRequirement(key=key, operator=operator, values=list(values))
    everywhere = LabelSelector() if namespaces is None else namespaces
    return PodAffinityTerm(
        topology_key=ZONE, namespace_selector=everywhere, label_selector=LabelSelector(match_expressions=[wanted])
    )


def queries(*terms: PodAffinityTerm) -> list[PodQuery]:
    return [(each.term,) for each in affinity_terms(a_pod("hostile", namespace="evil", apart=terms))]


def some_nodes(ledger: Ledger, *numbers: int) -> None:
    for i in numbers:
        ledger.upsert_node(a_node(f"n{i}", labels={ZONE: "xyz"[i % 3]}))


WIDE = {
    "no label": lambda i: asking("DoesNotExist", f"k{i}"),
    "another value": lambda i: asking("NotIn", "app", f"v{i}"),
    "one of many values": lambda i: asking("In", "app", "web", f"v{i}"),
    "many requirements": lambda i: asking("NotIn", "app", *[f"v{i}-{j}" for j in range(500)]),
}


class Work:
    """Counts the checks of queries, the changes of counters and the counts of all pods."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.checks = self.changes = self.counts = 0
        answers, add, count = PodColumns._answers, PodCounter.add, PodColumns._count

        def counting_answers(*args: object) -> bool:
            self.checks += 1
            return answers(*args)  # type: ignore[arg-type]

        def counting_add(*args: object) -> None:
            self.changes += 1
            add(*args)  # type: ignore[arg-type]

        def counting_count(*args: object) -> object:
            self.counts += 1
            return count(*args)  # type: ignore[arg-type]

        patch.setattr(PodColumns, "_answers", counting_answers)
        patch.setattr(PodCounter, "add", counting_add)
        patch.setattr(PodColumns, "_count", counting_count)


@pytest.mark.parametrize("wide", WIDE.values(), ids=WIDE.keys())
def test_a_pod_event_costs_a_bounded_amount_whatever_queries_exist(
    wide: Callable[[int], PodAffinityTerm], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, ledger = Work(monkeypatch), a_ledger()
    some_nodes(ledger, *range(6))
    held = [ledger.nodes.pods.counter(each) for i in range(1000) for each in queries(wide(i))]
    work.counts = 0
    for i in range(10):
        ledger.upsert_pod(a_pod(f"p{i}", labels={"app": "web"}, node=f"n{i % 6}"))
    assert work.checks <= MAX_CHECKED, "siblings are not checked again"
    assert work.changes <= 10 * MAX_CHECKED
    assert work.counts == 0
    assert {counter.total for counter in held} == {10}


def test_queries_that_select_all_pods_leave_those_of_one_workload_as_they_are() -> None:
    ledger = a_ledger()
    some_nodes(ledger, 0)
    wide = [ledger.nodes.pods.counter(each) for i in range(1000) for each in queries(WIDE["no label"](i))]
    mine = ledger.nodes.pods.counter((affinity_terms(a_pod("mine", apart=[f"app=web per {ZONE}"]))[0].term,))
    ledger.upsert_pod(a_pod("p", labels={"app": "web"}, node="n0"))
    assert not isinstance(mine, LazyCounter)
    assert mine.total == 1
    assert sum(isinstance(counter, LazyCounter) for counter in wide) == 1000 - MAX_CHECKED + 1


def test_few_pods_are_checked_one_by_one_and_many_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_queries, "MAX_CHECKED", 0)
    work, ledger = Work(monkeypatch), a_ledger()
    some_nodes(ledger, *range(6))
    counter = ledger.nodes.pods.counter(queries(WIDE["another value"](0))[0])
    ledger.upsert_pod(a_pod("first", node="n0"))
    assert counter.by_domain(ZONE).sum() == 1
    work.checks = work.counts = 0
    for many, counts in ((MAX_LOGGED, 0), (MAX_LOGGED + 1, 1)):
        seen, before = counter.version, counter.total
        for i in range(many):
            ledger.upsert_pod(a_pod(f"of {many} {i}", labels={"app": "web"}, node=f"n{i % 6}"))
        assert counter.total == before + many
        assert work.counts == counts
        steps = counter.steps_since(seen)
        assert steps is not None, "readers learn which rows changed"
        assert sum(by for _, by in steps) == many
    assert work.checks == 1, "of pods that are alike one is checked"


def test_a_count_of_all_pods_is_work_of_the_class_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_queries, "MAX_CHECKED", 0)
    ledger = a_ledger()
    some_nodes(ledger, *range(6))
    cache = ClassCache(profile_plugins(None))
    waiting = a_pod("waiting", namespace="evil", apart=[WIDE["no label"](i) for i in range(4)])
    works: list[int] = []
    for pods in (0, 2000, 2000):
        for i in range(pods):
            ledger.upsert_pod(a_pod(f"p{len(works)}-{i}", node=f"n{i % 6}"))
        before = cache.work.rows
        cache.lookup(waiting, ledger.nodes)
        works.append(cache.work.rows - before)
    assert works[1] > 4 * 2000 * 8 // 500
    assert works[2] > 4 * 4000 * 8 // 500


def a_namespace(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels))


def by_team(operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key="team", operator=operator, values=[*values])])


SELECT_TEAM: dict[str, Callable[[int], LabelSelector]] = {
    "one team": lambda i: by_team("In", "a"),
    "any of its own": lambda i: by_team("In", "a", f"v{i}"),
    "any but one": lambda i: by_team("NotIn", "b", f"v{i}"),
}


@pytest.mark.parametrize("select", SELECT_TEAM.values(), ids=SELECT_TEAM.keys())
def test_a_namespace_event_counts_and_checks_no_query(
    select: Callable[[int], LabelSelector], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, ledger = Work(monkeypatch), a_ledger()
    some_nodes(ledger, 0)
    ledger.upsert_namespace(a_namespace("team"))
    ledger.upsert_pod(a_pod("p", namespace="team", node="n0"))
    asked = [queries(asking("DoesNotExist", f"k{i}", namespaces=select(i)))[0] for i in range(500)]
    held = [ledger.nodes.pods.counter(each) for each in asked]
    covers, checked = PodSelectorTerm.covers, list[str]()

    def counting_covers(term: PodSelectorTerm, namespace: str, labels: Mapping[str, str] | None) -> bool:
        checked.append(namespace)
        return covers(term, namespace, labels)

    monkeypatch.setattr(PodSelectorTerm, "covers", counting_covers)
    for label, total in (("a", 1), ("b", 0), ("a", 1)):
        work.counts = 0
        checked.clear()
        for i in range(24):
            ledger.upsert_namespace(a_namespace(f"new-{label}-{i}", team=label))
        ledger.upsert_namespace(a_namespace("team", team=label))
        assert (work.counts, checked) == (0, [])
        assert {counter.total for counter in held} == {total}


def test_a_namespace_event_that_concerns_no_counted_pod_causes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    work, ledger = Work(monkeypatch), a_ledger()
    some_nodes(ledger, 0)
    ledger.upsert_namespace(a_namespace("team", team="a"))
    ledger.upsert_pod(a_pod("p", namespace="team", node="n0"))
    held = [ledger.nodes.pods.counter(queries(asking("DoesNotExist", "k", namespaces=by_team("In", "a")))[0])]
    work.counts = 0
    for event in (a_namespace("new", team="a"), a_namespace("team", team="a", other="x"), a_namespace("new")):
        ledger.upsert_namespace(event)
        assert not any(isinstance(counter, LazyCounter) for counter in held)
        assert [counter.total for counter in held] == [1]
    ledger.upsert_namespace(a_namespace("team", team="b"))
    assert [counter.total for counter in held] == [0]
    assert work.counts == 1
    assert not any(isinstance(counter, LazyCounter) for counter in held), "pods change it again after it was read"


ASKED = [
    *queries(asking("DoesNotExist", "tier"), asking("NotIn", "app", "a"), asking("In", "app", "a", "b")),
    *queries(asking("Exists", "app", namespaces=LabelSelector(match_labels={"team": "a"}))),
    *queries(asking("Exists", "app", namespaces=by_team("NotIn", "a"))),
    tuple(term for query in queries(asking("Exists", "app"), asking("NotIn", "tier", "c")) for term in query),
]


def one_event(rng: random.Random, ledger: Ledger, number: int) -> None:
    node, name = f"n{rng.randrange(4)}", f"p{rng.randrange(12)}"
    match rng.randrange(8):
        case 0 | 1 | 2 | 3:
            labels = rng.choice([{}, {"app": "a"}, {"app": "b", "tier": "c"}, {"app": "other", "tier": str(number)}])
            ledger.upsert_pod(a_pod(name, namespace=rng.choice("xy"), labels=labels, node=node))
        case 4:
            ledger.remove_pod(f"{rng.choice('xy')}/{name}")
        case 5:
            ledger.remove_node(node)
        case 6:
            ledger.upsert_node(a_node(node, labels={ZONE: rng.choice("xyz")}))
        case _:
            labels = {"team": rng.choice("ab")}
            if rng.randrange(4):
                ledger.upsert_namespace(Namespace(metadata=ObjectMeta(name=rng.choice("xy"), labels=labels)))
            else:
                ledger.remove_namespace(rng.choice("xy"))


@pytest.mark.parametrize("most", [0, 2, MAX_CHECKED])
@pytest.mark.parametrize("seed", range(rounds(10, 30)))
def test_a_lazy_counter_is_a_recount_after_any_events(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_queries, "MAX_CHECKED", most)
    rng, ledger = random.Random(seed), a_ledger()
    some_nodes(ledger, *range(4))
    held = {each: ledger.nodes.pods.counter(each) for each in ASKED}
    for number in range(80):
        one_event(rng, ledger, number)
        for question in rng.sample(ASKED, rng.choice([0, 0, 0, 2])):
            held[question].by_domain(ZONE)
            assert ledger.nodes.pods.differences(question) == []
    assert [ledger.nodes.pods.differences(each) for each in ASKED] == [[]] * len(ASKED)
    assert most == MAX_CHECKED or any(isinstance(counter, LazyCounter) for counter in held.values())
