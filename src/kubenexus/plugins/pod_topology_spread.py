"""PodTopologySpread: pods of a kind spread over zones, racks or nodes, by order (hard) or by preference (soft).

A pod without constraints of its own is spread by default ones, together with the pods that its services and its
controller select.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod, TopologySpreadConstraint
from kubenexus.api.selectors import Op, Requirement, Selector
from kubenexus.base.errors import Malformed
from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.framework.job import JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import Depends, own
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
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
        self._defaults = _SYSTEM if self._system else msgspec.convert(given, list[TopologySpreadConstraint])

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Namespace, the labels its constraints ask about, and what it is spread by where it has none of its own."""
        meta, constraints = pod.metadata, pod.spec.topology_spread_constraints
        if constraints:
            keys = {key for c in constraints for key in _keys(c)}
            return [meta.namespace, {key: meta.labels[key] for key in keys if key in meta.labels}, None]
        if not self._defaults:
            return None
        selector = nodes.owners.selector_of(pod)
        if not selector.requirements:
            return None
        labels = {key: meta.labels[key] for key in selector.keys if key in meta.labels}
        return [meta.namespace, labels, [(r.key, r.op.value, r.values) for r in selector.requirements]]

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        plan = self._plan(pod, nodes)
        if point == "filter":
            return tuple([domains.overfull().tobytes() for domains in plan.hard_domains(nodes)])
        return nodes.node_changes.mark, tuple([domains.counter.version for domains in plan.soft])

    def prepare(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        try:
            return None if self._plan(pod, nodes.columns).hard else SKIP
        except Malformed as problem:
            return Verdict(Code.ERROR, (str(problem),))

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        refused: BoolColumn = np.zeros(nodes.width, np.bool_)
        for domains in self._plan(pod, nodes.columns).hard_domains(nodes.columns):
            codes = nodes.label(domains.constraint.topology)[0]
            missing, skewed = codes == 0, domains.overfull()[codes]
            verdict.reject(missing & ~refused, self.UNLABELLED)
            verdict.reject(skewed & ~missing & ~refused, self.SKEWED)
            refused |= missing | skewed

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | Skip:
        plan = self._plan(pod, nodes.columns)
        if not plan.soft:
            return SKIP
        everywhere = Nodes(nodes.columns)
        scored: BoolColumn = nodes.feasible
        has_labels = labelled([d.constraint for d in plan.soft], everywhere) if plan.all_labels else None
        if has_labels is not None:
            scored = scored & has_labels
        total = np.zeros(nodes.width)
        for domains in plan.soft_domains(nodes.columns):
            total += _points(domains, nodes, everywhere, scored)
        raw: IntColumn = np.floor(total + 0.5).astype(np.int64)
        if has_labels is not None:
            raw[~has_labels[nodes.where]] = _IGNORED
        return raw

    def _plan(self, pod: PodClass, nodes: NodeColumns) -> "_Plan":
        return pod.once("PodTopologySpread", lambda: _Plan(pod, nodes, self._defaults, self._system))


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


def _points(domains: Domains, nodes: Nodes, everywhere: Nodes, scored: BoolColumn) -> Any:
    """More pods in a node's domain are more points; domains of a topology with many values weigh more."""
    constraint, counter = domains.constraint, domains.counter
    codes = nodes.label(constraint.topology)[0]
    if constraint.topology == HOSTNAME:
        size, counts = int(np.count_nonzero(scored)), _on_rows(counter.rows, nodes)
    else:
        all_codes = everywhere.label(constraint.topology)[0]
        size, counts = int(np.count_nonzero(np.bincount(all_codes[scored]))), domains.counts[codes]
    points = counts * math.log(size + 2) + float(constraint.max_skew - 1)
    return np.where(codes != 0, points, 0.0)


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
