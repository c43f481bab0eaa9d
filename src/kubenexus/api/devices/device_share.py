"""The parts of devices that a pod holds, and the annotation that carries them.

The choice travels with the bind: the API server merges the annotations of the Binding into the pod in the same write,
so node and devices never disagree. After a restart the annotations of bound pods are all that is left of it.
"""

from typing import Final

import msgspec

from kubenexus.api.core import Pod, QuantityText
from kubenexus.api.devices.device import MAX_DEVICES, MAX_MEMORY
from kubenexus.api.devices.device_resources import is_device_resource
from kubenexus.api.keys import gpu
from kubenexus.api.quantity import to_units

WHOLE: Final = 1000  # thousandths
_MAX_TEXT: Final = 32_768  # characters: 64 devices with names of 253 characters take less
_MAX_NAME: Final = 253
_UNITS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class DeviceShare(msgspec.Struct, frozen=True, gc=False):
    """A part of a device, by the device's name on its node: thousandths of it, and bytes of its memory.

    `memory` is 0 for a whole device, and where the memory of the device is not known.
    """

    device: str
    share: int = WHOLE
    memory: int = 0


class _Entry(msgspec.Struct, frozen=True, gc=False):
    device: str
    share: int = WHOLE
    memory: QuantityText = 0


_ENTRIES: Final = msgspec.json.Decoder(list[_Entry])


def devices_annotation(shares: tuple[DeviceShare, ...]) -> str:
    """Returns the annotation's text: `[{"device":"gpu-3","share":500,"memory":"20Gi"}]`."""
    entries = [
        {"device": each.device, "share": each.share} | ({"memory": _quantity(each.memory)} if each.memory else {})
        for each in shares
    ]
    return msgspec.json.encode(entries).decode()


def held_shares(pod: Pod) -> tuple[DeviceShare, ...]:
    """Returns the parts of devices that a bound pod's annotation names; none if it cannot be read.

    A pod's owner may edit the annotation. So it counts only for as many devices as the pod can have: those that it
    requests by number, or one if it asks for a part of a GPU.
    """
    text = pod.metadata.annotations.get(gpu.DEVICES.key)
    if text is None or len(text) > _MAX_TEXT:
        return ()
    try:
        entries = _ENTRIES.decode(text)
        if not 0 < len(entries) <= min(_countable(pod), MAX_DEVICES):  # before a thousand amounts are read
            return ()
        shares = tuple([DeviceShare(each.device, each.share, _bytes(each)) for each in entries])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()
    names = {each.device for each in shares}
    valid = all([0 < each.share <= WHOLE and 0 < len(each.device) <= _MAX_NAME for each in shares])  # noqa: C419
    return shares if valid and len(shares) == len(names) else ()


def asks_for_a_part(pod: Pod) -> bool:
    """Returns whether the pod asks for a part of a GPU rather than whole ones."""
    annotations = pod.metadata.annotations
    return bool(annotations) and (gpu.FRACTION.key in annotations or gpu.SHARE_MEMORY.key in annotations)


def _countable(pod: Pod) -> int:
    """Returns how many devices the pod can have. Numbers that cannot be read count as none."""
    most = 0
    for containers in (pod.spec.containers, pod.spec.init_containers):
        for container in containers:
            most += _numbered(container.resources.limits or container.resources.requests)
    return max(most, 1 if asks_for_a_part(pod) else 0)


def _numbered(amounts: dict[str, QuantityText] | None) -> int:
    total = 0
    for name, amount in (amounts or {}).items():
        if is_device_resource(name):
            try:
                total += min(max(to_units(amount), 0), MAX_DEVICES)
            except ValueError:
                continue
    return total


def _bytes(entry: _Entry) -> int:
    return min(max(to_units(entry.memory), 0), MAX_MEMORY) if entry.memory else 0


def _quantity(amount: int) -> str:
    return next((f"{amount // unit}{suffix}" for suffix, unit in _UNITS if not amount % unit), str(amount))
