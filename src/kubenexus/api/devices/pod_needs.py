"""What a pod states about the devices it needs: resources by number, parts of GPUs, memory, type and links.

Reading never fails. A value that cannot be read is a warning, and counts as not set. Only a part of a GPU that cannot
be read is a problem for which the pod is refused: without it the pod would get no GPU at all.
"""

import functools
from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod, QuantityText
from kubenexus.api.devices.device import MAX_MEMORY
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.devices.device_share import asks_for_a_part
from kubenexus.api.keys import gpu
from kubenexus.api.keys.entry import KeyEntry
from kubenexus.api.keys.reading import KeyReading, read_key

REQUIRED: Final = "required"
MAX_TYPE: Final = 128  # characters of a type
_MAX_KEPT: Final = 4096  # characters of all values of a pod whose needs are remembered: annotations may have 256 Ki
_NEEDS: Final[tuple[KeyEntry[Any], ...]] = (
    gpu.FRACTION,
    gpu.SHARE_MEMORY,
    gpu.VRAM_REQUEST,
    gpu.VRAM_REQUEST_TOTAL,
    gpu.TYPE,
    gpu.PREFER_NVLINK,
    gpu.MIN_NVLINK_BANDWIDTH,
)
NEED_KEYS: Final = frozenset[str]().union(*(entry.keys for entry in _NEEDS))


class DeviceNeeds(msgspec.Struct, frozen=True, gc=False):
    """`share` is 0 where the pod asks for whole devices. Memory is in bytes for each device, bandwidth in bits a
    second. `part_problem` says why the part of a GPU that the pod asks for cannot be read.
    """

    share: int = 0
    share_memory: int = 0
    card_memory: int = 0
    card_memory_total: int = 0
    type: str = ""
    link: str = ""
    bandwidth: int = 0
    part_problem: str = ""


WHOLE_DEVICES: Final = DeviceNeeds()


def device_needs(pod: Pod, requested: bool | None = None) -> DeviceNeeds | None:
    """Returns what the pod needs of devices; None if it needs none. `requested` is the result of `requests_devices`,
    where the caller knows it. Called for every pod: the first test is cheap."""
    if not (requests_devices(pod) if requested is None else requested) and not asks_for_a_part(pod):
        return None
    meta = pod.metadata
    if NEED_KEYS.isdisjoint(meta.annotations) and NEED_KEYS.isdisjoint(meta.labels):
        return WHOLE_DEVICES
    labels, annotations = _stated(meta.labels), _stated(meta.annotations)
    if sum([len(text) for _, text in annotations]) > _MAX_KEPT:  # a label has 63 characters at most
        return _read_needs.__wrapped__(labels, annotations)
    return _read_needs(labels, annotations)


def _stated(texts: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted([(key, texts[key]) for key in NEED_KEYS.intersection(texts)]))


@functools.lru_cache(maxsize=256)
def _read_needs(labels: tuple[tuple[str, str], ...], annotations: tuple[tuple[str, str], ...]) -> DeviceNeeds:
    """Returns the needs of pods with these texts. Pods of one template have the same."""
    texts = dict(labels), dict(annotations)
    part, memory = read_key(gpu.FRACTION, *texts), read_key(gpu.SHARE_MEMORY, *texts)
    needed, total = read_key(gpu.VRAM_REQUEST, *texts), read_key(gpu.VRAM_REQUEST_TOTAL, *texts)
    problems = [problem for reading in (part, memory) for problem in reading.problems]
    return DeviceNeeds(
        share=part.value or 0,
        share_memory=min(memory.value or 0, MAX_MEMORY),
        card_memory=min(needed.value or 0, MAX_MEMORY),
        card_memory_total=min(total.value or 0, MAX_MEMORY) if not needed.is_set else 0,
        type=(read_key(gpu.TYPE, *texts).value or "")[:MAX_TYPE],
        link=read_key(gpu.PREFER_NVLINK, *texts).value or "",
        bandwidth=read_key(gpu.MIN_NVLINK_BANDWIDTH, *texts).value or 0,
        part_problem=str(problems[0]) if problems else "",
    )


def stated_needs(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Returns the keys and values by which the pod states what it needs; () for most. Equal ones mean equal needs."""
    meta = pod.metadata
    if NEED_KEYS.isdisjoint(meta.annotations) and NEED_KEYS.isdisjoint(meta.labels):
        return ()
    return tuple((key, texts[key]) for texts in (meta.labels, meta.annotations) for key in texts if key in NEED_KEYS)


def need_warnings(pod: Pod) -> list[str]:
    """Returns a sentence for each value that cannot be read, or that another spelling contradicts."""
    if not stated_needs(pod):
        return []
    found = [warning for entry in _NEEDS for warning in _read(entry, pod).warnings]
    if not requests_devices(pod) and not asks_for_a_part(pod):
        found.append("the pod states what GPUs it needs but requests none")
    return found


def requests_devices(pod: Pod) -> bool:
    """Returns whether some container requests a device by number."""
    return bool(device_amounts(pod))


def may_be_several(amounts: list[QuantityText]) -> bool:
    """Returns whether these `device_amounts` are more than one device, as far as that shows without parsing them."""
    return len(amounts) > 1 or (len(amounts) == 1 and amounts[0] not in ("1", 1))


def device_amounts(pod: Pod) -> list[QuantityText]:
    """Returns what the containers request of devices, but for zeros."""
    found: list[QuantityText] = []
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers:
            resources = container.resources
            for name, amount in {**(resources.requests or {}), **(resources.limits or {})}.items():
                if "/" in name and amount not in ("0", 0) and is_device_resource(name):
                    found.append(amount)
    return found


def _read(entry: KeyEntry[Any], pod: Pod) -> KeyReading[Any]:
    return read_key(entry, pod.metadata.labels, pod.metadata.annotations)
