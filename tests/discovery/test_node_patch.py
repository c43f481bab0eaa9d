"""Labels and annotations of machines that are not as usual, and what is left out of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.keys import KeyKind
from kubenexus.api.keys.lists import CpuList
from kubenexus.base.errors import Malformed
from kubenexus.discovery.kubelet_config import KubeletSettings, read_kubelet_config
from kubenexus.discovery.machine import Gpu, Machine, NumaNode, RdmaPort, islands
from kubenexus.discovery.node_patch import ANNOTATIONS, LABELS, label_value, node_patch, ranges
from kubenexus.discovery.topology_object import topology_object

TWO = (NumaNode(0, (0, 1, 4, 5), 2**30), NumaNode(1, (2, 3, 6, 7), 2**30))


def cards(*, number: int = 4, **facts: Any) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(f"0000:0{each}:00.0", **{"vendor": "nvidia", "model": "NVIDIA L4", "uuid": f"GPU-{each}"} | facts)
        for each in range(number)
    )


def test_keys_are_written_where_they_are_read() -> None:
    assert [entry.key for entry in LABELS if KeyKind.LABEL not in entry.kind] == []
    assert [entry.key for entry in ANNOTATIONS if KeyKind.ANNOTATION not in entry.kind] == []


def test_the_page_names_each_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "discovery.md").read_text(encoding="utf-8")
    keys = [entry.key for entry in (*LABELS, *ANNOTATIONS)]
    assert [key for key in keys if key.rpartition("/")[2].removeprefix("node-<i>") not in page] == []


@pytest.mark.parametrize(
    ("gpus", "labels"),
    [
        pytest.param(cards(), {"count": "4", "model": "NVIDIA-L4", "topology": "pcie"}, id="cards without links"),
        pytest.param(cards(number=1), {"count": "1", "model": "NVIDIA-L4"}, id="one card is joined with none"),
        pytest.param(cards(uuid=""), {"count": "4", "model": "NVIDIA-L4"}, id="links that are not known"),
        pytest.param(
            (*cards(number=1, memory=2**30), *cards(number=1, model="NVIDIA T4", memory=2**29)),
            {"count": "2", "topology": "pcie"},
            id="two models and sizes have no label",
        ),
        pytest.param(cards(divided=True), {}, id="parts of cards are described by others"),
        pytest.param((*cards(number=1), Gpu("0000:09:00.0", "amd", "MI210")), {}, id="two vendors"),
        pytest.param(
            cards(number=1, memory=1500), {"count": "1", "model": "NVIDIA-L4", "vram": "1500"}, id="odd bytes"
        ),
    ],
)
def test_the_labels_of_cards(gpus: tuple[Gpu, ...], labels: dict[str, str]) -> None:
    patch = node_patch(Machine(gpus=gpus))
    assert patch.labels == {f"gpu.kubenexus.io/{name}": value for name, value in labels.items()}
    assert bool(patch.warnings) == ("model" not in labels)


def test_cards_in_pairs_are_islands_of_two() -> None:
    pairs = [Gpu(f"0000:0{each}:00.0", "nvidia", uuid="GPU", peers=(f"0000:0{each ^ 2}:00.0",)) for each in range(4)]
    assert islands(pairs) == [(0, 2), (1, 3)]
    patch = node_patch(Machine(gpus=tuple(pairs)))
    assert patch.annotations == {"gpu.kubenexus.io/islands": "0.2_1.3"}
    assert patch.labels["gpu.kubenexus.io/topology"] == "nvlink"


@pytest.mark.parametrize(
    ("ports", "labels"),
    [
        pytest.param((), {}, id="no port"),
        pytest.param(
            (RdmaPort("a", 1, "infiniband", 400 * 10**9, "x"), RdmaPort("b", 1, "infiniband", 400 * 10**9, "y")),
            {"fabric-type": "infiniband", "bandwidth": "800Gbps"},
            id="two subnets are no one fabric",
        ),
        pytest.param(
            (RdmaPort("a", 1, "ethernet", 25 * 10**9), RdmaPort("b", 1, "infiniband", 100 * 10**9)),
            {"fabric-type": "infiniband", "bandwidth": "100Gbps"},
            id="InfiniBand goes before Ethernet",
        ),
    ],
)
def test_the_labels_of_the_fabric(ports: tuple[RdmaPort, ...], labels: dict[str, str]) -> None:
    found = node_patch(Machine(ports=ports)).labels
    assert found == {f"network.kubenexus.io/{name}": value for name, value in labels.items()}


def test_many_numa_nodes_do_not_fill_the_node() -> None:
    nodes = tuple(NumaNode(each, (each,), 1024, {}, dict.fromkeys(range(1000), 20)) for each in range(1000))
    patch = node_patch(Machine(nodes))
    assert patch.labels["numa.kubenexus.io/node-count"] == "1000"
    assert len(patch.annotations) == 128
    assert topology_object(Machine(nodes), "n") is None


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranges_are_read_back(numbers: set[int]) -> None:
    assert CpuList().parse(ranges(sorted(numbers), ",")) == tuple(sorted(numbers))


@given(st.integers(1, 8), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))), st.sets(st.integers(0, 7)))
def test_islands_are_what_links_reach(size: int, links: set[tuple[int, int]], switched: set[int]) -> None:
    gpus = [
        Gpu(
            f"{each}",
            "nvidia",
            peers=tuple(f"{other}" for one, other in sorted(links) if one == each),
            switched=each in switched,
        )
        for each in range(size)
    ]
    reached = []
    for start in range(size):
        found = {start}
        for _ in range(size):
            found |= {b for a, b in links if a in found and b < size} | {a for a, b in links if b in found and a < size}
            found |= {each for each in switched if each < size} if found & switched else set()
        reached.append(tuple(sorted(found)))
    assert islands(gpus) == [group for group in dict.fromkeys(reached) if len(group) > 1]


def test_texts_become_values_of_labels() -> None:
    assert label_value("NVIDIA RTX PRO 6000 (Max-Q)/é") == "NVIDIA-RTX-PRO-6000-Max-Q"
    assert len(label_value("x" * 500)) == 63
    assert (ranges([0, 1, 2, 5], ","), ranges([], ",")) == ("0-2,5", "")


def zones(kubelet: KubeletSettings, **more: Any) -> Any:
    found = topology_object(Machine(TWO, 2, **more), "n", "u", kubelet)
    return (
        [{each["name"]: each["allocatable"] for each in zone["resources"]} for zone in found["zones"]]
        if found
        else None
    )


def test_a_report_has_what_the_managers_of_the_kubelet_manage() -> None:
    assert zones(KubeletSettings(known=True)) is None
    assert zones(KubeletSettings(known=True, static_cpus=True, reserved_cpus=frozenset((0, 2)))) == [
        {"cpu": "3"},
        {"cpu": "3"},
    ]
    assert zones(KubeletSettings(known=True, static_cpus=True, reserved_number=2)) == [{"cpu": "2"}, {"cpu": "4"}]
    memory = KubeletSettings(known=True, static_memory=True, reserved_memory={(1, "memory"): 2**29})
    assert zones(memory) == [{"memory": str(2**30)}, {"memory": str(2**29)}]


def test_devices_are_in_a_report_if_the_kubelet_offers_just_these() -> None:
    machine = Machine(TWO, 2, cards(numa=1))
    for offered, expected in (({"nvidia.com/gpu": 4}, ["0", "4"]), ({"nvidia.com/gpu": 8}, None), ({}, None)):
        found = topology_object(machine, "n", offered=offered)
        assert (found and [zone["resources"][0]["available"] for zone in found["zones"]]) == expected
    assert topology_object(Machine(TWO, 2, cards(numa=-1)), "n") is None, "one card is on no NUMA node that is known"


def test_the_configuration_of_a_kubelet_is_read() -> None:
    found = read_kubelet_config(
        json.dumps(
            {
                "kind": "KubeletConfiguration",
                "topologyManagerPolicy": "restricted",
                "topologyManagerScope": "pod",
                "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
                "cpuManagerPolicy": "static",
                "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"},
                "kubeReserved": {"cpu": "200m", "memory": "1Gi"},
                "systemReserved": {"cpu": "1"},
            }
        )
    )
    assert found == KubeletSettings(
        True, "restricted", True, True, reserved_number=2, spread_cpus=True, prefer_closest=True
    )
    assert read_kubelet_config("kind: KubeletConfiguration\n") == KubeletSettings(known=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a list", "must be a KubeletConfiguration"),
        ("kind: Pod", "must be a KubeletConfiguration"),
        ("{", "no YAML"),
        ("a: &x [*x, *x]", "no anchors"),
        ("topologyManagerPolicy: strict", "topologyManagerPolicy: must be one of"),
        ("reservedSystemCPUs: 0-99999", "reservedSystemCPUs"),
        ("kubeReserved: {cpu: lots}", "kubeReserved or systemReserved"),
        ("reservedMemory: [1]", "reservedMemory"),
        ("reservedMemory: [{numaNode: 0, limits: {memory: much}}]", "reservedMemory"),
        ("x: " + "y" * 70_000, "at most 65536 bytes"),
        ("[" * 2_000, "no YAML"),
    ],
    ids=lambda text: text[:40],
)
def test_a_configuration_that_cannot_be_read_names_the_field(text: str, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        read_kubelet_config(text)
