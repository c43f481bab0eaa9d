"""Consumable capacity: how much of a device a request takes, by the device's policy. Amounts are in nano units."""

from collections.abc import Mapping
from typing import Final

from kubenexus.api.devices.resource_claim import CapacityRequirements
from kubenexus.api.devices.resource_slice import CapacityRange, CapacityRequestPolicy, DeviceCapacity
from kubenexus.api.quantity import INT64_MAX, NANO, NANO_PER_MILLI, Quantity, read_quantity, to_nano
from kubenexus.base.errors import Malformed, truncated
from kubenexus.plugins.dynamic_resources.claim_requests import ClaimError

_TOO_LARGE: Final = "capacity request cannot be represented in the device's range arithmetic"

Capacities = Mapping[str, DeviceCapacity]


def fits(wanted: CapacityRequirements | None, capacities: Capacities, *taken: Mapping[str, int]) -> bool:
    """Returns whether a device has the capacity for one more request beside what is `taken`. Raises ClaimError if the
    request makes no sense for any device."""
    requests = {} if wanted is None else wanted.requests
    if any(name not in capacities for name in requests):
        return False
    consumed = {name: _consumed(name, requests.get(name), held).nano for name, held in capacities.items()}
    for name, held in capacities.items():
        if _violates(consumed[name], held.request_policy):
            return False
        if consumed[name] + sum(each.get(name, 0) for each in taken) > to_nano(held.value):
            return False
    return True


def consumed_capacity(wanted: CapacityRequirements | None, capacities: Capacities) -> dict[str, Quantity]:
    """Returns what a request takes of a shared device. Raises ClaimError."""
    requests = {} if wanted is None else wanted.requests
    return {name: _consumed(name, requests.get(name), held) for name, held in capacities.items()}


def _consumed(name: str, requested: str | int | float | None, held: DeviceCapacity) -> Quantity:
    try:
        found = _rounded(requested, held)
    except Malformed as error:
        raise ClaimError(f'capacity "{truncated(name)}": {error.problem}') from None
    if found.nano < 0:
        raise ClaimError(f'capacity "{truncated(name)}": capacity value is negative')
    return found


def _rounded(requested: str | int | float | None, held: DeviceCapacity) -> Quantity:
    policy = held.request_policy
    if requested is None:
        default = None if policy is None else policy.default
        return read_quantity(held.value if default is None else default)
    wanted = read_quantity(requested)
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _up_to_range(wanted, policy.valid_range, read_quantity(policy.valid_range.min))
    if policy.valid_values is not None:
        for each in policy.valid_values:
            if wanted <= read_quantity(each):
                return read_quantity(each)
    return wanted


def _up_to_range(wanted: Quantity, allowed: CapacityRange, least: Quantity) -> Quantity:
    if wanted < least:
        return least
    if allowed.step is None:
        return wanted
    step = read_quantity(allowed.step)
    grain = _grain(allowed)
    if grain == NANO_PER_MILLI and not _is_milli(wanted.nano):
        raise Malformed(f"{_TOO_LARGE}: request {wanted.canonical()} is not a representable milli value")
    if grain == NANO and wanted.nano > INT64_MAX * NANO:
        raise Malformed(f"{_TOO_LARGE}: request {wanted.canonical()} exceeds MaxInt64")
    begin, unit = _up(least.nano, grain), _up(step.nano, grain)
    if not unit:
        raise Malformed("the step of the device's range is zero")
    value = begin + -(-(_up(wanted.nano, grain) - begin) // unit) * unit
    if value > INT64_MAX:
        which = "the milli-value range" if grain == NANO_PER_MILLI else "MaxInt64"
        raise Malformed(f"{_TOO_LARGE}: rounding request {wanted.canonical()} up to the next step passes {which}")
    return Quantity(value * grain, step.format)


def _violates(nano: int, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and nano == to_nano(policy.default)):
        return False
    if policy.valid_range is not None:
        return _violates_range(nano, policy.valid_range)
    return bool(policy.valid_values) and all(nano != to_nano(each) for each in policy.valid_values or ())


def _violates_range(nano: int, allowed: CapacityRange) -> bool:
    if allowed.max is not None and nano > to_nano(allowed.max):
        return True
    if allowed.step is None:
        return False
    grain = _grain(allowed)
    if grain == NANO_PER_MILLI and not _is_milli(nano):
        return True
    least = 0 if allowed.min is None else to_nano(allowed.min)
    unit = _up(to_nano(allowed.step), grain)
    return not unit or (_up(nano, grain) - _up(least, grain)) % unit != 0


def _grain(allowed: CapacityRange) -> int:
    """Returns the unit in which a range is computed: thousandths, if all its numbers are whole ones of them."""
    numbers = [read_quantity(each).nano for each in (allowed.min, allowed.max, allowed.step) if each is not None]
    step = 0 if allowed.step is None else read_quantity(allowed.step).nano
    return NANO_PER_MILLI if all(map(_is_milli, numbers)) and step >= NANO_PER_MILLI else NANO


def _is_milli(nano: int) -> bool:
    return nano % NANO_PER_MILLI == 0 and abs(nano // NANO_PER_MILLI) <= INT64_MAX


def _up(nano: int, grain: int) -> int:
    return -(-nano // grain)
