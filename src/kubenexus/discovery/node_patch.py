"""The labels and annotations that describe the machine of a node, in the forms of the registry of keys.

What people select nodes by is a label; the layout of NUMA nodes and cards is in annotations.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from kubenexus.api.devices.device import UNKNOWN
from kubenexus.api.devices.models import NVIDIA
from kubenexus.api.keys import KeyEntry, discovered, gpu, network, numa
from kubenexus.discovery.kubelet_config import UNKNOWN_KUBELET, KubeletSettings
from kubenexus.discovery.machine import Gpu, Machine, islands

# All keys that discovery writes, and no others (deploy: the admission policy of its account).
LABELS: Final[tuple[KeyEntry[Any], ...]] = (
    numa.NODE_COUNT,
    numa.THREADS,
    numa.FULL_CORES,
    numa.SPREAD_CPUS,
    numa.PREFER_CLOSEST,
    gpu.MODEL,
    gpu.VRAM,
    gpu.COUNT,
    gpu.TOPOLOGY,
    discovered.CLIQUE,
    network.FABRIC_TYPE,
    network.FABRIC_ID,
    network.BANDWIDTH,
)
ANNOTATIONS: Final[tuple[KeyEntry[Any], ...]] = (
    numa.CPUS,
    numa.MEMORY,
    numa.DISTANCE,
    numa.GPU,
    gpu.ISLANDS,
)
_MAX_LABEL: Final = 63
_MAX_NODES: Final = 64  # NUMA nodes that are described; an object holds 256 KiB of annotations
_MAX_DISTANCES: Final = 16  # NUMA nodes whose distances are written: 256 annotations
_NOT_IN_LABELS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_MIB: Final = 2**20


class NodePatch(msgspec.Struct, frozen=True):
    """What a node should have. `warnings` are about what is not written, and why."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


def node_patch(machine: Machine, kubelet: KubeletSettings = UNKNOWN_KUBELET) -> NodePatch:
    """Returns what a machine's node should have."""
    labels = dict(_numa_labels(machine, kubelet)) | dict(_fabric(machine))
    annotations = dict(_numa_annotations(machine))
    warnings: list[str] = list(machine.warnings)
    if machine.clique:
        labels[discovered.CLIQUE.key] = machine.clique
    problem = _undescribed(machine.gpus)
    if problem:
        warnings.append(problem)
    elif machine.gpus:
        labels |= _cards(machine.gpus, warnings)
        annotations |= _places(machine.gpus)
    return NodePatch(dict(sorted(labels.items())), dict(sorted(annotations.items())), tuple(warnings))


def _numa_labels(machine: Machine, kubelet: KubeletSettings) -> Iterator[tuple[str, str]]:
    if machine.numa_nodes:
        yield numa.NODE_COUNT.key, str(len(machine.numa_nodes))
    if machine.threads:
        yield numa.THREADS.key, str(machine.threads)
    for entry, is_set in (
        (numa.FULL_CORES, kubelet.full_cores_only),
        (numa.SPREAD_CPUS, kubelet.spread_cpus),
        (numa.PREFER_CLOSEST, kubelet.prefer_closest),
    ):
        if is_set:
            yield entry.key, "true"


def _numa_annotations(machine: Machine) -> Iterator[tuple[str, str]]:
    far = len(machine.numa_nodes) > _MAX_DISTANCES
    for node in machine.numa_nodes[:_MAX_NODES]:
        yield numa.CPUS.at(node.id).key, ranges(node.cpus, ",")
        if node.memory:
            yield numa.MEMORY.at(node.id).key, f"{node.memory // 1024}Ki"
        for other, distance in () if far else node.distances.items():
            yield numa.DISTANCE.at(node.id, other).key, str(distance)


def _undescribed(gpus: Sequence[Gpu]) -> str:
    """Returns why the keys of the registry cannot describe these cards, "" if they can."""
    if any(each.divided for each in gpus):
        return "some GPUs are divided (MIG, partitions); only the labels of their vendor's agent describe the parts"
    vendors = {each.vendor for each in gpus}
    return f"GPUs of {' and '.join(sorted(vendors))}; labels describe those of one vendor" if len(vendors) > 1 else ""


def _cards(gpus: Sequence[Gpu], warnings: list[str]) -> dict[str, str]:
    labels = {gpu.COUNT.key: str(len(gpus))}
    models = {each.model for each in gpus}
    sizes = {each.memory for each in gpus}
    model = label_value(models.pop()) if len(models) == 1 else ""
    if model:
        labels[gpu.MODEL.key] = model
    elif models:
        warnings.append(f"{gpu.MODEL.key}: the GPUs are of {len(models)} models; one label cannot name them")
    if len(sizes) == 1 and (memory := sizes.pop()) != UNKNOWN:
        labels[gpu.VRAM.key] = f"{memory // _MIB}Mi" if memory % _MIB == 0 else str(memory)
    elif sizes:
        warnings.append(f"{gpu.VRAM.key}: the GPUs have {len(sizes)} sizes of memory; one label cannot name them")
    topology = _topology(gpus)
    return labels | ({gpu.TOPOLOGY.key: topology} if topology else {})


def _topology(gpus: Sequence[Gpu]) -> str:
    """Returns what joins the GPUs. AMD's links have no word; `pcie` says that the links are known to join none."""
    joined = islands(gpus)
    if joined and gpus[0].vendor == NVIDIA:
        return "nvswitch" if any(gpus[number].switched for number in joined[0]) else "nvlink"
    # A card without a UUID was not asked about its links: only the PCI tree knows it.
    return "pcie" if len(gpus) > 1 and not joined and all(each.uuid for each in gpus) else ""


def _places(gpus: Sequence[Gpu]) -> dict[str, str]:
    places = {numa.GPU.at(number).key: str(each.numa) for number, each in enumerate(gpus) if each.numa != UNKNOWN}
    joined = islands(gpus)
    return places | ({gpu.ISLANDS.key: "_".join(ranges(group, ".") for group in joined)} if joined else {})


def _fabric(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yields the fastest fabric: NVLink among machines, else that of the ports that are up."""
    layers = {port.layer for port in machine.ports}
    layer = "infiniband" if "infiniband" in layers else "ethernet" if layers else ""
    ports = [port for port in machine.ports if port.layer == layer]
    word = "nvswitch" if machine.clique else {"infiniband": "infiniband", "ethernet": "roce"}.get(layer, "")
    if word:
        yield network.FABRIC_TYPE.key, word
    subnets = {port.subnet for port in ports if port.subnet}
    if len(subnets) == 1:
        yield network.FABRIC_ID.key, f"ib-{subnets.pop()}"
    if ports:
        yield network.BANDWIDTH.key, f"{sum(port.rate for port in ports) // 10**9}Gbps"


def ranges(numbers: Iterable[int], separator: str) -> str:
    """Returns ascending numbers as the kernel prints them: `0-3,8`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return separator.join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def label_value(text: str) -> str:
    """Returns a text as the value of a label: other characters become hyphens, the end is cut."""
    return _NOT_IN_LABELS.sub("-", text)[:_MAX_LABEL].strip("-_.")
