"""The ledger's transitions, one sentence each: what a pod takes from its node, from when until when."""

import pytest

from kubenexus.api.core import ContainerStatus, Node, Pod, ResourceRequirements
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.api.selectors import LabelSelector, LabelSelectorRequirement, compile_selector
from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.devices.columns import DRIVER_MEMORY
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, a_ledger, on_node
from tests.properties.table_content import bytes_of

POD = a_pod("web", cpu=1)
UNREADABLE = a_pod("web", cpu="a lot", node="n1")


def cpu(ledger: Ledger, node: str = "n1") -> int:
    """What is taken of a node's cpu, in thousandths."""
    return ledger.nodes.resources.used.item(0, ledger.nodes.row_of[node])


def two_nodes(*pods: Pod) -> Ledger:
    return a_ledger([a_node("n1", cpu=4), a_node("n2", cpu=4)], pods)


# --- from Assumed until Gone ------------------------------------------------------------------------------------------


def test_a_pod_counts_from_the_moment_it_is_assumed_until_it_is_gone() -> None:
    ledger, seen = two_nodes(), []
    for step in (
        lambda: ledger.assume(POD, "n1", 0.0),
        lambda: ledger.upsert_pod(on_node(POD, "n1")),
        lambda: ledger.remove_pod("default/web"),
    ):
        step()
        seen.append((cpu(ledger), [p.stage for p in ledger.pods.values()]))
    assert seen == [(1000, [PodStage.ASSUMED]), (1000, [PodStage.BOUND]), (0, [])]


def pods_with(ledger: Ledger, key: str) -> list[int]:
    """By row, those that have a label of this key."""
    everywhere = compile_selector(LabelSelector())
    having = compile_selector(LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator="Exists")]))
    counter = ledger.nodes.pods.counter((PodSelectorTerm(frozenset(), having, everywhere),))
    return [int(count) for count in counter.rows[:2]]


@pytest.mark.parametrize("asked", [True, False], ids=["somebody counts them", "nobody counts them yet"])
def test_labels_that_come_with_the_bind_count_from_then_on(asked: bool) -> None:
    ledger = two_nodes()
    before = pods_with(ledger, "zone") if asked else [0, 0]
    ledger.assume(POD, "n1", 0.0)
    bound = a_pod("web", cpu=1, node="n1", labels={"zone": "a"})
    dirty = ledger.upsert_pod(bound)
    assert (before, cpu(ledger), ledger.pods["default/web"].labels) == ([0, 0], 1000, {"zone": "a"})
    assert bool(dirty) == asked, "a row is only looked at again if a count changed"
    assert pods_with(ledger, "zone") == [1, 0]
    ledger.remove_pod("default/web")
    assert pods_with(ledger, "zone") == [0, 0]


def test_a_pod_whose_bind_failed_counts_no_more() -> None:
    ledger = two_nodes()
    ledger.assume(POD, "n1", 0.0)
    ledger.forget("default/web")
    assert (cpu(ledger), ledger.pods) == (0, {})


def test_a_bound_pod_is_not_forgotten() -> None:
    ledger = two_nodes(on_node(POD, "n1"))
    ledger.forget("default/web")
    assert cpu(ledger) == 1000


def test_an_assumed_pod_that_somebody_bound_elsewhere_counts_there_and_nowhere_else() -> None:
    ledger = two_nodes()
    ledger.assume(POD, "n1", 0.0)
    ledger.upsert_pod(on_node(POD, "n2"))
    assert (cpu(ledger, "n1"), cpu(ledger, "n2")) == (0, 1000)


def test_an_assumed_pod_that_the_api_server_still_shows_unbound_stays_assumed() -> None:
    ledger = two_nodes()
    ledger.assume(POD, "n1", 0.0)
    ledger.upsert_pod(POD)
    assert cpu(ledger) == 1000


@pytest.mark.parametrize("known", ["assumed", "bound"])
def test_a_pod_is_not_assumed_twice(known: str) -> None:
    ledger = two_nodes(*([on_node(POD, "n1")] if known == "bound" else []))
    if known == "assumed":
        ledger.assume(POD, "n1", 0.0)
    before = bytes_of(ledger)
    with pytest.raises(KubeNexusError, match="default/web: already assumed or bound"):
        ledger.assume(POD, "n2", 0.0)
    assert bytes_of(ledger) == before


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(phase: str) -> None:
    ledger = two_nodes(on_node(POD, "n1"))
    ledger.upsert_pod(a_pod("web", cpu=1, node="n1", phase=phase))
    assert (cpu(ledger), ledger.pods) == (0, {})


@pytest.mark.parametrize(
    ("allocated", "counted"),
    [pytest.param(3, 3000, id="it grows"), pytest.param("500m", 1000, id="it shrinks, and the spec still holds")],
)
def test_a_pod_that_is_resized_in_place_counts_with_the_larger_amount(allocated: str | int, counted: int) -> None:
    ledger = two_nodes(on_node(POD, "n1"))
    report = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": allocated}))
    ledger.upsert_pod(a_pod("web", cpu=1, node="n1", status={"container_statuses": [report]}))
    assert cpu(ledger) == counted


# --- nodes come and go ------------------------------------------------------------------------------------------------


def test_a_pod_on_a_node_nobody_has_seen_counts_when_the_node_appears() -> None:
    ledger = a_ledger(pods=[on_node(POD, "n1")])
    assert ledger.pods.keys() == {"default/web"}
    ledger.upsert_node(a_node("n1"))
    assert cpu(ledger) == 1000


def test_pods_of_a_deleted_node_count_again_when_its_name_comes_back_with_another_uid() -> None:
    ledger = two_nodes(on_node(POD, "n1"))
    ledger.remove_node("n1")
    assert ledger.pods.keys() == {"default/web"}
    ledger.upsert_node(a_node("n1", uid="another"))
    assert cpu(ledger) == 1000


def test_a_node_made_again_under_its_name_offers_what_the_new_one_offers() -> None:
    ledger = two_nodes()
    ledger.upsert_node(a_node("n1", uid="another", cpu=2, labels={"a": "b"}))
    row = ledger.nodes.row_of["n1"]
    assert ledger.nodes.resources.alloc[0, row] == 2000
    assert ledger.nodes.labels.of_row(row)["a"] == "b"


def test_what_the_pods_of_a_deleted_node_held_does_not_stay_on_its_row() -> None:
    ledger = two_nodes(on_node(POD, "n1"))
    ledger.remove_node("n1")
    ledger.upsert_node(a_node("n3"))  # takes over the row
    assert cpu(ledger, "n3") == 0


def test_a_resource_that_appears_later_is_counted_with_what_pods_hold_of_it_already() -> None:
    holder = a_pod("holder", node="n1", requests={"example.com/gpu": 2})
    ledger = two_nodes(holder)
    ledger.upsert_node(a_node("n1", resources={"example.com/gpu": 3}))
    index, row = ledger.nodes.resources.index["example.com/gpu"], ledger.nodes.row_of["n1"]
    assert ledger.nodes.resources.used[index, row] == 2


def test_a_node_that_says_what_it_said_changes_nothing() -> None:
    ledger = two_nodes()
    before = (ledger.generation, bytes_of(ledger))
    assert ledger.upsert_node(a_node("n1", cpu=4)) == set()
    assert (ledger.generation, bytes_of(ledger)) == before


def test_a_node_that_cannot_be_read_stays_as_it_was() -> None:
    ledger = two_nodes()
    before = bytes_of(ledger)
    with pytest.raises(Malformed, match=r"Node n1: status\.allocatable\[cpu\]"):
        ledger.upsert_node(a_node("n1", cpu="plenty"))
    assert bytes_of(ledger) == before


# --- pods that cannot be read -----------------------------------------------------------------------------------------


def test_a_bound_pod_that_cannot_be_read_closes_its_node_and_names_the_field() -> None:
    ledger = two_nodes()
    with pytest.raises(Malformed, match=r"Pod default/web: spec\.containers\[0\]\.resources\.requests\[cpu\]"):
        ledger.upsert_pod(UNREADABLE)
    assert ledger.blocked_nodes == {"n1": ["default/web"]}


@pytest.mark.parametrize(
    ("event", "thing"),
    [
        pytest.param("upsert_pod", on_node(POD, "n1"), id="until it can be read"),
        pytest.param("upsert_pod", on_node(POD, "n2"), id="until it can be read, elsewhere"),
        pytest.param("remove_pod", "default/web", id="until it is gone"),
        pytest.param("upsert_pod", a_pod("web", node="n1", phase="Failed"), id="until it has finished"),
    ],
)
def test_a_node_stays_closed(event: str, thing: object) -> None:
    cluster = CheckedCluster.of([a_node("n1"), a_node("n2")], [UNREADABLE])
    assert cluster.ledger.nodes.blocked.any()
    cluster.tell(event, thing)
    assert cluster.ledger.blocked_nodes == {}
    assert not cluster.ledger.nodes.blocked.any()


def test_a_node_with_two_such_pods_stays_closed_until_both_can_be_read() -> None:
    ledger = two_nodes()
    ledger.block_unreadable_pod("default/a", "n1")
    ledger.block_unreadable_pod("default/b", "n1")
    ledger.remove_pod("default/a")
    assert ledger.blocked_nodes == {"n1": ["default/b"]}


def test_a_node_is_closed_even_if_it_appears_after_the_pod() -> None:
    ledger = a_ledger()
    ledger.block_unreadable_pod("default/web", "n1")
    ledger.upsert_node(a_node("n1"))
    assert ledger.nodes.blocked[ledger.nodes.row_of["n1"]]


@pytest.mark.parametrize("before", [on_node(POD, "n1"), a_pod("web", cpu=1, nominated="n1")], ids=["bound", "waiting"])
def test_a_pod_that_can_no_longer_be_read_is_to_the_ledger_what_it_is_to_one_built_from_scratch(before: Pod) -> None:
    cluster = CheckedCluster.of([a_node("n1")], [before])
    cluster.tell("upsert_pod", a_pod("web", cpu="a lot", node=before.spec.node_name, nominated="n1"))
    assert digest(cluster.ledger) == digest(cluster.reference.ledger())


# --- the digest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "pods", "events"),
    [
        pytest.param(
            [a_node("n1", resources={"example.com/gpu": 1}), a_node("n2")],
            [a_pod("web", node="n2", requests={"example.com/gpu": 1})],
            [("remove_node", "n1")],
            id="the only node that offered a resource went away, and a pod elsewhere holds some",
        ),
        pytest.param(
            [a_node("n1", resources={"example.com/gpu": 1}), a_node("n2")],
            [a_pod("web", node="n2", requests={"example.com/gpu": 1})],
            [("upsert_node", a_node("n1"))],
            id="the only node that offered a resource stopped offering it",
        ),
        pytest.param(
            [a_node("n1")], [on_node(POD, "n1")], [("remove_node", "n1")], id="a node went away under its pod"
        ),
        pytest.param(
            [a_node("n1")],
            [a_pod(f"p{i}", node="n1", memory=str(AMOUNT_CAP)) for i in range(3)],
            [("remove_pod", "default/p1"), ("remove_pod", "default/p2")],
            id="a counter stood at its cap",
        ),
        pytest.param(
            [a_node("n1")],
            [a_pod("a", node="n1", ports=[80]), a_pod("b", node="n1", ports=[80])],
            [("remove_pod", "default/a")],
            id="two pods held the same port",
        ),
        pytest.param(
            [a_node("n1")],
            [a_pod("a", nominated="n1"), a_pod("b", nominated="n1", priority=5)],
            [("upsert_pod", a_pod("a", nominated="n2")), ("remove_pod", "default/b")],
            id="pods changed the node they wait for",
        ),
    ],
)
def test_the_digest_is_that_of_a_ledger_built_from_scratch_after(
    nodes: list[Node], pods: list[Pod], events: list[tuple[str, object]]
) -> None:
    cluster = CheckedCluster.of(nodes, pods)
    for event, thing in events:
        cluster.tell(event, thing)
    assert digest(cluster.ledger) == digest(cluster.reference.ledger())


CHANGES = {
    "a pod's node": [on_node(POD, "n2")],
    "a pod's amounts": [a_pod("web", cpu=2, node="n1")],
    "a pod's labels": [a_pod("web", cpu=1, node="n1", labels={"a": "b"})],
    "a pod's priority": [a_pod("web", cpu=1, node="n1", priority=7)],
    "a pod's UID": [a_pod("web", cpu=1, node="n1", uid="another")],
    "a pod's ports": [a_pod("web", cpu=1, node="n1", ports=[80])],
    "a pod that waits": [on_node(POD, "n1"), a_pod("b", nominated="n1")],
    "how much the waiting pod wants": [on_node(POD, "n1"), a_pod("b", nominated="n1", cpu=3)],
    "the priority of the waiting pod": [on_node(POD, "n1"), a_pod("b", nominated="n1", priority=3)],
    "nothing": [on_node(POD, "n1")],
}


def test_the_digest_tells_all_of_these_apart() -> None:
    digests = {name: digest(two_nodes(*pods)) for name, pods in CHANGES.items()}
    assert len(set(digests.values())) == len(CHANGES)


# --- devices ----------------------------------------------------------------------------------------------------------


def test_a_share_of_a_device_is_taken_with_the_pod_and_given_back_with_it() -> None:
    ledger = two_nodes()
    card = DRIVER_MEMORY + 16
    ledger.set_devices("n1", NodeDevices((Device(name="gpu-0", memory=card), Device(name="gpu-1", memory=card))))
    row = ledger.nodes.row_of["n1"]
    ledger.assume(POD, "n1", 0.0, takes=(DeviceShare("gpu-1", share=400, memory=10),))
    assert ledger.nodes.devices.share[:, row].tolist() == [1000, 600]
    assert ledger.nodes.devices.memory[:, row].tolist() == [16, 6]
    ledger.remove_pod("default/web")
    assert ledger.nodes.devices.share[:, row].tolist() == [1000, 1000]


def test_a_device_that_comes_back_is_as_taken_as_it_was() -> None:
    ledger = two_nodes()
    ledger.set_devices("n1", NodeDevices((Device(name="gpu-0"),)))
    ledger.assume(POD, "n1", 0.0, takes=(DeviceShare("gpu-0", share=400),))
    ledger.set_devices("n1", NodeDevices())
    ledger.set_devices("n1", NodeDevices((Device(name="gpu-0"),)))
    assert ledger.nodes.devices.share[0, ledger.nodes.row_of["n1"]] == 600
