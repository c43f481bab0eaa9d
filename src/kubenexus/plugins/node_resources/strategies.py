"""The scoring strategies of NodeResourcesFit, equal to kube-scheduler's to the digit.

Each formula is here twice: for a table of resources (rows) by nodes, and for the plain numbers of one node.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.resource_names import Amounts as Counted
from kubenexus.base.arrays import AmountVector, percent
from kubenexus.base.errors import Malformed
from kubenexus.framework.pod_class import PodClass

_DEFAULT: Sequence[Mapping[str, Any]] = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})


class Formula(NamedTuple):
    """Computes 0..100 from the amount that would be spare (if `spare`, else used) and the capacity, which is not 0.
    `columns` may overwrite the amount; `numbers` always takes the used amount."""

    spare: bool
    columns: Callable[[Any, Any], Any]
    numbers: Callable[[int, int], int]


_NONE, _ONE = np.array(0), np.array(1, np.uint8)


def _percent_spare(spare: Any, capacity: Any) -> Any:
    """Returns the spare percentage. Negative amounts are rare, and to check for them is faster than to clip always."""
    if spare.size and spare.item(spare.argmin()) < 0:
        np.maximum(spare, _NONE, out=spare)
    return percent(spare, capacity)


# Empty nodes first: services spread.
LEAST_ALLOCATED = Formula(
    spare=True,
    columns=_percent_spare,
    numbers=lambda taken, capacity: 100 * (capacity - taken) // capacity if taken < capacity else 0,
)
# Full nodes first: batch work packs.
MOST_ALLOCATED = Formula(
    spare=False,
    columns=lambda taken, capacity: percent(np.minimum(taken, capacity, out=taken), capacity),
    numbers=lambda taken, capacity: 100 * taken // capacity if taken < capacity else 100,
)


class Strategy:
    """A weighted mean over resources; those a node does not have are left out of it."""

    def __init__(self, resources: Sequence[Mapping[str, Any]], formula: Formula) -> None:
        self.resources = [(str(r["name"]), int(r.get("weight") or 1)) for r in resources or _DEFAULT]
        self.formula = formula

    def mean(self, weights: list[int], amounts: Any, capacity: Any, offered: bool) -> Any:
        """Returns the mean. `amounts` would be spare (or used, see the formula) of `capacity`; `offered`: no capacity
        is 0."""
        if offered and weights == [1, 1]:  # the default, on nodes that have both: 100 + 100 fits in a byte
            parts = self.formula.columns(amounts, capacity)
            total = np.add(parts[0], parts[1], out=parts[0])
            total >>= _ONE
            return total
        parts = self.formula.columns(amounts, np.maximum(capacity, 1)).astype(np.int64)
        counted = np.array(weights)[:, None] * (capacity > 0)
        return (parts * counted).sum(axis=0) // np.maximum(counted.sum(axis=0), 1)

    def mean_of_one(self, weights: list[int], parts: list[tuple[int, int]]) -> int:
        """Returns the mean on one node, from (used, capacity) of each resource."""
        total, counted, points = 0, 0, self.formula.numbers
        for weight, (taken, capacity) in zip(weights, parts, strict=True):
            if capacity:
                total += weight * points(taken, capacity)
                counted += weight
        return total // counted if counted else 0


class RequestedToCapacityRatio(Strategy):
    """A piecewise linear function of utilisation, given by the user; resources that score 0 are left out of the
    mean."""

    def __init__(self, resources: Sequence[Mapping[str, Any]], shape: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(resources, MOST_ALLOCATED)
        points = [(int(point.get("utilization") or 0), int(point.get("score") or 0) * 10) for point in shape]
        self._line = np.array([_on_line(points, p) for p in range(101)], np.int64)

    def mean(self, weights: list[int], amounts: Any, capacity: Any, offered: bool) -> Any:
        used = self.formula.columns(amounts, np.maximum(capacity, 1)).astype(np.int64)
        height = self._line[used] * (capacity > 0)
        counted = np.array(weights)[:, None] * (height > 0)
        total, weight = (height * counted).sum(axis=0), counted.sum(axis=0)
        return (2 * total + weight) // np.maximum(2 * weight, 1)  # rounded half up, as upstream rounds this one only

    def mean_of_one(self, weights: list[int], parts: list[tuple[int, int]]) -> int:
        taken, capacity = (np.array(column, np.int64)[:, None] for column in zip(*parts, strict=True))
        return int(self.mean(weights, taken, capacity, False)[0])


def _on_line(points: list[tuple[int, int]], p: int) -> int:
    """Returns the function's value at `p`. As in Go, division rounds towards zero, also on a falling line."""
    if p <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if p <= x1:
            rise = (y1 - y0) * (p - x0)
            return y0 + (rise // (x1 - x0) if rise >= 0 else -(-rise // (x1 - x0)))
    return points[-1][1]


def amounts_of(pod: PodClass, names: tuple[str, ...], counted: Counted) -> AmountVector:
    """Returns the pod's requests of some resources, counted in one of the ways of `Demand`. These mostly give equal
    results; plugins with the same resources then share one object."""

    def make() -> AmountVector:
        asked = dict(counted)
        return AmountVector({name: asked.get(name, 0) for name in names})

    return pod.cached((names, counted), make)


def strategy_from(args: Mapping[str, Any]) -> Strategy:
    """Makes a strategy from `scoringStrategy` in the plugin's arguments. Raises Malformed."""
    kind, resources = args.get("type") or "LeastAllocated", args.get("resources") or ()
    if kind == "LeastAllocated":
        return Strategy(resources, LEAST_ALLOCATED)
    if kind == "MostAllocated":
        return Strategy(resources, MOST_ALLOCATED)
    if kind == "RequestedToCapacityRatio":
        shape = (args.get("requestedToCapacityRatio") or {}).get("shape") or ()
        if not shape:
            raise Malformed("at least one point is needed", field="scoringStrategy.requestedToCapacityRatio.shape")
        return RequestedToCapacityRatio(resources, shape)
    raise Malformed(
        f"{kind!r} is not LeastAllocated, MostAllocated or RequestedToCapacityRatio", field="scoringStrategy.type"
    )
