"""Wishes about neighbours as points: where InterPodAffinity would rather have a pod.

Of few domains (zones) each has its points, and rows have the codes of their domains. Where nearly every row is a domain
of its own (hostnames), or several topologies meet, a row's code is what it has itself: a pod more or less changes the
codes of its domain's rows, and nothing else has to be worked out again.
"""

from typing import Any

import numpy as np

from kubenexus.base.numbers import IntColumn
from kubenexus.framework.points import Coded
from kubenexus.plugins.terms import Axis, axis
from kubenexus.state.counters import Counter, Steps
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

Wish = tuple[str, int, Counter]  # a topology, how much each pod nearby is worth, and where these pods are

_FEW_DOMAINS = 64
_MOST_POINTS = 4096  # between the best row and the worst
_MOST_STEPS = 32  # with more behind, it is quicker to start afresh


def few_domains(wishes: tuple[Wish, ...], nodes: NodeColumns) -> bool:
    """Whether domains can have points, rather than rows: then these follow nothing, and are added up each time."""
    topology = wishes[0][0]
    alike = all([other == topology for other, _, _ in wishes])  # noqa: C419
    return alike and len(nodes.labels.column(topology).values) <= _FEW_DOMAINS


def by_domain(wishes: tuple[Wish, ...], nodes: Nodes) -> Coded:
    """Wishes of one topology."""
    topology = wishes[0][0]
    points: Any = sum([weight * counter.domain(topology) for _, weight, counter in wishes])
    points[0] = 0  # nodes without the label are near nobody
    codes, rows = axis(topology, nodes)
    column = nodes.columns.labels.column(topology)
    return Coded(codes, points, (column, nodes.columns.node_changes.mark, nodes.rows is None), rows)


class Tally:
    """What wishes come to on each row; shared by all classes that wish the same.

    A row's code is its points above the lowest there may be. There is room at both ends for pods to come and go.
    """

    def __init__(self, wishes: tuple[Wish, ...]) -> None:
        self._wishes = wishes
        self._mark = -1
        self._seen: list[int] = []
        self._axes: list[Axis] = []
        self._raw: Any = None  # the points themselves, while they are too far apart for codes
        self._codes: Any = None
        self._points: Any = None  # of each code
        self._rows: Any = None  # how many rows have each code
        self._key = object()  # names the codes

    def score(self, nodes: Nodes) -> IntColumn | Coded:
        """Raw scores as of now."""
        columns = nodes.columns
        versions = [counter.version for _, _, counter in self._wishes]
        if self._mark != columns.node_changes.mark or (versions != self._seen and not self._step()):
            self._recount(Nodes(columns))
        self._mark, self._seen = columns.node_changes.mark, versions
        if self._codes is None:
            raw: IntColumn = self._raw[nodes.where]
            return raw
        if nodes.rows is None:
            return Coded(self._codes, self._points, self._key, self._rows)
        return Coded(self._codes[nodes.rows], self._points)

    def _recount(self, nodes: Nodes) -> None:
        self._axes = [axis(topology, nodes) for topology, _, _ in self._wishes]
        raw = np.zeros(nodes.width, np.int64)
        for (topology, weight, counter), (codes, _) in zip(self._wishes, self._axes, strict=True):
            points = weight * counter.domain(topology)
            points[0] = 0  # nodes without the label are near nobody
            raw += points.take(codes)
        self._key, self._codes, self._raw = object(), None, raw
        least, most = int(raw.min(initial=0)), int(raw.max(initial=0))
        if most - least <= _MOST_POINTS:
            margin = 8 + (most - least) // 4
            self._points = np.arange(least - margin, most + margin)
            self._codes, self._raw = raw - (least - margin), None
            self._rows = np.bincount(self._codes, minlength=len(self._points))

    def _step(self) -> bool:
        """Follow the pods that came or went; whether that could be done."""
        several = [counter.since(seen) for (_, _, counter), seen in zip(self._wishes, self._seen, strict=True)]
        known = [steps for steps in several if steps is not None]
        if self._codes is None or len(known) < len(several) or sum(map(len, known)) > _MOST_STEPS:
            return False
        # Tables hold on to the codes they were given: these are others.
        self._key, self._codes, self._rows = object(), self._codes.copy(), self._rows.copy()
        moves = zip(known, self._axes, self._wishes, strict=True)
        return all([self._moved(steps, each, weight) for steps, each, (_, weight, _) in moves])  # noqa: C419

    def _moved(self, steps: Steps, domains: Axis, weight: int) -> bool:
        """Whether the codes of all these had room to move."""
        for row, pods in steps:
            domain = domains.codes.item(row)
            if domain and domains.rows.item(domain) == 1:
                code = self._codes.item(row)
                after = code + pods * weight
                if not 0 <= after < len(self._points):
                    return False
                self._codes[row] = after
                self._rows[code] -= 1
                self._rows[after] += 1
            elif domain:
                self._codes[domains.codes == domain] += pods * weight
                if self._codes.min() < 0 or self._codes.max() >= len(self._points):
                    return False
                self._rows = np.bincount(self._codes, minlength=len(self._points))
        return True
