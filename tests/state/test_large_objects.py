"""Objects that others bound or wrote cannot be refused: what is read of them is bounded."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubenexus.api.allocatable import MAX_OFFERED, allocatable
from kubenexus.api.codec import decode_pod, read_object
from kubenexus.api.core import Node, Pod
from kubenexus.api.resources import demand, footprint
from kubenexus.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubenexus.api.workloads import Namespace, ReplicaSet, Service
from kubenexus.base.errors import Malformed
from kubenexus.state.affinity_terms import MOST_ENTRIES, MOST_TERMS, AffinityKind, affinity_terms
from kubenexus.state.images import MAX_NAMES
from kubenexus.state.ledger import Ledger
from kubenexus.state.resources import BASICS, MAX_RESOURCES
from kubenexus.state.volumes.pod_volumes import MAX_MOUNTED, mounted, pod_volumes
from kubenexus.state.volumes.records import MAX_SELECTED, claim_of
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.fuzz.call_counting import counted
from kubenexus.testing.harness import a_ledger, run
from kubenexus.testing.large.objects import OTHERS
from kubenexus.testing.large.pods import PODS, plain

MEGABYTE = 1 << 20


def running(dimension: str, number: int, node: str = "n0", name: str = "large") -> Pod:
    pod = plain(name, node)
    PODS[dimension](pod, number)
    return decode_pod(msgspec.json.encode(pod))


def made(dimension: str, number: int, kind: type[Any]) -> Any:
    found = read_object(msgspec.json.encode(OTHERS[dimension].make(number)), kind)
    assert isinstance(found, kind)
    return found


def peak(act: Callable[[], object]) -> int:
    """Bytes that were taken at most while it ran."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- pods that run ------------------------------------------------------------------------------------------------


def test_of_thousands_of_terms_the_required_ones_come_first() -> None:
    pod = plain("large", "n0")
    PODS["preferred pod affinity"](pod, 2 * MOST_TERMS)
    PODS["pod anti-affinity terms"](pod, 3)
    terms = affinity_terms(decode_pod(msgspec.json.encode(pod)))
    assert len(terms) == MOST_TERMS
    assert [term.kind for term in terms].count(AffinityKind.REQUIRED_ANTI_AFFINITY) == 3


def test_terms_with_too_many_values_are_not_read() -> None:
    assert affinity_terms(running("pod affinity values", 2 * MOST_ENTRIES)) == ()
    assert len(affinity_terms(running("pod affinity values", MOST_ENTRIES // 2))) == 1


def test_a_pod_with_thousands_of_terms_takes_little_memory_and_leaves_none_behind() -> None:
    ledger = a_ledger([a_node(f"n{i}") for i in range(2_000)])
    pod = running("pod anti-affinity terms", 5_000, "n1999")
    assert peak(lambda: ledger.upsert_pod(pod)) < 8 * MEGABYTE
    assert len(ledger.nodes.pods.existing_terms) == MOST_TERMS
    ledger.remove_pod(pod.key)
    assert ledger.nodes.pods.existing_terms == {}
    assert len(ledger.nodes.pods.terms) == 0
    assert ledger.nodes.pods.terms.scope(pod.metadata.namespace) == ()


@pytest.mark.parametrize("dimension", ["volumes, claims", "volumes, disks", "volumes, ephemeral"])
def test_of_thousands_of_volumes_the_first_count(dimension: str) -> None:
    pod = running(dimension, 3 * MAX_MOUNTED)
    mounts = pod_volumes(pod)
    assert mounts is not None
    assert len(mounts.claims) + len(mounts.inline) == MAX_MOUNTED
    assert mounted(pod) == 3 * MAX_MOUNTED


def test_terms_that_are_read_hold() -> None:
    """The pod is not let onto the nodes where it is unwelcome; on others it is, in one look for all terms."""
    found = run(
        [a_node("n0"), a_node("n1")],
        [running("pod anti-affinity against everybody", 400), a_pod("beside", labels={"app": "any"})],
    )
    assert found.placements == {"beside": "n1"}


def test_sidecars_are_counted_in_steps_not_in_squares() -> None:
    pod = running("sidecars with resources", 3_000)
    for count in (footprint, demand):
        found, calls = counted(lambda count=count: count(pod), 0)  # type: ignore[misc]
        assert len([name for name, _ in found.amounts if name.startswith("e.co/")]) == 3_000
        assert calls < 200 * 3_000


@pytest.mark.parametrize("dimension", sorted(PODS))
def test_a_large_pod_that_runs_costs_in_proportion_to_its_length(dimension: str) -> None:
    ledger = a_ledger([a_node(f"n{i}") for i in range(20)])
    calls = []
    for number in (500, 2_000):
        pod = running(dimension, number)
        calls.append(counted(lambda pod=pod: ledger.upsert_pod(pod), 0)[1])  # type: ignore[misc]
        ledger.remove_pod(pod.key)
    assert calls[1] < 6 * calls[0] + 2_000


# --- nodes --------------------------------------------------------------------------------------------------------


GPU = {"example.com/gpu": 4}


def full() -> list[Node]:
    """Nodes that each offer a hundred resources of their own, together more than there is room for."""
    return [a_node(f"odd-{i}", resources={f"odd-{i}.co/r{k}": 1 for k in range(100)}) for i in range(3)]


def test_no_more_resources_are_known_than_there_is_room_for() -> None:
    ledger = a_ledger([a_node(f"n{i}", resources=GPU) for i in range(500)])
    assert peak(lambda: [ledger.upsert_node(node) for node in full()]) < 8 * MEGABYTE
    resources = ledger.nodes.resources
    assert len(resources.index) == MAX_RESOURCES == resources.by_row.shape[2] == len(resources.endless)
    assert resources.index.keys() > {*BASICS, *GPU}
    assert [ledger.audit(node) for node in full()] == [[], [], []]


def test_one_node_takes_a_part_of_the_room_whatever_it_names() -> None:
    ledger = a_ledger([a_node(f"n{i}") for i in range(500)])
    node = made("node resources", 10_000, Node)
    assert peak(lambda: ledger.upsert_node(node)) < 8 * MEGABYTE
    assert len(ledger.nodes.resources.index) <= MAX_OFFERED + len(BASICS)
    assert ledger.audit(node) == []


def test_a_resource_that_no_node_offers_any_more_makes_room_for_another() -> None:
    ledger = a_ledger([*full(), a_node("n0")])
    ledger.upsert_pod(a_pod("user", requests=GPU, node="n1"))
    ledger.upsert_node(a_node("n1", resources=GPU))
    assert "example.com/gpu" not in ledger.nodes.resources.index
    ledger.remove_node("odd-0")
    ledger.remove_node("n1")
    ledger.upsert_node(a_node("n1", resources=GPU))
    row, index = ledger.nodes.row_of["n1"], ledger.nodes.resources.index["example.com/gpu"]
    assert ledger.nodes.resources.used.item(index, row) == 4
    assert ledger.audit(a_node("n1", resources=GPU)) == []


def test_a_node_that_names_thousands_of_resources_still_offers_what_every_node_does() -> None:
    offered = dict(allocatable(made("node resources", 10_000, Node)))
    assert offered.keys() > {"cpu", "memory", "pods", "ephemeral-storage"}
    assert len(offered) == MAX_OFFERED


def test_of_thousands_of_images_the_first_count() -> None:
    ledger = a_ledger([made("node images", 3 * MAX_NAMES, Node)])
    images = ledger.nodes.images
    assert images.find("image-0") is not None
    assert images.find(f"image-{MAX_NAMES}") is None
    assert len(images.of_row(0)) == MAX_NAMES


@pytest.mark.parametrize("dimension", [name for name, other in OTHERS.items() if other.resource.kind == "Node"])
def test_a_large_node_costs_in_proportion_to_its_length(dimension: str) -> None:
    calls = []
    for number in (1_000, 4_000):
        ledger, node = a_ledger([a_node("n0")]), made(dimension, number, Node)
        calls.append(counted(lambda ledger=ledger, node=node: ledger.upsert_node(node), 0)[1])  # type: ignore[misc]
    assert calls[1] < 6 * calls[0] + 2_000


# --- what is refused as a whole -----------------------------------------------------------------------------------

REFUSED: list[tuple[str, type[Any], Callable[[Ledger, Any], object], str]] = [
    (
        "volume terms",
        PersistentVolume,
        Ledger.upsert_storage,
        "node affinity or topology has 6000 entries; at most 1000",
    ),
    ("storage class topologies", StorageClass, Ledger.upsert_storage, "node affinity or topology has 9000 entries"),
    ("drivers of a node", CSINode, Ledger.upsert_storage, "spec.drivers: has 3000 drivers; at most 128 are read"),
    ("service selector", Service, Ledger.upsert_owner, "spec.selector: has 3001 entries; at most 1000 are read"),
    ("replica set selector", ReplicaSet, Ledger.upsert_owner, "spec.selector: has 3000 entries; at most 1000 are read"),
]


@pytest.mark.parametrize(("kind", "tell", "words"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_an_object_that_everybody_would_be_held_against_is_refused_with_the_limit(
    request: pytest.FixtureRequest, kind: type[Any], tell: Callable[[Ledger, Any], object], words: str
) -> None:
    dimension = request.node.callspec.id
    ledger = Ledger()
    with pytest.raises(Malformed, match=words):
        tell(ledger, made(dimension, 3_000, kind))
    tell(ledger, made(dimension, 100, kind))


def test_a_claim_that_selects_by_too_much_says_so() -> None:
    claim = claim_of(made("claim selector", MAX_SELECTED + 1, PersistentVolumeClaim))
    assert claim.problem == "selector of claim default/claim-0 has 101 entries; at most 100 are read"
    assert not claim_of(made("claim selector", MAX_SELECTED, PersistentVolumeClaim)).problem


def test_a_namespace_that_changes_costs_no_call_for_each_of_its_labels() -> None:
    before, after = made("namespace labels", 100_000, Namespace), made("namespace labels", 100_000, Namespace)
    after.metadata.labels["changed"] = "yes"
    ledger = Ledger()
    ledger.upsert_node(a_node("n0"))
    ledger.upsert_namespace(before)
    ledger.upsert_pod(running("pod anti-affinity, namespaces by labels", 20))
    _, calls = counted(lambda: ledger.upsert_namespace(after), 1_000_000)
    assert calls < 10_000
