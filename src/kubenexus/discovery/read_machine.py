"""Reads a machine: NUMA nodes, cores, GPUs, ports of RDMA adapters."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubenexus.api.devices.device import MAX_DEVICES, MAX_MEMORY, UNKNOWN
from kubenexus.api.devices.draft import Warnings
from kubenexus.api.devices.models import AMD, NVIDIA
from kubenexus.discovery.host_files import HostFiles
from kubenexus.discovery.machine import Gpu, Machine
from kubenexus.discovery.nvml import FABRIC_COMPLETED, LIBRARY, LINK_TO_GPU, LINK_TO_SWITCH, LINK_UNKNOWN, NvmlGpu
from kubenexus.discovery.read_amd import read_amd
from kubenexus.discovery.read_numa import read_numa, read_threads
from kubenexus.discovery.read_pci import ADDRESS, read_pci
from kubenexus.discovery.read_rdma import read_ports

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def read_machine(root: Path, nvml: Sequence[NvmlGpu] | None = None) -> Machine:
    """Returns the machine whose `sys` is below `root`. `nvml` is what NVIDIA's driver answers, None where it is not
    there: then NVIDIA's GPUs are those of the PCI tree, without memory and links."""
    warnings = Warnings()
    files = HostFiles(root, warnings)
    numa_nodes = read_numa(files)
    pci = read_pci(files, numa_nodes)
    nvidia = [gpu for gpu in pci.values() if gpu.vendor == NVIDIA]
    if nvml is not None:
        cards = frozenset(pci_address(each.bus_id) for each in nvml)
        nvidia = [_nvidia(each, pci, cards, warnings) for each in nvml]
    elif nvidia:
        warnings.add(f"{LIBRARY} does not answer: the memory and the links of NVIDIA's GPUs stay unknown")
    others = [gpu for gpu in pci.values() if gpu.vendor not in (NVIDIA, AMD)]
    gpus = [*nvidia, *read_amd(files, pci), *others]
    if len(gpus) > MAX_DEVICES:
        warnings.add(f"{len(gpus)} GPUs; the first {MAX_DEVICES} count")
    return Machine(
        numa_nodes,
        read_threads(files, numa_nodes),
        tuple(gpus[:MAX_DEVICES]),
        _clique(nvml or (), warnings),
        read_ports(files),
        warnings.all(),
    )


def _nvidia(answer: NvmlGpu, pci: dict[str, Gpu], cards: frozenset[str], warnings: Warnings) -> Gpu:
    """Returns a GPU of NVIDIA's driver with what the PCI tree has at its address. Where an old driver does not tell
    what a link leads to, the address there does: one of `cards`, or a switch."""
    address = pci_address(answer.bus_id)
    if address not in pci:
        warnings.add(f"GPU {answer.index}: no PCI device {address or 'at its address'}")
    there = pci.get(address, Gpu(address, NVIDIA))
    ends = [(link.to, pci_address(link.remote)) for link in answer.links]
    peers = {remote for to, remote in ends if to == LINK_TO_GPU or (to == LINK_UNKNOWN and remote in cards)}
    return msgspec.structs.replace(
        there,
        vendor=NVIDIA,
        model=answer.name or there.model,
        memory=answer.memory if 0 < answer.memory <= MAX_MEMORY else UNKNOWN,
        uuid=answer.uuid,
        peers=tuple(sorted(peers - {"", address})),
        switched=any(
            to == LINK_TO_SWITCH or (to == LINK_UNKNOWN and remote and remote not in cards) for to, remote in ends
        ),
        divided=answer.mig,
    )


def pci_address(bus_id: str) -> str:
    """Returns an address as sysfs writes it: the driver writes `00000000:1B:00.0` for `0000:1b:00.0`."""
    text = bus_id.strip().lower()
    domain, colon, rest = text.partition(":")
    if len(domain) == 8 and domain.startswith("0000"):
        text = domain[4:] + colon + rest
    return text if ADDRESS.fullmatch(text) else ""


def _clique(nvml: Sequence[NvmlGpu], warnings: Warnings) -> str:
    """Returns the NVLink domain among machines that all GPUs are in, "" if they are in none."""
    cliques = {
        f"{each.cluster}.{each.clique}"
        for each in nvml
        if each.fabric_state == FABRIC_COMPLETED and _UUID.fullmatch(each.cluster) and each.cluster.strip("0-")
    }
    if len(cliques) > 1:
        warnings.add(f"the GPUs are in {len(cliques)} NVLink domains; none is written")
    return cliques.pop() if len(cliques) == 1 else ""
