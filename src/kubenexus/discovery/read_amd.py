"""Adds to AMD's GPUs what the drivers amdgpu and amdkfd publish in sysfs: memory, XGMI links, partitions."""

import re
from collections import Counter
from typing import Final

import msgspec

from kubenexus.api.devices.device import MAX_MEMORY, UNKNOWN
from kubenexus.api.devices.models import AMD
from kubenexus.discovery.host_files import HostFiles
from kubenexus.discovery.machine import Gpu
from kubenexus.discovery.read_pci import DEVICES

TOPOLOGY: Final = "sys/class/kfd/kfd/topology/nodes"
_XGMI: Final = 11  # the type of a link in the driver's headers
_MAX_NODES: Final = 256  # CPUs and GPUs that the driver numbers
_MAX_LINKS: Final = 128
_PROPERTY: Final = re.compile(r"^([a-z0-9_]{1,40}) ([0-9]{1,20})$", re.MULTILINE)


def read_amd(files: HostFiles, found: dict[str, Gpu]) -> list[Gpu]:
    """Returns AMD's GPUs in the order of their addresses, as their device plugin numbers them."""
    ours = {address: gpu for address, gpu in found.items() if gpu.vendor == AMD}
    if not ours:
        return []
    addresses, links = _topology(files)
    parts = Counter(addresses.values())
    peers: dict[str, dict[str, None]] = {}
    for one, other in links:
        if one in addresses and other in addresses and addresses[one] != addresses[other]:
            peers.setdefault(addresses[one], {})[addresses[other]] = None
    return [
        msgspec.structs.replace(
            gpu,
            memory=files.number(f"{DEVICES}/{address}/mem_info_vram_total", 0, MAX_MEMORY) or UNKNOWN,
            uuid=_unique_id(files, address),
            peers=tuple(sorted(peers.get(address, {}))),
            divided=parts[address] > 1,
        )
        for address, gpu in ours.items()
        if not addresses or address in parts
    ]


def _unique_id(files: HostFiles, address: str) -> str:
    text = files.text(f"{DEVICES}/{address}/unique_id") or ""
    return text if re.fullmatch("[0-9a-f]{1,32}", text) else ""


def _topology(files: HostFiles) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Returns the address of each GPU by its number in the driver's topology, and the XGMI links by these numbers."""
    addresses: dict[int, str] = {}
    links: list[tuple[int, int]] = []
    names = [name for name in files.names(TOPOLOGY) if name.isascii() and name.isdigit() and len(name) < 5]
    for name in names[:_MAX_NODES]:
        folder = f"{TOPOLOGY}/{name}"
        if not files.number(f"{folder}/gpu_id", 0, 0xFFFFFFFF):
            continue  # a CPU
        told = _properties(files, f"{folder}/properties")
        place, domain = told.get("location_id", 0), told.get("domain", 0)
        if place > 0xFFFF or domain > 0xFFFFFFFF:
            files.warnings.add(f"{folder}/properties: no PCI address")
            continue
        addresses[int(name)] = (
            f"{domain:04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{0 if told.get('num_xcc') else place & 7}"
        )
        for link in files.names(f"{folder}/io_links")[:_MAX_LINKS]:
            joined = _properties(files, f"{folder}/io_links/{link}/properties")
            if joined.get("type") == _XGMI:
                links.append((joined.get("node_from", -1), joined.get("node_to", -1)))
    return addresses, links


def _properties(files: HostFiles, path: str) -> dict[str, int]:
    return {name: int(value) for name, value in _PROPERTY.findall(files.text(path) or "")}
