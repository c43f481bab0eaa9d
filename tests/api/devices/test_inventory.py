"""The devices of a node: how many, by which resource, and which source each field comes from."""

from typing import Any

import pytest

from kubenexus.api.devices.device import MAX_DEVICES, NO_DEVICES, UNKNOWN, DeviceKind, FactSource
from kubenexus.api.devices.draft import MAX_WARNINGS
from kubenexus.api.devices.from_slices import driver_kind
from kubenexus.api.devices.inventory import MAX_READ, NO_FACTS, NodeFacts, node_devices, node_facts
from kubenexus.testing.builders import a_node
from tests.api.devices.builders import GIB, a_device, a_slice, column, devices_of, facts, gfd, zones

GPU, MIG, ACCELERATOR = DeviceKind.GPU, DeviceKind.MIG, DeviceKind.ACCELERATOR
NUMBERED = [f"gpu-{i}" for i in range(8)]


# --- the facts of a node -------------------------------------------------------------------------------------------


def test_a_node_without_devices_has_no_facts() -> None:
    assert node_facts(a_node("n1", zone="a", labels={"app": "web"})) is NO_FACTS
    assert node_devices(NO_FACTS) is NO_DEVICES


def test_facts_are_what_is_read_alone() -> None:
    labels = {
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.family": "ampere",
        "app": "web",
        "gpu.kubenexus.io/model": "T4",
    }
    found = facts(labels, {"nvidia.com/gpu": "2", "example.com/fpga": "1", "nvidia.com/mig-1g.5gb": 3})
    assert found.labels == {"nvidia.com/gpu.count": "2", "gpu.kubenexus.io/model": "T4"}
    assert found.allocatable == (("nvidia.com/gpu", 2), ("nvidia.com/mig-1g.5gb", 3))


def test_an_amount_that_cannot_be_read_is_left_to_the_ledger() -> None:
    assert facts(offered={"nvidia.com/gpu": "two"}) == NO_FACTS


def test_the_facts_of_a_hostile_node_have_a_bound() -> None:
    annotations = {f"gpu.kubenexus.io/health-{i}": "broken" for i in range(20_000)}
    assert len(facts(annotations=annotations).annotations) == MAX_READ


# --- how many devices, and by which resource -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "offered", "count", "resource", "replicas"),
    [
        pytest.param({}, {"nvidia.com/gpu": "8"}, 8, "nvidia.com/gpu", 1, id="allocatable alone"),
        pytest.param(gfd(count="8"), {"nvidia.com/gpu": "7"}, 8, "nvidia.com/gpu", 1, id="a card is unhealthy"),
        pytest.param(gfd(count="8"), {"nvidia.com/gpu": "0"}, 8, "nvidia.com/gpu", 1, id="the plugin is down"),
        pytest.param(gfd(count="8"), {}, 8, "", 1, id="nothing offers them"),
        pytest.param(gfd(count="2", replicas="4"), {"nvidia.com/gpu": "8"}, 2, "nvidia.com/gpu", 4, id="time slicing"),
        pytest.param(
            gfd(count="2", replicas="4"), {"nvidia.com/gpu.shared": "8"}, 2, "nvidia.com/gpu.shared", 4, id="renamed"
        ),
        pytest.param(
            gfd(count="2", replicas="4"),
            {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"},
            2,
            "nvidia.com/gpu.shared",
            4,
            id="renamed, and the old name is left with nothing",
        ),
        pytest.param(gfd(count="", replicas="4"), {"nvidia.com/gpu": "7"}, 2, "nvidia.com/gpu", 4, id="a broken share"),
        pytest.param({"gpu.kubenexus.io/count": "4"}, {}, 4, "", 1, id="by hand"),
        pytest.param({"gpu.kubenexus.io/model": "L4"}, {}, 1, "", 1, id="by hand without a number: one"),
        pytest.param({"gpu.kubenexus.io/count": "0"}, {}, 0, "", 1, id="by hand: none"),
        pytest.param(
            {"gpu.kubenexus.io/count": "4"}, {"amd.com/gpu": "3"}, 4, "amd.com/gpu", 1, id="by hand, one broken"
        ),
        pytest.param({}, {"gpu.intel.com/i915": "2"}, 2, "gpu.intel.com/i915", 1, id="Intel i915"),
        pytest.param({}, {"gpu.intel.com/xe": "2"}, 2, "gpu.intel.com/xe", 1, id="Intel Xe"),
        pytest.param({}, {"intel.com/gpu": "1"}, 1, "intel.com/gpu", 1, id="Intel, the old name"),
        pytest.param({}, {"gpu.intel.com/i915_monitoring": "1"}, 0, "", 1, id="a monitor is no GPU"),
        pytest.param({}, {"habana.ai/gaudi": "8"}, 8, "habana.ai/gaudi", 1, id="Gaudi"),
        pytest.param({}, {"google.com/tpu": "4"}, 4, "google.com/tpu", 1, id="TPU"),
        pytest.param(
            {},
            {"aws.amazon.com/neuron": "2", "aws.amazon.com/neuroncore": "4"},
            2,
            "aws.amazon.com/neuron",
            1,
            id="cores of Neuron devices are no further devices",
        ),
    ],
)
def test_the_number_of_cards(
    labels: dict[str, str], offered: dict[str, str], count: int, resource: str, replicas: int
) -> None:
    found = devices_of(labels, offered)
    assert len(found.devices) == count
    assert column(found, "resource") == [resource] * count
    assert column(found, "replicas") == [replicas if resource else 1] * count
    assert found.warnings == ()


def test_more_cards_than_the_label_counts() -> None:
    found = devices_of(gfd(count="4"), {"nvidia.com/gpu": "8"})
    assert column(found, "name") == NUMBERED
    assert found.warnings == ("nvidia.com/gpu.count is 4, but the kubelet offers 8 of nvidia.com/gpu",)


def test_several_vendors_have_one_numbering() -> None:
    found = devices_of(gfd(count="2"), {"nvidia.com/gpu": "2", "amd.com/gpu": "1", "habana.ai/gaudi": "1"})
    assert column(found, "name") == ["gpu-0", "gpu-1", "gpu-2", "accelerator-3"]
    assert column(found, "vendor") == ["nvidia", "nvidia", "amd", "habana"]
    assert column(found, "kind") == [GPU, GPU, GPU, ACCELERATOR]
    assert column(found, "family") == ["H100", "H100", "", ""]


def test_mig_devices_beside_gpus() -> None:
    labels = gfd("NVIDIA-A100-SXM4-80GB", "81920", "2") | {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.10gb.memory": "9728",
        "nvidia.com/mig-1g.10gb.replicas": "1",
        "nvidia.com/mig-3g.40gb.memory": "40192",
    }
    found = devices_of(labels, {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "1"})
    assert column(found, "name") == ["gpu-0", "mig-1g.10gb-0", "mig-1g.10gb-1", "mig-3g.40gb-0"]
    assert column(found, "kind") == [GPU, MIG, MIG, MIG]
    assert column(found, "profile") == ["", "1g.10gb", "1g.10gb", "3g.40gb"]
    assert column(found, "memory") == [81920 << 20, 9728 << 20, 9728 << 20, 40192 << 20]
    assert column(found, "nominal_memory") == [80 * GIB, 10 * GIB, 10 * GIB, 40 * GIB]
    assert column(found, "resource")[1] == "nvidia.com/mig-1g.10gb"
    assert column(found, "model") == ["NVIDIA-A100-SXM4-80GB"] * 4


def test_mig_devices_of_one_profile_have_the_resource_of_gpus() -> None:
    found = devices_of(gfd("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "4864", "7"), {"nvidia.com/gpu": "7"})
    assert column(found, "name") == [f"mig-1g.5gb-{i}" for i in range(7)]
    assert set(column(found, "kind")) == {MIG}
    assert set(column(found, "resource")) == {"nvidia.com/gpu"}
    assert set(column(found, "memory")) == {4864 << 20}
    assert set(column(found, "nominal_memory")) == {5 * GIB}
    assert set(column(found, "model")) == {"NVIDIA-A100-SXM4-40GB"}
    assert set(column(found, "bandwidth")) == {UNKNOWN}


def test_more_devices_than_a_word_has_bits() -> None:
    found = devices_of({}, {"nvidia.com/mig-1g.5gb": "112"})
    assert len(found.devices) == MAX_DEVICES
    assert found.warnings == ("112 devices; the first 64 count",)
    huge = devices_of({}, {"nvidia.com/gpu": str(2**62)})
    assert len(huge.devices) == MAX_DEVICES
    many = node_devices(facts(), [a_slice(*(a_device(f"gpu-{i}") for i in reversed(range(100))))])
    assert column(many, "name") == [f"gpu-{i}" for i in range(64)]
    assert many.warnings == ("100 devices in ResourceSlices; the first 64 count",)


# --- ResourceSlices ------------------------------------------------------------------------------------------------


def test_a_driver_names_and_orders_its_devices() -> None:
    devices = [a_device(f"gpu-{i}", uuid=f"GPU-{i}", memory="80Gi") for i in (10, 2, 1)]
    found = node_devices(facts(gfd(count="3"), {"nvidia.com/gpu": "3"}), [a_slice(*devices)])
    assert column(found, "name") == ["gpu-1", "gpu-2", "gpu-10"]
    assert column(found, "uuid") == ["GPU-1", "GPU-2", "GPU-10"]
    assert column(found, "resource") == ["nvidia.com/gpu"] * 3
    assert column(found, "model") == ["NVIDIA-H100-80GB-HBM3"] * 3
    sources = found.devices[0].sources
    assert (sources["memory"], sources["model"]) == (FactSource.DRA, FactSource.GFD)
    assert (sources["resource"], sources["nominal_memory"]) == (FactSource.ALLOCATABLE, FactSource.MODEL)


def test_an_incomplete_pool_leaves_the_labels() -> None:
    found = node_devices(facts(gfd(count="2"), {"nvidia.com/gpu": "2"}), [a_slice(a_device("a"), count=2)])
    assert column(found, "name") == ["gpu-0", "gpu-1"]
    assert found.warnings == ("ResourceSlices of gpu.nvidia.com, pool n1: 1 of 2 slices are there",)


def test_pools_and_drivers_are_combined_with_unique_names() -> None:
    slices = [
        a_slice(a_device("gpu-0"), pool="p"),
        a_slice(a_device("gpu-0"), pool="q"),
        a_slice(a_device("gpu-0"), a_device("gpu-1"), driver="gpu.amd.com"),
    ]
    names = ["gpu.amd.com/gpu-0", "gpu.nvidia.com/p/gpu-0", "gpu.nvidia.com/q/gpu-0", "gpu-1"]
    for order in (slices, slices[::-1]):
        assert column(node_devices(facts(), order), "name") == names


def test_devices_that_the_driver_does_not_list_are_added() -> None:
    found = node_devices(facts(offered={"amd.com/gpu": "2", "nvidia.com/gpu": "1"}), [a_slice(a_device("gpu-0"))])
    assert column(found, "name") == ["gpu-0", "gpu-1", "gpu-2"]
    assert column(found, "vendor") == ["nvidia", "amd", "amd"]


def test_devices_of_other_nodes_of_a_pool_do_not_count() -> None:
    devices = [a_device("a") | {"nodeName": "n1"}, a_device("b") | {"nodeName": "n2"}]
    slices = [a_slice(*devices, node="", perDeviceNodeSelection=True)]
    assert column(node_devices(NO_FACTS, slices, node_name="n2"), "name") == ["b"]


def test_parts_of_a_card_that_may_be_made_are_not_there_yet() -> None:
    counters = {"consumesCounters": [{"counterSet": "gpu-0", "counters": {}}]}
    card = a_device("gpu-0", type="gpu", memory="80Gi") | counters
    part = a_device("gpu-0-mig-1g10gb-0", type="mig", profile="1g.10gb") | counters
    assert column(node_devices(facts(), [a_slice(card, part)]), "name") == ["gpu-0"]


@pytest.mark.parametrize(
    ("driver", "kind"),
    [
        ("gpu.nvidia.com", GPU),
        ("gpu.amd.com", GPU),
        ("gpu.intel.com", GPU),
        ("gpu.example.com", GPU),
        ("dra.nvidia.com", GPU),
        ("GPU.NVIDIA.COM", GPU),
        ("gaudi.intel.com", ACCELERATOR),
        ("tpu.google.com", ACCELERATOR),
        ("accelerator.example.com", ACCELERATOR),
        ("neuron.aws.com", ACCELERATOR),
        ("dra.net", None),
        ("nic.nvidia.com", None),
        ("rdma.amd.com", None),
        ("compute-domain.nvidia.com", None),
        ("cpu.example.com", None),
        ("qat.intel.com", None),
        ("amdahl.example.com", None),
        ("", None),
    ],
)
def test_which_drivers_have_gpus_and_accelerators(driver: str, kind: DeviceKind | None) -> None:
    assert driver_kind(driver) is kind
    found = node_devices(facts(), [a_slice(a_device("x"), driver=driver)])
    assert column(found, "kind") == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("attributes", "field", "value"),
    [
        ({"resource.kubernetes.io__numaNode": 1}, "numa", 1),
        ({"resource.kubernetes.io__numaNode": [1, 0]}, "numa", 1),
        ({"resource.kubernetes.io__numaNode": 1, "a.example.com__numaNode": 0}, "numa", 1),
        ({"numaNode": "1"}, "numa", 1),
        ({"numa_node": 1}, "numa", 1),
        ({"numa-node": 1}, "numa", 1),
        ({"numa": 1}, "numa", 1),
        ({"numa": -1}, "numa", UNKNOWN),
        ({"resource.kubernetes.io__pciBusID": "0000:01:00.0"}, "pci_address", "0000:01:00.0"),
        ({"pcieBusID": "0000:01:00.0"}, "pci_address", "0000:01:00.0"),
        ({"pcie-bus-id": "0000:01:00.0"}, "pci_address", "0000:01:00.0"),
        ({"pciAddress": "0000:01:00.0"}, "pci_address", "0000:01:00.0"),
        ({"resource.kubernetes.io__pcieRoot": "pci0000:01"}, "switch", 0),
        ({"pcieSwitch": "sw-1"}, "switch", 0),
        ({"pcie-switch-id": 4}, "switch", 0),
        ({"productName": "NVIDIA L4"}, "model", "NVIDIA L4"),
        ({"gpu.nvidia.com__model": "L4"}, "family", "L4"),
        ({"vram": 24576}, "memory", 24 * GIB),
        ({"gpu.nvidia.com__memory": 24576}, "memory", 24 * GIB),
        ({"vram": 85899345920}, "memory", 80 * GIB),
        ({"memory": "24Gi"}, "memory", 24 * GIB),
        ({"memory": "24GB"}, "memory", 24 * 10**9),
        ({"clusterUUID": "u-1", "cliqueID": 3}, "clique", "u-1.3"),
        ({"clique": "u-1.3"}, "clique", "u-1.3"),
        ({"cliqueID": 3}, "clique", ""),
        ({"type": "mig", "parentUUID": "GPU-1"}, "parent", "GPU-1"),
        ({"type": "mig", "profile": "1g.10gb"}, "profile", "1g.10gb"),
        ({"type": "mig", "profile": "1g.10gb"}, "memory", 10 * GIB),
        ({"healthy": False}, "healthy", False),
        ({"healthy": "false"}, "healthy", False),
        ({"healthy": True}, "healthy", True),
        ({"uuid": "x" * 300}, "uuid", ""),
    ],
    ids=str,
)
def test_attributes_by_all_their_names(attributes: dict[str, Any], field: str, value: object) -> None:
    (device,) = node_devices(facts(), [a_slice(a_device("gpu-0", **attributes))]).devices
    assert getattr(device, field) == value
    assert (field in device.sources) == (value not in (UNKNOWN, ""))


@pytest.mark.parametrize(
    "name", ["memory", "vram", "gpuMemory", "gpu.nvidia.com/vram", "addressableMemory", "gpu.memory"]
)
def test_memory_by_all_names_of_the_capacity(name: str) -> None:
    device = {"name": "gpu-0", "capacity": {name: {"value": "80Gi"}, "multiprocessors": {"value": "132"}}}
    found = node_devices(facts(), [a_slice(device)])
    assert column(found, "memory") == [80 * GIB]


@pytest.mark.parametrize(
    ("effect", "healthy"), [("NoSchedule", False), ("NoExecute", False), ("None", True), ("", True)]
)
def test_a_tainted_device_is_unhealthy(effect: str, healthy: bool) -> None:
    assert column(node_devices(facts(), [a_slice(a_device("gpu-0", taint=effect))]), "healthy") == [healthy]


def test_values_of_a_slice_that_cannot_be_read_are_named() -> None:
    found = node_devices(facts(), [a_slice(a_device("gpu-0", memory="many", numaNode="left"))])
    assert column(found, "memory") == [UNKNOWN]
    assert column(found, "numa") == [UNKNOWN]
    assert found.warnings[0].startswith("device gpu-0 of gpu.nvidia.com: memory: 'many' is not a quantity")
    assert found.warnings[1] == "device gpu-0 of gpu.nvidia.com: NUMA node 'left' is no number from 0 to 1023"


# --- fields from the best source -----------------------------------------------------------------------------------

LABELLED = gfd(count="2") | {"gpu.kubenexus.io/vram": "40Gi", "gpu.kubenexus.io/model": "A100-40GB"}


@pytest.mark.parametrize(
    ("labels", "memory", "source"),
    [
        pytest.param(LABELLED, 81559 << 20, FactSource.GFD, id="GFD goes before labels by hand"),
        pytest.param(
            LABELLED | {"nvidia.com/gpu.memory": "lots"}, 40 * GIB, FactSource.MANUAL, id="a value that cannot be read"
        ),
        pytest.param({"gpu.kubenexus.io/vram": "80GB"}, 80 * 10**9, FactSource.MANUAL, id="gigabytes by hand"),
        pytest.param({"gpu.kubenexus.io/vram": "80GiB"}, 80 * GIB, FactSource.MANUAL, id="gibibytes by hand"),
        pytest.param({"gpu.kubenexus.io/model": "L40S"}, 48 * GIB, FactSource.MODEL, id="the model"),
        pytest.param({"gpu.kubenexus.io/model": "secret"}, UNKNOWN, None, id="a model that is not known"),
        pytest.param({}, UNKNOWN, None, id="nothing"),
    ],
)
def test_memory_comes_from_the_best_source(labels: dict[str, str], memory: int, source: FactSource | None) -> None:
    found = devices_of(labels, {"nvidia.com/gpu": "2"})
    assert column(found, "memory") == [memory] * 2
    assert [device.sources.get("memory") for device in found.devices] == [source] * 2


def test_a_nominal_size_is_that_of_the_model() -> None:
    found = devices_of(gfd("Tesla-T4", "15109", "1"), {"nvidia.com/gpu": "1"})
    assert column(found, "nominal_memory") == [16 * GIB]


def test_a_nominal_size_that_the_card_contradicts_is_not_its_own() -> None:
    found = devices_of(gfd("A100", "81920", "1"), {"nvidia.com/gpu": "1"})
    assert column(found, "memory") == [80 * GIB]
    assert column(found, "nominal_memory") == [UNKNOWN]


NUMA_LABELS = {"gpu.kubenexus.io/numa-node-0": "1", "gpu.kubenexus.io/gpu1-numa": "0"}
TWO_NODES = {"feature.node.kubernetes.io/memory-numa.node_count": "2"}
ONE_ZONE = {"gpu.kubenexus.io/numa-node-0": "1", "gpu.kubenexus.io/gpu1-numa": "1"}
ZONES = zones(node_1={"nvidia.com/gpu": "1"}, node_0={"nvidia.com/gpu": "1", "cpu": "32"})


@pytest.mark.parametrize(
    ("dra", "topology", "labels", "numa", "source"),
    [
        pytest.param([1, 1], ZONES, NUMA_LABELS, [1, 1], FactSource.DRA, id="DRA first"),
        pytest.param(None, ZONES, ONE_ZONE | TWO_NODES, [0, 1], FactSource.NRT, id="then zones"),
        pytest.param(
            None, ZONES, NUMA_LABELS, [1, 0], FactSource.MANUAL, id="labels that zones agree with: which card"
        ),
        pytest.param(None, None, NUMA_LABELS | TWO_NODES, [1, 0], FactSource.MANUAL, id="then labels by hand"),
        pytest.param(None, None, TWO_NODES, [0, 1], FactSource.NFD, id="then an even split"),
        pytest.param(None, None, {}, [UNKNOWN] * 2, None, id="else unknown"),
        pytest.param(
            None,
            zones(node_0={"nvidia.com/gpu": "4"}, node_1={"nvidia.com/gpu": "4"}),
            TWO_NODES,
            [0, 1],
            FactSource.NFD,
            id="zones that have other numbers do not count",
        ),
        pytest.param(
            None,
            zones(node_0={"nvidia.com/gpu": "1"}, socket={"nvidia.com/gpu": "1"}),
            {},
            [UNKNOWN] * 2,
            None,
            id="a zone without a number is no NUMA node",
        ),
        pytest.param(
            None, None, {"numa.kubenexus.io/node-count": "2"}, [0, 1], FactSource.MANUAL, id="a node count by hand"
        ),
    ],
)
def test_numa_comes_from_the_best_source(
    dra: list[int] | None, topology: Any, labels: dict[str, str], numa: list[int], source: FactSource | None
) -> None:
    slices = [a_slice(*(a_device(f"gpu-{i}", numaNode=each) for i, each in enumerate(dra)))] if dra else []
    found = node_devices(facts(labels, {"nvidia.com/gpu": "2"}), slices, topology)
    assert column(found, "numa") == numa
    assert [device.sources.get("numa") for device in found.devices] == [source] * 2


def test_zones_count_shares_of_cards() -> None:
    topology = zones(node_0={"nvidia.com/gpu": "4"}, node_1={"nvidia.com/gpu": "4"})
    found = node_devices(facts(gfd(count="2", replicas="4"), {"nvidia.com/gpu": "8"}), (), topology)
    assert column(found, "numa") == [0, 1]


def test_an_amount_of_a_zone_that_cannot_be_read_is_named() -> None:
    topology = zones(node_0={"nvidia.com/gpu": "x"})
    found = node_devices(facts({}, {"nvidia.com/gpu": "1"}), (), topology)
    assert column(found, "numa") == [UNKNOWN]
    assert found.warnings[0].startswith("NodeResourceTopology, zone node-0, nvidia.com/gpu: 'x' is not a quantity")


def test_a_numa_label_beyond_the_cards_is_named() -> None:
    found = devices_of({"gpu.kubenexus.io/numa-node-7": "0"}, {"nvidia.com/gpu": "2"})
    assert found.warnings == ("gpu.kubenexus.io/numa-node-7: the node has 2 cards, numbered from 0",)


@pytest.mark.parametrize(
    ("labels", "healthy"),
    [
        ({}, True),
        ({"gpu.kubenexus.io/health-ecc": "ok"}, True),
        ({"gpu.kubenexus.io/health-ecc": "Healthy", "gpu.kubenexus.io/health-xid": "pass"}, True),
        ({"gpu.kubenexus.io/health-ecc": "ok", "gpu.kubenexus.io/health-xid": "failed"}, False),
        ({"gpu.kubenexus.io/health-nvlink": "false"}, False),
    ],
)
def test_a_failed_check_is_of_all_gpus(labels: dict[str, str], healthy: bool) -> None:
    assert column(devices_of(labels, {"nvidia.com/gpu": "2"}), "healthy") == [healthy] * 2


@pytest.mark.parametrize(
    ("labels", "shared"),
    [
        pytest.param({}, False, id="not by itself"),
        pytest.param(gfd(sharing_strategy="time-slicing"), True, id="time slicing"),
        pytest.param(gfd(sharing_strategy="mps"), True, id="MPS"),
        pytest.param(gfd(sharing_strategy="none"), False, id="no strategy"),
        pytest.param(gfd(replicas="2"), True, id="replicas"),
        pytest.param(gfd(replicas="1"), False, id="one replica"),
        pytest.param(gfd(replicas="2") | {"gpu.kubenexus.io/shared": "false"}, False, id="by hand: no"),
        pytest.param({"gpu.kubenexus.io/shared": "true"}, True, id="by hand: yes"),
        pytest.param(gfd(replicas="2") | {"gpu.kubenexus.io/shared": "maybe"}, True, id="by hand, but not readable"),
    ],
)
def test_whether_gpus_are_shared(labels: dict[str, str], shared: bool) -> None:
    assert devices_of(labels, {"nvidia.com/gpu": "8"}).shared is shared


def test_a_model_by_hand_is_for_the_devices_of_its_vendor() -> None:
    found = devices_of({"gpu.kubenexus.io/model": "MI300X"}, {"nvidia.com/gpu": "1", "amd.com/gpu": "1"})
    assert column(found, "family") == ["", "MI300X"]
    other = devices_of({"gpu.kubenexus.io/model": "MI300X"}, {"nvidia.com/gpu": "1"})
    assert other.warnings == ("gpu.kubenexus.io/model: 'MI300X' is of amd, but no device of the node is",)


def test_warnings_name_key_and_value_and_have_a_bound() -> None:
    found = devices_of({"nvidia.com/gpu.memory": "lots", "gpu.kubenexus.io/vram": "more"}, {"nvidia.com/gpu": "1"})
    assert found.warnings[0] == "label nvidia.com/gpu.memory: must be a whole number from 0, not 'lots'"
    assert found.warnings[1].startswith("label gpu.kubenexus.io/vram: 'more' is not a quantity")
    annotations = {f"gpu.kubenexus.io/numa-node-{i}": "east" for i in range(500)}
    many = node_devices(facts(offered={"nvidia.com/gpu": "1"}, annotations=annotations))
    assert len(many.warnings) == MAX_WARNINGS + 1
    assert many.warnings[-1] == "and 480 more values that cannot be read"


def test_a_model_by_hand_that_is_too_long_is_named() -> None:
    found = node_devices(facts(offered={"amd.com/gpu": "1"}, annotations={"gpu.kubenexus.io/model": "x" * 5000}))
    assert column(found, "model") == [""]
    assert found.warnings == ("annotation gpu.kubenexus.io/model: must have at most 512 characters",)


def test_equal_facts_have_equal_devices() -> None:
    one, other = (NodeFacts(gfd(), {}, (("nvidia.com/gpu", 8),)) for _ in range(2))
    assert one == other
    assert node_devices(one) == node_devices(other)


def test_every_known_field_has_a_source() -> None:
    found = node_devices(
        facts(gfd(count="2", clique="u.1"), {"nvidia.com/gpu": "2"}), [a_slice(a_device("a"), a_device("b"))]
    )
    for device in found.devices:
        for field in device.__struct_fields__:
            value = getattr(device, field)
            if field not in ("sources", "replicas", "healthy") and value not in ("", UNKNOWN, ()):
                assert field in device.sources, field


def test_labels_add_no_cards_of_a_vendor_whose_driver_lists_devices() -> None:
    part = a_device("gpu-0-mig-0", type="mig", profile="1g.10gb")
    found = node_devices(facts(gfd(count="1")), [a_slice(part)])
    assert column(found, "name") == ["gpu-0-mig-0"]


def test_the_memory_of_a_card_is_not_that_of_its_parts() -> None:
    part = a_device("gpu-0-mig-0", type="mig", profile="1g.10gb")
    found = node_devices(facts(gfd(count="2")), [a_slice(a_device("gpu-1"), part)])
    assert dict(zip(column(found, "name"), column(found, "memory"), strict=True)) == {
        "gpu-0-mig-0": 10 * GIB,
        "gpu-1": 81559 << 20,
    }


def test_a_failed_check_outweighs_a_driver_that_knows_of_no_fault() -> None:
    failed = facts({"gpu.kubenexus.io/health-ecc": "failed"})
    found = node_devices(failed, [a_slice(a_device("gpu-0", healthy=True))])
    assert column(found, "healthy") == [False]
    assert found.devices[0].sources["healthy"] is FactSource.MANUAL
    passed = facts({"gpu.kubenexus.io/health-ecc": "ok"})
    assert column(node_devices(passed, [a_slice(a_device("gpu-0", healthy=False))]), "healthy") == [False]
