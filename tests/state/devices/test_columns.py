"""Device columns: what pods hold is taken and given back to the byte, whatever happens to their node meanwhile."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.device import Device, NodeDevices
from kubenexus.api.devices.device_share import DeviceShare, devices_annotation
from kubenexus.api.devices.resource_slice import ResourceSlice
from kubenexus.api.keys import gpu
from kubenexus.state.devices.columns import DeviceColumns
from kubenexus.state.digest import digest
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import GPU, a_node, a_pod
from kubenexus.testing.harness import CheckedCluster, a_ledger, on_node
from tests.plugins.devices.device_cluster import GIB, device_clusters, device_pods
from tests.state.devices.slices import a_gpu_node, a_slice, gpus


def bytes_of(columns: DeviceColumns) -> dict[str, Any]:
    """Every array, byte for byte."""
    found: dict[str, Any] = {}
    for name, value in vars(columns).items():
        arrays = value if isinstance(value, dict) else dict(enumerate(value if isinstance(value, list) else [value]))
        found |= {f"{name} {key}": each.tobytes() for key, each in arrays.items() if isinstance(each, np.ndarray)}
    return found


def a_holder(name: str, *shares: DeviceShare, node: str = "n", number: int | None = None) -> Pod:
    """A pod on a node with these devices; without a number it has a part."""
    texts = {gpu.DEVICES.key: devices_annotation(shares)} | ({} if number else {gpu.FRACTION.key: "0.5"})
    return a_pod(name, gpu=number, node=node, annotations=texts)


def left(ledger: Ledger, node: str = "n") -> list[int]:
    ledger.read_devices()
    devices, row = ledger.nodes.devices, ledger.nodes.row_of[node]
    return [devices.share.item(slot, row) for slot in range(len(devices.of_row(row).node.devices))]


@settings(max_examples=2 * settings().max_examples)
@given(cluster=device_clusters(), data=st.data(), number=st.integers(1, 4))
def test_pods_that_are_only_tried_leave_every_byte_as_it_was(
    cluster: CheckedCluster, data: st.DataObject, number: int
) -> None:
    ledger = cluster.ledger
    ledger.read_devices()
    before = bytes_of(ledger.nodes.devices)
    with ledger.transaction() as transaction:
        for i in range(number):
            node = data.draw(st.sampled_from(sorted(ledger.nodes.row_of)))
            pod = data.draw(device_pods(f"t{i}"))
            names = [device.name for device in ledger.devices_of(node).devices] or ["gone"]
            takes = data.draw(st.lists(st.builds(DeviceShare, st.sampled_from(names), st.integers(1, 1000))))
            transaction.place(pod, node, ledger_footprint(pod), tuple(takes))
            assert_left_is_what_columns_say(ledger)
    assert bytes_of(ledger.nodes.devices) == before
    assert_left_is_what_columns_say(ledger)


def assert_left_is_what_columns_say(ledger: Ledger) -> None:
    devices = ledger.nodes.devices
    for row in ledger.nodes.row_of.values():
        assert devices.left(row) == (*devices.share[:, row].tolist(), *devices.memory[:, row].tolist())


def ledger_footprint(pod: Pod) -> Any:
    other = a_ledger([a_node("x")], [on_node(pod, "x")])
    return other.pods[pod.key].footprint


@given(cluster=device_clusters(), data=st.data())
def test_pods_that_leave_in_any_order_leave_all_devices_free(cluster: CheckedCluster, data: st.DataObject) -> None:
    for key in data.draw(st.permutations(sorted(cluster.reference.pods))):
        cluster.tell("remove_pod", key)
        assert_left_is_what_columns_say(cluster.ledger)
        assert all(cluster.ledger.audit(node) == [] for node in cluster.reference.nodes.values())
    fresh = Ledger()
    for name, node in cluster.reference.nodes.items():
        fresh.upsert_node(node)
        fresh.set_devices(name, cluster.reference.devices[name])
    assert bytes_of(cluster.ledger.nodes.devices) == bytes_of(fresh.nodes.devices)


def test_the_columns_grow_with_the_nodes_and_keep_what_is_held() -> None:
    ledger = a_ledger([a_gpu_node("n", 2)], [a_holder("p", DeviceShare("gpu-1"), number=1)])
    for i in range(3000):
        ledger.upsert_node(a_node(f"m{i}"))
    ledger.upsert_node(a_gpu_node("last", 8))
    assert left(ledger) == [1000, 0]
    assert left(ledger, "last") == [1000] * 8
    assert ledger.nodes.devices.count == 10


GONE_AND_BACK: dict[str, Any] = {
    "the node": (
        lambda ledger: ledger.remove_node("n"),
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 4, shared=True)),
    ),
    "the label that shares its cards": (
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 4)),
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 4, shared=True)),
    ),
    "what the kubelet offers": (
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 0, shared=True, vram="")),
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 4, shared=True)),
    ),
    "all cards but one": (
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 1, shared=True)),
        lambda ledger: ledger.upsert_node(a_gpu_node("n", 4, shared=True)),
    ),
}
HOLDERS = [
    a_holder("whole", DeviceShare("gpu-0"), DeviceShare("gpu-1"), number=2),
    a_holder("half", DeviceShare("gpu-2", 500, 20 * GIB)),
    a_holder("third", DeviceShare("gpu-2", 300, 9 * GIB)),
]


@pytest.mark.parametrize(
    "changes", [pytest.param(each, id=f"{name} is gone and back") for name, each in GONE_AND_BACK.items()]
)
def test_f37_what_pods_hold_counts_again_when_its_device_is_back_and_is_not_leaked(changes: tuple[Any, Any]) -> None:
    node = a_gpu_node("n", 4, shared=True)
    ledger = a_ledger([node], HOLDERS)
    before, held = digest(ledger), left(ledger)
    assert held == [0, 0, 200, 1000]
    changes[0](ledger)
    changes[1](ledger)
    assert (left(ledger), digest(ledger), ledger.audit(node)) == (held, before, [])
    changes[0](ledger)
    for pod in HOLDERS:
        ledger.remove_pod(pod.key)
    changes[1](ledger)
    assert left(ledger) == [1000] * 4
    assert digest(ledger) == digest(a_ledger([node]))


def test_f37_a_slice_that_is_deleted_before_its_pod_leaks_nothing() -> None:
    ledger = a_ledger([a_node("n", labels={gpu.SHARED.key: "true"})])
    found = a_slice("s", "n", *gpus(2))
    ledger.upsert_resource_slice(found)
    ledger.upsert_pod(HOLDERS[0])
    ledger.upsert_pod(a_holder("half", DeviceShare("gpu-0", 500)))
    assert left(ledger) == [-500, 0], "over-claimed, and remembered as such"
    ledger.remove_resource_slice("s")
    assert left(ledger) == []
    ledger.remove_pod(HOLDERS[0].key)
    ledger.upsert_resource_slice(found)
    assert left(ledger) == [500, 1000]
    ledger.remove_pod("default/half")
    assert left(ledger) == [1000, 1000]


def test_a_card_that_several_pods_claim_is_free_when_the_last_has_left() -> None:
    pods = [a_holder(f"p{i}", DeviceShare("gpu-0"), number=1) for i in range(3)]
    ledger = a_ledger([a_gpu_node("n", 2)], pods)
    for i, pod in enumerate(pods):
        assert left(ledger) == [1000 - 1000 * (3 - i), 1000]
        assert ledger.nodes.devices.free.item(0) == 0b10
        ledger.remove_pod(pod.key)
    assert ledger.nodes.devices.free.item(0) == 0b11


def test_a_replica_of_a_card_with_thousands_of_them_is_never_nothing() -> None:
    ledger = a_ledger([a_node("n", resources={GPU: 4096})])
    ledger.set_devices("n", NodeDevices((Device(name="gpu-0", resource=GPU, replicas=4096),), shared=True))
    assert ledger.nodes.devices.free.item(0) == 1
    ledger.upsert_pod(a_holder("p", DeviceShare("gpu-0"), number=1))
    assert ledger.nodes.devices.free.item(0) == 0


# --- live and rebuilt -------------------------------------------------------------------------------------------------

NODES = ["n", "m"]
NODE_EVENTS = st.builds(
    a_gpu_node, st.sampled_from(NODES), st.sampled_from([4, 4, 2, 0]), shared=st.booleans(), vram=st.just("80Gi")
)
SLICE_EVENTS = st.builds(
    lambda node, count, generation: a_slice(f"of-{node}", node, *gpus(count), generation=generation),
    st.sampled_from(NODES),
    st.integers(0, 4),
    st.integers(1, 2),
)
SHARES = st.builds(
    DeviceShare, st.sampled_from([f"gpu-{i}" for i in range(5)]), st.sampled_from([1000, 500, 1]), st.just(8 * GIB)
)
POD_EVENTS = st.builds(
    lambda name, node, shares, number: a_holder(name, *shares, node=node, number=number),
    st.sampled_from([f"p{i}" for i in range(5)]),
    st.sampled_from(NODES),
    st.lists(SHARES, min_size=1, max_size=3, unique_by=lambda each: each.device),
    st.sampled_from([None, 1, 2, 4]),
)
GONE_EVENTS = st.sampled_from(["remove_node n", "remove_node m", "remove_resource_slice of-n"])
POD_GONE = st.sampled_from([f"remove_pod default/p{i}" for i in range(5)])


@settings(max_examples=4 * settings().max_examples)
@given(events=st.lists(NODE_EVENTS | SLICE_EVENTS | POD_EVENTS | GONE_EVENTS | POD_GONE, max_size=20))
def test_a_live_ledger_is_one_that_is_rebuilt_from_the_annotations(events: list[Any]) -> None:
    live, kept = Ledger(), dict[tuple[str, str], Any]()
    for event in events:
        tell(live, kept, event)
        for node in [each for each in kept.values() if isinstance(each, Node)]:
            assert live.audit(node) == []
    rebuilt = Ledger()
    for kind in (Node, ResourceSlice, Pod):
        for each in [each for each in kept.values() if isinstance(each, kind)]:
            getattr(rebuilt, _UPSERT[kind])(each)
    assert digest(live) == digest(rebuilt)


_UPSERT: dict[Any, str] = {Node: "upsert_node", Pod: "upsert_pod", ResourceSlice: "upsert_resource_slice"}


def tell(ledger: Ledger, kept: dict[tuple[str, str], Any], event: Any) -> None:
    """Sends an event to the ledger. A pod that runs keeps its node and its annotation until it is deleted."""
    if isinstance(event, str):
        method, name = event.split()
        getattr(ledger, method)(name)
        kept.pop((method.removeprefix("remove_"), name), None)
        return
    kind = _UPSERT[type(event)].removeprefix("upsert_")
    name = event.key if isinstance(event, Pod) else event.metadata.name
    if isinstance(event, Pod) and (kind, name) in kept:
        return
    kept[kind, name] = event
    getattr(ledger, f"upsert_{kind}")(event)
