"""The scores of PodTopologySpread's soft constraints.

The points of all constraints of a pod have few combinations, even with many nodes. Each combination has a code, and
each row the code of its combination. A pod that is added to a row or removed changes only the code of that row and the
points of its domains. So codes are updated with the pods, and each decision computes only the few points.
"""

import functools
import math
from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.framework.extension_points import CodedScores
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    ConstraintDomains,
    ParsedConstraint,
    rows_with_keys,
)
from kubenexus.plugins.row_codes import RowCodes
from kubenexus.state.pod_counter import PodCounter, Steps
from kubenexus.state.topology import domains_of_label
from kubenexus.state.view import Nodes

IGNORED = -1  # the raw score of a node without a topology label: 0 points, left out of the extremes
_MAX_STEPS = 32  # with more of them, making all codes again is quicker
_PLAIN = 64  # combinations up to which plain numbers are quicker than NumPy
_NO_STEPS: Steps = []
_FEW_COMBINATIONS = 1024  # combinations, on a small cluster; on others up to as many as rows


class HostnameConstraint:
    """A constraint over hostnames: every row is a domain, and a row's index is the number of its counted pods."""

    def __init__(self, constraint: ParsedConstraint, counter: PodCounter) -> None:
        self.constraint = constraint
        self.counter = counter
        self._seen = 0
        self._most = -1
        self._missing: Any = None
        self.lacking = False
        self.pods: list[int] = []  # the number of pods by index; 0 for rows without the label
        self._points: tuple[float, list[float]] = (0.0, [])  # the worth of a pod, and the points by index

    def index(self, nodes: Nodes) -> tuple[Any, int]:
        """Returns the index of each row, and the number of indices. The last index is that of nodes without the label,
        if there are any."""
        self._most, self._seen = self.counter.max_per_row, self.counter.version
        level = domains_of_label(HOSTNAME, nodes)
        self.lacking = bool(level.row_counts[0])
        self._missing = level.codes == 0 if self.lacking else None
        self.pods, self._points = [*range(self._most + 1), *([0] if self.lacking else [])], (0.0, [])
        index = np.zeros(nodes.width, np.intp)
        known = self.counter.rows[: nodes.width]
        index[: len(known)] = known
        if self._missing is not None:
            index[self._missing] = self._most + 1
        return index, len(self.pods)

    def steps(self) -> Steps | None:
        """Returns the changes of indices since the last call of `index` or `steps`. None if they are unknown or the
        number of indices changed."""
        if self._most != self.counter.max_per_row:
            return None
        steps, self._seen = self.counter.steps_since(self._seen), self.counter.version
        if steps and self._missing is not None:
            return [(row, by) for row, by in steps if not self._missing.item(row)]
        return steps

    def counts(self) -> Any:
        return np.array(self.pods)

    def points(self, worth: float) -> list[float]:
        """Returns the points by index for this worth of a pod. Cached, since the worth is mostly that of the last
        call."""
        if self._points[0] != worth:
            self._points = (worth, _points_of(self, worth))
        return self._points[1]

    def domains(self, scored: BoolColumn, number: int) -> int:
        """Returns the number of domains of the scored rows, of which there are `number`."""
        return number


class DomainConstraint:
    """A constraint over zones, racks or the like: a row's index is the code of its domain less one."""

    def __init__(self, domains: ConstraintDomains) -> None:
        self.constraint = domains.constraint
        self.counter = domains.counter
        self._domains = domains
        self._recounts = -1
        self._size = 0
        self.lacking = False

    def index(self, nodes: Nodes) -> tuple[Any, int]:
        self._recounts = self._domains.recounts
        level = domains_of_label(self.constraint.topology, nodes)
        index, last = level.codes - 1, level.size - 1
        self.lacking = bool(level.row_counts[0])
        self._size = last + self.lacking
        if self.lacking:
            index[level.codes == 0] = last
        return index, self._size

    def steps(self) -> Steps | None:
        return _NO_STEPS if self._recounts == self._domains.recounts else None

    @property
    def pods(self) -> list[int]:
        pods: list[int] = self.counts().tolist()
        return pods

    def counts(self) -> Any:
        """Returns `pods` as a column. With many combinations lists would be slow."""
        return self._domains.padded[1 : 1 + self._size]

    def points(self, worth: float) -> list[float]:
        return _points_of(self, worth)

    def domains(self, scored: BoolColumn, number: int) -> int:
        return self._domains.in_use(scored, number)


def _points_of(part: HostnameConstraint | DomainConstraint, worth: float) -> list[float]:
    """Returns the points by index. More pods in a domain are more points."""
    base = part.constraint.max_skew - 1.0
    points = [pods * worth + base for pods in part.pods]
    if part.lacking:
        points[-1] = 0.0
    return points


class SoftSpreadScores:
    """The scores of all soft constraints of a class, shared by all classes with the same constraints."""

    def __init__(self, parts: list[HostnameConstraint | DomainConstraint], all_labels: bool) -> None:
        self.counters = list({id(part.counter): part.counter for part in parts}.values())  # mostly one for all
        self._parts = parts
        self._all_labels = all_labels
        self._mark = -1
        self._codes: RowCodes | None = None  # None: too many combinations for codes, so points are by row
        self._strides: list[int] = []  # by constraint: the change of the code when its index grows by one
        # By constraint and combination: the index, and the points that do not depend on pods.
        self._indices: Any = None
        self._bases: Any = None
        self._labelled: Any = None  # rows with all labels; None if all have them or none is needed
        self._ignored: Any = None  # combinations in which a label is missing; None if no row has one
        self._every: list[float] | None = None  # the worth of a pod by constraint, if all rows are scored

    def score(self, nodes: Nodes, pod: PodClass) -> IntColumn | CodedScores:
        """Returns the current raw scores for one of the classes. The caller has refreshed the domains."""
        mark = nodes.columns.node_changes.mark
        if mark != self._mark or not self._step(pod):
            self._mark = mark
            self._recode(Nodes(nodes.columns))
        worths = self._worths(nodes.feasible if self._labelled is None else nodes.feasible & self._labelled)
        codes = self._codes
        raw: IntColumn = (
            self._few_points(worths) if codes is not None and len(codes.rows) <= _PLAIN else self._points(worths)
        )
        if self._ignored is not None:
            raw[self._ignored] = IGNORED
        return raw[nodes.where] if codes is None else codes.as_scores(raw, nodes, pod)

    def _worths(self, scored: BoolColumn) -> list[float]:
        """Returns the worth of a pod by constraint: more for a topology with more domains."""
        every = len(scored) > 0 and scored.item(scored.argmin())
        if every and self._every is not None:
            return self._every
        number = int(np.count_nonzero(scored))
        worths = [math.log(part.domains(scored, number) + 2) for part in self._parts]
        self._every = worths if every else self._every
        return worths

    def _points(self, worths: list[float]) -> Any:
        """Returns the raw scores by combination, or by row without codes. More pods in a domain are more points."""
        several = zip(self._parts, self._indices, self._bases, worths, strict=True)
        points = [part.counts().take(index) * worth + base for part, index, base, worth in several]
        return (functools.reduce(np.add, points) + 0.5).astype(np.int64)

    def _few_points(self, worths: list[float]) -> Any:
        """Returns the same as `_points` for few combinations. NumPy's overhead costs several times as much as plain
        numbers."""
        total: list[float] = []
        for part, worth in zip(self._parts, worths, strict=True):
            points = part.points(worth)
            total = [some + more for some in total for more in points] if total else points
        return np.array([int(points + 0.5) for points in total])

    # --- codes --------------------------------------------------------------------------------------------------------

    def _recode(self, nodes: Nodes) -> None:
        indices, sizes = zip(*[part.index(nodes) for part in self._parts], strict=True)
        combinations, self._every = math.prod(sizes), None
        if combinations <= max(_FEW_COMBINATIONS, nodes.width):
            self._strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
            codes = sum([index * stride for index, stride in zip(indices, self._strides, strict=True)])
            self._codes = RowCodes(codes, combinations)
            every = np.arange(combinations)  # not `np.unravel_index`, which fails with more than 64 constraints
            self._indices = np.array(
                [every // stride % size for stride, size in zip(self._strides, sizes, strict=True)]
            )
        else:
            self._codes, self._indices = None, np.array(indices)
        with_labels = rows_with_keys([part.constraint for part in self._parts], nodes) if self._all_labels else None
        self._labelled = None if with_labels is None or with_labels.all() else with_labels
        lasts = [size - 1 if part.lacking else -1 for part, size in zip(self._parts, sizes, strict=True)]
        missing = self._indices == np.array(lasts)[:, None]
        self._ignored = None if self._labelled is None else _ignored(missing)
        skews = np.array([[part.constraint.max_skew] for part in self._parts])
        self._bases = np.where(missing, 0.0, skews - 1.0)

    def _step(self, pod: PodClass) -> bool:
        """Moves the codes by the pods added and removed since the last call. Returns False if codes must be made
        again."""
        if self._codes is None:
            return False
        moves: Steps = []
        for part, stride in zip(self._parts, self._strides, strict=True):
            steps = part.steps()
            if steps is None or len(steps) > _MAX_STEPS:
                return False
            if steps:
                moves += [(row, by * stride) for row, by in steps]
        return not moves or self._codes.move(moves, pod)


def _ignored(missing: Any) -> BoolColumn:
    """Returns the combinations in which the label of any constraint is missing."""
    ignored: BoolColumn = missing.any(axis=0)
    return ignored
