"""NodeResourcesBalancedAllocation: prefer the node whose resources the pod would bring closer to each other.

For each node S = int((1 - std of the used fractions) * 100), with the pod and without it; the score is
50 + (50 + S_with - S_without) / 2: 75 when nothing changes, more when the pod evens the node out.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.resource_names import is_basic
from kubenexus.base.numbers import Amounts, IntColumn
from kubenexus.framework.job import JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import KEEP, Depends, Plugin
from kubenexus.framework.verdict import SKIP, Skip
from kubenexus.plugins.node_resources_fit import NodeResourcesFit
from kubenexus.plugins.resources_together import ResourcesTogether
from kubenexus.plugins.strategies import amounts_of
from kubenexus.state.derived import Derivation
from kubenexus.state.view import ALLOC, USED, Nodes, OneNode

_DEFAULT = ({"name": "cpu"}, {"name": "memory"})
# As arrays: NumPy takes longer to look at a Python number than to compute with a hundred of its own.
_WHOLE, _TWICE, _FIFTY = np.array(1.0), np.array(2.0), np.array(50.0)
_BASE, _ONE = np.array(150, np.uint8), np.array(1, np.uint8)


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources", "status.resize")
    depends = Depends.USAGE
    normalize = KEEP
    scalar = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        names = [str(r["name"]) for r in args.get("resources") or _DEFAULT]
        self._resources = [(name, is_basic(name)) for name in names]

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int | Skip:
        wanted, before = pod.once("NodeResourcesBalancedAllocation", lambda: self._wanted(pod))
        if not any(wanted.values):
            return SKIP  # else a flood of pods that ask for nothing would all go to the one most even node
        if isinstance(nodes, OneNode):
            return _score_one(nodes, wanted)
        result: IntColumn = _after(nodes, wanted)
        result += nodes.derived(before)
        result >>= _ONE  # in bytes: at most 100 + 150 before it is halved
        return result

    def join(self, others: Mapping[str, Plugin]) -> ResourcesTogether | None:
        fit = others.get(NodeResourcesFit.name)
        plain = self._resources == [("cpu", True), ("memory", True)]
        return ResourcesTogether(fit, self) if plain and isinstance(fit, NodeResourcesFit) and fit.plain else None

    def _wanted(self, pod: PodClass) -> tuple[Amounts, Derivation]:
        """What the pod asks for; an extended resource it does not ask for is no matter of balance. And how uneven the
        nodes are in these resources without it, which is the same for all pods."""
        asked = dict(pod.demand.plain)
        names = tuple([n for n, basic in self._resources if basic or asked.get(n)])
        return amounts_of(pod, names, pod.demand.plain), _before(names)


@functools.lru_cache(maxsize=256)
def _before(names: tuple[str, ...]) -> Derivation:
    """150 less the evenness of what runs there now."""

    def of(nodes: Nodes) -> Any:
        amounts, offered = nodes.stock(names)
        return _BASE - _evenness(amounts[USED], amounts[ALLOC], offered)

    return Derivation(f"150 - evenness of {names}", of)


def _after(nodes: Nodes, wanted: Amounts) -> Any:
    """The evenness with the pod."""
    amounts, offered = nodes.stock(wanted.names)
    used = amounts[USED] + wanted.like(amounts[USED])
    return _evenness(used, amounts[ALLOC], offered, out=used if used.dtype == np.float64 else None)


def _score_one(node: OneNode, wanted: Amounts) -> int:
    cells, uses, allocs = wanted.cells(node.rows_of(wanted.names)), node.uses, node.allocs
    capacity = [allocs[r] for r, _ in cells]
    without = _evenness_of_one([uses[r] for r, _ in cells], capacity)
    return (150 + _evenness_of_one([uses[r] + amount for r, amount in cells], capacity) - without) // 2


def _evenness_of_one(used: list[int], capacity: list[int]) -> int:
    if len(used) == 2 and capacity[0] and capacity[1]:
        first, second = float(used[0]) / float(capacity[0]), float(used[1]) / float(capacity[1])  # as Go divides
        return int((1 - abs((first if first < 1.0 else 1.0) - (second if second < 1.0 else 1.0)) / 2) * 100.0)
    return int(_evenness_of_any(np.array(used)[:, None], np.array(capacity)[:, None])[0])


def _evenness(used: Any, capacity: Any, offered: bool, out: Any = None) -> Any:
    """100 when the resources are used to the same fraction, less the further they are apart. `out` may be
    overwritten."""
    if len(used) != 2 or not offered:
        return _evenness_of_any(used, capacity)
    fractions = np.divide(used, capacity, out=out)
    if fractions.size and fractions.item(fractions.argmax()) > 1.0:
        np.minimum(fractions, _WHOLE, out=fractions)
    apart = fractions[0] - fractions[1]
    np.abs(apart, out=apart)
    np.subtract(_TWICE, apart, out=apart)  # doubling is exact, so this is 1 - apart / 2, twice, to the last bit
    apart *= _FIFTY
    return apart.astype(np.uint8)


def _evenness_of_any(used: Any, capacity: Any) -> Any:
    """Any number of resources; on each node those it does not have are left out. Sums in upstream's order."""
    offered = capacity > 0
    count = offered.sum(axis=0)
    fractions = np.minimum(used / np.maximum(capacity, 1), 1.0) * offered
    mean, spread = np.zeros(fractions.shape[1:]), np.zeros(fractions.shape[1:])
    for fraction in fractions:
        mean += fraction
    mean /= np.maximum(count, 1)
    between, sign = np.zeros(fractions.shape[1:]), np.ones(count.shape)
    for fraction, present in zip(fractions, offered, strict=True):
        spread += np.where(present, (fraction - mean) * (fraction - mean), 0.0)
        between += sign * fraction
        sign = np.where(present, -sign, sign)
    several = np.sqrt(spread / np.maximum(count, 1))
    std = np.where(count == 2, np.abs(between / 2), np.where(count > 2, several, 0.0))
    return ((1 - std) * 100.0).astype(np.uint8)
