"""PodTopologySpread: spreads pods over zones, racks or nodes. Hard constraints refuse nodes, soft ones give points.

A pod without constraints gets the default ones. These count the pods that its services and its controller select.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Pod, PodSpec, TopologySpreadConstraint
from kubenexus.api.selectors import Operator, Requirement, Selector
from kubenexus.base.arrays import IntColumn
from kubenexus.base.errors import Malformed
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import CodedScores, Depends, custom_normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.member_constraints import MAX_PAIRS, MemberConstraint, MemberRelation
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.pod_topology_spread import hints
from kubenexus.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    ConstraintDomains,
    CountedRows,
    ParsedConstraint,
    parse_constraint,
)
from kubenexus.plugins.pod_topology_spread.scoring import (
    IGNORED,
    DomainConstraint,
    HostnameConstraint,
    SoftSpreadScores,
)
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_SYSTEM = [
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY
    ),
]
_encoder = msgspec.msgpack.Encoder()


def _least_and_most(raw: IntColumn) -> tuple[int, ...]:
    scored = raw[raw != IGNORED] if _some_ignored(raw) else raw
    return (scored.item(scored.argmin()), scored.item(scored.argmax())) if len(scored) else (0, 0)


def _turned(raw: Any, extremes: tuple[int, ...]) -> Any:
    """Maps raw scores to 0..100, fewer pods to more points. The least becomes 100, IGNORED becomes 0."""
    least, most = extremes
    points = 100 * (most + least - raw) // most if most else raw * 0 + 100
    return points * (raw != IGNORED) if _some_ignored(raw) else points


def _some_ignored(raw: IntColumn) -> bool:
    return len(raw) > 0 and raw.item(raw.argmin()) == IGNORED


def _few_turned(raw: list[int]) -> tuple[tuple[int, ...], list[int]]:
    if IGNORED in raw:
        extremes, points = _few_turned([each for each in raw if each != IGNORED])
        rest = iter(points)
        return extremes, [0 if each == IGNORED else next(rest) for each in raw]
    least, most = (min(raw), max(raw)) if raw else (0, 0)
    both = most + least
    return (least, most), [100 * (both - points) // most for points in raw] if most else [100] * len(raw)


class PodTopologySpread:
    name = "PodTopologySpread"
    reads = (
        "spec.topologySpreadConstraints",
        "spec.nodeSelector",
        "spec.affinity.nodeAffinity",
        "spec.tolerations",
    )
    depends = Depends.FEASIBLE
    normalize = custom_normalize(_least_and_most, _turned, shown=lambda raw: max(raw, 0), few=_few_turned)
    UNLABELLED = Reason(
        "node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE
    )
    SKEWED = Reason("node(s) didn't match pod topology spread constraints", Code.UNSCHEDULABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._system = (args.get("defaultingType") or "System") == "System"
        given = args.get("defaultConstraints") or []
        self.defaults = _SYSTEM if self._system else msgspec.convert(given, list[TopologySpreadConstraint])
        self.depends_on_owners = any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in self.defaults)

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        """Returns the namespace, the labels that the constraints name, and the selector of default constraints, or
        None for a pod that is not spread."""
        meta, constraints = pod.metadata, pod.spec.topology_spread_constraints
        if constraints:
            labels, asked = meta.labels, {}
            for constraint in constraints:
                for key in _keys(constraint):
                    if key in labels:
                        asked[key] = labels[key]
            return [meta.namespace, asked, None]
        if not self.defaults:
            return None
        belongs = nodes.default_selectors.of(pod)
        return None if belongs is None else [meta.namespace, belongs.labels, belongs.wanted]

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        plan = self._plan(pod, nodes)
        if point == "filter":
            if not plan.hard:
                return 0
            return nodes.node_changes.mark, *[domains.over_max_skew().tobytes() for domains in plan.hard_domains(nodes)]
        if plan.soft is None:
            return 0
        return nodes.node_changes.mark, *[counter.version for counter in plan.soft.counters]

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        try:
            return None if self._plan(pod, nodes.columns).hard else SKIP
        except Malformed as problem:
            return Verdict(Code.ERROR, (str(problem),))

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        refused = None
        for domains in self._plan(pod, nodes.columns).hard_domains(nodes.columns):
            skewed, missing = domains.violating_rows(nodes)
            if refused is not None:  # each row is rejected by its first failing constraint only
                skewed = skewed & ~refused
                missing = None if missing is None else missing & ~refused
            if missing is not None:
                verdict.reject(missing, self.UNLABELLED)
            verdict.reject(skewed, self.SKEWED)
            for more in (skewed, missing):
                refused = more if refused is None else refused if more is None else refused | more

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | CodedScores | Skip:
        leaning = self._plan(pod, nodes.columns).leaning(nodes.columns) if self.name in pod.signed else None
        return SKIP if leaning is None else leaning.score(nodes, pod)

    def member_constraints(self, pod: PodClass, peers: Sequence[Pod], nodes: NodeColumns) -> Sequence[MemberConstraint]:
        """Returns a constraint for each hard constraint that counts peers."""
        hard = self._plan(pod, nodes).hard_domains(nodes)
        if len(peers) > 1:
            many = len(hard) * len(peers) > MAX_PAIRS
            tied = many or any(domains.constraint.counts(peer) for domains in hard for peer in peers)
            return [MemberConstraint(MemberRelation.OTHER, self.name)] if tied else []
        return [
            domains.member_constraint(self.name)
            for domains in hard
            if any(domains.constraint.counts(peer) for peer in peers)
        ]

    def _plan(self, pod: PodClass, nodes: NodeColumns) -> "_Plan":
        return pod.cached("PodTopologySpread", lambda: self._shared_plan(pod, nodes))

    def _shared_plan(self, pod: PodClass, nodes: NodeColumns) -> "_Plan":
        spec, signed = pod.spec, pod.signed.get(self.name)
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        constraints = (spec.topology_spread_constraints, self.defaults, self._system)
        words = _encoder.encode((signed, *constraints, spec.node_selector, affinity, spec.tolerations))
        return nodes.shared_while_used(
            (self.name, words), lambda: _Plan(signed, spec, self.defaults, self._system, nodes)
        )

    events_to_register = (
        ClusterEventWithHint(
            EventResource.ASSIGNED_POD, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE, hints.pod_counted
        ),
        ClusterEventWithHint(
            EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION, hints.pod_differs
        ),
        ClusterEventWithHint(
            EventResource.NODE,
            ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT,
            hints.node_moved,
        ),
    )


class _Plan:
    """The constraints of a class with their counters: the hard ones, and the scores of the soft ones.

    Classes share one object unless they differ in what constraints depend on. Resource requests, for instance, do not
    matter.
    """

    def __init__(
        self, signed: Any, spec: PodSpec, defaults: list[TopologySpreadConstraint], system: bool, nodes: NodeColumns
    ) -> None:
        self.hard: list[ConstraintDomains] = []
        self._soft: list[ConstraintDomains] = []
        self._all_labels = bool(spec.topology_spread_constraints) or not system
        parts: list[HostnameConstraint | DomainConstraint] = []
        for constraint, hard in _parsed(signed, spec.topology_spread_constraints or defaults):
            domains = ConstraintDomains(constraint, nodes.pods.counter((constraint.term,)))
            if hard:
                self.hard.append(domains)
            elif constraint.topology == HOSTNAME:
                parts.append(HostnameConstraint(constraint, domains.counter))
            else:
                self._soft.append(domains)
                parts.append(DomainConstraint(domains))
        self._counted_hard = CountedRows(spec, [domains.constraint for domains in self.hard])
        self._counted_soft = CountedRows(spec, [part.constraint for part in parts] if self._all_labels else [])
        self.soft = SoftSpreadScores(parts, self._all_labels) if parts else None

    def hard_domains(self, nodes: NodeColumns) -> list[ConstraintDomains]:
        """Returns the domains of the hard constraints, up to date."""
        for domains in self.hard:
            domains.refresh(self._counted_hard, nodes, all_keys=True)
        return self.hard

    def leaning(self, nodes: NodeColumns) -> SoftSpreadScores | None:
        """Returns the scores of the soft constraints with their domains up to date, or None if there are none."""
        for domains in self._soft:
            domains.refresh(self._counted_soft, nodes, self._all_labels)
        return self.soft


def _parsed(signed: Any, constraints: list[TopologySpreadConstraint]) -> Iterator[tuple[ParsedConstraint, bool]]:
    """Yields each constraint, parsed, and whether it is hard."""
    if signed is None:
        return
    namespace, labels, wanted = signed
    selector = (
        None if wanted is None else Selector(tuple(Requirement(k, Operator(op), tuple(v)) for k, op, v in wanted))
    )
    for spec in constraints:
        yield parse_constraint(spec, namespace, labels, selector), spec.when_unsatisfiable == DO_NOT_SCHEDULE


def _keys(constraint: TopologySpreadConstraint) -> set[str]:
    """Returns the label keys of pods that the constraint names."""
    selector = constraint.label_selector
    keys = set() if selector is None else selector.keys()
    keys.update(constraint.match_label_keys)
    return keys
