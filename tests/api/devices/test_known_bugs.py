"""The bugs of earlier schedulers about devices, by their number in the specification: each is absent here."""

import time
from typing import Any

import pytest

from kubenexus.api.codec import read_object
from kubenexus.api.devices.device import UNKNOWN, DeviceKind, FactSource
from kubenexus.api.devices.inventory import node_devices
from kubenexus.api.devices.resource_slice import ResourceSlice
from tests.api.devices.builders import GIB, a_device, a_slice, column, devices_of, facts, gfd

NFD = "feature.node.kubernetes.io/"


def test_vram_6_the_model_is_no_switch() -> None:
    devices = [a_device(f"gpu-{i}", model="H100", memory="80Gi") for i in range(4)]
    assert column(node_devices(facts(), [a_slice(*devices)]), "switch") == [UNKNOWN] * 4
    devices = [a_device(f"gpu-{i}", model="H100", pcieSwitch=f"sw-{i % 2}") for i in range(4)]
    assert column(node_devices(facts(), [a_slice(*devices)]), "switch") == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("model", "gib"),
    [
        pytest.param("NVIDIA-A100-SXM4-80GB", 80, id="the size is not beside the family"),
        pytest.param("RTX-A4000", 16, id="A4000 is no A40"),
        pytest.param("A100X", 80, id="A100X is no A100 of 40 GB"),
        *(
            pytest.param(model, gib, id=f"{model} is known")
            for model, gib in (
                ("A10", 24),
                ("A16", 16),
                ("B200", 180),
                ("GB200", 186),
                ("GH200", 96),
                ("RTX-PRO-6000", 96),
                ("L20", 48),
                ("H20", 96),
                ("MI210", 64),
                ("MI250", 64),
                ("MI325X", 256),
                ("MI355X", 288),
                ("Gaudi2", 96),
            )
        ),
    ],
)
def test_vram_9_sizes_by_model(model: str, gib: int) -> None:
    assert column(devices_of({"gpu.kubenexus.io/model": model}), "memory") == [gib * GIB]


def test_vram_9_the_reported_memory_goes_before_the_model() -> None:
    found = devices_of(gfd("NVIDIA-A100-SXM4-80GB", "81251", "1"), {"nvidia.com/gpu": "1"})
    assert column(found, "memory") == [81251 << 20]
    assert found.devices[0].sources["memory"] is FactSource.GFD


@pytest.mark.parametrize(
    ("text", "size"), [("80GB", 80 * 10**9), ("80GiB", 80 * GIB), ("80G", 80 * 10**9), ("80Gi", 80 * GIB)]
)
def test_vram_10_gigabytes_as_people_write_them(text: str, size: int) -> None:
    assert column(devices_of({"gpu.kubenexus.io/vram": text}), "memory") == [size]


def test_dra_1_names_that_the_api_server_accepts() -> None:
    attributes: dict[str, Any] = {
        "resource.kubernetes.io__numaNode": 1,
        "resource.kubernetes.io__pciBusID": "0000:01:00.0",
        "resource.kubernetes.io__pcieRoot": "pci0000:00",
        "gpu.nvidia.com__nvlinkDomain": 3,
    }
    (device,) = node_devices(facts(), [a_slice(a_device("gpu-0", **attributes))]).devices
    assert (device.numa, device.pci_address, device.switch, device.island) == (1, "0000:01:00.0", 0, 0)


def test_dra_1_names_with_hyphens_of_the_examples_are_read_too() -> None:
    attributes: dict[str, Any] = {
        "numa-node": 1,
        "pcie-bus-id": "0000:01:00.0",
        "pcie-switch": "sw-0",
        "nvlink-domain": "3",
    }
    (device,) = node_devices(facts(), [a_slice(a_device("gpu-0", **attributes))]).devices
    assert (device.numa, device.pci_address, device.switch, device.island) == (1, "0000:01:00.0", 0, 0)


def test_dra_2_values_as_the_api_server_writes_them() -> None:
    raw = b"""{"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0", "attributes": {
        "numaNode": {"int": 0}, "productName": {"string": "NVIDIA L4"}, "cudaComputeCapability": {"version": "8.9.0"}},
        "capacity": {"memory": {"value": "23034Mi"}}}]}}"""
    found = read_object(raw, ResourceSlice)
    assert isinstance(found, ResourceSlice)
    (device,) = node_devices(facts(), [found]).devices
    assert (device.numa, device.family, device.memory) == (0, "L4", 23034 << 20)


def test_dra_3_the_fixture_with_domains() -> None:
    attributes: dict[str, Any] = {
        "gpu.nvidia.com__model": "A100",
        "gpu.nvidia.com__memory": 81920,
        "gpu.nvidia.com__nvlinkDomain": "0",
    }
    (device,) = node_devices(facts(), [a_slice(a_device("gpu-0", **attributes))]).devices
    assert (device.family, device.memory, device.island) == ("A100", 80 * GIB, 0)
    capacity = {"name": "gpu-0", "capacity": {"gpu.nvidia.com/vram": {"value": "80Gi"}}}
    assert column(node_devices(facts(), [a_slice(capacity)]), "memory") == [80 * GIB]


def test_dra_devices_without_memory_are_not_dropped() -> None:
    assert column(node_devices(facts(), [a_slice(a_device("gpu-0"))]), "memory") == [UNKNOWN]


@pytest.mark.parametrize(
    ("labels", "offered", "vendors", "families"),
    [
        pytest.param(
            {f"{NFD}pci-0302_10de.present": "true"},
            {"nvidia.com/gpu": "2"},
            ["nvidia"] * 2,
            [""] * 2,
            id="class and vendor",
        ),
        pytest.param(
            {f"{NFD}pci-0302_10de.present": "true"}, {}, ["nvidia"], [""], id="class and vendor alone: one card"
        ),
        pytest.param(
            {f"{NFD}pci-0302_10de_2330.present": "true"},
            {"nvidia.com/gpu": "2"},
            ["nvidia"] * 2,
            ["H100"] * 2,
            id="with the device",
        ),
        pytest.param({f"{NFD}pci-10de_2330.present": "true"}, {}, ["nvidia"], ["H100"], id="vendor and device"),
        pytest.param({f"{NFD}pci-2330_10de.present": "true"}, {}, ["nvidia"], ["H100"], id="in another order"),
        pytest.param({f"{NFD}pci-1200_1002_74a1.present": "true"}, {}, ["amd"], ["MI300X"], id="AMD"),
        pytest.param({f"{NFD}pci-1200_1da3_1020.present": "true"}, {}, ["habana"], ["Gaudi2"], id="Gaudi"),
        pytest.param({f"{NFD}pci-0380_8086_56c0.present": "true"}, {}, ["intel"], ["Flex-170"], id="Intel"),
        pytest.param({f"{NFD}pci-0200_10de.present": "true"}, {}, [], [], id="a network card is no GPU"),
        pytest.param({f"{NFD}pci-0680_10de_22a3.present": "true"}, {}, [], [], id="a switch is no GPU"),
        pytest.param({f"{NFD}pci-0300_8086.present": "true"}, {}, [], [], id="a mainboard's display is no GPU"),
        pytest.param({f"{NFD}pci-0300_1a03.present": "true"}, {}, [], [], id="another vendor"),
        pytest.param(
            {f"{NFD}pci-0302_10de_20b2.present": "true", f"{NFD}pci-0302_10de_1eb8.present": "true"},
            {"nvidia.com/gpu": "4"},
            ["nvidia"] * 4,
            [""] * 4,
            id="two models, and it is not known which card is which",
        ),
        pytest.param(
            {f"{NFD}pci-10de.device.20b2.count": "1", f"{NFD}pci-10de.device.1eb8.count": "2"},
            {"nvidia.com/gpu": "3"},
            ["nvidia"] * 3,
            ["T4", "T4", "A100"],
            id="two models whose counts add up",
        ),
    ],
)
def test_nfd_1_labels_as_nfd_writes_them(
    labels: dict[str, str], offered: dict[str, str], vendors: list[str], families: list[str]
) -> None:
    found = devices_of(labels, offered)
    assert column(found, "vendor") == vendors
    assert column(found, "family") == families


def test_nfd_2_present_and_count_are_the_same_cards() -> None:
    labels = {f"{NFD}pci-10de.device.2330.present": "true", f"{NFD}pci-10de.device.2330.count": "4"}
    labels[f"{NFD}pci-0302_10de_2330.present"] = labels[f"{NFD}pci-0302_10de.present"] = "true"
    found = devices_of(labels)
    assert column(found, "name") == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert column(found, "memory") == [80 * GIB] * 4


@pytest.mark.parametrize("key", ["pci-10de.device.2330.present", "pci-0302_10de.present", "pci-0302_10de_2330.present"])
def test_nfd_3_false_is_not_present(key: str) -> None:
    assert devices_of({NFD + key: "false"}).devices == ()


def test_nfd_3_a_count_does_not_outweigh_false() -> None:
    labels = {f"{NFD}pci-10de.device.2330.present": "false", f"{NFD}pci-10de.device.2330.count": "4"}
    assert devices_of(labels).devices == ()


@pytest.mark.parametrize(
    ("cards", "nodes", "numa"),
    [
        pytest.param(5, 2, [0, 0, 0, 1, 1], id="an odd number"),
        pytest.param(2, 4, [0, 2], id="fewer cards than NUMA nodes"),
        pytest.param(8, 2, [0] * 4 + [1] * 4, id="an even number"),
        pytest.param(3, 1, [0, 0, 0], id="one NUMA node"),
    ],
)
def test_nfd_4_cards_are_split_evenly(cards: int, nodes: int, numa: list[int]) -> None:
    labels = {f"{NFD}memory-numa": "true", f"{NFD}memory-numa.node_count": str(nodes)}
    assert column(devices_of(labels, {"nvidia.com/gpu": str(cards)}), "numa") == numa


def test_nfd_4_the_highest_numa_node_tells_their_number() -> None:
    labels = {f"{NFD}memory-numa.node{i}": "true" for i in range(4)}
    assert column(devices_of(labels, {"nvidia.com/gpu": "4"}), "numa") == [0, 1, 2, 3]
    assert column(devices_of({f"{NFD}memory-numa": "true"}, {"nvidia.com/gpu": "4"}), "numa") == [UNKNOWN] * 4
    far = devices_of({f"{NFD}memory-numa.node99999": "true"}, {"nvidia.com/gpu": "64"})
    assert max(column(far, "numa")) < 1024


def test_nfd_5_names_do_not_start_again_with_each_vendor() -> None:
    labels = {f"{NFD}pci-10de.device.1eb8.count": "2", f"{NFD}pci-1002.device.74a1.count": "2"}
    found = devices_of(labels)
    assert column(found, "name") == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert sorted(column(found, "vendor")) == ["amd", "amd", "nvidia", "nvidia"]


def hostile_slices() -> list[ResourceSlice]:
    """1.5 MB of devices whose every text is as long and as often as etcd allows."""
    peers = ",".join(f"gpu-{i}" for i in range(5_000))
    devices = [
        a_device(f"gpu-{i}", nvlinkPeers=peers, xgmiHops="1:1," * 5_000, model="A" * 5_000, numa="9" * 2_000)
        for i in range(24)
    ]
    return [a_slice(*devices), a_slice(*(a_device("1-" * 100 + str(i)) for i in range(3_000)), pool="p")]


def test_a_hostile_node_is_read_in_bounded_time() -> None:
    slices = hostile_slices()
    annotations = {f"gpu.kubenexus.io/numa-node-{i}": "x" for i in range(5_000)}
    annotations |= {"gpu.kubenexus.io/islands": "0-999," * 40_000, "gpu.kubenexus.io/model": "A100-" * 40_000}
    annotations |= {"gpu.kubenexus.io/vram": "9" * 200_000}
    hostile = facts(offered={"nvidia.com/gpu": str(2**62)}, annotations=annotations)
    start = time.thread_time()
    found = node_devices(hostile, slices)
    assert time.thread_time() - start < 2  # 0.1 s on an idle core
    assert len(found.devices) == 64
    assert all(len(warning) < 1000 for warning in found.warnings)


def test_accelerators_are_no_gpus() -> None:
    found = devices_of({"gpu.kubenexus.io/model": "Gaudi3"}, {"habana.ai/gaudi": "2"})
    assert column(found, "kind") == [DeviceKind.ACCELERATOR] * 2
    assert column(found, "memory") == [128 * GIB] * 2
