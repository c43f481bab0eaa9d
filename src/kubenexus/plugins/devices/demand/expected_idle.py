"""How much GPU a placement is expected to leave idle, beyond what the node leaves idle without it.

    loss = V(node with the pod) - V(node)               `fill_table`
         + price of each slot of several GPUs that is lost, less one for a pod that needs such a slot
         + price of the GPU type for each GPU taken

All in thousandths of a GPU. A price is next to nothing while slots, or GPUs of the type, are plenty.
"""

from typing import Any, Final

import numpy as np

from kubenexus.plugins.devices.demand.fill_table import (
    CPU_UNIT,
    CPUS,
    MAX_CPU,
    MAX_WHOLE,
    P_END,
    STATES,
    CoarseShape,
    coarse,
    fill_values,
)
from kubenexus.plugins.devices.demand.gpu_states import CoarseState
from kubenexus.plugins.devices.demand.states_after import Wanted
from kubenexus.state.demand import Demand

_OTHER_TYPE: Final = 0  # the code of types that are not told apart
# Of shapes that name types: rarer ones are left out. As a node ends after 200 pods, they would hardly change a value.
_LEAST_SHARE: Final = P_END / 2
# As arrays: NumPy takes its time to look at a Python number.
_NOTHING, _CPU_UNIT, _MAX_CPU = np.array(0), np.array(CPU_UNIT), np.array(MAX_CPU)


class FillTables:
    """The tables of one mix, and the prices of a `Demand` with this mix. GPU types that get the same shapes share a
    table: all of them, unless pods name types."""

    def __init__(self, demand: Demand) -> None:
        self.mix_version = demand.mix_version
        self._mix, self._types = demand.mix, demand.types
        self._prices: tuple[Any, Any] = (None, None)
        self._codes = {name: i + 1 for i, (name, _) in enumerate(demand.types)}
        mixes = [(_coarse_mix(demand, name), most) for name, most in (("", MAX_WHOLE), *demand.types)]
        largest: dict[tuple[CoarseShape, ...], int] = {}
        for mix, most in mixes:
            largest[mix] = max(most, largest.get(mix, 0))
        self._values: Any = np.stack([fill_values(mix, most) for mix, most in largest.items()]).reshape(-1)
        numbers = {mix: number for number, mix in enumerate(largest)}
        self._begins = [numbers[mix] * STATES * CPUS for mix, _ in mixes]
        self.alike = len(numbers) == 1
        self._places: Any = np.array(self._begins)

    def are_of(self, demand: Demand) -> bool:
        """Whether these are the tables of a demand: the mix stays while prices change."""
        if self._mix is demand.mix and self._types is demand.types:
            return True
        if self._mix != demand.mix or self._types != demand.types:
            return False
        self._mix, self._types = demand.mix, demand.types
        return True

    def prices(self, by_type: tuple[tuple[str, int], ...]) -> Any:
        """Returns the prices of types by their codes."""
        if self._prices[0] is not by_type:
            column = np.zeros(len(self._codes) + 1, np.int64)
            for name, price in by_type:
                column[self.code_of(name)] = price if name in self._codes else 0
            self._prices = (by_type, column)
        return self._prices[1]

    def code_of(self, name: str) -> int:
        """Returns the code of a GPU type."""
        return self._codes.get(name, _OTHER_TYPE)

    def codes_of(self, names: Any) -> Any:
        """The same for a column of types."""
        found, which = np.unique(names.astype(str), return_inverse=True)
        return np.array([self.code_of(str(name)) for name in found], np.int64)[which]

    def expected(self, codes: Any, states: Any, cpu: Any) -> Any:
        """Returns the expected idle GPU of rows, from the codes of their types and `states_after.states`. The codes may
        be None if all types are `alike`: they share a table."""
        _, place, lost = states
        where = cpu // _CPU_UNIT
        np.maximum(where, _NOTHING, out=where)
        np.minimum(where, _MAX_CPU, out=where)
        where += place
        if not self.alike:
            where += self._places.take(codes)
        return self._values.take(where) + lost

    def expected_of_row(self, code: int, cpu: int, state: CoarseState) -> float:
        """The same for one row."""
        where = self._begins[code] + state.place + min(max(cpu // CPU_UNIT, 0), MAX_CPU)
        value: float = self._values.item(where)
        return value + state.lost


def _coarse_mix(demand: Demand, name: str) -> tuple[CoarseShape, ...]:
    """Returns the shapes that a node with this GPU type may get, merged where they are equal in coarse units."""
    merged: dict[tuple[int, int, int], float] = {}
    for shape, share in demand.mix:
        if not shape.types or (name in shape.types and share >= _LEAST_SHARE):
            each = coarse(shape.cpu, shape.gpus, shape.milli, share)
            merged[each[:3]] = merged.get(each[:3], 0.0) + share
    return tuple(CoarseShape(*key, share) for key, share in sorted(merged.items()))


def slot_losses(demand: Demand, wanted: Wanted, whole: Any, cpu: Any) -> Any:
    """Returns the price of the slots that rows lose by a pod, from whole GPUs and free cpu before and after it."""
    total: Any = 0
    cpu = np.maximum(cpu, _NOTHING)
    for slot in demand.slots:
        if slot.price:
            had, has = np.minimum(whole // slot.size, cpu // slot.cpu)
            total = total + slot.price * (had - has - (wanted.gpus.gpus == slot.size))
    return total


def slot_losses_of_row(demand: Demand, wanted: Wanted, cpu: int, before: int, after: int) -> int:
    """The same for one row, from the number of whole GPUs before and after the pod."""
    total = 0
    for slot in demand.slots:
        if slot.price:
            had = min(before // slot.size, max(cpu, 0) // slot.cpu)
            has = min(after // slot.size, max(cpu - wanted.cpu, 0) // slot.cpu)
            total += slot.price * (had - has - (wanted.gpus.gpus == slot.size))
    return total
