"""Recorded machines give the labels, devices and NUMA nodes that a person wrote down by hand beforehand.

What discovery writes goes through the scheduler's own readers, into the columns that it decides with.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kubenexus.api.numa.machine import Machine
from kubenexus.api.numa.many_nodes import devices_by_zone
from kubenexus.discovery import machine as discovery
from kubenexus.discovery.kubelet_config import UNKNOWN_KUBELET, read_kubelet_config
from kubenexus.discovery.machine import Gpu, NumaNode
from kubenexus.discovery.node_patch import NodePatch, node_patch
from kubenexus.discovery.read_machine import read_machine
from kubenexus.discovery.topology_object import topology_object
from kubenexus.explain.cluster_dump import read_dump
from kubenexus.state.ledger import Ledger
from kubenexus.state.numa.frame import PLENTY
from tests.discovery.machine_trees import NAMES, description, expectation, make_tree, nvml_answers


def discovered(tmp_path: Path, name: str, *pods: dict[str, Any]) -> tuple[NodePatch, Ledger]:
    """Returns what is written for a machine, and the ledger of a scheduler that reads it and the pods there."""
    told = description(name)
    machine = read_machine(make_tree(tmp_path, told), nvml_answers(told))
    assert machine.warnings == ()
    kubelet = read_kubelet_config(json.dumps(told["kubelet"])) if "kubelet" in told else UNKNOWN_KUBELET
    patch = node_patch(machine, kubelet)
    offered = {key: int(value) for key, value in told["allocatable"].items() if "/" in key}
    topology = topology_object(machine, name, "uid-1", kubelet, offered)
    return patch, ledger_of(name, patch, topology, told["allocatable"], *pods)


def ledger_of(name: str, patch: NodePatch, topology: Any, allocatable: dict[str, str], *pods: Any) -> Ledger:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": patch.labels, "annotations": patch.annotations},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
    dump = read_dump(json.dumps({"kind": "List", "items": [node, topology, *pods]}).encode(), "test")
    assert dump.problems == []
    return dump.ledger


def pairs(lines: list[str]) -> dict[str, str]:
    return dict(line.split(" = ") for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_machine_gives_what_a_person_wrote_down(tmp_path: Path, name: str) -> None:
    patch, ledger = discovered(tmp_path, name)
    expected = expectation(name)
    assert patch.labels == pairs(expected["labels"])
    assert patch.annotations == pairs(expected["annotations"])
    assert patch.warnings == ()
    found = ledger.devices_of(name)
    assert [device_line(each) for each in found.devices] == expected["devices"]
    assert found.warnings == ()
    row = ledger.nodes.row_of[name]
    columns = ledger.nodes.numa
    here = columns.of_row(row)
    assert here is not None
    free = columns.free_cpus.item(row)
    assert [
        f"{here.reported.kubelet.policy} scope {'pod' if here.reported.kubelet.pod_scope else 'container'} "
        f"free cpus {'unknown' if free == PLENTY else free} threads {here.reported.machine.cpus.threads}"
    ] == expected["kubelet"]
    assert numa_lines(here.reported.machine, here.usage, here.reported.ids) == expected["numa"]


def test_without_nvidias_library_cards_are_those_of_the_pci_tree(tmp_path: Path) -> None:
    machine = read_machine(make_tree(tmp_path, description("dgx-h100")))
    patch = node_patch(machine)
    assert [warning for warning in patch.warnings if "libnvidia-ml.so.1" in warning]
    cards = {key: text for key, text in patch.labels.items() if key.startswith("gpu.")}
    assert cards == {"gpu.kubenexus.io/count": "8", "gpu.kubenexus.io/model": "H100-SXM5-80GB"}
    ledger = ledger_of("n", patch, topology_object(machine, "n", "u"), {"nvidia.com/gpu": "8"})
    found = ledger.devices_of("n").devices
    # The model implies the rest.
    assert [(each.memory >> 30, each.numa, each.link) for each in found] == [
        (80, number // 4, "nvswitch") for number in range(8)
    ]


@pytest.mark.parametrize("parts", [2, 4, 8], ids=["DPX", "QPX", "CPX"])
def test_partitions_of_amds_cards_are_left_to_amds_agent(tmp_path: Path, parts: int) -> None:
    told = description("mi300x")
    told["kfd"]["gpus"] = [address for address in told["kfd"]["gpus"] for _ in range(parts)]
    machine = read_machine(make_tree(tmp_path, told))
    assert [each.divided for each in machine.gpus] == [True] * 8
    patch = node_patch(machine)
    assert [key for key in (*patch.labels, *patch.annotations) if key.startswith("gpu.")] == []
    assert "divided" in patch.warnings[0]
    assert topology_object(machine, "n") is None


@pytest.mark.parametrize(
    ("zones", "places"),
    [
        pytest.param(8, [3, 3, 1, 1, 7, 7, 5, 5], id="a DGX A100 with four NUMA nodes for each socket"),
        pytest.param(6, [0, 0, 2, 2, 3, 3, 5, 5], id="B200s at a NUMA node for each PCIe root, two without GPUs"),
    ],
)
def test_cards_keep_the_numa_nodes_of_their_machine(zones: int, places: list[int]) -> None:
    cards = tuple(Gpu(f"0000:{each:02x}:00.0", "nvidia", "A100", numa=numa) for each, numa in enumerate(places))
    machine = discovery.Machine(tuple(NumaNode(each, (each,), 2**30) for each in range(zones)), 2, cards)
    offered = {"nvidia.com/gpu": "8"}
    ledger = ledger_of("n", node_patch(machine), topology_object(machine, "n", "u"), offered)
    assert [each.numa for each in ledger.devices_of("n").devices] == places


@pytest.mark.parametrize(
    ("sockets", "zones"),
    [
        pytest.param(1, 9, id="a GH200"),
        pytest.param(4, 36, id="four GH200 in one machine"),
        pytest.param(2, 2, id="a GB200 whose driver keeps the memory of its GPUs"),
    ],
)
@pytest.mark.parametrize("numa_node", ["memory", "none"])
def test_numa_nodes_that_are_the_memory_of_gpus_are_not_counted(
    tmp_path: Path, sockets: int, zones: int, numa_node: str
) -> None:
    """The kernel names a NUMA node of a GPU, or none; nvidia-smi prints one without CPUs as its "GPU NUMA ID"."""
    cpus = [f"{72 * each}-{72 * each + 71}" for each in range(sockets)]
    told: dict[str, Any] = {
        "online": f"0-{zones - 1}",
        "numa": {str(each): (cpus[each], 2**20, " ".join(["10"] * zones)) for each in range(sockets)},
        "memory_only": {str(each): 0 for each in range(sockets, zones)},
        "siblings": {str(72 * each): str(72 * each) for each in range(sockets)},
        "pci": {
            f"pci000{each}:00/000{each}:00:00.0/000{each}:01:00.0": "10de 2342 030200 -1" for each in range(sockets)
        },
    }
    root = make_tree(tmp_path, told)
    for each in range(sockets):
        device = root / f"sys/bus/pci/devices/000{each}:01:00.0"
        (device / "local_cpulist").write_text(cpus[each])
        if numa_node == "memory" and zones > sockets:
            (device / "numa_node").write_text(str(sockets + 8 * each))
    machine = read_machine(root)
    assert [node.id for node in machine.numa_nodes] == list(range(sockets))
    assert [gpu.numa for gpu in machine.gpus] == list(range(sockets))
    assert node_patch(machine).labels["numa.kubenexus.io/node-count"] == str(sockets)


def a_running_pod(number: int, gpus: int, cpus: int) -> dict[str, Any]:
    amounts = {"cpu": str(cpus), "memory": "64Gi", "nvidia.com/gpu": str(gpus)}
    container = {"name": "c", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"},
        "spec": {"nodeName": "dgx-h100", "containers": [container]},
        "status": {"phase": "Running", "startTime": f"2026-01-01T00:0{number}:00Z"},
    }


@pytest.mark.parametrize(
    ("pods", "cpus", "gpus"),
    [
        pytest.param([(2, 16)], [94, 112], [2, 4], id="a pod on the first NUMA node"),
        pytest.param([(2, 16), (4, 32)], [94, 80], [2, 0], id="one that fits only on the second"),
        pytest.param([(1, 8)] * 5, [78, 104], [0, 3], id="the fifth goes to the second"),
    ],
)
def test_pods_that_run_are_subtracted_though_the_report_never_counts_any(
    tmp_path: Path, pods: list[tuple[int, int]], cpus: list[int], gpus: list[int]
) -> None:
    running = [a_running_pod(number, *wants) for number, wants in enumerate(pods)]
    _, ledger = discovered(tmp_path, "dgx-h100", *running)
    here = ledger.nodes.numa.of_row(ledger.nodes.row_of["dgx-h100"])
    assert here is not None
    machine, usage = here.reported.machine, here.usage
    assert [(zone & usage.cpus).bit_count() for zone in machine.cpus.numa] == cpus
    assert list(devices_by_zone(machine, "nvidia.com/gpu", usage.devices["nvidia.com/gpu"])) == gpus


def device_line(device: Any) -> str:
    place = f"numa {device.numa} island {device.island} {device.link}"
    return f"{device.name} {device.model} {device.memory >> 20}Mi {place} {device.clique}".strip()


def numa_lines(machine: Machine, usage: Any, ids: tuple[int, ...]) -> list[str]:
    lines = []
    for zone, number in enumerate(ids):
        cpus = machine.cpus.numa[zone]
        parts = [f"{number} cpus {cpus.bit_count()} free {(cpus & usage.cpus).bit_count()}"]
        parts += [f"{name} {sizes[zone] >> 10}Ki" for name, sizes in machine.memory.items() if sizes[zone]]
        parts.append("distances " + " ".join(map(str, machine.distances[zone])))
        for name in machine.devices:
            parts.append(f"{name} {devices_by_zone(machine, name, usage.devices[name])[zone]}")
        lines.append(" ".join(parts))
    return lines
