"""DynamicResources: places pods with device claims where their devices are, and gives them devices.

A claim that is allocated must be available on the node. A claim that is not gets devices there, by kube-scheduler's
search (`allocator`). Extended resources that a device class backs become a claim on nodes whose device plugins do not
offer them.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.resource_claim import ResourceClaimSpec
from kubenexus.api.node_selectors import parse_required
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import HIGHER_IS_BETTER, Depends
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment, JobView
from kubenexus.framework.object_names import claim_mark
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.dynamic_resources.claim_requests import MAX_TOGETHER, ClaimError, compile_claims
from kubenexus.plugins.dynamic_resources.extended_resources import extended_claim
from kubenexus.plugins.dynamic_resources.hints import claim_changed
from kubenexus.plugins.dynamic_resources.outcomes import ClaimOutcomes, Outcome, Rows, allocations_on_row
from kubenexus.plugins.dynamic_resources.pod_claims import ClaimState, PodClaims, pod_claims
from kubenexus.plugins.dynamic_resources.work import ROWS, WorkMeter
from kubenexus.plugins.label_rows import rows_matching
from kubenexus.state.claims.store import ClaimChoice, ClaimStore
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_ALTERNATIVES: Final = "DynamicResources alternatives"
OPTIONAL_OPERATIONS: Final = "DRAOptionalNodeOperations"


class DynamicResources:
    name = "DynamicResources"
    reads = ("spec.containers", "spec.initContainers")
    depends = Depends.NODE
    supports_one_node = True
    normalize = HIGHER_IS_BETTER
    default_score = 0
    NONE = Reason("cannot allocate all claims", Code.UNRESOLVABLE)
    AWAY = Reason("resourceclaim not available on the node", Code.UNRESOLVABLE)
    STALE = Reason("cannot schedule extended resource claim", Code.UNRESOLVABLE)
    NO_RESOURCE = Reason("cannot fit resource", Code.UNRESOLVABLE)
    LATER = Reason(
        "the devices have not been looked at yet: selectors or constraints of the claims tell too many nodes apart",
        Code.ERROR,
        unfinished=True,
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._meter = WorkMeter()

    def take_work(self) -> int:
        return self._meter.take() * ROWS

    # --- signature -------------------------------------------------------------------------------------------------

    def sign(self, pod: Pod, nodes: NodeColumns) -> PodClaims | None:
        return pod_claims(pod, nodes.claims)

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        if point == "score" and not self._has_alternatives(pod, nodes):
            return 0
        return nodes.node_changes.mark, nodes.claims.version, nodes.claims.changes.mark

    def held_bytes(self, pod: PodClass, nodes: NodeColumns) -> int:
        found: dict[Any, ClaimOutcomes | str] = pod.cached(self.name, dict)
        return sum(each.held_bytes for each in found.values() if isinstance(each, ClaimOutcomes))

    def touched_rows(self, pod: PodClass, nodes: NodeColumns, before: Any, after: Any) -> Any:
        if before is None or before[:2] != after[:2]:
            return None
        rows = nodes.claims.changes.rows_since(before[2])
        return None if rows is None else rows.tolist()

    # --- filter ----------------------------------------------------------------------------------------------------

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        claims = self._claims(pod)
        if claims is None:
            return SKIP
        if claims.problem:
            return Verdict(claims.code, (claims.problem,))
        return None if claims.claims or claims.stale or not self._all_offered(claims, nodes) else SKIP

    def _all_offered(self, claims: PodClaims, nodes: Nodes) -> bool:
        """Whether device plugins offer the extended resources of the pod on every node, so that none needs devices."""
        every = _as_column(nodes) if nodes.single else nodes
        return all(bool((every.alloc(name)[every.alive] > 0).all()) for name, _ in claims.resources)

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        claims = self._claims(pod)
        if claims is None:
            return
        if nodes.single:
            if claims.claims and claims.all_wanted and not claims.resources:
                self._filter_one(pod, claims, nodes, verdict)
                return
            nodes = _as_column(nodes)
        if claims.problem:  # `pre_filter` has rejected the pod, unless the configuration disabled it
            verdict.reject(nodes.alive, Reason(claims.problem, claims.code))
            return
        if claims.stale:
            verdict.reject(nodes.alive, self.STALE)
            return
        pending: BoolColumn = nodes.alive.copy()
        missing = self._missing(claims, nodes)
        verdict.reject(pending & missing, self.NO_RESOURCE)
        pending &= ~missing
        if claims.wanted or claims.resources:
            self._refuse_unallocated(pod, claims, nodes, verdict, pending)
        if claims.allocated:
            verdict.reject(pending & ~self._near(claims.allocated, nodes), self.AWAY)

    def _filter_one(self, pod: PodClass, claims: PodClaims, nodes: Any, verdict: NodeVerdict) -> None:
        """Does the same for a single row and claims that are all to be allocated."""
        outcomes = self._outcomes_for(pod, claims, (), nodes.columns)
        if isinstance(outcomes, str):
            verdict.reject(True, Reason(outcomes, Code.ERROR))
        elif outcomes is not None:
            refusal = outcomes.refusal(nodes.row, nodes.columns)
            if refusal is not None:
                verdict.reject(True, self._refusal(refusal))

    def _missing(self, claims: PodClaims, nodes: Nodes) -> BoolColumn:
        """Returns the rows that offer an extended resource neither by a device plugin nor by a device class."""
        found: BoolColumn = np.zeros(nodes.width, np.bool_)
        for name, _ in claims.resources:
            if name not in nodes.columns.claims.class_of_resource:
                found |= nodes.alloc(name) <= 0
        return found

    def _refuse_unallocated(
        self, pod: PodClass, claims: PodClaims, nodes: Nodes, verdict: NodeVerdict, pending: BoolColumn
    ) -> None:
        """Rejects rows that have no devices for a claim, and takes them out of `pending`."""
        rows = nodes.table_rows()
        for outcomes, where in self._outcomes_of_rows(pod, claims, np.flatnonzero(pending), nodes):
            if isinstance(outcomes, str):
                refused = [(np.arange(len(where)), Outcome(error=outcomes))]
            else:
                refused = list(outcomes.refusals(rows[where], nodes.columns))
            for positions, outcome in refused:
                mask = np.zeros(nodes.width, np.bool_)
                mask[where[positions]] = True
                verdict.reject(mask, self._refusal(outcome))
                pending &= ~mask

    def _refusal(self, outcome: Outcome) -> Reason:
        if outcome.error:
            return Reason(outcome.error, Code.ERROR)
        if outcome.later:
            return self.LATER
        return Reason(outcome.elsewhere, Code.UNRESOLVABLE) if outcome.elsewhere else self.NONE

    def _near(self, allocated: Sequence[ClaimState], nodes: Nodes) -> BoolColumn:
        """Returns the rows on which all of these claims are available."""
        found: BoolColumn = np.ones(nodes.width, np.bool_)
        for each in allocated:
            if each.failed:
                found[:] = False
            if each.selector is not None:
                reached: BoolColumn = np.zeros(nodes.width, np.bool_)
                for term in parse_required(each.selector).terms:
                    reached |= rows_matching(term, nodes)
                found &= reached
            if each.optional_operations:
                found &= nodes.declaring_features(frozenset((OPTIONAL_OPERATIONS,)))
        return found

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        claims = self._claims(pod)
        if claims is None:
            return NO_ASSIGNMENT
        choices = _shared_choices(claims, nodes.columns.claims)
        key, outcomes = self._outcomes(pod, claims, row, nodes.columns)
        if isinstance(outcomes, str):
            return Verdict(Code.ERROR, (outcomes,))
        if outcomes is None:
            return Assignment(claims=tuple(choices)) if choices else NO_ASSIGNMENT
        given = outcomes.allocations(row, nodes.columns)
        if isinstance(given, str):
            return Verdict(Code.ERROR if given else Code.UNRESOLVABLE, (given or self.NONE.text,))
        i = 0
        for each in claims.claims:
            if each.spec >= 0:
                choices.append(ClaimChoice(each.position, given[i]))
                i += 1
        if key:
            spec, mappings = extended_claim(pod.pod, key, nodes.columns.claims.class_of_resource)
            choices.append(ClaimChoice(-1, given[-1], spec, mappings))
        return Assignment(claims=tuple(choices))

    def assign_members(self, pod: PodClass, row: int, nodes: Nodes, members: int) -> list[Assignment] | Verdict:
        """Serves members whose extended resources a device plugin offers. Others are placed one by one."""
        claims = self._claims(pod)
        if claims is None or not (claims.claims or self._outcomes(pod, claims, row, nodes.columns)[0]):
            return [NO_ASSIGNMENT] * members
        return Verdict(Code.UNSCHEDULABLE, (self.NONE.text,))

    def assign_together(self, pods: Sequence[PodClass], row: int, nodes: Nodes) -> list[Assignment] | Verdict:
        """Allocates the claims of several members in one search, so that none takes the devices that only another can
        use. What members share, or have already, stays as it is."""
        store, specs = nodes.columns.claims, list[tuple[str, ResourceClaimSpec]]()
        choices: list[list[ClaimChoice]] = []
        places: list[tuple[int, int]] = []  # the pod of each claim, and its position there
        for i, pod in enumerate(pods):
            claims = self._claims(pod)
            if claims is None or claims.problem or claims.resources:
                return Verdict(Code.UNSCHEDULABLE, (self.NONE.text,))
            choices.append(_shared_choices(claims, store))
            for each in claims.wanted:
                spec = store.specs.get(each.spec)
                if spec is None:
                    return Verdict(Code.UNSCHEDULABLE, (self.NONE.text,))
                specs.append((claim_mark(each.position), spec))
                places.append((i, each.position))
        try:
            together = compile_claims(specs, store.classes, most=MAX_TOGETHER)
            given = allocations_on_row(together, row, nodes.columns, self._meter)
        except ClaimError as error:
            given = str(error)
        if isinstance(given, str):
            return Verdict(Code.UNSCHEDULABLE, (self.NONE.text,))
        for (i, position), allocation in zip(places, given, strict=True):
            choices[i].append(ClaimChoice(position, allocation))
        return [Assignment(claims=tuple(each)) for each in choices]

    def node_need(self, pod: PodClass) -> str:
        claims = self._claims(pod)
        return "free devices for its claims" if claims is not None and (claims.wanted or claims.resources) else ""

    # --- score -----------------------------------------------------------------------------------------------------

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        claims = self._claims(pod)
        if claims is None or not self._has_alternatives(pod, nodes.columns):
            return 0
        if nodes.single:
            column: Any = self.score(pod, _as_column(nodes), job)
            return int(column[0])
        fixed = sum(each.score for each in claims.allocated)
        scores: IntColumn = np.zeros(nodes.width, np.int64)
        rows = nodes.table_rows()
        for outcomes, where in self._outcomes_of_rows(pod, claims, np.flatnonzero(nodes.alive), nodes):
            if not isinstance(outcomes, str):
                scores[where] = fixed + outcomes.scores(rows[where], nodes.columns)
        return scores

    def _has_alternatives(self, pod: PodClass, nodes: NodeColumns) -> bool:
        """Whether the score can differ between nodes: only claims with alternatives are scored."""
        return pod.cached(_ALTERNATIVES, lambda: self._find_alternatives(pod, nodes))

    def _find_alternatives(self, pod: PodClass, nodes: NodeColumns) -> bool:
        claims = self._claims(pod)
        if claims is None or claims.problem or not (claims.wanted or claims.resources):
            return False
        specs = [nodes.claims.specs.get(each.spec) for each in claims.wanted]
        alternatives = any(each.first_available for spec in specs if spec for each in spec.devices.requests)
        return alternatives or any(each.score for each in claims.allocated)

    # --- outcomes --------------------------------------------------------------------------------------------------

    def _claims(self, pod: PodClass) -> PodClaims | None:
        signed: PodClaims | None = pod.signed.get(self.name)
        return signed

    def _outcomes_of_rows(
        self, pod: PodClass, claims: PodClaims, where: Rows, nodes: Nodes
    ) -> Iterator[tuple[ClaimOutcomes | str, Rows]]:
        """Yields outcomes with the rows of the view, of those in `where`, that have them. Rows differ in this only by
        the extended resources that device plugins offer there."""
        known = nodes.columns.claims.class_of_resource
        backed = [name for name, _ in claims.resources if name in known]
        if not backed:
            found = self._outcomes_for(pod, claims, (), nodes.columns)
            if found is not None:
                yield found, where
            return
        lacking = np.stack([nodes.alloc(name)[where] <= 0 for name in backed])
        different, which = np.unique(lacking, axis=1, return_inverse=True)
        for i, each in enumerate(different.T.tolist()):
            needed = tuple(name for name, lacks in zip(backed, each, strict=True) if lacks)
            found = self._outcomes_for(pod, claims, needed, nodes.columns)
            if found is not None:
                yield found, where[which == i]

    def _outcomes(
        self, pod: PodClass, claims: PodClaims, row: int, columns: NodeColumns
    ) -> tuple[tuple[str, ...], ClaimOutcomes | str | None]:
        """Returns the extended resources that need devices on a row, and the outcomes for these and the claims."""
        if not claims.resources:
            return (), self._outcomes_for(pod, claims, (), columns)
        offered, known = columns.resources, columns.claims.class_of_resource
        needed = tuple(
            name
            for name, _ in claims.resources
            if name in known and (name not in offered.index or offered.alloc[offered.index[name], row] <= 0)
        )
        return needed, self._outcomes_for(pod, claims, needed, columns)

    def _outcomes_for(
        self, pod: PodClass, claims: PodClaims, needed: tuple[str, ...], columns: NodeColumns
    ) -> ClaimOutcomes | str | None:
        """Returns the outcomes for the claims and for extended resources, or None if nothing is to be allocated."""
        cached: dict[Any, ClaimOutcomes | str] = pod.cached(self.name, dict)
        key = (needed, columns.claims.class_version)
        found = cached.get(key)
        if found is None:
            if not needed and not claims.any_wanted:
                return None
            if len(cached) > 16:
                cached.clear()
            found = cached[key] = self._compile(pod, claims, needed, columns)
        return found

    def _compile(
        self, pod: PodClass, claims: PodClaims, needed: tuple[str, ...], columns: NodeColumns
    ) -> ClaimOutcomes | str:
        store = columns.claims
        specs: list[tuple[str, ResourceClaimSpec]] = []
        for each in claims.wanted:
            spec = store.specs.get(each.spec)
            if spec is None:
                return "the resource claim is gone"
            specs.append((claim_mark(each.position), spec))
        if needed:
            specs.append((claim_mark(-1), extended_claim(pod.pod, needed, store.class_of_resource)[0]))
        try:
            return ClaimOutcomes(compile_claims(specs, store.classes), self._meter)
        except ClaimError as error:
            return str(error)

    events_to_register = (
        ClusterEventWithHint(
            EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        ),
        ClusterEventWithHint(
            EventResource.RESOURCE_CLAIM, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE, claim_changed
        ),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
        ClusterEventWithHint(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE),
        ClusterEventWithHint(EventResource.RESOURCE_SLICE, ActionType.ADD | ActionType.UPDATE),
        ClusterEventWithHint(EventResource.DEVICE_TAINT_RULE, ActionType.UPDATE | ActionType.DELETE),
    )


def _shared_choices(claims: PodClaims, store: ClaimStore) -> list[ClaimChoice]:
    """Returns the devices of claims that other members of the same gang bring."""
    found = []
    for each in claims.claims:
        if each.shared_with:
            found.append(ClaimChoice(each.position, store.pending[each.shared_with].allocation))  # noqa: PERF401
    return found


def _as_column(nodes: Any) -> Nodes:
    """Returns a view of a single row as one of columns."""
    found: Nodes = nodes.as_column()
    return found
