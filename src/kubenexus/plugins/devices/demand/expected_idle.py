"""How much GPU a placement is expected to leave idle, beyond what the node leaves idle without it.

    loss = V(node with the pod) - V(node)               `fill_table`
         + price of each slot of several GPUs that is lost, less one for a pod that needs such a slot
         + price of the GPU type for each GPU taken

All in thousandths of a GPU. A price is next to nothing while slots, or GPUs of the type, are plenty.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.plugins.devices.demand.fill_table import (
    CPU_UNIT,
    MAX_CPU,
    MAX_WHOLE,
    PAIR_OF,
    PAIRS,
    STATES,
    UNIT,
    CoarseShape,
    coarse,
    fill_values,
)
from kubenexus.state.demand import Demand

_OTHER_TYPE: Final = 0  # the table of types that are not told apart


class Wanted(NamedTuple):
    """What a pod takes: cpu in thousandths, a number of GPUs, and thousandths of each."""

    cpu: int
    gpus: int
    milli: int


class FillTables:
    """The tables of one mix, one for each GPU type, and the prices of a `Demand` with this mix."""

    def __init__(self, demand: Demand) -> None:
        self.mix_version = demand.mix_version
        self._mix, self._types = demand.mix, demand.types
        self._prices: tuple[Any, Any] = (None, None)
        self._codes = {name: i + 1 for i, (name, _) in enumerate(demand.types)}
        built: dict[tuple[int, tuple[CoarseShape, ...]], Any] = {}
        tables = []
        for name, most in (("", MAX_WHOLE), *demand.types):
            mix = _coarse_mix(demand, name)
            if (most, mix) not in built:
                built[most, mix] = fill_values(mix, most)
            tables.append(built[most, mix])
        self._values: Any = np.stack(tables).reshape(-1)

    def are_of(self, demand: Demand) -> bool:
        """Whether these are the tables of a demand: the mix stays while prices change."""
        if self._mix is demand.mix and self._types is demand.types:
            return True
        if self._mix != demand.mix or self._types != demand.types:
            return False
        self._mix, self._types = demand.mix, demand.types
        return True

    def prices(self, by_type: tuple[tuple[str, int], ...]) -> Any:
        """Returns the prices of types by table."""
        if self._prices[0] is not by_type:
            column = np.zeros(len(self._codes) + 1, np.int64)
            for name, price in by_type:
                column[self.code_of(name)] = price if name in self._codes else 0
            self._prices = (by_type, column)
        return self._prices[1]

    def code_of(self, name: str) -> int:
        """Returns the table of a GPU type."""
        return self._codes.get(name, _OTHER_TYPE)

    def codes_of(self, names: Any) -> Any:
        """The same for a column of types."""
        found, which = np.unique(names.astype(str), return_inverse=True)
        return np.array([self.code_of(str(name)) for name in found], np.int64)[which]

    def expected(self, codes: Any, cpu: Any, left: Any) -> Any:
        """Returns the expected idle GPU of rows."""
        whole = (left == WHOLE).sum(axis=0)
        rows = np.arange(left.shape[1])
        last = len(left) - 1
        most = np.where(whole <= last, left[np.minimum(whole, last), rows], 0)
        second = np.where(whole < last, left[np.minimum(whole + 1, last), rows], 0)
        counted = np.minimum(whole, MAX_WHOLE)
        state = (codes * STATES + counted * PAIRS) + PAIR_OF[most // UNIT, second // UNIT]
        lost = left.sum(axis=0) - counted * WHOLE - most // UNIT * UNIT - second // UNIT * UNIT
        return self._values[state * (MAX_CPU + 1) + np.clip(cpu // CPU_UNIT, 0, MAX_CPU)] + lost

    def expected_of_row(self, code: int, cpu: int, left: list[int]) -> float:
        """The same for one row."""
        whole = left.count(WHOLE)
        most = left[whole] if whole < len(left) else 0
        second = left[whole + 1] if whole + 1 < len(left) else 0
        counted = min(whole, MAX_WHOLE)
        state = code * STATES + counted * PAIRS + PAIR_OF.item(most // UNIT, second // UNIT)
        lost = sum(left) - counted * WHOLE - most // UNIT * UNIT - second // UNIT * UNIT
        value: float = self._values.item(state * (MAX_CPU + 1) + min(max(cpu // CPU_UNIT, 0), MAX_CPU))
        return value + lost


def _coarse_mix(demand: Demand, name: str) -> tuple[CoarseShape, ...]:
    """Returns the shapes that a node with this GPU type may get, merged where they are equal in coarse units."""
    merged: dict[tuple[int, int, int], float] = {}
    for shape, share in demand.mix:
        if not shape.types or name in shape.types:
            each = coarse(shape.cpu, shape.gpus, shape.milli, share)
            merged[each[:3]] = merged.get(each[:3], 0.0) + share
    return tuple(CoarseShape(*key, share) for key, share in sorted(merged.items()))


def after_pod(wanted: Wanted, left: Any) -> Any:
    """Returns what is left of the GPUs of rows after the pod, most first. Rows that cannot take it have any result."""
    if not wanted.gpus:
        return left
    if wanted.milli == WHOLE:
        after = np.zeros_like(left)
        if wanted.gpus < len(left):
            after[: -wanted.gpus] = left[wanted.gpus :]
        return after
    tightest = np.maximum((left >= wanted.milli).sum(axis=0) - 1, 0)
    after = left.copy()
    after[tightest, np.arange(left.shape[1])] -= wanted.milli
    return -np.sort(-np.maximum(after, 0), axis=0)


def after_pod_on_row(wanted: Wanted, left: list[int]) -> list[int]:
    """The same for one row."""
    if not wanted.gpus:
        return left
    if wanted.milli == WHOLE:
        return left[wanted.gpus :] + [0] * min(wanted.gpus, len(left))
    tightest = max(sum([each >= wanted.milli for each in left]) - 1, 0)
    after = left.copy()
    after[tightest] = max(after[tightest] - wanted.milli, 0)
    after.sort(reverse=True)
    return after


def slot_losses(demand: Demand, wanted: Wanted, cpu: Any, left: Any, after: Any) -> Any:
    """Returns the price of the slots that rows lose."""
    total: Any = 0
    before, then = (left == WHOLE).sum(axis=0), (after == WHOLE).sum(axis=0)
    for slot in demand.slots:
        if slot.price:
            had = np.minimum(before // slot.size, np.maximum(cpu, 0) // slot.cpu)
            has = np.minimum(then // slot.size, np.maximum(cpu - wanted.cpu, 0) // slot.cpu)
            total = total + slot.price * (had - has - (wanted.gpus == slot.size))
    return total


def slot_losses_of_row(demand: Demand, wanted: Wanted, cpu: int, left: list[int], after: list[int]) -> int:
    """The same for one row."""
    total, before, then = 0, left.count(WHOLE), after.count(WHOLE)
    for slot in demand.slots:
        if slot.price:
            had = min(before // slot.size, max(cpu, 0) // slot.cpu)
            has = min(then // slot.size, max(cpu - wanted.cpu, 0) // slot.cpu)
            total += slot.price * (had - has - (wanted.gpus == slot.size))
    return total
