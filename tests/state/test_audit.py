"""A counter that is wrong is found, named and put right, whoever has read it; one that is right is left alone."""

from collections.abc import Callable
from typing import Any

import pytest

from kubenexus.api.core import Node
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.api.selectors import NOTHING, LabelSelector, compile_selector
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.plugins import profile_plugins
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.audit import Miscount
from kubenexus.state.devices.columns import DRIVER_MEMORY
from kubenexus.state.digest import digest
from kubenexus.state.footprint import Port
from kubenexus.state.ledger import Ledger
from kubenexus.state.nodes import NodeColumns, tie_break_of
from kubenexus.state.pod_queries import PodQuery
from kubenexus.state.resources import CPU, MEMORY, PODS
from kubenexus.testing.builders import ZONE, a_node, a_pod
from tests.properties.table_content import fresh_table_of, table_of

N1, N2 = a_node("n1", cpu=8, memory="8Gi", zone="a"), a_node("n2", cpu=8, memory="8Gi", zone="b")
DEVICES = NodeDevices(tuple(Device(name=name, memory=DRIVER_MEMORY + 1000) for name in ("g0", "g1")))
PROBE = a_pod("probe", cpu=6, memory="1Gi", ports=[80])
GIB = 1 << 30


def a_cluster() -> Ledger:
    """Two nodes; on the first two pods, of which one takes half a device, and one that is only assumed."""
    ledger = Ledger()
    for node in (N1, N2):
        ledger.upsert_node(node)
    ledger.set_devices("n1", DEVICES)
    ledger.upsert_pod(a_pod("web", cpu=1, memory="1Gi", ports=[443], labels={"app": "web"}, node="n1"))
    ledger.upsert_pod(a_pod("db", cpu=1, memory="1Gi", labels={"app": "db"}, node="n2"))
    ledger.assume(a_pod("model", cpu=1, labels={"app": "web"}), "n1", 0.0, takes=(DeviceShare("g0", 500, 100),))
    return ledger


def moves(ledger: Ledger) -> tuple[int, ...]:
    """All that tells somebody that something changed."""
    nodes = ledger.nodes
    return ledger.generation, nodes.node_changes.mark, nodes.usage_changes.mark, nodes.cluster_version


def resource(column: str, r: int, by: int) -> Callable[[NodeColumns], None]:
    def spoil(nodes: NodeColumns) -> None:
        getattr(nodes.resources, column)[r, nodes.row_of["n1"]] += by

    return spoil


def device(column: str, slot: int, by: int) -> Callable[[NodeColumns], None]:
    def spoil(nodes: NodeColumns) -> None:
        getattr(nodes.devices, column)[slot, nodes.row_of["n1"]] += by

    return spoil


def port(number: int, sign: int) -> Callable[[NodeColumns], None]:
    def spoil(nodes: NodeColumns) -> None:
        nodes.ports.charge(nodes.row_of["n1"], (Port("TCP", number, "0.0.0.0"),), sign)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "counter", "held", "recounted"),
    [
        pytest.param(resource("used", CPU, 3000), "cpu used", 5000, 2000, id="cpu that nobody uses"),
        pytest.param(resource("used", MEMORY, -GIB), "memory used", 0, GIB, id="memory that is not counted"),
        pytest.param(
            resource("nonzero", CPU, 1), "cpu used, with defaults", 2001, 2000, id="what scores read, by a thousandth"
        ),
        pytest.param(
            resource("endless", CPU, 500), "cpu used without an end", 500, 0, id="a service that does not run there"
        ),
        pytest.param(resource("alloc", CPU, -8000), "cpu offered", 0, 8000, id="a node that seems to offer nothing"),
        pytest.param(resource("alloc", CPU, 8000), "cpu offered", 16000, 8000, id="or more than it has"),
        pytest.param(port(80, +1), "port 0.0.0.0:80/TCP", 1, 0, id="a port that nobody has"),
        pytest.param(port(443, -1), "port 0.0.0.0:443/TCP", 0, 1, id="a port that looks free"),
        pytest.param(port(443, +1), "port 0.0.0.0:443/TCP", 2, 1, id="a port that is counted twice"),
        pytest.param(device("share", 0, 500), "device 0 share left", 1000, 500, id="a device that looks free"),
        pytest.param(device("memory", 1, -7), "device 1 memory left", 993, 1000, id="memory of a device"),
    ],
)
def test_a_counter_that_is_wrong_is_named_and_put_right(
    spoil: Callable[[NodeColumns], None], counter: str, held: int, recounted: int
) -> None:
    ledger, class_cache, right = a_cluster(), ClassCache(profile_plugins()), digest(a_cluster())
    before = table_of(PROBE, ledger, class_cache)
    spoil(ledger.nodes)
    ledger.nodes.usage_changed(0)
    ledger.nodes.node_changes.record(0)
    table_of(PROBE, ledger, class_cache)  # so that what is wrong is remembered
    generation = ledger.generation
    assert ledger.audit(N1) == [Miscount("n1", counter, held, recounted)]
    assert ledger.generation == generation + 1
    assert digest(ledger) == right
    assert ledger.audit(N1) == []
    assert table_of(PROBE, ledger, class_cache) == before == fresh_table_of(PROBE, ledger, profile_plugins())


def test_a_pod_too_many_is_one_for_the_lots_as_well() -> None:
    ledger = a_cluster()
    nodes, lot = ledger.nodes, ledger.nodes.name_hash.item(0)
    resource("used", PODS, 1)(nodes)
    nodes.usage_changed(0)
    assert ledger.audit(N1) == [
        Miscount("n1", "draw", tie_break_of(lot, 3), tie_break_of(lot, 2)),
        Miscount("n1", "pods used", 3, 2),
    ]
    assert nodes.tie_break.item(0) == tie_break_of(lot, 2)


def test_what_is_off_is_told_in_words() -> None:
    assert str(Miscount("n1", "cpu used", 5000, 2000)) == "cpu used: held 5000, recounted 2000"


@pytest.mark.parametrize("by", [-8000, 1000], ids=["nothing", "more"])
def test_how_many_nodes_offer_a_resource_is_right_again(by: int) -> None:
    ledger = a_cluster()
    resource("alloc", CPU, by)(ledger.nodes)
    ledger.audit(N1)
    assert ledger.nodes.resources.layout(("cpu",)).fewest == 2


def full(ledger: Ledger) -> None:
    for i in range(3):
        ledger.upsert_pod(a_pod(f"huge-{i}", memory=str(AMOUNT_CAP), node="n1"))
    ledger.remove_pod("default/huge-0")


def tried(ledger: Ledger) -> None:
    with ledger.transaction() as transaction:
        transaction.place(a_pod("try", cpu=1, ports=[80]), "n1", ledger.pods["default/web"].footprint)


QUIET: dict[str, Callable[[Ledger], Any]] = {
    "nothing": lambda ledger: None,
    "counters stand at their cap": full,
    "an attempt was rolled back": tried,
    "a pod is gone": lambda ledger: ledger.remove_pod("default/web"),
    "a bind failed": lambda ledger: ledger.forget("default/model"),
    "the device of a pod is gone": lambda ledger: ledger.set_devices("n1", NodeDevices()),
    "a pod asks for what nobody offers": lambda ledger: ledger.upsert_pod(a_pod("x", requests={"a.b/c": 1}, node="n1")),
    "room is held": lambda ledger: ledger.upsert_pod(a_pod("nominee", cpu=1, nominated="n1")),
}


@pytest.mark.parametrize("happens", QUIET.values(), ids=QUIET)
def test_what_is_right_is_left_alone(happens: Callable[[Ledger], Any]) -> None:
    ledger = a_cluster()
    happens(ledger)
    before = moves(ledger)
    assert (ledger.audit(N1), ledger.audit(N2), moves(ledger)) == ([], [], before)


def test_a_node_that_is_gone_has_nothing_to_look_at() -> None:
    ledger = a_cluster()
    ledger.remove_node("n1")
    assert ledger.audit(N1) == []


# --- pods, wherever they run --------------------------------------------------------------------------------------


def asking(app: str) -> PodQuery:
    return (
        PodSelectorTerm(frozenset({"default"}), compile_selector(LabelSelector(match_labels={"app": app})), NOTHING),
    )


def test_a_count_of_pods_that_is_wrong_is_put_right() -> None:
    ledger = a_cluster()
    counter = ledger.nodes.pods.counter(asking("web"))
    ledger.audit_query(asking("web"))
    counter.add(1, +1)
    version, before = counter.version, moves(ledger)
    assert ledger.nodes.pods.queries == [asking("web")]
    assert ledger.audit_query(asking("web")) == [
        Miscount("n2", "pods with app=web", 1, 0),
        Miscount("", "pods with app=web", 3, 2),
    ]
    assert (counter.rows[:2].tolist(), counter.total) == ([2, 0], 2)
    assert counter.version > version
    assert (moves(ledger)[0], moves(ledger)[3]) == (before[0] + 1, before[3] + 1)
    assert ledger.audit_query(asking("web")) == []


def test_and_so_is_a_count_by_domain() -> None:
    ledger = a_cluster()
    counter = ledger.nodes.pods.counter(asking("web"))
    zones = counter.by_domain(ZONE)
    before = moves(ledger)
    assert (ledger.audit_query(asking("web")), moves(ledger)) == ([], before)
    zones[1] += 5
    assert ledger.audit_query(asking("web")) == [Miscount("", "pods with app=web", 7, 2)]
    assert counter.by_domain(ZONE)[1] == 2


def test_a_count_that_grows_in_hindsight_is_known_as_the_largest() -> None:
    """Whoever makes room for as many as a row has ever had is told."""
    ledger = a_cluster()
    counter = ledger.nodes.pods.counter(asking("web"))
    counter.rows[0], counter.total, counter.max_per_row = 0, 0, 0
    ledger.audit_query(asking("web"))
    assert counter.max_per_row == 2


def test_a_question_that_nobody_asks_any_more_is_none() -> None:
    assert a_cluster().audit_query(asking("web")) == []


def test_the_node_is_as_it_was_last_seen() -> None:
    ledger = a_cluster()
    grown: Node = a_node("n1", cpu=16, memory="8Gi", zone="a")
    ledger.upsert_node(grown)
    assert ledger.audit(grown) == []
