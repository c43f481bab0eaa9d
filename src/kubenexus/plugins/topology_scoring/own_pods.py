"""The pods of one workload by zone, region and rack, kept up to date with the pods that come and go."""

from typing import Any, Final

import numpy as np

from kubenexus.api.selectors import NOTHING, Operator, Requirement, Selector
from kubenexus.plugins.topology_scoring.request import Racks, SpreadRequest
from kubenexus.plugins.topology_scoring.spread_levels import (
    RACK,
    REGION,
    ZONE,
    SpreadLevels,
    level_names,
    spread_levels,
)
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.nodes import NodeColumns

# Of an own pod in the same zone, region and rack. One in the same zone is in the same region, too.
ZONE_WEIGHT, REGION_WEIGHT, RACK_WEIGHT = 6, 3, 1
_RACK_WEIGHTS: Final = {Racks.SPREAD_LITTLE: RACK_WEIGHT, Racks.SPREAD: ZONE_WEIGHT}
UNLABELLED: Final = -1  # the cost of a node without a zone, where pods are spread over zones
_MAX_STEPS: Final = 32  # changes; with more of them, to count all rows again is quicker
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
        self._counts: list[list[int]] = []  # by level: the number of own pods by domain
        self._names: tuple[str, ...] = ()
        self.levels: SpreadLevels | None = None

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
            self._counts.append(counts.astype(np.int64).tolist())

    def costs(self, levels: SpreadLevels) -> Any:
        """Returns the cost of each combination: less is better. Plain numbers: mostly there are a few zones."""
        total: list[int] = []
        for name, counts, domains in zip(self._names, self._counts, levels.domains, strict=True):
            by_domain = self._by_domain(name, counts)
            costs = [by_domain[domain] for domain in domains]
            total = [some + more for some, more in zip(total, costs, strict=True)] if total else costs
        if self._names[0] == ZONE:
            self._adjust(total, self._counts[0], levels.domains[0])
        return np.array(total)

    def _by_domain(self, name: str, counts: list[int]) -> list[int]:
        """Returns the cost of each domain of a level."""
        racks = self._request.racks
        if name == RACK and racks is Racks.TOGETHER:
            most = max(counts[1:])
            return [most - pods * (code > 0) for code, pods in enumerate(counts)]
        weight = ZONE_WEIGHT if name == ZONE else REGION_WEIGHT if name == REGION else _RACK_WEIGHTS[racks]
        return [weight * pods for pods in counts]

    def _adjust(self, total: list[int], zones: list[int], here: list[int]) -> None:
        """Adds what a zone with own pods costs while more zones are wanted, and marks nodes without a zone."""
        least = self._request.min_zones
        if least and len([pods for pods in zones[1:] if pods]) < least:
            more = _STRICT * (max(total) + 1)
            for i, zone in enumerate(here):
                total[i] += more * (zones[zone] > 0)
        if 0 in here:
            for i, zone in enumerate(here):
                if not zone:
                    total[i] = UNLABELLED


def used_levels(request: SpreadRequest, nodes: NodeColumns) -> tuple[str, ...]:
    """Returns the levels over which a workload is spread; () if the cluster has none with at least two domains."""
    return level_names(request.zones, request.racks is not Racks.IGNORED, nodes)
