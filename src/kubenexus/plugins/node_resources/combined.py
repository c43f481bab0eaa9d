"""NodeResourcesFit, NodeResourcesBalancedAllocation and, where the profile has it, WorkloadAwareScoring combined, for
ordinary pods and default arguments.

All compute how full a node is or would be, and all run again on every row with a new pod: after each decision, for each
class. The combination reads the amounts once, and checks once that none is insufficient. Its results equal those of the
plugins. For the less simple cases (an insufficient amount, a node without memory) it returns None, and the caller runs
the plugins.
"""

from typing import Any

import numpy as np

from kubenexus.base.arrays import FLOAT_EXACT_MAX, IntColumn
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.node_resources.balance import balance_of_two, current_balance
from kubenexus.plugins.workload.workload_aware import WorkloadAwareScoring
from kubenexus.state.resources import BASICS, COMMON_RESOURCES, CPU, MEMORY, NOTHING, PODS
from kubenexus.state.view import ALLOC, FREE_NONZERO, USED, Nodes, OneNode

_NAMES = tuple(BASICS[r] for r in COMMON_RESOURCES)
_COMMON, _BOTH = slice(len(COMMON_RESOURCES)), slice(CPU, MEMORY + 1)
_MOST_OTHERS = 4  # resources beside cpu and memory
_BASE, _ONE, _HUNDRED = np.array(150, np.uint8), np.array(1, np.uint8), np.array(100.0)


class _Wanted:
    """The pod's requests, and those that scores count: as numbers, and as two column vectors to add to tables of cpu,
    memory and pods. `others` are resources that are only filtered by, such as GPUs."""

    __slots__ = ("columns", "cpu", "memory", "others", "scored_cpu", "scored_memory")

    def __init__(
        self, cpu: int, memory: int, scored_cpu: int, scored_memory: int, others: tuple[tuple[str, int], ...]
    ) -> None:
        self.cpu, self.memory, self.others = cpu, memory, others
        self.scored_cpu, self.scored_memory = scored_cpu, scored_memory
        both = [cpu, memory, 1], [scored_cpu, scored_memory, 0]
        self.columns: Any = np.array(both, np.float64)[:, :, None]


class CombinedResourceRule:
    """See `framework.extension_points.CombinedRule`. Only for LeastAllocated and balance over cpu and memory alike."""

    def __init__(self, fit: str, balanced: str, workload: Any = None) -> None:
        self._workload = workload if isinstance(workload, WorkloadAwareScoring) else None
        self.names = [fit, balanced] if self._workload is None else [fit, balanced, self._workload.name]

    def concerns(self, pod: PodClass) -> bool:
        return self._wanted(pod) is not None

    def rows(self, pod: PodClass, nodes: Nodes) -> tuple[IntColumn, ...] | None:
        wanted, resources = self._wanted(pod), nodes.columns.resources
        layout = resources.layout(_NAMES)
        if wanted is None or not layout.exact or layout.fewest != nodes.columns.size:
            return None
        found = self._all(wanted, nodes) if nodes.rows is None else self._some(wanted, nodes)
        if found is None or self._workload is None:
            return found
        return (*found, self._workload.scores(pod, nodes))

    def _all(self, wanted: _Wanted, nodes: Nodes) -> tuple[IntColumn, IntColumn] | None:
        """Computes from columns that all classes share. Of other resources some node nearly always has too few."""
        if wanted.others:
            return None
        least = nodes.min_free(_NAMES)
        if wanted.cpu > least[CPU] or wanted.memory > least[MEMORY] or least[PODS] < 1:
            return None
        amounts, (more, counted) = nodes.amounts(_NAMES)[0][:, _BOTH], wanted.columns[:, _BOTH]
        spare, used = amounts[FREE_NONZERO] - counted, amounts[USED] + more
        if spare.item(spare.argmin()) < 0.0:
            return None
        used /= amounts[ALLOC]
        even = balance_of_two(used[CPU] - used[MEMORY])
        even += nodes.derived(current_balance(_NAMES[_BOTH]))
        even >>= _ONE
        return _emptiness(spare, amounts[ALLOC]), even

    def _some(self, wanted: _Wanted, nodes: Nodes) -> tuple[IntColumn, IntColumn] | None:
        """Computes from the rows' own amounts (`by_row`)."""
        cards = nodes.by_row
        for name, amount in wanted.others:
            r = nodes.columns.resources.index.get(name, NOTHING)
            left = cards[:, 0, r] - cards[:, 1, r]
            if left.item(left.argmin()) < amount:
                return None
        width = len(cards)
        table = np.empty((3, 3, width))  # of the common resources: allocatable, used, and used as scores count it
        table[:] = cards.transpose(1, 2, 0)[:, _COMMON]
        taken, capacity = table[1:] + wanted.columns, table[0, _BOTH]
        full, spare = taken[0] / table[0], capacity - taken[1, _BOTH]
        if full.item(full.argmax()) > 1.0 or spare.item(spare.argmin()) < 0.0:
            return None
        now = table[1, _BOTH] / capacity
        apart = np.empty((2, width))
        np.subtract(full[CPU], full[MEMORY], out=apart[0])
        np.subtract(now[CPU], now[MEMORY], out=apart[1])
        even = balance_of_two(apart)
        evened = even[0] - even[1]  # in bytes, wraps around if negative: adding the base wraps back
        evened += _BASE
        evened >>= _ONE
        return _emptiness(spare, capacity), evened

    def row(self, pod: PodClass, node: OneNode) -> tuple[int, ...] | None:
        wanted, there, taken, counted = self._wanted(pod), node.allocs, node.uses, node.nonzero
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
        if spare_cpu < 0 or spare_memory < 0 or memory > FLOAT_EXACT_MAX or cpu > FLOAT_EXACT_MAX:
            return None
        for name, amount in wanted.others:
            r = node.columns.resources.index.get(name, NOTHING)
            if there[r] - taken[r] < amount:
                return None
        apart = abs(used_cpu / cpu - used_memory / memory)
        before = abs(taken[CPU] / cpu - taken[MEMORY] / memory)
        even = int((1 - apart / 2) * 100.0) - int((1 - before / 2) * 100.0)
        empty, evened = (100 * spare_cpu // cpu + 100 * spare_memory // memory) // 2, (150 + even) // 2
        return (empty, evened) if self._workload is None else (empty, evened, self._workload.scores(pod, node))

    def _wanted(self, pod: PodClass) -> _Wanted | None:
        return pod.cached("resources together", lambda: self._ordinary(pod))

    @staticmethod
    def _ordinary(pod: PodClass) -> _Wanted | None:
        """Returns None unless the pod requests cpu or memory, and both plugins count it alike."""
        asked, plain, scored = dict(pod.demand.amounts), dict(pod.demand.with_resize), dict(pod.demand.with_defaults)
        cpu, memory = asked.pop("cpu", 0), asked.pop("memory", 0)
        if len(asked) > _MOST_OTHERS or not (cpu or memory):
            return None
        if (cpu, memory) != (plain.get("cpu", 0), plain.get("memory", 0)):
            return None
        return _Wanted(cpu, memory, scored.get("cpu", 0), scored.get("memory", 0), tuple(asked.items()))


def _emptiness(spare: Any, there: Any) -> Any:
    """Returns the mean of the free percentages of cpu and memory, each rounded down."""
    spare *= _HUNDRED
    spare /= there
    parts = spare.astype(np.uint8)
    total = parts[0] + parts[1]
    total >>= _ONE
    return total
