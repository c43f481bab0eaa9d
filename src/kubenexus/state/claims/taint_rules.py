"""`TaintRules`: the taints that DeviceTaintRules add to the devices of slices."""

import msgspec

from kubenexus.api.devices.device_taint_rule import DeviceTaintRule, DeviceTaintSelector
from kubenexus.api.devices.resource_slice import DeviceTaint
from kubenexus.state.claims.device import Traits
from kubenexus.state.claims.pools import PoolSlice

_MAX_TRAITS = 4096
_ALL = DeviceTaintSelector()


class TaintRules:
    """The rules by name. Devices with equal traits and the same rules share one object, as without rules."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}
        self._traits: dict[tuple[int, tuple[DeviceTaint, ...]], tuple[Traits, Traits]] = {}

    def get(self, name: str) -> DeviceTaintRule | None:
        return self._rules.get(name)

    def set(self, rule: DeviceTaintRule) -> None:
        self._rules[rule.metadata.name] = rule

    def remove(self, name: str) -> None:
        self._rules.pop(name, None)

    def applied(self, found: PoolSlice) -> PoolSlice:
        """Returns the slice with the taints of all rules."""
        rules = [
            (selector.device, rule.spec.taint)
            for _, rule in sorted(self._rules.items())
            if matches(selector := rule.spec.device_selector or _ALL, found)
        ]
        if not rules:
            return found
        devices = []
        for device in found.devices:
            taints = tuple(taint for name, taint in rules if name is None or name == device.name)
            traits = self._tainted(device.traits, taints) if taints else device.traits
            devices.append(msgspec.structs.replace(device, traits=traits))
        return msgspec.structs.replace(found, devices=tuple(devices))

    def _tainted(self, traits: Traits, taints: tuple[DeviceTaint, ...]) -> Traits:
        key = (id(traits), taints)
        known = self._traits.get(key)
        if known is None:
            if len(self._traits) >= _MAX_TRAITS:
                self._traits.clear()
            fresh = msgspec.structs.replace(traits, taints=(*traits.taints, *taints))
            known = self._traits[key] = (traits, fresh)  # the first one keeps its identity in use
        return known[1]


def matches(selector: DeviceTaintSelector, found: PoolSlice) -> bool:
    """Returns whether a rule may be for devices of a slice."""
    driver, pool = found.pool
    return selector.driver in (None, driver) and selector.pool in (None, pool)
