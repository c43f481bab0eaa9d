"""Taints of devices, and the requests that tolerate them."""

from collections.abc import Sequence
from typing import Final

from kubenexus.api.devices.resource_claim import DeviceToleration
from kubenexus.api.devices.resource_slice import DeviceTaint

_EFFECTS: Final = ("NoSchedule", "NoExecute")  # others do not keep a claim away


def tolerated(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Returns whether a request tolerates all taints that keep claims away."""
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in taints if taint.effect in _EFFECTS)


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
