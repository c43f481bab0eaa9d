"""Reads what labels and annotations of a node contain about its devices, by the agent that writes them.

Values that cannot be read become warnings, and count as absent.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from kubenexus.api.devices.cloud_machines import accelerator_product, machine_product
from kubenexus.api.devices.device import UNKNOWN, DeviceKind, FactSource
from kubenexus.api.devices.draft import MAX_TEXT, Warnings
from kubenexus.api.devices.models import (
    AMD,
    GOOGLE,
    HABANA,
    NVIDIA,
    find_model,
    profile_memory,
    split_product,
)
from kubenexus.api.devices.pci_ids import MODEL_NAMES, VENDORS
from kubenexus.api.keys import (
    KeyEntry,
    KeyReading,
    discovered,
    gpu,
    network,
    numa,
    read_indexed_key,
    read_key,
    tenant,
)
from kubenexus.api.keys.values import quoted

T = TypeVar("T")

_MIB: Final = 2**20
_INT64: Final = 2**63 - 1
_HEALTHY: Final = frozenset(("ok", "true", "healthy", "pass", "passed", ""))
_MAX_NUMA_NODES: Final = 1024
# What a vendor has in a class of PCI devices, where the model is not known: 3D controllers (0302) and accelerators
# (1200). Display controllers (0300) are on many mainboards, and Intel has 1200 in laptops.
_CLASSES: Final = {
    (NVIDIA, "0302"): DeviceKind.GPU,
    (AMD, "0302"): DeviceKind.GPU,
    (AMD, "1200"): DeviceKind.GPU,
    (HABANA, "1200"): DeviceKind.ACCELERATOR,
    (GOOGLE, "1200"): DeviceKind.ACCELERATOR,
}

# What a node states that others read from its labels, but warn of nothing: plugins do, for each decision.
READ_BY_OTHERS: Final[tuple[KeyEntry[Any], ...]] = (
    gpu.HARDWARE_TIER,
    gpu.COST_HOUR,
    tenant.RESERVED_TIER,
    network.FABRIC_TYPE,
)
# All keys that are read here.
READ: Final[tuple[KeyEntry[Any], ...]] = (
    discovered.PRODUCT,
    discovered.MEMORY_MIB,
    discovered.COUNT,
    discovered.REPLICAS,
    discovered.SHARING_STRATEGY,
    discovered.CLIQUE,
    discovered.MIG,
    discovered.PCI_PRESENT,
    discovered.PCI_DEVICE_PRESENT,
    discovered.PCI_DEVICE_COUNT,
    discovered.GKE_ACCELERATOR,
    discovered.GKE_PARTITION,
    discovered.CLOUD_COUNT,
    discovered.KARPENTER_GPU,
    discovered.KARPENTER_GPU_MEMORY,
    discovered.INSTANCE_TYPE,
    gpu.MODEL,
    gpu.VRAM,
    gpu.COUNT,
    gpu.TOPOLOGY,
    gpu.ISLANDS,
    gpu.HEALTH,
    gpu.SHARED,
    numa.NODE_COUNT,
    numa.GPU,
    numa.NFD_NODE,
    *READ_BY_OTHERS,
)


class GfdFacts(msgspec.Struct, frozen=True, gc=False):
    """Labels of GPU Feature Discovery. `profile` is set if all GPUs of the node are MIG devices of one profile."""

    model: str = ""
    profile: str = ""
    memory: int = UNKNOWN
    count: int = 0
    replicas: int = 1
    clique: str = ""
    shared: bool = False
    mig_memory: dict[str, int] = {}
    mig_replicas: dict[str, int] = {}

    @property
    def is_there(self) -> bool:
        return bool(self.model or self.count)


class NfdDevice(msgspec.Struct, frozen=True, gc=False):
    """PCI devices of one model. `count` is 0 where only their presence is known."""

    vendor: str
    kind: DeviceKind
    model: str = ""
    count: int = 0


class NfdFacts(msgspec.Struct, frozen=True, gc=False):
    """Labels of Node Feature Discovery. `numa_nodes` is 0 where their number is not known."""

    devices: tuple[NfdDevice, ...] = ()
    numa_nodes: int = 0
    numa_source: FactSource = FactSource.NFD


class ManualFacts(msgspec.Struct, frozen=True, gc=False):
    """Labels and annotations that administrators set. `count` is None and `topology` "" where they are not set."""

    model: str = ""
    memory: int = UNKNOWN
    count: int | None = None
    topology: str = ""
    islands: tuple[tuple[int, ...], ...] = ()
    numa: dict[int, int] = {}
    healthy: bool | None = None
    shared: bool | None = None


class CloudFacts(msgspec.Struct, frozen=True, gc=False):
    """Labels of the cloud that the node is in. `model` is "" where none of them names the cards of the machine;
    `count` is 0 where none states their number."""

    model: str = ""
    memory: int = UNKNOWN
    count: int = 0


class LabelReader:
    """Reads keys of one node, and keeps their warnings."""

    __slots__ = ("annotations", "labels", "warnings")

    def __init__(self, labels: Mapping[str, str], annotations: Mapping[str, str], warnings: Warnings) -> None:
        self.labels = labels
        self.annotations = annotations
        self.warnings = warnings

    def read(self, entry: KeyEntry[T]) -> KeyReading[T]:
        reading = read_key(entry, self.labels, self.annotations)
        if reading.problems or reading.conflicts:
            self.warnings.add(*reading.warnings)
        return reading

    def value(self, entry: KeyEntry[T]) -> T:
        return self.read(entry).value

    def text(self, entry: KeyEntry[str | None]) -> str:
        text = self.value(entry) or ""
        if len(text) <= MAX_TEXT:
            return text
        self.warnings.add(f"{entry.key}: longer than {MAX_TEXT} characters")
        return ""

    def indexed(self, entry: KeyEntry[T]) -> dict[tuple[int | str, ...], KeyReading[T]]:
        """Returns the readings that are set, by their index."""
        readings = read_indexed_key(entry, self.labels, self.annotations)
        for each in readings.values():
            if each.problems or each.conflicts:
                self.warnings.add(*each.warnings)
        return {index: each for index, each in readings.items() if each.is_set}


def read_gfd(reader: LabelReader) -> GfdFacts:
    """Returns what GPU Feature Discovery publishes about the NVIDIA GPUs of the node."""
    model, profile = split_product(reader.text(discovered.PRODUCT))
    partition = reader.text(discovered.GKE_PARTITION)
    if not profile and profile_memory(partition) > 0:
        profile = partition
    replicas = reader.value(discovered.REPLICAS) or 1
    memory: dict[str, int] = {}
    shares: dict[str, int] = {}
    for (name, attribute), reading in reader.indexed(discovered.MIG).items():
        number = _number(reading.value)
        if attribute == "memory" and number:
            memory[str(name)] = _mebibytes(number)
        elif attribute == "replicas" and number > 1:
            shares[str(name)] = number
    return GfdFacts(
        model=model,
        profile=profile,
        memory=_mebibytes(reader.value(discovered.MEMORY_MIB) or 0),
        count=reader.value(discovered.COUNT) or 0,
        replicas=replicas,
        clique=reader.text(discovered.CLIQUE),
        shared=reader.value(discovered.SHARING_STRATEGY) in ("time-slicing", "mps") or replicas > 1 or bool(shares),
        mig_memory=memory,
        mig_replicas=shares,
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 9 else 0


def _mebibytes(number: int) -> int:
    return min(number * _MIB, _INT64) if number > 0 else UNKNOWN


def read_nfd(reader: LabelReader) -> NfdFacts:
    """Returns the PCI devices and NUMA nodes that Node Feature Discovery publishes, each device once."""
    found: dict[tuple[str, str], int] = {}
    absent: set[tuple[str, str]] = set()
    vendors: dict[str, DeviceKind] = {}
    for (vendor, device), present in reader.indexed(discovered.PCI_DEVICE_PRESENT).items():
        key = (VENDORS.get(str(vendor), ""), str(device))
        found[key] = 0
        if not present.value:
            absent.add(key)
    for (vendor, device), count in reader.indexed(discovered.PCI_DEVICE_COUNT).items():
        key = (VENDORS.get(str(vendor), ""), str(device))
        found[key] = count.value or 0
        if not count.value:
            absent.add(key)
    for (fields,), present in reader.indexed(discovered.PCI_PRESENT).items():
        if present.value:
            _add_pci(str(fields).split("_"), found, vendors)
    devices = [_nfd_device(*key, found[key]) for key in sorted(found) if key not in absent and _is_known(*key)]
    named = {each.vendor for each in devices}
    devices += (NfdDevice(each, vendors[each]) for each in sorted(vendors) if each not in named)
    nodes, source = _numa_nodes(reader)
    return NfdFacts(tuple(devices), nodes, source)


def _add_pci(fields: list[str], found: dict[tuple[str, str], int], vendors: dict[str, DeviceKind]) -> None:
    """Adds a device by the fields of its label, which an administrator of NFD may choose and order: class, vendor and
    device, in part."""
    vendor = next((VENDORS[field] for field in fields if field in VENDORS), "")
    others = [field for field in fields if field not in VENDORS]
    known = next((field for field in others if _is_known(vendor, field)), "")
    if known:
        found.setdefault((vendor, known), 0)
        return
    for field in others:
        if (vendor, field) in _CLASSES:
            vendors[vendor] = _CLASSES[vendor, field]


def _is_known(vendor: str, device: str) -> bool:
    return device in MODEL_NAMES.get(vendor, {})


def _nfd_device(vendor: str, device: str, count: int) -> NfdDevice:
    name = MODEL_NAMES[vendor][device]
    model = find_model(name)
    return NfdDevice(vendor, model.kind if model else DeviceKind.GPU, name, count)


def _numa_nodes(reader: LabelReader) -> tuple[int, FactSource]:
    reading = reader.read(numa.NODE_COUNT)
    if reading.value is not None:
        by_nfd = reading.source_key.startswith(numa.NFD.key)
        return reading.value, FactSource.NFD if by_nfd else FactSource.MANUAL
    numbers = [int(index[0]) for index in reader.indexed(numa.NFD_NODE)]
    most = min(max(numbers, default=0) + 1, _MAX_NUMA_NODES)
    return most if most > 1 else 0, FactSource.NFD


def check_others(reader: LabelReader) -> None:
    """Adds the warnings about keys that say nothing about the devices themselves."""
    for entry in READ_BY_OTHERS:
        reader.read(entry)


def read_manual(reader: LabelReader) -> ManualFacts:
    """Returns what administrators write on the node."""
    count, memory = reader.read(gpu.COUNT), reader.value(gpu.VRAM)
    checks = reader.indexed(gpu.HEALTH)
    islands = reader.value(gpu.ISLANDS)
    return ManualFacts(
        model=reader.text(gpu.MODEL),
        memory=memory or UNKNOWN,
        count=count.value if count.is_set else None,
        topology=reader.value(gpu.TOPOLOGY) or "",
        islands=islands or (),
        numa={int(index[0]): each.value for index, each in reader.indexed(numa.GPU).items() if each.value is not None},
        healthy=all((each.value or "").lower() in _HEALTHY for each in checks.values()) if checks else None,
        shared=reader.value(gpu.SHARED),
    )


def read_cloud(reader: LabelReader) -> CloudFacts:
    """Returns what the cloud states about the cards of the node. The type of the machine goes first: it is exact, where
    `a100` may have 40 or 80 GB."""
    product = machine_product(reader.text(discovered.INSTANCE_TYPE))
    named = reader.text(discovered.GKE_ACCELERATOR) or reader.text(discovered.KARPENTER_GPU)
    memory = _mebibytes(reader.value(discovered.KARPENTER_GPU_MEMORY) or 0)
    partition = reader.text(discovered.GKE_PARTITION)
    if partition and profile_memory(partition) <= 0:
        reader.warnings.add(f"{discovered.GKE_PARTITION.key}: {quoted(partition)} is no MIG profile such as 1g.10gb")
        return CloudFacts()  # parts of cards, of a size that is not known
    return CloudFacts(product or accelerator_product(named), memory, reader.value(discovered.CLOUD_COUNT) or 0)
