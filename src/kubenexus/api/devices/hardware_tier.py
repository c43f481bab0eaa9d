"""The hardware tier of a node: how precious its devices are. Tenants are steered to the tier that matches theirs.

An administrator's label counts first. Otherwise the tier follows from the family of each device, as `devices.models`
finds it: whole names, so RTX-A4000 is no A40. A family that the table below does not have is `UNKNOWN`, not a guess.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from kubenexus.api.devices.device import Device
from kubenexus.api.devices.models import find_model
from kubenexus.api.keys import gpu
from kubenexus.api.keys.reading import read_key

_LARGE: Final = 70 << 30  # bytes: an A100 with 80 GB reports 79.6 GiB, one with 40 GB 39.6


class HardwareTier(enum.IntEnum):
    """The tiers, the most precious last. `UNKNOWN` is no tier: the node has devices, but no source has their worth."""

    NONE = 0
    ECONOMY = 1
    STANDARD = 2
    PREMIUM = 3
    UNKNOWN = 4

    @property
    def label(self) -> str:
        """The word of the tier, as in the label `hardware.kubenexus.io/tier`."""
        return self.name.lower()


_PREMIUM: Final = "GB300 GB200 B300 B200 B100 GH200 H200 H100 H800 H20 A100X MI355X MI350X MI325X MI308X MI300X MI300A"
_STANDARD: Final = (
    "A100 A800 A40 A30 A30X V100 V100S RTX-A6000 RTX-6000-Ada RTX-5880-Ada RTX-PRO-6000 RTX-PRO-5000 RTX-8000"
    " MI250X MI250 MI210 MI100 Max-1550 Max-1100"
)
_ECONOMY: Final = (
    "L4 L40 L40S L20 L2 T4 A10 A10G A16 A2 P100 P40 P4 M60 K80 RTX-PRO-4500 RTX-PRO-4000 RTX-5000-Ada RTX-4500-Ada"
    " RTX-4000-Ada RTX-A5500 RTX-A5000 RTX-A4500 RTX-A4000 RTX-A2000 RTX-6000 RTX-5000 RTX-4000 RTX-5090 RTX-5080"
    " RTX-4090 RTX-4080 RTX-3090 RTX-3080-Ti RTX-3080 RTX-2080-Ti RTX-2080 MI60 MI50 Flex-170 Flex-140"
)
_PREMIUM_IF_LARGE: Final = frozenset({"A100", "A800"})
_BY_FAMILY: Final = {
    family: tier
    for tier, families in (
        (HardwareTier.PREMIUM, _PREMIUM),
        (HardwareTier.STANDARD, _STANDARD),
        (HardwareTier.ECONOMY, _ECONOMY),
    )
    for family in families.split()
}
_BY_LABEL: Final = {tier.label: tier for tier in (HardwareTier.ECONOMY, HardwareTier.STANDARD, HardwareTier.PREMIUM)}


def hardware_tier(labels: Mapping[str, str], devices: Iterable[Device]) -> HardwareTier:
    """Returns the tier of a node: that of its label, else the highest among its devices."""
    labelled = labelled_tier(labels)
    return devices_tier(devices) if labelled is None else labelled


def labelled_tier(labels: Mapping[str, str]) -> HardwareTier | None:
    """Returns the tier that a node's labels state; None if they state none that can be read."""
    word = read_key(gpu.HARDWARE_TIER, labels, {}).value
    return None if word is None else _BY_LABEL[word]


def devices_tier(devices: Iterable[Device]) -> HardwareTier:
    """Returns the highest tier among devices that have one, `UNKNOWN` if none has, `NONE` without devices."""
    tiers = {device_tier(device) for device in devices}
    known = tiers - {HardwareTier.UNKNOWN}
    return max(known or tiers, default=HardwareTier.NONE)


def device_tier(device: Device) -> HardwareTier:
    """Returns the tier of one device. A MIG device has that of its card."""
    tier = _BY_FAMILY.get(device.family, HardwareTier.UNKNOWN)
    if device.family in _PREMIUM_IF_LARGE:
        model = find_model(device.model)
        if max(device.memory, model.memory if model is not None else 0) >= _LARGE:
            return HardwareTier.PREMIUM
    return tier
