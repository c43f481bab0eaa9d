"""Wishes about neighbours as points: where InterPodAffinity would rather have a pod.

Of few domains (zones) each has its points, and rows have the codes of their domains. Where nearly every row is a domain
of its own (hostnames), or several topologies meet, a row's code is what it has itself: a pod more or less changes the
codes of its domain's rows, and nothing else has to be worked out again.
"""

from typing import Any

import numpy as np

from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.row_codes import RowCodes
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_counter import PodCounter, Steps
from kubenexus.state.topology import TopologyDomains, domains_of_label
from kubenexus.state.view import Nodes

WeightedTerm = tuple[str, int, PodCounter]  # a topology, how much each pod nearby is worth, and where these pods are

_FEW_DOMAINS = 64
_MOST_POINTS = 4096  # between the best row and the worst
_MOST_STEPS = 32  # with more behind, it is quicker to start afresh


def has_few_domains(wishes: tuple[WeightedTerm, ...], nodes: NodeColumns) -> bool:
    """Whether domains can have points, rather than rows: then these follow nothing, and are added up each time."""
    topology = wishes[0][0]
    alike = all([other == topology for other, _, _ in wishes])  # noqa: C419
    return alike and len(nodes.labels.column(topology).values) <= _FEW_DOMAINS


def scores_by_domain(wishes: tuple[WeightedTerm, ...], nodes: Nodes) -> CodedScores:
    """Wishes of one topology."""
    topology = wishes[0][0]
    column = nodes.columns.labels.column(topology)
    points = np.zeros(len(column.values), np.int64)
    for _, weight, counter in wishes:
        counter.pour(topology, weight, points)
    points[0] = 0  # nodes without the label are near nobody
    domains, key = domains_of_label(topology, nodes), (column, nodes.columns.node_changes.mark, nodes.rows is None)
    return CodedScores(domains.codes, points, key, domains.row_counts)


class AffinityScores:
    """What wishes come to on each row; shared by all classes that wish the same.

    A row's code is its points above the lowest there may be. There is room at both ends for pods to come and go.
    """

    def __init__(self, wishes: tuple[WeightedTerm, ...]) -> None:
        self._wishes = wishes
        self._mark = -1
        self._seen: list[int] = []
        self._levels: dict[str, TopologyDomains] = {}
        self._raw: Any = None  # the points themselves, where they are too far apart for codes
        self._codes: RowCodes | None = None
        self._points: Any = None  # of each code

    def score(self, nodes: Nodes, pod: PodClass) -> IntColumn | CodedScores:
        """Raw scores as of now, for one of the classes."""
        columns = nodes.columns
        versions = [counter.version for _, _, counter in self._wishes]
        if self._mark != columns.node_changes.mark or (versions != self._seen and not self._step(pod)):
            self._recount(Nodes(columns))
        self._mark, self._seen = columns.node_changes.mark, versions
        if self._codes is not None:
            return self._codes.as_scores(self._points, nodes, pod)
        raw: IntColumn = self._raw[nodes.where].copy()
        return raw

    def _recount(self, nodes: Nodes) -> None:
        self._levels = {topology: domains_of_label(topology, nodes) for topology, _, _ in self._wishes}
        raw = np.zeros(nodes.width, np.int64)
        points = {topology: np.zeros(level.size, np.int64) for topology, level in self._levels.items()}
        for topology, weight, counter in self._wishes:
            counter.pour(topology, weight, points[topology])
        for topology, of_domains in points.items():
            of_domains[0] = 0  # nodes without the label are near nobody
            raw += of_domains.take(self._levels[topology].codes)
        self._codes, self._raw = None, raw
        least, most = int(raw.min(initial=0)), int(raw.max(initial=0))
        if most - least <= _MOST_POINTS:
            margin = 8 + (most - least) // 4
            self._points = np.arange(least - margin, most + margin)
            self._codes, self._raw = RowCodes(raw - (least - margin), len(self._points)), None

    def _step(self, pod: PodClass) -> bool:
        """Follow the pods that came or went; whether that could be done."""
        if self._codes is None:
            return False
        moves: dict[tuple[str, int], int] = {}  # a pod moves whoever it wishes for, and those who wish for it
        for (topology, weight, counter), seen in zip(self._wishes, self._seen, strict=True):
            steps = counter.steps_since(seen)
            if steps is None or len(steps) > _MOST_STEPS:
                return False
            for row, pods in steps:
                moves[topology, row] = moves.get((topology, row), 0) + pods * weight
        alone: Steps = []
        for (topology, row), by in moves.items():
            level = self._levels[topology]
            domain = level.codes.item(row)
            if domain and level.row_counts.item(domain) == 1:
                alone.append((row, by))
            elif domain and not self._codes.move_all(level.codes == domain, by, pod):
                return False
        return not alone or self._codes.move(alone, pod)
