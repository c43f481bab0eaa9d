"""Classes that want the same of nodes share what was found out about it, and nothing else."""

from collections.abc import Callable

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.scores.coded_cache import cache_of
from kubenexus.framework.extension_points import CodedScores
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import ZONE, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.properties.table_content import fresh_table_of, table_of

NODES = [
    a_node("small", zone="a", labels={"disk": "ssd"}, cpu=2),
    a_node("large", zone="a", labels={"disk": "hdd"}, cpu=16),
    a_node("other", zone="b", cpu=16),
    a_node("far", zone="c", cpu=16),
]


def wanting(cpu: int) -> Pod:
    """Two of three zones, ssd rather than hdd, hdd rather than nothing."""
    return a_pod(f"p{cpu}", cpu=cpu, requires=[f"{ZONE} In a b"], prefers={"disk In ssd": 10, "disk In hdd": 4})


def points(class_cache: ClassCache, pod: Pod, ledger: Ledger) -> list[int]:
    """What NodeAffinity adds for each node."""
    table = class_cache.lookup(pod, ledger.nodes).table
    score = next(score for score in table.scores if score.plugin.name == "NodeAffinity")
    return [score.part_at(row) for row in range(len(NODES))]


@pytest.mark.parametrize("order", [(1, 8, 2, 9), (8, 1, 9, 2)], ids=["small pods first", "large pods first"])
def test_the_best_in_sight_is_each_classs_own(order: tuple[int, ...]) -> None:
    """The one node with an ssd is too small for large pods: among what is left to them, hdd is the best."""
    ledger, class_cache = a_ledger(NODES), ClassCache(profile_plugins())
    found = {cpu: points(class_cache, wanting(cpu), ledger) for cpu in order}
    assert found[1] == found[2] == [200, 80, 0, 0]
    assert found[8] == found[9] == [500, 200, 0, 0]


MOMENTS: dict[str, Callable[[Ledger], object]] = {
    "a node moves to another zone": lambda ledger: ledger.upsert_node(a_node("other", zone="c", cpu=16)),
    "a node gets what is preferred": lambda ledger: ledger.upsert_node(
        a_node("other", zone="b", cpu=16, labels={"disk": "ssd"})
    ),
    "the best node fills up": lambda ledger: ledger.upsert_pod(a_pod("q", cpu=2, node="small")),
    "a node comes": lambda ledger: ledger.upsert_node(a_node("new", zone="a", labels={"disk": "hdd"}, cpu=16)),
}


@pytest.mark.parametrize("event", MOMENTS.values(), ids=MOMENTS)
def test_what_changes_for_one_class_is_not_written_into_another(event: Callable[[Ledger], object]) -> None:
    rules = profile_plugins()
    ledger, class_cache = a_ledger(NODES), ClassCache(rules)
    pods = [wanting(1), wanting(2), wanting(8)]
    for pod in pods:
        table_of(pod, ledger, class_cache)
    event(ledger)
    for pod in [*pods, wanting(3)]:
        assert table_of(pod, ledger, class_cache) == fresh_table_of(pod, ledger, rules)


def test_classes_hold_the_same_refusals_until_they_differ() -> None:
    ledger, class_cache = a_ledger(NODES), ClassCache(profile_plugins())
    tables = [class_cache.lookup(wanting(cpu), ledger.nodes).table for cpu in (1, 2)]
    first, second = (next(f for f in table.filters if f.plugin.name == "NodeAffinity") for table in tables)
    assert np.shares_memory(first.bits, second.bits)
    ledger.upsert_node(a_node("other", zone="c", cpu=16))
    class_cache.lookup(wanting(1), ledger.nodes)
    assert first.bits.tolist() == [0, 0, 1, 1]
    assert second.bits.tolist() == [0, 0, 0, 1]


def test_a_node_that_filled_up_since_is_full_for_a_class_never_seen() -> None:
    """What is free everywhere is kept for all classes, and must be known to have changed."""
    ledger, class_cache = a_ledger([a_node("n1", cpu=4), a_node("n2", cpu=4)]), ClassCache(profile_plugins())
    assert class_cache.lookup(a_pod("a", cpu=1), ledger.nodes).table.feasible_count == 2
    ledger.upsert_pod(a_pod("q", cpu=4, node="n1"))
    assert class_cache.lookup(a_pod("b", cpu=2), ledger.nodes).table.feasible.tolist() == [False, True]
    ledger.remove_pod("default/q")
    assert class_cache.lookup(a_pod("c", cpu=3), ledger.nodes).table.feasible.tolist() == [True, True]
    ledger.upsert_node(a_node("n2", cpu=2))
    assert class_cache.lookup(a_pod("d", cpu=4), ledger.nodes).table.feasible.tolist() == [True, False]


def test_the_largest_value_in_sight() -> None:
    coded = CodedScores(np.array([0, 1, 2, 1]), np.array([5, 7, -3]))
    seen = [
        cache_of(coded).max_feasible(np.array(ok))
        for ok in (
            [True, True, True, True],
            [True, False, True, True],  # the row that showed it is gone, another has it
            [True, False, True, False],
            [False, False, True, False],
            [False, False, False, False],
            [False, False, False, True],
        )
    ]
    assert seen == [7, 7, 5, 0, 0, 7]
    assert cache_of(CodedScores(np.zeros(0, np.intp), np.array([5]))).max_feasible(np.zeros(0, np.bool_)) == 0
