"""Reads the ports of InfiniBand and RoCE adapters from sysfs."""

import re
from typing import Final

from kubenexus.discovery.host_files import HostFiles
from kubenexus.discovery.machine import RdmaPort

ADAPTERS: Final = "sys/class/infiniband"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_RATE: Final = re.compile(r"([0-9]{1,6})(?:\.([0-9]))? Gb/sec\b.*")
_LAYERS: Final = {"InfiniBand": "infiniband", "Ethernet": "ethernet"}
_DEFAULT_SUBNET: Final = "fe80000000000000"
_MAX_ADAPTERS, _MAX_PORTS = 256, 16


def read_ports(files: HostFiles) -> tuple[RdmaPort, ...]:
    """Returns the ports that are up."""
    found = []
    for adapter in [name for name in files.names(ADAPTERS) if _NAME.fullmatch(name)][:_MAX_ADAPTERS]:
        folder = f"{ADAPTERS}/{adapter}/ports"
        for number in [name for name in files.names(folder) if re.fullmatch("[0-9]{1,3}", name)][:_MAX_PORTS]:
            port = _port(files, adapter, int(number), f"{folder}/{number}")
            if port is not None:
                found.append(port)
    return tuple(found)


def _port(files: HostFiles, adapter: str, number: int, folder: str) -> RdmaPort | None:
    if "ACTIVE" not in (files.text(f"{folder}/state") or ""):
        return None
    layer = _LAYERS.get(files.text(f"{folder}/link_layer") or "", "")
    text = files.text(f"{folder}/rate") or ""
    rate = _RATE.fullmatch(text)
    if not layer or rate is None:
        files.warnings.add(f"{folder}: no link layer or no rate")
        return None
    subnet = (files.text(f"{folder}/gids/0") or "").replace(":", "")[:16] if layer == "infiniband" else ""
    known = re.fullmatch("[0-9a-f]{16}", subnet) and subnet != _DEFAULT_SUBNET and subnet.strip("0")
    return RdmaPort(adapter, number, layer, int(rate[1]) * 10**9 + int(rate[2] or 0) * 10**8, subnet if known else "")
