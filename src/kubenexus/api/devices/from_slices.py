"""Reads devices of complete pools of ResourceSlices.

No standard names most attributes, so each meaning has several. A name counts without its domain, in any case, and
without `-`, `_` and `.`: `gpu.nvidia.com/nvlinkDomain` and `nvlink_domain` are the same. Kubernetes' own names
(`resource.kubernetes.io/`) go before others.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from kubenexus.api.core import QuantityText
from kubenexus.api.devices.device import MAX_DEVICES, DeviceKind, FactSource
from kubenexus.api.devices.draft import MAX_TEXT, Draft, Links, Warnings
from kubenexus.api.devices.models import AMD, AWS, GOOGLE, HABANA, INTEL, NVIDIA, cluster_clique, find_model
from kubenexus.api.devices.resource_slice import BasicDevice, DeviceAttribute, PoolDevice
from kubenexus.api.keys.values import QuantityValue, quoted
from kubenexus.base.errors import Malformed, truncated

T = TypeVar("T")
Attributes = dict[str, DeviceAttribute]  # by their folded names

_STANDARD: Final = "resource.kubernetes.io/"
_MEMORY: Final = ("memory", "vram", "gpumemory", "addressablememory")
_NUMA: Final = ("numanode", "numa")
_PCI_ADDRESS: Final = ("pcibusid", "pciebusid", "pciaddress")
_SWITCH: Final = ("pcieroot", "pcieswitch", "pcieswitchid")
_DOMAIN: Final = ("nvlinkdomain", "cliqueid", "clique")
_MODEL: Final = ("productname", "model")

_IGNORED: Final = str.maketrans("", "", "-_.")
_MAX_LIST: Final = 4096  # characters of a list in one text; the API server allows 64

_MIB: Final = 2**20
_LEAST_BYTES: Final = 10**7  # a smaller amount of memory without a unit is in MiB: no card has so few bytes
_MAX_NUMA: Final = 1023
_BYTES: Final = QuantityValue("bytes", "80Gi")

_WORDS: Final = re.compile(r"[.-]")
_GPU_WORDS: Final = frozenset(("gpu", "gpus", NVIDIA, AMD))
_ACCELERATOR_WORDS: Final = frozenset(
    ("accelerator", "accelerators", "gaudi", HABANA, "tpu", "npu", "neuron", "trainium", "inferentia")
)
_OTHER_WORDS: Final = frozenset(
    ("net", "network", "nic", "rdma", "roce", "infiniband", "sriov", "dranet", "cpu", "compute", "imex", "nvme", "dpu")
)
_VENDOR_WORDS: Final = {
    "gaudi": HABANA,
    HABANA: HABANA,
    NVIDIA: NVIDIA,
    AMD: AMD,
    INTEL: INTEL,
    "tpu": GOOGLE,
    GOOGLE: GOOGLE,
    "neuron": AWS,
    AWS: AWS,
    "amazon": AWS,
    "amazonaws": AWS,
}
_MIG: Final = "mig"
_PARTS: Final = frozenset((_MIG, "vfio"))
_OTHER_TYPES: Final = frozenset(("channel", "daemon", "nic", "switch", "nvswitch", "cpu"))
_BLOCKING: Final = frozenset(("NoSchedule", "NoExecute"))


def driver_kind(driver: str) -> DeviceKind | None:
    """Returns what a driver's devices are, or None if they are neither GPUs nor accelerators. A vendor's network
    cards have drivers, too."""
    words = set(_WORDS.split(driver.lower()))
    if words & _OTHER_WORDS:
        return None
    if words & _ACCELERATOR_WORDS:
        return DeviceKind.ACCELERATOR
    return DeviceKind.GPU if words & _GPU_WORDS else None


def read_slices(devices: Sequence[PoolDevice], warnings: Warnings) -> list[Draft]:
    """Returns a draft of each GPU and accelerator, in the order given; of the first `MAX_DEVICES` only."""
    folded = [(each, _folded(each.content.attributes)) for each in devices if driver_kind(each.driver) is not None]
    chosen = [(each, attributes) for each, attributes in folded if _exists(each.content, attributes)]
    if len(chosen) > MAX_DEVICES:
        warnings.add(f"{len(chosen)} devices in ResourceSlices; the first {MAX_DEVICES} count")
        del chosen[MAX_DEVICES:]
    drafts = [_draft(each, attributes, warnings) for each, attributes in chosen]
    for draft, name in zip(drafts, _unique_names([each for each, _ in chosen]), strict=True):
        draft.put("name", name, FactSource.DRA)
    _number_switches(drafts)
    return drafts


def _exists(content: BasicDevice, attributes: Attributes) -> bool:
    """Returns whether the device is there now. A part of a partitionable card is not before it is allocated: its card
    is listed beside it."""
    kind = _type(attributes)
    return kind not in _OTHER_TYPES and not (content.consumes_counters and kind in _PARTS)


def _unique_names(devices: Sequence[PoolDevice]) -> Iterator[str]:
    """Yields names that are unique on the node: a name is unique in its pool only."""
    plain = Counter(each.name for each in devices)
    by_driver = Counter((each.driver, each.name) for each in devices)
    for each in devices:
        if plain[each.name] == 1:
            yield each.name
        elif by_driver[each.driver, each.name] == 1:
            yield f"{each.driver}/{each.name}"
        else:
            yield f"{each.driver}/{each.pool}/{each.name}"


def _draft(device: PoolDevice, attributes: Attributes, warnings: Warnings) -> Draft:
    subject = f"device {truncated(device.name)} of {truncated(device.driver)}"
    model = _text(_first(attributes, _MODEL))
    known = find_model(model)
    kind = driver_kind(device.driver) or DeviceKind.GPU
    if _type(attributes) == _MIG:
        kind = DeviceKind.MIG
    elif known is not None and kind is DeviceKind.GPU:
        kind = known.kind
    draft = Draft(kind, _vendor(device.driver) or (known.vendor if known else ""), FactSource.DRA)
    texts = {
        "model": model,
        "uuid": _text(_first(attributes, ("uuid",))),
        "pci_address": _text(_first(attributes, _PCI_ADDRESS)),
        "profile": _text(_first(attributes, ("profile",))),
        "parent": _text(_first(attributes, ("parentuuid", "parent"))),
        "switch": _text(_first(attributes, _SWITCH)),
        "clique": _clique(attributes),
    }
    for field, text in texts.items():
        if text:
            draft.put(field, text, FactSource.DRA)
    _put_numbers(draft, device.content, attributes, subject, warnings)
    _put_health(draft, device.content, attributes)
    draft.links = _links(attributes)
    return draft


def _put_numbers(draft: Draft, content: BasicDevice, attributes: Attributes, subject: str, warnings: Warnings) -> None:
    try:
        memory = _memory(content, attributes)
    except Malformed as error:
        warnings.add(f"{subject}: memory: {error}"[:MAX_TEXT])
        memory = None
    if memory:
        draft.put("memory", memory, FactSource.DRA)
    found = _first(attributes, _NUMA)
    numa = _number(found)
    if numa is not None and 0 <= numa <= _MAX_NUMA:
        draft.put("numa", numa, FactSource.DRA)
    elif found is not None and numa != -1:  # the kernel's "no NUMA node"
        warnings.add(f"{subject}: NUMA node {quoted(_text(found))} is no number from 0 to {_MAX_NUMA}")


def _put_health(draft: Draft, content: BasicDevice, attributes: Attributes) -> None:
    stated = attributes.get("healthy")
    if any(taint.effect in _BLOCKING for taint in content.taints):
        draft.put("healthy", False, FactSource.DRA)
    elif stated is not None:
        draft.put("healthy", stated.flag is not False and _text(stated).lower() != "false", FactSource.DRA)


def _memory(content: BasicDevice, attributes: Attributes) -> int | None:
    """Returns bytes; None if the device has none or does not say. Raises Malformed."""
    capacity = _first(_folded(content.capacity), _MEMORY)
    if capacity is not None:
        return _bytes(capacity.value)
    stated = _first(attributes, _MEMORY)
    if stated is None or stated.number is None:
        return _bytes(_text(stated)) if stated is not None and _text(stated) else None
    return stated.number * _MIB if 0 <= stated.number < _LEAST_BYTES else _bytes(stated.number)


def _bytes(amount: QuantityText) -> int:
    return _BYTES.parse(str(amount))


def _clique(attributes: Attributes) -> str:
    """Returns the NVLink domain among nodes. The number of a clique alone is not unique in a cluster."""
    cluster = _text(_first(attributes, ("clusteruuid", "fabricclusteruuid")))
    clique = _text(_first(attributes, ("cliqueid", "clique")))
    return cluster_clique(f"{cluster}.{clique}" if cluster and clique else clique)


def _links(attributes: Attributes) -> Links:
    domain = _first(attributes, _DOMAIN)
    peers = attributes.get("nvlinkpeers")
    hops = attributes.get("xgmihops")
    return Links(
        domain=_text(domain) or None,
        peers=None if peers is None else tuple(_items(peers)),
        hops=None if hops is None else dict(_hops(_items(hops))),
    )


def _hops(items: Iterable[str]) -> Iterator[tuple[int, int]]:
    for item in items:
        device, _, hops = item.partition(":")
        if _is_number(device) and _is_number(hops):
            yield int(device), int(hops)


def _items(attribute: DeviceAttribute) -> list[str]:
    """Returns the items of a list, or of a text with commas; at most `MAX_DEVICES`."""
    if attribute.strings is not None:
        texts = attribute.strings[:MAX_DEVICES]
    elif attribute.numbers is not None:
        texts = [str(each) for each in attribute.numbers[:MAX_DEVICES]]
    else:
        texts = (attribute.string or _text(attribute))[:_MAX_LIST].split(",", MAX_DEVICES)[:MAX_DEVICES]
    return [text.strip() for text in texts if text.strip() and len(text) <= MAX_TEXT]


def _number_switches(drafts: Iterable[Draft]) -> None:
    """Replaces the names of switches by numbers, in the order of the devices."""
    numbers: dict[str, int] = {}
    for draft in drafts:
        if "switch" in draft.facts:
            draft.facts["switch"] = numbers.setdefault(draft.facts["switch"], len(numbers))


def _vendor(driver: str) -> str:
    words = set(_WORDS.split(driver.lower()))
    return next((vendor for word, vendor in _VENDOR_WORDS.items() if word in words), "")


def _type(attributes: Attributes) -> str:
    return _text(attributes.get("type")).lower()


def _folded(named: dict[str, T]) -> dict[str, T]:
    """Returns attributes or capacities by their folded names. Of equal ones the standard one counts, then the first."""
    folded: dict[str, T] = {}
    for name in sorted(named, key=_standard_first):
        folded.setdefault(_fold(name), named[name])
    return folded


def _standard_first(name: str) -> tuple[bool, str]:
    return not name.startswith(_STANDARD), name


def _fold(name: str) -> str:
    return name.rpartition("/")[2].lower().translate(_IGNORED)


def _first(folded: dict[str, T], names: Iterable[str]) -> T | None:
    return next((folded[name] for name in names if name in folded), None)


def _text(attribute: DeviceAttribute | None) -> str:
    """Returns a value as text: of a list its first item, "" if there is none or it is longer than `MAX_TEXT`."""
    if attribute is None:
        return ""
    for values in (attribute.strings, attribute.numbers):
        if values:
            return _short(str(values[0]))
    for value in (attribute.string, attribute.number, attribute.flag, attribute.version):
        if value is not None:
            return _short(str(value))
    return ""


def _short(text: str) -> str:
    return text.strip() if len(text) <= MAX_TEXT else ""


def _number(attribute: DeviceAttribute | None) -> int | None:
    """Returns a whole number, also one that is written as text."""
    text = _text(attribute)
    return int(text) if _is_number(text.removeprefix("-")) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9
