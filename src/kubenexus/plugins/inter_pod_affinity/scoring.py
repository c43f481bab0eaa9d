"""The scores of InterPodAffinity: points of each node by its domains' pods.

With few domains of one topology (zones), each domain has its points, and a row has the code of its domain. With many
domains (hostnames) or several topologies, a row's code is its own points. A pod that is added or removed then changes
only the codes of its domain's rows.
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

WeightedTerm = tuple[str, int, PodCounter]  # the topology, the points for each pod in a domain, and the pods

_FEW_DOMAINS = 64
_MAX_POINTS = 4096  # between the best row and the worst
_MAX_STEPS = 32  # with more of them, counting again is quicker


def has_few_domains(terms: tuple[WeightedTerm, ...], nodes: NodeColumns) -> bool:
    """Returns whether the terms have one topology with few domains. Points by domain are then added up for each
    decision."""
    topology = terms[0][0]
    alike = all([other == topology for other, _, _ in terms])  # noqa: C419
    return alike and len(nodes.labels.column(topology).values) <= _FEW_DOMAINS


def scores_by_domain(terms: tuple[WeightedTerm, ...], nodes: Nodes) -> CodedScores:
    """Returns the scores of terms that all have the same topology."""
    topology = terms[0][0]
    column = nodes.columns.labels.column(topology)
    points = np.zeros(len(column.values), np.int64)
    for _, weight, counter in terms:
        counter.pour(topology, weight, points)
    points[0] = 0  # nodes without the label are in no domain
    domains, key = domains_of_label(topology, nodes), (column, nodes.columns.node_changes.mark, nodes.rows is None)
    return CodedScores(domains.codes, points, key, domains.row_counts)


class AffinityScores:
    """The points of each row, shared by all classes with the same terms.

    A row's code is its points less the lowest points that have a code. Codes have a margin at both ends, so that
    points may rise and fall as pods are added and removed.
    """

    def __init__(self, terms: tuple[WeightedTerm, ...]) -> None:
        self._terms = terms
        self._mark = -1
        self._seen: list[int] = []
        self._levels: dict[str, TopologyDomains] = {}
        self._raw: Any = None  # the points of each row, where their range is too wide for codes
        self._codes: RowCodes | None = None
        self._points: Any = None  # of each code

    def score(self, nodes: Nodes, pod: PodClass) -> IntColumn | CodedScores:
        """Returns the current raw scores for one of the classes."""
        columns = nodes.columns
        versions = [counter.version for _, _, counter in self._terms]
        if self._mark != columns.node_changes.mark or (versions != self._seen and not self._step(pod)):
            self._recount(Nodes(columns))
        self._mark, self._seen = columns.node_changes.mark, versions
        if self._codes is not None:
            return self._codes.as_scores(self._points, nodes, pod)
        raw: IntColumn = self._raw[nodes.where].copy()
        return raw

    def _recount(self, nodes: Nodes) -> None:
        self._levels = {topology: domains_of_label(topology, nodes) for topology, _, _ in self._terms}
        raw = np.zeros(nodes.width, np.int64)
        points = {topology: np.zeros(level.size, np.int64) for topology, level in self._levels.items()}
        for topology, weight, counter in self._terms:
            counter.pour(topology, weight, points[topology])
        for topology, of_domains in points.items():
            of_domains[0] = 0  # nodes without the label are in no domain
            raw += of_domains.take(self._levels[topology].codes)
        self._codes, self._raw = None, raw
        least, most = int(raw.min(initial=0)), int(raw.max(initial=0))
        if most - least <= _MAX_POINTS:
            margin = 8 + (most - least) // 4
            self._points = np.arange(least - margin, most + margin)
            self._codes, self._raw = RowCodes(raw - (least - margin), len(self._points)), None

    def _step(self, pod: PodClass) -> bool:
        """Moves the codes by the pods added and removed since the last call. Returns False if codes must be made
        again: the changes are too many or unknown, or points left the range of codes."""
        if self._codes is None:
            return False
        moves: dict[tuple[str, int], int] = {}  # summed, since several terms may count one pod
        for (topology, weight, counter), seen in zip(self._terms, self._seen, strict=True):
            steps = counter.steps_since(seen)
            if steps is None or len(steps) > _MAX_STEPS:
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
