"""Which CPUs the static CPU Manager takes with the option `distribute-cpus-across-numa`.

The kubelet keeps the best set of NUMA nodes in a slice that later sets may overwrite, since Go's `append` reuses the
array behind a slice that has room. From four NUMA nodes on, this changes which NUMA nodes are taken; `_combinations`
therefore hands out its sets as Go does.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from kubenexus.api.numa.machine import CpuLayout
from kubenexus.api.numa.refusal import unexpected
from kubenexus.api.numa.take_cpus import take_packed, zones_by_fill

_NEW_ARRAY = frozenset({0, 1, 2, 4, 8})  # the lengths at which Go's append has no room left


class _Choice(msgspec.Struct):
    """The best NUMA nodes so far, and those that take what does not divide evenly."""

    balance: float = math.inf
    zones: list[int] = []
    remainder: list[int] | None = None
    remainder_size: int = 0


def take_spread(layout: CpuLayout, free: int, number: int, group: int) -> int:
    """Returns CPUs spread evenly over as few NUMA nodes as possible, in groups of `group`. Raises Refused."""
    if number % group:
        return take_packed(layout, free, number)
    if number < 1:
        return 0
    if number > free.bit_count():
        raise unexpected(
            f"not enough cpus available to satisfy request: requested={number}, available={free.bit_count()}"
        )
    order = zones_by_fill(layout, free)
    counts = {zone: (free & layout.numa[zone]).bit_count() for zone in order}
    zones = sum(1 for cpus in layout.numa if cpus)
    groups_by_zone = (-(-layout.number // group) - 1) // zones + 1
    needed = -(-number // group)
    for width in range((needed - 1) // groups_by_zone + 1, min(needed, len(order)) + 1):
        best = _Choice()
        for combination in _combinations(order, width):
            if best.balance == 0:
                break
            _compare(best, combination, width, counts, number, group)
        if best.zones:
            return _take(layout, free, best, width, number, group)
    return take_packed(layout, free, number)


def _compare(
    best: _Choice, combination: list[int], width: int, counts: dict[int, int], number: int, group: int
) -> None:
    zones = combination[:width]
    each = number // width // group * group
    if (
        sum(counts[zone] for zone in zones) < number
        or sum(counts[zone] // group for zone in zones) * group < number
        or any(counts[zone] < each for zone in zones)
    ):
        return
    left = {zone: count - each * (zone in zones) for zone, count in counts.items()}
    remainder = number - each * width
    local = _Choice(_deviation(left)) if not remainder else _Choice()
    candidates = [zone for zone in zones if left[zone] >= group]
    for size in range(len(candidates), 0, -1) if remainder else ():
        for subset in _combinations(candidates, size):
            balance = _balance(left, subset[:size], remainder, group)
            if balance is not None and balance < local.balance:
                local = _Choice(balance, [], subset, size)
    if local.balance < best.balance:
        best.balance, best.zones = local.balance, combination
        best.remainder, best.remainder_size = local.remainder, local.remainder_size


def _balance(left: dict[int, int], subset: Sequence[int], remainder: int, group: int) -> float | None:
    """Returns how uneven the NUMA nodes are if this subset takes the remainder, or None if it cannot."""
    after = dict(left)
    if sum(after[zone] for zone in subset) < remainder:
        return None
    while remainder > 0:
        before = remainder
        for zone in subset:
            if remainder > 0 and after[zone] >= group:
                after[zone] -= group
                remainder -= group
        if remainder == before:
            return None
    return _deviation(after)


def _take(layout: CpuLayout, free: int, best: _Choice, width: int, number: int, group: int) -> int:
    zones = best.zones[:width]
    each = min(
        [number // width // group * group] + [(free & layout.numa[zone]).bit_count() // group * group for zone in zones]
    )
    taken = 0
    for zone in zones:
        taken |= take_packed(layout, free & layout.numa[zone] & ~taken, each)
    remainder = number - each * width
    takers = best.remainder[: best.remainder_size] if best.remainder else []
    while remainder > 0:
        before = remainder
        for zone in takers:
            left = free & layout.numa[zone] & ~taken
            if remainder > 0 and left.bit_count() >= group:
                taken |= take_packed(layout, left, group)
                remainder -= group
        if remainder == before:
            raise unexpected(f"accounting error, not enough CPUs allocated, remaining: {remainder}")
    if taken.bit_count() != number:
        raise unexpected(f"accounting error, not enough CPUs allocated, remaining: {number - taken.bit_count()}")
    return taken


def _combinations(items: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yields every choice of `size` items in an array that Go's `append` would have made: read its first `size`."""

    def extend(start: int, array: list[int], length: int) -> Iterator[list[int]]:
        if length == size:
            yield array
            return
        for index in range(start, len(items) - (size - length) + 1):
            longer = [*array[:length], *[0] * (len(items) - length)] if length in _NEW_ARRAY else array
            longer[length] = items[index]
            yield from extend(index + 1, longer, length + 1)

    return extend(0, [], 0)


def _deviation(counts: dict[int, int]) -> float:
    mean = _rounded(sum(counts.values()) / len(counts))
    return _rounded(math.sqrt(sum((count - mean) ** 2 for count in counts.values()) / len(counts)))


def _rounded(value: float) -> float:
    return math.floor(value * 1000 + 0.5) / 1000
