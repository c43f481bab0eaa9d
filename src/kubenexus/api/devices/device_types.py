"""Types of devices as users name them: `nvidia-a100` is any device whose vendor, family or model has these words."""

import functools
import re
from typing import Final

from kubenexus.api.devices.device import Device

_WORDS: Final = re.compile(r"[a-z0-9]+")


def type_words(device: Device) -> frozenset[str]:
    """Returns the words that describe a device: `nvidia`, `a100`, `sxm4`, `80gb`."""
    return words_of(f"{device.vendor} {device.family} {device.model} {device.profile} {device.kind}")


@functools.lru_cache(maxsize=1024)
def words_of(text: str) -> frozenset[str]:
    """Returns the words of a type. A device is of the type if it has all of them, as whole words: A4000 is no A40."""
    return frozenset(_WORDS.findall(text.lower()))
