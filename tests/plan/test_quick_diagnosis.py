"""Reasons counted in the quick way are those that are counted node by node."""

import pytest

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.rejections import count_reasons
from kubenexus.plan.diagnose import _hopeful, diagnose, rejections
from kubenexus.plan.quick_diagnosis import hopeful_rows, quick_diagnosis
from kubenexus.plugins import profile_plugins
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

NO_MATCH = "didn't match Pod's node affinity/selector"
NODES = [
    a_node(f"n{cpu}-{memory}-{disk}", cpu=cpu, memory=memory, labels={"disk": disk})
    for cpu in (1, 8)
    for memory in ("1Gi", "8Gi")
    for disk in ("ssd", "hdd")
]


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(a_pod("p", cpu=2), (("Insufficient cpu", 4),), id="one reason"),
        pytest.param(
            a_pod("p", cpu=2, memory="2Gi"),
            (("Insufficient cpu", 4), ("Insufficient memory", 4)),
            id="two reasons of one plugin, both on two nodes",
        ),
        pytest.param(
            a_pod("p", cpu=2, requires=["disk In ssd"]),
            (("Insufficient cpu", 2), (f"node(s) {NO_MATCH}", 4)),
            id="two plugins with one reason each: the first counts",
        ),
        pytest.param(
            a_pod("p", cpu=2, memory="2Gi", requires=["disk In ssd"]),
            (("Insufficient cpu", 2), ("Insufficient memory", 2), (f"node(s) {NO_MATCH}", 4)),
            id="a plugin with two reasons behind another one",
        ),
        pytest.param(
            a_pod("p", cpu=2, memory="2Gi", gpu=1),
            (("Insufficient cpu", 4), ("Insufficient memory", 4), ("Insufficient nvidia.com/gpu", 8)),
            id="three reasons of one plugin",
        ),
    ],
)
def test_the_quick_way_counts_what_the_plain_way_counts(pod: Pod, wanted: tuple[tuple[str, int], ...]) -> None:
    columns = a_ledger(NODES).nodes
    classified = ClassCache(profile_plugins()).lookup(pod, columns)
    quick = quick_diagnosis(classified.table, columns)
    counts, plugins, errors = count_reasons(rejections(classified, columns, None))
    assert quick is not None
    assert (quick.counts, quick.refused_by) == (tuple(sorted(counts.items())), tuple(sorted(plugins)))
    assert not errors
    assert quick.counts == wanted


@pytest.mark.parametrize(
    ("pod", "rows"),
    [
        pytest.param(a_pod("p", cpu=2), ["n8-8Gi-hdd"], id="nodes that are full, and not those that are too small"),
        pytest.param(a_pod("p", cpu=9), [node.metadata.name for node in NODES], id="all, if all are too small"),
        pytest.param(
            a_pod("p", cpu=2, requires=["disk In ssd"]),
            [node.metadata.name for node in NODES if "n1" in node.metadata.name or "hdd" in node.metadata.name],
            id="the reason of the first plugin counts: the full node has another label",
        ),
    ],
)
def test_the_quick_way_finds_the_rows_that_may_pass_later(pod: Pod, rows: list[str]) -> None:
    columns = a_ledger(NODES, [a_pod("q", cpu=7, node="n8-8Gi-hdd")]).nodes
    classified = ClassCache(profile_plugins()).lookup(pod, columns)
    found = hopeful_rows(classified.table, columns)
    assert sorted(columns.names[row] for row in found) == sorted(rows)
    plain = rejections(classified, columns, None)
    assert found.tolist() == _hopeful(plain, columns).tolist()


def test_a_reason_that_no_node_has_any_more_is_not_counted() -> None:
    ledger, class_cache = a_ledger([a_node("n1", cpu=2)]), ClassCache(profile_plugins())
    ledger.upsert_pod(a_pod("q", cpu=2, node="n1"))
    assert diagnose(class_cache.lookup(a_pod("p", cpu=2), ledger.nodes), ledger.nodes, None)[0].counts
    ledger.remove_pod("default/q")
    found, _ = diagnose(class_cache.lookup(a_pod("p", cpu=2), ledger.nodes), ledger.nodes, None)
    assert (found.counts, found.refused_by) == ((), ())
