"""The pods of one workload by zone, region and rack, kept up to date with the pods that come and go."""

from typing import Any, Final

import numpy as np

from kubenexus.api.selectors import NOTHING, Operator, Requirement, Selector
from kubenexus.plugins.topology_scoring.request import Racks, SpreadRequest
from kubenexus.plugins.topology_scoring.spread_levels import (
    RACK,
    ZONE,
    SpreadLevels,
    level_names,
    spread_levels,
)
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.nodes import NodeColumns

# Of an own pod in the same zone, region and rack. One in the same zone is in the same region, too.
ZONE_WEIGHT, REGION_WEIGHT, RACK_WEIGHT = 6, 3, 1
_RACK_WEIGHTS: Final = {Racks.SPREAD_LITTLE: RACK_WEIGHT, Racks.SPREAD: ZONE_WEIGHT, Racks.TOGETHER: RACK_WEIGHT}
UNLABELLED: Final = -1  # the cost of a node without a zone, where pods are spread over zones
_MAX_STEPS: Final = 32  # changes; with more of them, to count all rows again is quicker
_FEW: Final = 32  # combinations up to which plain numbers are quicker than NumPy
_STRICT: Final = 200  # times the largest cost: what a zone with own pods costs while more zones are wanted


class OwnPods:
    """The counts of one workload, and what each combination of domains costs it.

    Classes with equal requests share one object. `counter` counts the workload's pods by row; those that are being
    deleted do not count.
    """

    def __init__(self, request: SpreadRequest, nodes: NodeColumns) -> None:
        self._request = request
        wanted = tuple(Requirement(key, Operator.IN, (value,)) for key, value in request.own)
        term = PodSelectorTerm(frozenset({request.namespace}), Selector(wanted), NOTHING, skip_terminating=True)
        self.counter = nodes.pods.counter((term,))
        self._seen = -1
        self._mark = -1
        self._counts: list[Any] = []  # by level: the number of own pods by domain
        self._names: tuple[str, ...] = ()
        self.levels: SpreadLevels | None = None
        self.version = 0  # moves when costs are other ones, but not while they are None
        self._costs: Any = None
        self._costed = (-1, -1)  # the nodes and the pods that the costs are of

    def refresh(self, nodes: NodeColumns) -> SpreadLevels | None:
        """Brings the counts up to date. Returns the levels, or None if there is nothing to spread over."""
        levels, counter = self.levels, self.counter
        if self._mark != nodes.node_changes.mark:
            self._names = used_levels(self._request, nodes)
            levels = self.levels = spread_levels(self._names, nodes) if self._names else None
            self._mark = nodes.node_changes.mark
            self._count(levels)
        elif levels is not None and self._seen != counter.version:
            steps = counter.steps_since(self._seen)
            if steps is None or len(steps) > _MAX_STEPS:
                self._count(levels)
            else:
                for level, counts in zip(levels.levels, self._counts, strict=True):
                    for row, by in steps:
                        counts[level.codes.item(row)] += by
                self._seen = counter.version
        return levels

    def _count(self, levels: SpreadLevels | None) -> None:
        self._seen, self._counts = self.counter.version, []
        for level in levels.levels if levels is not None else ():
            rows = self.counter.rows[: len(level.codes)]
            counts = np.bincount(level.codes[: len(rows)], weights=rows, minlength=level.size)
            self._counts.append(counts.astype(np.int64))

    def costs(self, nodes: NodeColumns) -> Any:
        """Returns the cost of each combination: less is better. None if the workload is spread evenly, over any part of
        the nodes, or if there is nothing to spread over."""
        levels = self.refresh(nodes)
        if levels is None:
            return None
        if self._costed != (self._mark, self._seen):
            before, self._costed = self._costs, (self._mark, self._seen)
            self._costs = self._few_costs(levels) if levels.size <= _FEW else self._many_costs(levels)
            self.version += before is not None or self._costs is not None
        return self._costs

    def _weight(self, name: str) -> int:
        """Returns the cost of an own pod in a domain of this level. The largest level that counts costs as a zone."""
        if name == RACK:
            return ZONE_WEIGHT if self._names[0] == RACK else _RACK_WEIGHTS[self._request.racks]
        return ZONE_WEIGHT if name == self._names[0] else REGION_WEIGHT

    def _many_costs(self, levels: SpreadLevels) -> Any:
        total: Any = np.zeros(levels.size, np.int64)
        for name, counts, domains in zip(self._names, self._counts, levels.domains, strict=True):
            if name == RACK and self._request.racks is Racks.TOGETHER:
                total += self._weight(name) * (counts[1:].max() - counts[domains] * (domains > 0))
            else:
                total += self._weight(name) * counts[domains]
        if self._names[0] == ZONE:
            zones, here = self._counts[0], levels.domains[0]
            if np.count_nonzero(zones[1:]) < self._request.min_zones:
                total += _STRICT * (total.max() + 1) * (zones[here] > 0)
            total[here == 0] = UNLABELLED
        labelled = total[total != UNLABELLED]
        return None if not len(labelled) or is_even(int(labelled.min()), int(labelled.max())) else total

    def _few_costs(self, levels: SpreadLevels) -> Any:
        """The same as plain numbers: 5 µs instead of 19 for three zones."""
        total: list[int] = []
        for name, held, domains in zip(self._names, self._counts, levels.listed, strict=True):
            counts, weight = held.tolist(), self._weight(name)
            if name == RACK and self._request.racks is Racks.TOGETHER:
                most = max(counts[1:])
                costs = [weight * (most - counts[domain] * (domain > 0)) for domain in domains]
            else:
                costs = [weight * counts[domain] for domain in domains]
            total = [some + more for some, more in zip(total, costs, strict=True)] if total else costs
        if self._names[0] == ZONE:
            zones, here = self._counts[0].tolist(), levels.listed[0]
            if self._request.min_zones > len([pods for pods in zones[1:] if pods]):
                more = _STRICT * (max(total) + 1)
                total = [cost + more * (zones[zone] > 0) for cost, zone in zip(total, here, strict=True)]
            if 0 in here:
                total = [cost if zone else UNLABELLED for cost, zone in zip(total, here, strict=True)]
        labelled = [cost for cost in total if cost != UNLABELLED]
        return None if not labelled or is_even(min(labelled), max(labelled)) else np.array(total)


def is_even(least: int, most: int) -> bool:
    """Whether costs differ so little that the workload counts as spread evenly: by a tenth, so that a pod more or less
    in a zone of ten makes no difference. Costs in between are even, too."""
    return 10 * (most - least) <= most


def used_levels(request: SpreadRequest, nodes: NodeColumns) -> tuple[str, ...]:
    """Returns the levels over which a workload is spread; () if the cluster has none with at least two domains."""
    return level_names(request.zones, request.racks is not Racks.IGNORED, nodes)
