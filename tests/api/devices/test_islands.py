"""Islands: what DRA drivers, labels and models say about links, and that only equal GPUs are joined."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.devices.device import UNKNOWN, FactSource, Link, NodeDevices
from kubenexus.api.devices.inventory import node_devices
from kubenexus.api.devices.islands import components
from tests.api.devices.builders import a_device, a_slice, column, devices_of, facts, gfd

NONE = Link.UNKNOWN


def islands(found: NodeDevices) -> list[int]:
    return column(found, "island")


def from_slice(*devices: dict[str, Any], driver: str = "gpu.nvidia.com", **labels: str) -> NodeDevices:
    return node_devices(
        facts({key.replace("__", "/"): value for key, value in labels.items()}), [a_slice(*devices, driver=driver)]
    )


def chain(*peers: str) -> list[dict[str, Any]]:
    return [a_device(f"gpu-{i}", nvlinkPeers=each) for i, each in enumerate(peers)]


@pytest.mark.parametrize(
    ("devices", "expected", "peers"),
    [
        pytest.param(chain("gpu-1", "gpu-0"), [0, 0], [(), ()], id="two peers"),
        pytest.param(chain("1", "0"), [0, 0], [(), ()], id="peers by number"),
        pytest.param(
            chain("1,2", "", ""), [0, 0, 0], [("gpu-1", "gpu-2"), ("gpu-0",), ("gpu-0",)], id="one side is enough"
        ),
        pytest.param(
            chain("1", "0,2", "1,3", "2"),
            [0, 0, 0, 0],
            [("gpu-1",), ("gpu-0", "gpu-2"), ("gpu-1", "gpu-3"), ("gpu-2",)],
            id="peers of a chain are kept",
        ),
        pytest.param(chain("1", "0", "3", "2"), [0, 0, 1, 1], [()] * 4, id="two pairs"),
        pytest.param(
            chain("2", "3", "0", "1"), [0, 1, 0, 1], [()] * 4, id="islands are numbered by their first members"
        ),
        pytest.param(chain("", "2", "1"), [0, 1, 1], [()] * 3, id="a card that has no peers is an island"),
        pytest.param(chain("9,x,gpu-77", "0"), [0, 0], [(), ()], id="peers that do not exist are ignored"),
        pytest.param(
            [a_device("gpu-0", nvlinkDomain=7), a_device("gpu-1", nvlinkDomain=7), a_device("gpu-2", nvlinkDomain=8)],
            [0, 0, 1],
            [()] * 3,
            id="domains",
        ),
        pytest.param(
            [a_device("gpu-0", nvlink_domain="a"), a_device("gpu-1"), a_device("gpu-2", nvlink_domain="a")],
            [0, UNKNOWN, 0],
            [()] * 3,
            id="a card without a domain has no known island",
        ),
        pytest.param(
            [a_device("gpu-0", uuid="GPU-a", nvlinkPeers="GPU-b"), a_device("gpu-1", uuid="GPU-b")],
            [0, 0],
            [()] * 2,
            id="peers by UUID",
        ),
        pytest.param(
            [a_device("gpu-0", nvlinkPeers=["gpu-1"]), a_device("gpu-1", nvlinkPeers=[0])],
            [0, 0],
            [()] * 2,
            id="peers as a list",
        ),
    ],
)
def test_published_links(devices: list[dict[str, Any]], expected: list[int], peers: list[tuple[str, ...]]) -> None:
    found = from_slice(*devices)
    assert islands(found) == expected
    assert column(found, "peers") == peers
    for device in found.devices:
        joined = expected.count(device.island) > 1 and device.island != UNKNOWN
        assert device.link is (Link.NVLINK if joined else NONE)
        assert device.sources.get("island") is (None if device.island == UNKNOWN else FactSource.DRA)


def test_hops_of_amd() -> None:
    ring = ["0:0,1:1,2:2,3:1", "0:1,1:0,2:1,3:2", "0:2,1:1,2:0,3:1", "0:1,1:2,2:1,3:0"]
    found = from_slice(*(a_device(f"gpu-{i}", xgmiHops=hops) for i, hops in enumerate(ring)), driver="gpu.amd.com")
    assert islands(found) == [0, 0, 0, 0]
    assert column(found, "peers")[0] == ("gpu-1", "gpu-3")
    assert set(column(found, "link")) == {Link.XGMI}


def test_vendors_are_never_joined() -> None:
    own = [a_slice(a_device("a", nvlinkDomain=1), a_device("b", nvlinkDomain=1))]
    other = [a_slice(a_device("c", nvlinkDomain=1, nvlinkPeers="a"), driver="gpu.amd.com")]
    assert islands(node_devices(facts(), own + other)) == [0, 0, 1]


def test_mig_devices_are_never_joined() -> None:
    mig = a_device("gpu-0-mig-0", type="mig", profile="1g.10gb", nvlinkDomain=1, nvlinkPeers="gpu-0")
    found = from_slice(a_device("gpu-0", nvlinkDomain=1), mig)
    assert islands(found) == [0, UNKNOWN]
    single = devices_of(gfd("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "4864", "7", clique="u.1"), {"nvidia.com/gpu": "7"})
    assert islands(single) == [UNKNOWN] * 7


ALL, NO = [0] * 4, [UNKNOWN] * 4
SXM, PCIE = "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe"


@pytest.mark.parametrize(
    ("labels", "expected", "link", "source"),
    [
        pytest.param(gfd(SXM, count="4"), ALL, Link.NVSWITCH, FactSource.MODEL, id="SXM cards are joined"),
        pytest.param(gfd(PCIE, count="4"), NO, NONE, None, id="PCIe cards may have bridges or not"),
        pytest.param(
            gfd("Tesla-V100-SXM2-16GB", "16160", "4"), ALL, Link.NVLINK, FactSource.MODEL, id="without a switch"
        ),
        pytest.param(gfd(PCIE, count="4", clique="u.1"), ALL, Link.NVSWITCH, FactSource.GFD, id="a clique"),
        pytest.param(
            gfd(PCIE, count="4") | {"gpu.kubenexus.io/islands": "0-1_2-3"},
            [0, 0, 1, 1],
            Link.NVLINK,
            FactSource.MANUAL,
            id="islands by hand",
        ),
        pytest.param(
            gfd(PCIE, count="4") | {"gpu.kubenexus.io/islands": "0.2_1.3", "gpu.kubenexus.io/topology": "nvswitch"},
            [0, 1, 0, 1],
            Link.NVSWITCH,
            FactSource.MANUAL,
            id="islands by hand, with their link",
        ),
        pytest.param(
            gfd(PCIE, count="4") | {"gpu.kubenexus.io/topology": "nvlink"},
            ALL,
            Link.NVLINK,
            FactSource.MANUAL,
            id="a topology by hand",
        ),
        pytest.param(
            gfd(PCIE, count="4") | {"nvidia.com/nvlink": "true"}, ALL, Link.NVLINK, FactSource.MANUAL, id="a hint"
        ),
        pytest.param(
            gfd(SXM, count="4") | {"gpu.kubenexus.io/topology": "pcie"},
            NO,
            Link.PCIE,
            None,
            id="PCIe by hand goes before the model",
        ),
        pytest.param(
            gfd(SXM, count="4") | {"gpu.kubenexus.io/topology": "token-ring"},
            ALL,
            Link.NVSWITCH,
            FactSource.MODEL,
            id="a topology that cannot be read: the model counts",
        ),
    ],
)
def test_islands_of_labels_and_models(
    labels: dict[str, str], expected: list[int], link: Link, source: FactSource | None
) -> None:
    found = devices_of(labels, {"nvidia.com/gpu": "4"})
    assert islands(found) == expected
    assert column(found, "link") == [link] * 4
    assert [device.sources.get("island") for device in found.devices] == [source] * 4


def test_a_card_that_no_group_names_has_no_known_island() -> None:
    labels = gfd(SXM, count="4") | {"gpu.kubenexus.io/islands": "0-1"}
    assert islands(devices_of(labels, {"nvidia.com/gpu": "4"})) == [0, 0, UNKNOWN, UNKNOWN]


def test_a_group_beyond_the_cards_is_named() -> None:
    found = devices_of(gfd(PCIE, count="2") | {"gpu.kubenexus.io/islands": "0-3"}, {"nvidia.com/gpu": "2"})
    assert islands(found) == [0, 0]
    assert found.warnings == ("gpu.kubenexus.io/islands: the node has 2 cards, numbered from 0",)


def test_groups_that_are_longer_than_any_node_needs_are_named() -> None:
    hostile = facts(offered={"nvidia.com/gpu": "2"}, annotations={"gpu.kubenexus.io/islands": "0-999," * 40_000})
    found = node_devices(hostile)
    assert islands(found) == [UNKNOWN, UNKNOWN]
    assert found.warnings == ("annotation gpu.kubenexus.io/islands: must have at most 512 characters",)


def test_a_single_card_has_no_island_by_its_model() -> None:
    assert islands(devices_of(gfd(SXM, count="1"), {"nvidia.com/gpu": "1"})) == [UNKNOWN]


def test_a_topology_by_hand_joins_each_vendor_by_itself() -> None:
    offered = {"nvidia.com/gpu": "2", "amd.com/gpu": "2", "habana.ai/gaudi": "1"}
    found = devices_of({"gpu.kubenexus.io/topology": "nvlink"}, offered)
    assert islands(found) == [0, 0, 1, 1, UNKNOWN]


def test_pcie_by_hand_leaves_no_bandwidth_of_nvlink() -> None:
    found = devices_of(gfd(SXM, count="2") | {"gpu.kubenexus.io/topology": "pcie"}, {"nvidia.com/gpu": "2"})
    assert column(found, "bandwidth") == [UNKNOWN, UNKNOWN]


def test_a_published_island_has_the_link_of_the_model() -> None:
    found = from_slice(*(a_device(f"gpu-{i}", nvlinkDomain=0, model=SXM) for i in range(2)))
    assert column(found, "link") == [Link.NVSWITCH] * 2
    assert found.devices[0].sources["island"] is FactSource.DRA
    assert found.devices[0].sources["link"] is FactSource.MODEL


def reference(size: int, edges: set[tuple[int, int]]) -> list[int]:
    """The least member that each one reaches, by walking."""
    least = []
    for start in range(size):
        reached, frontier = {start}, [start]
        while frontier:
            here = frontier.pop()
            near = {b for a, b in edges if a == here} | {a for a, b in edges if b == here}
            frontier += near - reached
            reached |= near
        least.append(min(reached))
    return least


graphs = st.integers(1, 12).flatmap(
    lambda size: st.tuples(
        st.just(size), st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=16)
    )
)


@given(graphs)
def test_components_of_random_graphs(graph: tuple[int, set[tuple[int, int]]]) -> None:
    size, edges = graph
    assert components(size, edges) == reference(size, edges)


@given(graphs, st.randoms(use_true_random=False))
def test_islands_of_random_peers(graph: tuple[int, set[tuple[int, int]]], random: Any) -> None:
    size, edges = graph
    devices = [
        a_device(f"gpu-{i}", nvlinkPeers=",".join(f"gpu-{b}" for a, b in sorted(edges) if a == i)) for i in range(size)
    ]
    expected = reference(size, edges)
    first = sorted(set(expected))
    random.shuffle(devices)
    found = from_slice(*devices)
    assert column(found, "name") == [f"gpu-{i}" for i in range(size)]
    assert islands(found) == [first.index(each) for each in expected]
    both = {(a, b) for a, b in edges | {(b, a) for a, b in edges} if a != b}
    for number, device in enumerate(found.devices):
        members = [each for each in range(size) if expected[each] == expected[number]]
        complete = all((a, b) in both for a in members for b in members if a != b)
        linked = tuple(f"gpu-{b}" for b in range(size) if (number, b) in both)
        assert device.peers == (() if complete else linked)


@pytest.mark.parametrize(
    ("label", "clique"),
    [
        pytest.param(
            "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1", "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1", id="a cluster"
        ),
        pytest.param("00000000-0000-0000-0000-000000000000.0", "", id="links that do not leave the machine"),
        pytest.param("1", "", id="a number that other nodes may have, too"),
    ],
)
def test_the_domain_among_nodes(label: str, clique: str) -> None:
    found = devices_of(gfd(PCIE, count="2", clique=label), {"nvidia.com/gpu": "2"})
    assert column(found, "clique") == [clique] * 2
    assert column(found, "link") == [Link.NVSWITCH] * 2
