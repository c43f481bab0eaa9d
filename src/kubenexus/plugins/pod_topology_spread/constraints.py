"""Parses topology spread constraints and counts the pods in the domains of each."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod, PodSpec, TopologySpreadConstraint
from kubenexus.api.keys import network
from kubenexus.api.node_selectors import node_selector_term, parse_required
from kubenexus.api.selectors import Operator, Requirement, Selector, compile_selector
from kubenexus.api.tolerations import untolerated
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.framework.member_constraints import MemberConstraint, MemberRelation
from kubenexus.plugins.label_rows import rows_matching
from kubenexus.state.affinity_terms import PodSelectorTerm
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.topology import TopologyDomains, domains_of_label
from kubenexus.state.view import Nodes

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME = network.HOSTNAME.key
_NOWHERE = Selector(nothing=True)
_FEW_DOMAINS = 64  # domains


class ParsedConstraint(msgspec.Struct, frozen=True, gc=False):
    """One constraint of a class. `counts_self`: whether the constraint counts the pod itself."""

    topology: str
    max_skew: int
    min_domains: int
    term: PodSelectorTerm
    counts_self: bool
    honors_affinity: bool
    honors_taints: bool

    def counts(self, pod: Pod) -> bool:
        """Returns whether the constraint counts this pod once the pod has a node."""
        term, meta = self.term, pod.metadata
        return meta.namespace in term.namespaces and not term.nominated_only and term.selector.matches(meta.labels)


def parse_constraint(
    spec: TopologySpreadConstraint, namespace: str, labels: dict[str, str], selector: Selector | None
) -> ParsedConstraint:
    """Returns the constraint for a pod with this namespace and these labels. A default constraint has no selector of
    its own and uses `selector`."""
    if selector is None:
        selector = _with_keys(compile_selector(spec.label_selector), spec.match_label_keys, labels)
    # Upstream, an empty selector counts no pods except those that are nominated to the node.
    everybody = not selector.requirements and not selector.nothing
    return ParsedConstraint(
        topology=spec.topology_key,
        max_skew=spec.max_skew,
        min_domains=1 if spec.min_domains is None else spec.min_domains,
        term=PodSelectorTerm(
            frozenset({namespace}), selector, _NOWHERE, skip_terminating=True, nominated_only=everybody
        ),
        counts_self=selector.matches(labels),
        honors_affinity=spec.node_affinity_policy == "Honor",
        honors_taints=spec.node_taints_policy == "Honor",
    )


def _with_keys(selector: Selector, keys: list[str], labels: dict[str, str]) -> Selector:
    """Returns the selector with `matchLabelKeys`: it also requires the pod's own values of these labels."""
    if selector.nothing:
        return selector
    more = tuple(Requirement(key, Operator.IN, (labels[key],)) for key in sorted(set(keys)) if key in labels)
    return Selector((*more, *selector.requirements)) if more else selector


def eligible_rows(constraint: ParsedConstraint, spec: PodSpec, nodes: Nodes) -> BoolColumn:
    """Returns the nodes whose pods the constraint counts: by default those that the pod's node affinity admits."""
    found: BoolColumn = nodes.alive.copy()
    if constraint.honors_affinity:
        found &= rows_matching(node_selector_term(spec.node_selector), nodes)
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        if affinity is not None and affinity.required is not None:
            terms = [rows_matching(term, nodes) for term in parse_required(affinity.required).terms]
            found &= np.logical_or.reduce(terms) if terms else False
    if constraint.honors_taints and nodes.has_taints:
        bad = [bool(untolerated(spec.tolerations, taints)) for taints in nodes.taint_sets]
        found &= ~np.array(bad)[nodes.taints]
    return found


def rows_with_keys(constraints: list[ParsedConstraint], nodes: Nodes) -> BoolColumn:
    """Returns the nodes that have the topology labels of all these constraints."""
    found: BoolColumn = np.ones(nodes.width, np.bool_)
    for topology in dict.fromkeys(constraint.topology for constraint in constraints):
        found &= nodes.label(topology)[0] != 0
    return found


class CountedRows:
    """The nodes whose pods the constraints of a class count: eligible nodes with the topology labels of `labels_of`.

    The rows are computed once for all constraints and kept until a node changes, since a pod may have hundreds of
    constraints.
    """

    def __init__(self, spec: PodSpec, labels_of: list[ParsedConstraint]) -> None:
        self._spec = spec
        self._labels_of = labels_of
        self._mark = -1
        self._rows: dict[tuple[bool, bool], BoolColumn] = {}

    def rows(self, constraint: ParsedConstraint, nodes: Nodes) -> BoolColumn:
        """Returns the rows that this constraint counts. Callers must not write into them."""
        if self._mark != nodes.columns.node_changes.mark:
            self._mark, self._rows = nodes.columns.node_changes.mark, {}
        kind = (constraint.honors_affinity, constraint.honors_taints)
        found = self._rows.get(kind)
        if found is None:
            found = eligible_rows(constraint, self._spec, nodes) & rows_with_keys(self._labels_of, nodes)
            self._rows[kind] = found
        return found


class ConstraintDomains:
    """The domains of one constraint, by code: `present` ones have nodes that count, and `counts` are their pods."""

    def __init__(self, constraint: ParsedConstraint, counter: PodCounter) -> None:
        self.constraint = constraint
        self.counter = counter
        self.present: BoolColumn = np.zeros(0, np.bool_)
        self.padded: IntColumn = np.zeros(1, np.int64)  # `counts` and one 0, for nodes in no domain
        self.counts: IntColumn = self.padded[:-1]
        self.recounts = 0
        self._every = 0  # the number of domains of all rows
        self._there: list[int] | None = None  # the codes of present domains, if there are few codes
        self._counted: BoolColumn = np.zeros(0, np.bool_)
        self._marks = (-1, -1)
        self._column: Any = None
        self._unlabelled = 0  # the code of the domain of nodes without the label
        self._level = TopologyDomains(constraint.topology, None, ())
        self._overfull: tuple[tuple[int, int], Any] = ((-1, -1), None)

    def refresh(self, counted: CountedRows, nodes: NodeColumns, all_keys: bool) -> None:
        """Updates `counts` by the pods added and removed since the last call. Counts again if a node changed or the
        log of pods does not reach that far back."""
        column = nodes.labels.column(self.constraint.topology)
        same = self._marks[0] == nodes.node_changes.mark and self._column is column
        if same and self._marks[1] == self.counter.version:
            return
        steps = self.counter.steps_since(self._marks[1]) if same else None
        self._column = column
        if steps is None:
            # Where nodes without the label count, they share a domain with nodes whose label is empty.
            self._unlabelled = 0 if all_keys else max(column.values.find(""), 0)
            self._recount(counted, Nodes(nodes))
        else:
            codes = column.codes
            for row, delta in steps:
                if self._counted.item(row):
                    self.counts[codes.item(row) or self._unlabelled] += delta
        self._marks = (nodes.node_changes.mark, self.counter.version)

    def _recount(self, counted: CountedRows, nodes: Nodes) -> None:
        self._level = domains_of_label(self.constraint.topology, nodes)
        codes, size = self._level.codes, self._level.size
        self._counted = counted.rows(self.constraint, nodes)
        rows = np.zeros(nodes.width, np.int64)
        known = min(len(self.counter.rows), nodes.width)
        rows[:known] = self.counter.rows[:known]
        there = self._domains(codes[self._counted])
        self.present = np.bincount(there, minlength=size) > 0
        self.padded = np.bincount(there, weights=rows[self._counted], minlength=size + 1).astype(np.int64)
        self.counts = self.padded[:-1]
        self.recounts += 1
        self._there = np.flatnonzero(self.present).tolist() if size <= _FEW_DOMAINS else None
        self._every = self._number(self._level.row_counts)

    def _domains(self, codes: Any) -> Any:
        return np.where(codes == 0, self._unlabelled, codes) if self._unlabelled else codes

    def in_use(self, scored: BoolColumn, number: int) -> int:
        """Returns the number of domains of the scored rows, of which there are `number`. Nodes without the label are
        in a domain as well."""
        if number == len(scored):
            return self._every
        codes, rows = self._level.codes, self._level.row_counts
        # Subtracted, since mostly few rows are not scored.
        return self._number(rows - np.bincount(codes[(~scored).nonzero()[0]], minlength=len(rows)))

    def _number(self, rows: Any) -> int:
        """Returns the number of domains, given the number of rows by code."""
        domains = int(np.count_nonzero(rows))
        # Nodes without the label and nodes whose label is empty share a domain.
        return domains - 1 if self._unlabelled and rows[0] and rows[self._unlabelled] else domains

    def member_constraint(self, plugin: str) -> MemberConstraint:
        """Returns the constraint on members of a gang that it counts, as of the last refresh."""
        wanted = self.constraint
        floor = int(np.count_nonzero(self.present)) < max(wanted.min_domains, 1)
        return MemberConstraint(
            MemberRelation.SPREAD, plugin, wanted.topology, self.counts, self.present, wanted.max_skew, floor
        )

    def violating_rows(self, nodes: Nodes) -> tuple[BoolColumn, BoolColumn | None]:
        """Returns the rows where one more pod exceeds the maximum skew, and those without the label (None: all have
        it)."""
        level = self._level if nodes.rows is None else domains_of_label(self.constraint.topology, nodes)
        codes = level.codes
        skewed = self.over_max_skew().take(codes)
        if not level.row_counts[0]:
            return skewed, None
        missing = codes == 0
        return skewed & ~missing, missing

    def over_max_skew(self) -> BoolColumn:
        """Returns for each domain whether one more pod there exceeds the maximum skew."""
        if self._overfull[0] != self._marks:
            self._overfull = (self._marks, self._skewed())
        found: BoolColumn = self._overfull[1]
        return found

    def _skewed(self) -> BoolColumn:
        wanted = self.constraint
        if self._there is not None:  # plain numbers: NumPy's overhead costs several times as much
            counts = self.counts.tolist()
            few = [counts[domain] for domain in self._there]
            most = wanted.max_skew - wanted.counts_self + (min(few) if len(few) >= max(wanted.min_domains, 1) else 0)
            return np.array([pods > most for pods in counts])
        there = self.counts[self.present]
        least = int(there.min()) if len(there) >= max(wanted.min_domains, 1) else 0
        return np.asarray(self.counts + int(wanted.counts_self) - least > wanted.max_skew)
