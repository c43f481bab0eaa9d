"""`TaintRules`: the taints that DeviceTaintRules add to the devices of slices."""

import msgspec

from kubenexus.api.devices.device_taint_rule import DeviceTaintRule, DeviceTaintSelector
from kubenexus.api.devices.resource_slice import DeviceTaint
from kubenexus.state.claims.device import Traits
from kubenexus.state.claims.pools import PoolSlice

_MAX_TRAITS = 4096


class TaintRules:
    """The rules by name. Devices with equal traits and the same rules share one object, as without rules."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}
        self._slices: dict[str, tuple[PoolSlice, PoolSlice]] = {}  # by name: without the taints, and with them
        self._traits: dict[tuple[int, tuple[DeviceTaint, ...]], tuple[Traits, Traits]] = {}

    def get(self, name: str) -> DeviceTaintRule | None:
        return self._rules.get(name)

    def set(self, rule: DeviceTaintRule) -> None:
        self.remove(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        self._changed(rule)

    def remove(self, name: str) -> None:
        old = self._rules.pop(name, None)
        if old is not None:
            self._changed(old)

    def _changed(self, rule: DeviceTaintRule) -> None:
        """Forgets the slices that a rule is for. The others stay the same objects, as readers of pools expect."""
        selector = rule.spec.device_selector
        if selector is not None:
            self._slices = {name: each for name, each in self._slices.items() if not matches(selector, each[0])}

    def applied(self, found: PoolSlice) -> PoolSlice:
        """Returns the slice with the taints of all rules."""
        if not self._rules:
            return found
        known = self._slices.get(found.name)
        if known is None or known[0] is not found:
            known = self._slices[found.name] = (found, self._apply(found))
        return known[1]

    def forget(self, name: str) -> None:
        """Forgets a slice that is gone."""
        self._slices.pop(name, None)

    def _apply(self, found: PoolSlice) -> PoolSlice:
        rules = [
            (selector.device, rule.spec.taint)
            for _, rule in sorted(self._rules.items())
            if (selector := rule.spec.device_selector) is not None and matches(selector, found)
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
