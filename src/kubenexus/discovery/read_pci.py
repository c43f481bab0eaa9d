"""Reads GPUs and accelerators from the PCI tree of sysfs: model by PCI id, NUMA node, and the bridges above."""

import re
from collections.abc import Sequence
from typing import Final

from kubenexus.api.devices.device import UNKNOWN
from kubenexus.api.devices.models import NVIDIA
from kubenexus.api.devices.pci_ids import MODEL_NAMES, VENDORS
from kubenexus.discovery.host_files import HostFiles
from kubenexus.discovery.machine import Gpu, NumaNode

DEVICES: Final = "sys/bus/pci/devices"
ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT: Final = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_DISPLAY, _ACCELERATOR, _3D = 0x03, 0x12, 0x0302  # classes: the first byte, or both
_PASSED_THROUGH: Final = frozenset(("vfio-pci", "pci-stub"))  # drivers
_MAX_DEPTH: Final = 32
_MAX_NUMA: Final = 1023


def read_pci(files: HostFiles, numa_nodes: Sequence[NumaNode]) -> dict[str, Gpu]:
    """Returns, by address in ascending order, the devices whose PCI id is known, and 3D controllers of NVIDIA."""
    found = {}
    for address in sorted(name for name in files.names(DEVICES) if ADDRESS.fullmatch(name)):
        kind = files.number(f"{DEVICES}/{address}/class", 0, 0xFFFFFF)
        if kind is None or kind >> 16 not in (_DISPLAY, _ACCELERATOR) or not _is_offered(files, address):
            continue
        vendor = VENDORS.get(_id(files, address, "vendor"), "")
        model = MODEL_NAMES.get(vendor, {}).get(_id(files, address, "device"), "")
        if model or (vendor == NVIDIA and kind >> 8 == _3D):
            bridges = _bridges(files, address)
            numa = numa_of(files, address, bridges, numa_nodes)
            found[address] = Gpu(address, vendor, model, numa=numa, bridges=bridges)
    return found


def _is_offered(files: HostFiles, address: str) -> bool:
    """Returns whether a card can be given to pods: no virtual function, and not passed through to a virtual machine."""
    driver = (files.resolved(f"{DEVICES}/{address}/driver") or "").rpartition("/")[2]
    return driver not in _PASSED_THROUGH and files.resolved(f"{DEVICES}/{address}/physfn") is None


def _id(files: HostFiles, address: str, name: str) -> str:
    number = files.number(f"{DEVICES}/{address}/{name}", 0, 0xFFFF)
    return "" if number is None else f"{number:04x}"


def _bridges(files: HostFiles, address: str) -> tuple[str, ...]:
    """Returns the root and the bridges above a device, from the path that its link leads to."""
    parts = (files.resolved(f"{DEVICES}/{address}") or "").split("/")[:-1]
    return tuple(part for part in parts[-_MAX_DEPTH:] if ADDRESS.fullmatch(part) or _ROOT.fullmatch(part))


def numa_of(files: HostFiles, address: str, bridges: Sequence[str], numa_nodes: Sequence[NumaNode]) -> int:
    """Returns the NUMA node of a device, or of the nearest bridge that has one, or the one whose CPUs are local.

    A NUMA node without CPUs, such as the memory of a GPU, counts only where nothing names one with CPUs."""
    with_cpus = {node.id for node in numa_nodes}
    named = []
    for each in (address, *(bridge for bridge in reversed(bridges) if ADDRESS.fullmatch(bridge))):
        number = files.number(f"{DEVICES}/{each}/numa_node", -1, _MAX_NUMA)
        if number is not None and number >= 0:
            named.append(number)
            if number in with_cpus:
                return number
    local = set(files.cpus(f"{DEVICES}/{address}/local_cpulist"))
    near = [node.id for node in numa_nodes if local and local.issubset(node.cpus)]
    if len(numa_nodes) == 1:
        return numa_nodes[0].id
    return (near or named or [UNKNOWN])[0]
