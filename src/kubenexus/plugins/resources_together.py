"""NodeResourcesFit and NodeResourcesBalancedAllocation in one go, for the ordinary pod and their default arguments.

Both reckon how full a node would be, and both are asked again wherever something was placed: after each decision, by
each class. Together they read the row once, and find out once that nothing is lacking. What they say is what each of
them says alone; wherever that takes more than a few lines (something is lacking, a node offers no memory, the pod asks
for a GPU) they are left to say it themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kubenexus.base.numbers import EXACT, IntColumn
from kubenexus.state.resources import BASICS, COMMON, CPU, MEMORY, PODS

if TYPE_CHECKING:
    from kubenexus.framework.podclass import PodClass
    from kubenexus.plugins.balanced_allocation import NodeResourcesBalancedAllocation
    from kubenexus.plugins.node_resources_fit import NodeResourcesFit
    from kubenexus.state.view import Nodes, OneNode

_NAMES = tuple(BASICS[r] for r in COMMON)
_BOTH = slice(CPU, MEMORY + 1)
# As arrays: NumPy takes its time to look at a Python number.
_TWICE, _FIFTY, _HUNDRED = np.array(2.0), np.array(50.0), np.array(100.0)
_BASE, _ONE = np.array(150, np.uint8), np.array(1, np.uint8)


class ResourcesTogether:
    """See `framework.points.Together`. Only for LeastAllocated and balance over cpu and memory alike."""

    def __init__(self, fit: NodeResourcesFit, balanced: NodeResourcesBalancedAllocation) -> None:
        self.filters: list[Any] = [fit]
        self.scores: list[Any] = [fit, balanced]

    def rows(self, pod: PodClass, nodes: Nodes) -> tuple[IntColumn, IntColumn] | None:
        wanted, resources = self._wanted(pod), nodes.columns.resources
        layout = resources.layout(_NAMES)
        if wanted is None or not layout.exact or layout.fewest != nodes.columns.size:
            return None
        table = np.empty((3, len(COMMON), nodes.width))  # what there is, what is taken, and as scores count that
        table[:] = resources.cards.take(nodes.rows, axis=0).transpose(1, 2, 0)[:, : len(COMMON)]
        there, taken = table[0], table[1:] + wanted.across(nodes.width)
        full, spare = taken[0] / there, there[_BOTH] - taken[1, _BOTH]
        if full.item(full.argmax()) > 1.0 or spare.item(spare.argmin()) < 0.0:
            return None
        return _emptiness(spare, there[_BOTH]), _evenness(full, table[1, _BOTH] / there[_BOTH])

    def row(self, pod: PodClass, node: OneNode) -> tuple[int, int] | None:
        wanted, there, taken, counted = self._wanted(pod), node.allocs, node.uses, node.counted
        if wanted is None:
            return None
        cpu, memory = there[CPU], there[MEMORY]
        used_cpu, used_memory = taken[CPU] + wanted.cpu, taken[MEMORY] + wanted.memory
        spare_cpu, spare_memory = (
            cpu - counted[CPU] - wanted.scored_cpu,
            memory - counted[MEMORY] - wanted.scored_memory,
        )
        if used_cpu > cpu or used_memory > memory or taken[PODS] >= there[PODS] or not cpu or not memory:
            return None
        if spare_cpu < 0 or spare_memory < 0 or memory > EXACT or cpu > EXACT:
            return None
        apart = abs(used_cpu / cpu - used_memory / memory)
        before = abs(taken[CPU] / cpu - taken[MEMORY] / memory)
        even = int((1 - apart / 2) * 100.0) - int((1 - before / 2) * 100.0)
        return (100 * spare_cpu // cpu + 100 * spare_memory // memory) // 2, (150 + even) // 2

    def _wanted(self, pod: PodClass) -> _Wanted | None:
        return pod.once("resources together", lambda: self._ordinary(pod))

    @staticmethod
    def _ordinary(pod: PodClass) -> _Wanted | None:
        """None unless the pod asks for cpu or memory and for nothing else, and both rules count it alike."""
        asked, plain, scored = dict(pod.demand.amounts), dict(pod.demand.plain), dict(pod.demand.scored)
        cpu, memory = asked.pop("cpu", 0), asked.pop("memory", 0)
        if asked or not (cpu or memory) or (cpu, memory) != (plain.get("cpu", 0), plain.get("memory", 0)):
            return None
        return _Wanted(cpu, memory, scored.get("cpu", 0), scored.get("memory", 0))


class _Wanted:
    """What the pod would take, and what scores would count for it: as numbers, and as columns to add to a table."""

    __slots__ = ("_across", "cpu", "memory", "scored_cpu", "scored_memory")

    def __init__(self, cpu: int, memory: int, scored_cpu: int, scored_memory: int) -> None:
        self.cpu, self.memory = cpu, memory
        self.scored_cpu, self.scored_memory = scored_cpu, scored_memory
        self._across: Any = None

    def across(self, width: int) -> Any:
        """For so many rows. Who has to catch up with a hundred rows mostly has to catch up with as many next time."""
        if self._across is None or self._across.shape[-1] != width:
            one = np.array([[self.cpu, self.memory, 1], [self.scored_cpu, self.scored_memory, 0]], np.float64)
            self._across = np.repeat(one[:, :, None], width, axis=2)
        return self._across


def _emptiness(spare: Any, there: Any) -> Any:
    """The mean of what is left of cpu and of memory, each in percent and rounded down."""
    spare *= _HUNDRED
    spare /= there
    parts = spare.astype(np.uint8)
    total = parts[0] + parts[1]
    total >>= _ONE
    return total


def _evenness(after: Any, before: Any) -> Any:
    """75 and half of what the pod makes the node more even."""
    apart = np.empty((2, after.shape[-1]))
    np.subtract(after[CPU], after[MEMORY], out=apart[0])
    np.subtract(before[0], before[1], out=apart[1])
    np.abs(apart, out=apart)
    np.subtract(_TWICE, apart, out=apart)  # doubling is exact, so this is 1 - apart / 2, twice, to the last bit
    apart *= _FIFTY
    even = apart.astype(np.uint8)
    more = even[0] - even[1]  # in bytes, and round the corner if it is less: adding the base comes back again
    more += _BASE
    more >>= _ONE
    return more
