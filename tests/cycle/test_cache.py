"""A class's table is repaired, not computed again; these are the moments when that is easy to get wrong."""

from collections.abc import Callable

import pytest

from kubenexus.api.core import Node, TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.profile import TieBreak
from kubenexus.plugins import default_profile, profile_plugins
from kubenexus.state import change_log
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import HOSTNAME, ZONE, a_device_class, a_node, a_pod
from kubenexus.testing.harness import a_ledger
from tests.properties.table_content import fresh_table_of, table_of
from tests.properties.test_ties import ties

IMAGE = {"app:1": 300 << 20}
WEB = LabelSelector(match_labels={"app": "web"})
POD = a_pod("p", cpu=1, memory="1Gi", ports=[80], prefers={"disk In ssd": 5})

PODS = [
    POD,
    a_pod("nothing"),
    a_pod("gpu", requests={"example.com/gpu": 1}),
    a_pod("near", near=[f"app=web per {ZONE}"]),
    a_pod("apart", apart=[f"app=web per {HOSTNAME}"]),
    a_pod("even", topology_spread_constraints=[TopologySpreadConstraint(topology_key=HOSTNAME, label_selector=WEB)]),
    a_pod(
        "rather even",
        labels={"app": "web"},
        topology_spread_constraints=[
            TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable="ScheduleAnyway", label_selector=WEB)
        ],
    ),
]


def two(**first: object) -> list[Node]:
    return [a_node("n1", **first), a_node("n2")]  # type: ignore[arg-type]


MOMENTS = {
    "the last node with the image loses it": (
        [a_node("n1", images=IMAGE), a_node("n2", images=IMAGE)],
        lambda ledger: [ledger.upsert_node(node) for node in two()],
    ),
    "the first node gets the image": (two(), lambda ledger: ledger.upsert_node(a_node("n1", images=IMAGE))),
    "the node that everybody preferred goes away": (
        two(labels={"disk": "ssd"}),
        lambda ledger: ledger.remove_node("n1"),
    ),
    "the only node that nobody wants becomes wanted": (
        two(taints=["x:PreferNoSchedule"]),
        lambda ledger: ledger.upsert_node(a_node("n1")),
    ),
    "the preferred node fills up": (
        two(labels={"disk": "ssd"}, cpu=2),
        lambda ledger: ledger.upsert_pod(a_pod("q", cpu=2, node="n1")),
    ),
    "a port is taken and given back": (
        two(),
        lambda ledger: [ledger.upsert_pod(a_pod("q", ports=[80], node="n1")), ledger.remove_pod("default/q")],
    ),
    "a hole is filled by another node": (
        two(cordoned=True),
        lambda ledger: [ledger.remove_node("n1"), ledger.upsert_node(a_node("n3", labels={"disk": "ssd"}))],
    ),
    "more nodes come than there was room for": (
        two(),
        lambda ledger: [ledger.upsert_node(a_node(f"m{i}", cpu=i % 5)) for i in range(200)],
    ),
    "a node is fenced": (two(), lambda ledger: ledger.block_unreadable_pod("default/odd", "n1")),
    "a resource is offered for the first time": (
        two(),
        lambda ledger: ledger.upsert_node(a_node("n1", resources={"example.com/gpu": 1})),
    ),
    "a device class comes to back a resource": (
        two(),
        lambda ledger: ledger.upsert_device_class(a_device_class("c", resource="example.com/gpu")),
    ),
    "so many rows change that they are repaired as columns": (
        [a_node(f"m{i}") for i in range(20)],
        lambda ledger: [ledger.upsert_pod(a_pod(f"q{i}", cpu=i % 9, node=f"m{i}")) for i in range(20)],
    ),
    "a pod that others keep away from comes, and another goes": (
        two(zone="a"),
        lambda ledger: [
            ledger.upsert_pod(a_pod("q", labels={"app": "web"}, node="n1")),
            ledger.upsert_pod(a_pod("r", labels={"app": "web"}, node="n2")),
            ledger.remove_pod("default/q"),
        ],
    ),
    "a node moves to another zone with its pods": (
        [a_node("n1", zone="a"), a_node("n2", zone="b")],
        lambda ledger: [
            ledger.upsert_pod(a_pod("q", labels={"app": "web"}, node="n1")),
            ledger.upsert_node(a_node("n1", zone="b")),
        ],
    ),
    "nothing is left": (two(), lambda ledger: [ledger.remove_node("n1"), ledger.remove_node("n2")]),
}


@pytest.mark.parametrize("tie_break", list(TieBreak), ids=lambda t: t.value)
@pytest.mark.parametrize(("nodes", "event"), MOMENTS.values(), ids=MOMENTS)
def test_a_cached_answer_is_a_fresh_one_when(
    nodes: list[Node], event: Callable[[Ledger], object], tie_break: TieBreak
) -> None:
    rules = profile_plugins(ties(tie_break, default_profile()))
    ledger, class_cache = a_ledger(nodes), ClassCache(rules)
    for pod in PODS:
        table_of(pod, ledger, class_cache)
    event(ledger)
    for pod in PODS:
        assert table_of(pod, ledger, class_cache) == fresh_table_of(pod, ledger, rules)


def test_a_class_that_was_not_asked_for_too_long_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of changes is bounded; whoever slept through it is told so."""
    monkeypatch.setattr(change_log, "LIMIT", 4)
    ledger, class_cache, rules = a_ledger(two()), ClassCache(profile_plugins()), profile_plugins()
    table_of(POD, ledger, class_cache)
    for i in range(50):
        ledger.upsert_pod(a_pod(f"q{i}", cpu="10m", node="n1"))
    assert table_of(POD, ledger, class_cache) == fresh_table_of(POD, ledger, rules)
    assert class_cache.work.builds == 2


def test_a_placement_costs_one_row() -> None:
    ledger, class_cache = a_ledger([a_node(f"n{i}") for i in range(100)]), ClassCache(profile_plugins())
    class_cache.lookup(POD, ledger.nodes)
    before = class_cache.work.rows
    for i in range(10):
        ledger.assume(a_pod(f"q{i}", cpu="10m"), "n7", 0.0)
        class_cache.lookup(POD, ledger.nodes)
    assert class_cache.work.rows - before == 10
    assert class_cache.work.builds == 1


def test_a_heartbeat_costs_nothing() -> None:
    ledger, class_cache = a_ledger(two()), ClassCache(profile_plugins())
    class_cache.lookup(POD, ledger.nodes)
    before = class_cache.work.rows
    for node in two():
        ledger.upsert_node(node)
    class_cache.lookup(POD, ledger.nodes)
    assert class_cache.work.rows == before
