"""What a report changes about a row: mostly nothing, else what is in use, rarely the node itself."""

from collections.abc import Callable

import msgspec
import pytest

from kubenexus.api.devices.device import NodeDevices
from kubenexus.api.devices.node_resource_topology import NodeResourceTopology, same_devices
from kubenexus.state.ledger import Ledger
from tests.api.numa.builders import GPU, Row, a_numa_pod, an_nrt, guaranteed
from tests.plugins.numa.numa_cluster import a_run
from tests.plugins.numa.test_numa_topology import started

GI = 1 << 30


def zone(cpus: int = 8, memory: int = 16, gpus: int = 2) -> dict[str, Row]:
    return {"cpu": (8, 8, cpus), "memory": (16 * GI, 16 * GI, memory * GI), GPU: (2, 2, gpus)}


def report(*zones: dict[str, Row], policy: str = "single-numa-node", near: int = 21) -> NodeResourceTopology:
    return an_nrt(list(zones), policy, near=near)


def a_ledger() -> Ledger:
    """A node whose report has seen a pod with two CPUs, and a pod with three that came since."""
    run = a_run(report(zone(), zone()), gpus=4)
    ledger = run.ledger
    for name, cpus in (("seen", "2"), ("since", "3")):
        if name == "since":
            ledger.upsert_node_topology(report(zone(6, 15), zone()))
            ledger.read_devices()
        ledger.upsert_pod(started(a_numa_pod(guaranteed("main", cpus), name=name)))
    return ledger


@pytest.mark.parametrize(
    ("now", "of_node", "of_use"),
    [
        pytest.param(report(zone(3, 14), zone()), 0, 0, id="it confirms what was predicted: nothing"),
        pytest.param(report(zone(6, 15), zone(5, 15)), 0, 1, id="a pod is on another NUMA node: what is in use"),
        pytest.param(report(zone(2, 13), zone()), 0, 1, id="more is in use than pods explain: what is in use"),
        pytest.param(report(zone(3, 14), zone(), policy="none"), 1, 0, id="another policy of the kubelet: the node"),
        pytest.param(report(zone(3, 14), zone(), near=31), 1, 0, id="other distances: the node"),
        pytest.param(report(zone(3, 14)), 1, 0, id="a NUMA node less: the node"),
        pytest.param(report(), 1, 0, id="nothing any more: the node"),
    ],
)
def test_what_a_report_changes(now: NodeResourceTopology, of_node: int, of_use: int) -> None:
    ledger = a_ledger()
    nodes = ledger.nodes
    before = nodes.node_changes.mark, nodes.usage_changes.mark
    ledger.upsert_node_topology(now)
    ledger.read_devices()
    device_changes = 1 if of_node and len(now.zones) < 2 else 0  # its GPUs are on other NUMA nodes
    assert nodes.node_changes.mark - before[0] - device_changes == of_node
    assert (nodes.usage_changes.mark - before[1] > 0) == bool(of_use or device_changes)


def test_a_report_after_a_contradiction_changes_the_row() -> None:
    ledger = a_ledger()
    nodes = ledger.nodes
    before = nodes.node_changes.mark, nodes.usage_changes.mark
    ledger.contradict_numa("n")
    assert (nodes.node_changes.mark, nodes.usage_changes.mark) == (before[0], before[1] + 1)
    ledger.upsert_node_topology(report(zone(3, 14), zone()))
    ledger.read_devices()
    assert (nodes.node_changes.mark, nodes.usage_changes.mark) == (before[0], before[1] + 2)


def with_capacity(nrt: NodeResourceTopology, gpus: int) -> NodeResourceTopology:
    first, *others = nrt.zones
    resources = [
        msgspec.structs.replace(each, capacity=str(gpus)) if each.name == GPU else each for each in first.resources
    ]
    return msgspec.structs.replace(nrt, zones=[msgspec.structs.replace(first, resources=resources), *others])


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param(lambda nrt: nrt, True, id="an equal report has the same devices"),
        pytest.param(lambda nrt: report(zone(2, 3, 0), zone()), True, id="what is in use does not count"),
        pytest.param(lambda nrt: with_capacity(nrt, 4), False, id="the number of devices counts"),
        pytest.param(lambda nrt: report(zone()), False, id="the number of zones counts"),
        pytest.param(
            lambda nrt: msgspec.structs.replace(nrt, zones=nrt.zones[::-1]), False, id="the order of zones counts"
        ),
        pytest.param(
            lambda nrt: msgspec.structs.replace(nrt, zones=nrt.zones * 300), False, id="too many zones are not compared"
        ),
    ],
)
def test_reports_with_the_same_devices(
    change: Callable[[NodeResourceTopology], NodeResourceTopology], same: bool
) -> None:
    nrt = report(zone(), zone())
    assert same_devices(nrt, change(nrt)) is same


def test_devices_are_read_again_only_if_a_report_has_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = a_ledger()
    read: list[str] = []
    sources = ledger._inventory._sources
    plain = sources.read

    def counted(node: str) -> NodeDevices:
        read.append(node)
        return plain(node)

    monkeypatch.setattr(sources, "read", counted)
    for now in (report(zone(3, 14), zone()), report(zone(2, 12), zone())):
        ledger.upsert_node_topology(now)
        ledger.read_devices()
    assert read == []
    ledger.upsert_node_topology(with_capacity(report(zone(2, 12), zone()), 3))
    ledger.upsert_node_topology(with_capacity(report(zone(1, 12), zone()), 3))  # a mark to read them stays
    ledger.read_devices()
    assert read == ["n"]
