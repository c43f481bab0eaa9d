"""PodTopologySpread: pods of a kind spread over zones, racks or nodes, by order (hard) or by preference (soft).

A pod without constraints of its own is spread by default ones, together with the pods that its services and its
controller select.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod, TopologySpreadConstraint
from kubenexus.api.selectors import Op, Requirement, Selector
from kubenexus.base.errors import Malformed
from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.framework.bonds import Bond, Tie
from kubenexus.framework.events import Action, Resource, Wake
from kubenexus.framework.job import JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Coded, Depends, own
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins import spread_hints
from kubenexus.plugins.spread import HARD, HOSTNAME, SOFT, Domains, labelled, parse
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_SYSTEM = [
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT),
]
_IGNORED = -1  # a node that lacks a topology label: 0 points, and no part in normalising


def _least_and_most(raw: IntColumn) -> tuple[int, ...]:
    scored = raw[raw != _IGNORED]
    return (int(scored.min()), int(scored.max())) if len(scored) else (0, 0)


def _turned(raw: Any, extremes: tuple[int, ...]) -> Any:
    """Few pods are good: the least becomes 100."""
    least, most = extremes
    points = 100 * (most + least - raw) // most if most else raw * 0 + 100
    return np.where(raw == _IGNORED, 0, points)


class PodTopologySpread:
    name = "PodTopologySpread"
    reads = (
        "spec.topologySpreadConstraints",
        "spec.nodeSelector",
        "spec.affinity.nodeAffinity",
        "spec.tolerations",
    )
    depends = Depends.FEASIBLE
    normalize = own(_least_and_most, _turned, shown=lambda raw: max(raw, 0))
    UNLABELLED = Reason(
        "node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE
    )
    SKEWED = Reason("node(s) didn't match pod topology spread constraints", Code.UNSCHEDULABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._system = (args.get("defaultingType") or "System") == "System"
        given = args.get("defaultConstraints") or []
        self.defaults = _SYSTEM if self._system else msgspec.convert(given, list[TopologySpreadConstraint])

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Namespace, the labels its constraints ask about, and what it is spread by where it has none of its own."""
        meta, constraints = pod.metadata, pod.spec.topology_spread_constraints
        if constraints:
            keys = {key for c in constraints for key in _keys(c)}
            return [meta.namespace, {key: meta.labels[key] for key in keys if key in meta.labels}, None]
        if not self.defaults:
            return None
        belongs = nodes.owners.of(pod)
        return None if belongs is None else [meta.namespace, belongs.labels, belongs.wanted]

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        plan = self._plan(pod, nodes)
        if point == "filter":
            if not plan.hard:
                return 0
            overfull = [domains.overfull().tobytes() for domains in plan.hard_domains(nodes)]
            return nodes.node_changes.mark, tuple(overfull)
        return nodes.node_changes.mark, tuple([domains.counter.version for domains in plan.soft])

    def prepare(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        try:
            return None if self._plan(pod, nodes.columns).hard else SKIP
        except Malformed as problem:
            return Verdict(Code.ERROR, (str(problem),))

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        refused = None
        for domains in self._plan(pod, nodes.columns).hard_domains(nodes.columns):
            codes = nodes.label(domains.constraint.topology)[0]
            missing, skewed = codes == 0, domains.overfull()[codes]
            if missing.any():
                skewed &= ~missing
            if refused is not None:  # only the first constraint that fails is reported
                missing, skewed = missing & ~refused, skewed & ~refused
            verdict.reject(missing, self.UNLABELLED)
            verdict.reject(skewed, self.SKEWED)
            refused = missing | skewed if refused is None else refused | missing | skewed

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | Coded | Skip:
        if self.name not in pod.signed or not (plan := self._plan(pod, nodes.columns)).soft:
            return SKIP
        scored: BoolColumn = nodes.feasible
        if plan.all_labels:
            scored = scored & labelled([domains.constraint for domains in plan.soft], Nodes(nodes.columns))
        pieces = [_points(domains, nodes, scored) for domains in plan.soft_domains(nodes.columns)]
        return _added(pieces, plan.all_labels, nodes)

    def bonds(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[Bond]:
        """Members whom a hard constraint of a member counts."""
        hard = self._plan(pod, nodes).hard_domains(nodes)
        counting = [domains for domains in hard if any(domains.constraint.counts(peer) for peer in peers)]
        return [domains.bond(self.name) if len(peers) == 1 else Bond(Tie.OTHER, self.name) for domains in counting]

    def _plan(self, pod: PodClass, nodes: NodeColumns) -> "_Plan":
        return pod.once("PodTopologySpread", lambda: _Plan(pod, nodes, self.defaults, self._system))

    wakes = (
        Wake(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE | Action.DELETE, spread_hints.pod_counted),
        Wake(Resource.TARGET_POD, Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION, spread_hints.pod_differs),
        Wake(
            Resource.NODE,
            Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
            spread_hints.node_moved,
        ),
    )


class _Plan:
    """A class's constraints, with their counters: the hard ones and the soft ones."""

    def __init__(
        self, pod: PodClass, nodes: NodeColumns, defaults: list[TopologySpreadConstraint], system: bool
    ) -> None:
        signed = pod.signed.get("PodTopologySpread")
        own_constraints = pod.spec.topology_spread_constraints
        self.all_labels = bool(own_constraints) or not system
        self._pod = pod
        self.hard: list[Domains] = []
        self.soft: list[Domains] = []
        if signed is None:
            return
        namespace, labels, wanted = signed
        selector = None if wanted is None else Selector(tuple(Requirement(k, Op(op), tuple(v)) for k, op, v in wanted))
        for spec in own_constraints or defaults:
            constraint = parse(spec, namespace, labels, selector)
            domains = Domains(constraint, nodes.pods.counter((constraint.term,)))
            (self.hard if spec.when_unsatisfiable == HARD else self.soft).append(domains)

    def hard_domains(self, nodes: NodeColumns) -> list[Domains]:
        return self._fresh(self.hard, nodes, all_labels=True)

    def soft_domains(self, nodes: NodeColumns) -> list[Domains]:
        return self._fresh(self.soft, nodes, self.all_labels)

    def _fresh(self, several: list[Domains], nodes: NodeColumns, all_labels: bool) -> list[Domains]:
        constraints = [domains.constraint for domains in several]
        for domains in several:
            domains.refresh(self._pod, nodes, constraints, all_labels)
        return several


class _Piece(msgspec.Struct, gc=False):
    """One constraint's part: `points[index[n]]` on row n; the last of the points is for nodes without the label."""

    index: Any
    points: Any


def _points(domains: Domains, nodes: Nodes, scored: BoolColumn) -> _Piece:
    """More pods in a node's domain are more points; domains of a topology with many values weigh more."""
    constraint, counter = domains.constraint, domains.counter
    codes, missing = domains.axis()
    if constraint.topology == HOSTNAME:
        index = _on_rows(counter.rows, nodes)
        size, counts = int(np.count_nonzero(scored)), np.arange(counter.most + 1)
    else:
        index, counts = codes[nodes.where], domains.counts
        size = domains.in_use(scored)
    points = np.zeros(len(counts) + 1)
    np.multiply(counts, math.log(size + 2), out=points[:-1])
    points[:-1] += float(constraint.max_skew - 1)
    if missing is not None:
        index = np.where(missing[nodes.where], len(points) - 1, index)
    return _Piece(index, points)


def _added(pieces: list[_Piece], all_labels: bool, nodes: Nodes) -> IntColumn | Coded:
    """All constraints together, for each combination of their points; there are few, however many nodes."""
    index, points = pieces[0].index, pieces[0].points
    for piece in pieces[1:]:
        index = index * len(piece.points)
        index += piece.index
        points = np.add.outer(points, piece.points).ravel()
    raw = np.floor(points + 0.5).astype(np.int64)
    if all_labels:
        raw[_ignored([len(piece.points) for piece in pieces])] = _IGNORED
    if len(raw) > max(1024, nodes.width):
        column: IntColumn = raw[index]
        return column
    return Coded(index if len(pieces) > 1 else index.copy(), raw)


def _ignored(sizes: list[int]) -> BoolColumn:
    """The combinations in which some constraint's label is missing."""
    ignored: BoolColumn = np.zeros(1, np.bool_)
    for size in sizes:
        ignored = np.logical_or.outer(ignored, np.arange(size) == size - 1).ravel()
    return ignored


def _on_rows(rows: IntColumn, nodes: Nodes) -> Any:
    size = nodes.columns.size
    if len(rows) < size:
        rows = np.concatenate([rows, np.zeros(size - len(rows), np.int64)])
    return rows[:size][nodes.where]


def _keys(constraint: TopologySpreadConstraint) -> set[str]:
    """The label keys a constraint asks about."""
    selector = constraint.label_selector
    asked = set(constraint.match_label_keys)
    if selector is not None:
        asked |= set(selector.match_labels) | {e.key for e in selector.match_expressions}
    return asked
