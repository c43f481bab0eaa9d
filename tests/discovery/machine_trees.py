"""Machines for tests: a description becomes the folders of sysfs, and what a person wrote down the expectation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubenexus.discovery.nvml import NvLink, NvmlGpu

MACHINES = Path(__file__).parent / "machines"
NAMES = sorted(path.stem for path in MACHINES.glob("*.json"))
Write = Callable[[str, object], None]


def description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def expectation(name: str) -> dict[str, list[str]]:
    """Returns the lines of each section, without comments; several blanks count as one."""
    sections: dict[str, list[str]] = {}
    for line in (MACHINES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(" ".join(line.split()))
    return sections


def nvml_answers(machine: dict[str, Any]) -> tuple[NvmlGpu, ...] | None:
    """Returns the recorded answers of NVIDIA's driver, None for a machine without it."""
    if "nvml" not in machine:
        return None
    return tuple(
        NvmlGpu(**{**each, "links": tuple(NvLink(*link) for link in each["links"])}) for each in machine["nvml"]
    )


def make_tree(root: Path, machine: dict[str, Any]) -> Path:
    """Makes the folders of sysfs below a root, which it returns."""

    def write(path: str, content: object) -> None:
        file = root / "sys" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n", encoding="ascii")

    _numa(write, machine)
    for path, facts in machine.get("pci", {}).items():
        _pci(root, write, path, facts)
    for address, size in machine.get("vram", {}).items():
        write(f"bus/pci/devices/{address}/mem_info_vram_total", size)
        write(f"bus/pci/devices/{address}/unique_id", f"{size + int(address[5:7], 16):x}")
    for adapter, port in machine.get("infiniband", {}).items():
        layer, state, rate, gid = port.split("|")
        folder = f"class/infiniband/{adapter}/ports/1"
        write(f"{folder}/link_layer", layer)
        write(f"{folder}/state", {"ACTIVE": "4: ACTIVE", "DOWN": "1: DOWN"}[state])
        write(f"{folder}/rate", rate)
        write(f"{folder}/gids/0", gid)
    if "kfd" in machine:
        _kfd(write, machine["kfd"]["cpus"], machine["kfd"]["gpus"])
    return root


def _numa(write: Write, machine: dict[str, Any]) -> None:
    folder = "devices/system/node"
    write(f"{folder}/online", machine["online"])
    for number, (cpus, kibibytes, distances) in machine["numa"].items():
        write(f"{folder}/node{number}/cpulist", cpus)
        write(f"{folder}/node{number}/meminfo", _meminfo(number, kibibytes))
        write(f"{folder}/node{number}/distance", distances)
        for size, pages in machine.get("hugepages", {}).get(number, {}).items():
            write(f"{folder}/node{number}/hugepages/hugepages-{size}kB/nr_hugepages", pages)
    for number, kibibytes in machine.get("memory_only", {}).items():
        write(f"{folder}/node{number}/cpulist", "")
        write(f"{folder}/node{number}/meminfo", _meminfo(number, kibibytes))
    for cpu, siblings in machine["siblings"].items():
        write(f"devices/system/cpu/cpu{cpu}/topology/core_cpus_list", siblings)


def _meminfo(number: str, kibibytes: int) -> str:
    return f"Node {number} MemTotal:       {kibibytes} kB\nNode {number} MemFree:        {kibibytes // 2} kB"


def _pci(root: Path, write: Write, path: str, facts: str) -> None:
    """Makes a device and the bridges above it, with the links by which all of them are listed."""
    vendor, device, kind, numa = facts.split()
    parts = path.split("/")
    for depth in range(2, len(parts) + 1):
        above = "/".join(parts[:depth])
        link = root / "sys" / "bus" / "pci" / "devices" / parts[depth - 1]
        if link.is_symlink():
            continue
        leaf = depth == len(parts)
        write(f"devices/{above}/vendor", f"0x{vendor if leaf else '8086'}")
        write(f"devices/{above}/device", f"0x{device if leaf else '352a'}")
        write(f"devices/{above}/class", f"0x{kind if leaf else '060400'}")
        write(f"devices/{above}/numa_node", numa)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../devices/{above}")


def _kfd(write: Write, cpus: int, gpus: list[str]) -> None:
    """Makes the topology of AMD's driver: CPUs first, then GPUs that are all joined with each other."""
    folder = "class/kfd/kfd/topology/nodes"
    for number in range(cpus):
        write(f"{folder}/{number}/gpu_id", 0)
        write(f"{folder}/{number}/properties", "cpu_cores_count 192\nsimd_count 0")
    for number, address in enumerate(gpus, cpus):
        # Parts of a card are its functions 0, 1, ... and share its eight dies.
        part, parts = gpus[: number - cpus].count(address), gpus.count(address)
        place = int(address[5:7], 16) << 8 | part
        write(f"{folder}/{number}/gpu_id", 20000 + number)
        told = f"simd_count {1216 // parts}\nvendor_id 4098\ndevice_id 29857\nlocation_id {place}\ndomain 0"
        write(f"{folder}/{number}/properties", f"{told}\nnum_xcc {8 // parts}")
        others = [other for other in range(cpus, cpus + len(gpus)) if other != number]
        write(f"{folder}/{number}/io_links/0/properties", f"type 2\nnode_from {number}\nnode_to 0\nweight 20")
        for link, other in enumerate(others, 1):
            joined = f"type 11\nversion_major 0\nnode_from {number}\nnode_to {other}\nweight 15"
            write(f"{folder}/{number}/io_links/{link}/properties", joined)
