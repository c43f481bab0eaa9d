"""Finds a domain and nodes for one gang: by counting, by packing several classes, or member by member."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.base.errors import truncated
from kubenexus.framework.decision import MAX_NAMED, GangDiagnosis, PodPlacement, Shortage
from kubenexus.framework.extension_points import DescribesNeed
from kubenexus.framework.job import NO_ASSIGNMENT, Job
from kubenexus.framework.member_constraints import MemberConstraint, MemberRelation
from kubenexus.framework.plugin_results import call_plugin
from kubenexus.plan.gang.assign_members import MemberAssigner
from kubenexus.plan.gang.backtracking import BacktrackingSearch, SearchResult
from kubenexus.plan.gang.domain_choice import DomainCandidate, DomainChooser
from kubenexus.plan.gang.empty_capacity import TOO_LARGE, TOPOLOGY, empty_capacity, lasting_reasons, lasting_refusals
from kubenexus.plan.gang.gang_limits import placement_cells, too_many_placements
from kubenexus.plan.gang.member_classes import MemberClass, measures_nothing
from kubenexus.plan.gang.multi_class.packer import MultiClassPacker
from kubenexus.plan.gang.multi_class.packing_problem import PackingPlan, WorkBudget
from kubenexus.plan.gang.packing import AntiAffinityPacking, CombinedCapacity, Packing, RowShare, UnconstrainedPacking
from kubenexus.plan.gang.spread_packing import SpreadPacking
from kubenexus.plan.place_pod import PodResult
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.topology import TopologyDomains, domains_of_label
from kubenexus.state.view import Nodes

_MAX_DOMAINS = 12  # domains of a level that are tried where capacity alone does not decide
_MAX_OUTERMOST = 3  # domains of the outermost level that are searched member by member
_MAX_CELLS = 1 << 20  # cells of a table of domains by domains


class GangResult(msgspec.Struct, gc=False):
    """Placements for enough members, or a diagnosis.

    `refusal` is that of one member that found no node. `unschedulable_plugins` are the plugins that limit the members.
    """

    placements: tuple[PodPlacement, ...] = ()
    gang_diagnosis: GangDiagnosis | None = None
    refusal: PodResult | None = None
    unschedulable_plugins: frozenset[str] = frozenset()


class GangSolver:
    """Solves one gang. `levels` are the levels that it may choose from, the outermost last.

    `allowed_rows` is a mask over the rows that it may use; None: all.
    """

    def __init__(
        self,
        job: Job,
        member_classes: list[MemberClass],
        levels: list[TopologyDomains],
        columns: NodeColumns,
        budget: WorkBudget,
        assigner: MemberAssigner,
        *,
        allowed_rows: BoolColumn | None = None,
    ) -> None:
        self._job, self._member_classes, self._levels, self._columns = job, member_classes, levels, columns
        self._budget, self._assigner = budget, assigner
        self._near = list(job.bound_rows(columns.row_of))
        self._rank = member_classes[0].classified.table.rank
        outside = levels[-1].codes == 0
        self._outside = outside if allowed_rows is None else outside | ~allowed_rows
        for member_class in member_classes if self._outside.any() else ():
            member_class.capacity[self._outside] = 0

    # --- one class ------------------------------------------------------------------------------------------------

    def fill_one_class(self, ties: list[MemberConstraint]) -> GangResult:
        """Places members of one class, by counting. `ties` are their constraints besides affinity."""
        member_class, levels = self._member_classes[0], self._levels
        packing = self._packing(
            member_class,
            next((constraint for constraint in ties if constraint.relation is not MemberRelation.AFFINITY), None),
        )
        if isinstance(packing, SpreadPacking):
            levels = [
                level for level in levels[:-1] if not level.is_node_level and packing.suits(level, _MAX_CELLS)
            ] + levels[-1:]
        chooser = self._chooser(packing, levels)
        widest = chooser.largest()
        if widest.capacity < self._job.minimum:
            return (
                self._uneven(widest, packing) if isinstance(packing, SpreadPacking) else self._narrow(widest, packing)
            )
        members = min(member_class.size, widest.capacity)
        candidate = chooser.tightest(members) or widest
        shares = packing.fill(candidate.rows, members, candidate.below)
        return GangResult(self._placed([shares]))

    def _narrow(self, candidate: DomainCandidate, packing: Packing) -> GangResult:
        return self._refused(
            candidate, candidate.capacity, [self._job.minimum - candidate.capacity], packing.constraint
        )

    def _uneven(self, candidate: DomainCandidate, packing: SpreadPacking) -> GangResult:
        """Returns the refusal of a spread gang: the capacity has to be in certain domains of the label."""
        short_domains = packing.missing_capacity(candidate.rows, self._job.minimum) if candidate.code else ()
        short = [sum(shortage.members for shortage in short_domains)]
        return self._refused(
            candidate, candidate.capacity, short, packing.constraint, spread=packing.level, short_domains=short_domains
        )

    def _packing(self, member_class: MemberClass, constraint: MemberConstraint | None) -> Packing:
        if constraint is None:
            return UnconstrainedPacking(member_class.capacity, self._rank)
        domains = domains_of_label(constraint.topology, Nodes(self._columns))
        if constraint.relation is MemberRelation.SPREAD:
            return SpreadPacking(member_class.capacity, self._rank, domains, constraint)
        return AntiAffinityPacking(member_class.capacity, self._rank, domains)

    # --- several classes ------------------------------------------------------------------------------------------

    def pack_classes(self) -> GangResult:
        """Places members of several classes that share rows, with capacity as the only limit."""
        counts = [member_class.size for member_class in self._member_classes]
        packer = MultiClassPacker(self._member_classes, self._columns, self._budget)
        jointly = CombinedCapacity([member_class.capacity for member_class in self._member_classes], counts)
        chooser = self._chooser(jointly, self._levels)
        best, where = PackingPlan([[] for _ in counts], exhausted=True), chooser.largest()
        self._budget.keep(2 * packer.price(len(where.rows)))  # so that the narrower domains cannot spend it
        for candidate in chooser.in_order(sum(counts), jointly.loose, _MAX_DOMAINS):
            if candidate.level is self._levels[-1]:
                self._budget.release()
            whole = packer.place_all(candidate.rows, candidate.below)
            if whole is not None:
                return GangResult(self._placed(whole.shares))
        self._budget.release()
        for candidate in chooser.outermost(_MAX_DOMAINS):
            plan = packer.place_most(candidate.rows, candidate.below)
            if plan.members > best.members or not best.members:
                best, where = plan, candidate
        if best.members >= self._job.minimum:
            return GangResult(self._placed(best.shares))
        behind = [count - sum(s.members for s in shares) for count, shares in zip(counts, best.shares, strict=True)]
        short = self._short(behind, best.members)
        return self._refused(where, best.members, short, exhausted=best.exhausted)

    # --- member by member -----------------------------------------------------------------------------------------

    def search_members(self, search: BacktrackingSearch) -> GangResult:
        """Places members one after the other, where plugins have to be called again after each."""
        counts = [member_class.size for member_class in self._member_classes]
        search.allow(self._affordable(), keep=sum(counts))
        # The capacity of a row now is no bound: one member may make it feasible for the next.
        anywhere = CombinedCapacity([np.where(self._outside, 0, count) for count in counts], counts)
        chooser = self._chooser(anywhere, self._levels[1:])
        best, where = SearchResult([]), chooser.largest()
        for candidate in self._in_turn(search, chooser.in_order(sum(counts), self._loose, _MAX_DOMAINS)):
            found = search.place(self._member_classes, self._job.minimum, self._mask(candidate))
            if len(found.results) > len(best.results) or best.refusal is None:
                best, where = found, candidate
            if len(found.results) == sum(counts):
                break
        if len(best.results) >= self._job.minimum:
            return GangResult(tuple([result.placement for result in best.results if result.placement is not None]))
        fit, limit = len(best.results), "members limit each other"
        short = self._short(self._behind(best), fit)
        return self._refused(where, fit, short, limit, exhausted=True, refusal=best.refusal)

    def _affordable(self) -> int:
        """Returns how many pods the budget allows to place. Raises GangLimitError if the minimum is more."""
        rows = self._columns.count
        price = max(
            placement_cells(
                each.classified.table.pod.signature,
                rows,
                each.classified.table.profile_plugins.per_node,
                claims=bool(each.classified.pod.spec.resource_claims),
            )
            for each in self._member_classes
        )
        most = max(0, self._budget.left) // price
        if self._job.minimum > most:
            raise too_many_placements(self._job.minimum, most, rows)
        return most

    def _in_turn(self, search: BacktrackingSearch, candidates: list[DomainCandidate]) -> Iterator[DomainCandidate]:
        """Yields the candidates while the search has budget.

        It keeps one placement for each member for the outermost domains, those with most capacity first. A gang that
        fits anywhere fits there, so none is refused because narrower domains spent the budget.
        """
        last = 0
        for candidate in candidates:
            if candidate.level is self._levels[-1]:
                last += 1
                search.keep = 0
            if last <= _MAX_OUTERMOST and not search.spent:
                yield candidate

    def _loose(self, level: TopologyDomains) -> Any:
        capacities = sum(np.minimum(member_class.capacity, member_class.size) for member_class in self._member_classes)
        return -np.bincount(level.codes, weights=capacities, minlength=level.size)

    def _mask(self, candidate: DomainCandidate) -> Any:
        """Returns the rows of a candidate, or None for all rows, which is faster."""
        mask = np.zeros(self._columns.size, np.bool_)
        mask[candidate.rows] = True
        mask &= ~self._outside
        return None if mask[self._columns.alive[: self._columns.size]].all() else mask

    def _behind(self, found: SearchResult) -> list[int]:
        placed = {result.placement.uid for result in found.results if result.placement is not None}
        return [
            sum(pod.metadata.uid not in placed for pod in member_class.pods) for member_class in self._member_classes
        ]

    # --- results --------------------------------------------------------------------------------------------------

    def _chooser(self, packing: Any, levels: list[TopologyDomains]) -> DomainChooser:
        return DomainChooser(packing, levels, self._rank, self._near)

    def _placed(self, shares: list[list[RowShare]]) -> tuple[PodPlacement, ...]:
        """Returns the placements, with what each member takes. Raises NotAssignable."""
        names, placements = self._columns.names, list[PodPlacement]()
        assigned = self._assigner.assign(self._member_classes, shares)
        for i, (member_class, own) in enumerate(zip(self._member_classes, shares, strict=True)):
            footprint, feasible = (
                member_class.classified.table.pod.footprint,
                member_class.classified.table.feasible_count,
            )
            taken = [names[row] for row, members in own for _ in range(members)]
            given = (assigned[i] if assigned is not None else ()) or [NO_ASSIGNMENT] * len(taken)
            placements += [
                # Positional, for speed: making a thousand placements is most of the time that is left.
                PodPlacement(pod.key, pod.metadata.uid, node, footprint, assignment, (), 0, None, feasible)
                for pod, node, assignment in zip(member_class.pods, taken, given, strict=False)
            ]
        return tuple(placements)

    def _short(self, behind: list[int], fit: int) -> list[int]:
        """Returns for how many members of each class capacity is missing; `behind` are those that were not placed."""
        missing, short = self._job.minimum - fit, []
        for left in behind:
            short.append(min(left, missing))
            missing -= short[-1]
        return short

    def _refused(
        self,
        candidate: DomainCandidate,
        fit: int,
        short: list[int],
        constraint: str = "",
        *,
        refusal: PodResult | None = None,
        **more: Any,
    ) -> GangResult:
        """Returns the refusal. `short` is the result of `_short`; `more` are further fields of the diagnosis."""
        outer = self._levels[-1]
        if outer.level and not outer.codes.any():
            unlabelled = GangDiagnosis(self._job.minimum, 0, outer.level, unlabelled=True)
            return GangResult(gang_diagnosis=unlabelled, unschedulable_plugins=frozenset({TOPOLOGY}))
        lacking = dict[str, int]()
        for member_class, number in zip(self._member_classes, short, strict=True):
            for resource, amount in member_class.classified.table.pod.demand.amounts:
                lacking[resource] = lacking.get(resource, 0) + number * amount
        shortages = tuple(Shortage(resource, amount) for resource, amount in lacking.items() if amount)
        name, needed = candidate.name if fit or more.get("short_domains") else "", self._job.minimum
        empty = empty_capacity(self._member_classes, needed, self._levels[-1], self._columns)
        more |= {"exceeds_cluster": refusal is None and empty.never, "endless": empty.endless}
        more |= {"node_need": self._node_need(), "refused_nodes": self._refused_nodes(short)}
        gang_diagnosis = GangDiagnosis(needed, fit, candidate.level.level, name, shortages, constraint, **more)
        return GangResult(
            gang_diagnosis=gang_diagnosis,
            refusal=refusal,
            unschedulable_plugins=self._unschedulable_plugins(gang_diagnosis.exceeds_cluster),
        )

    def _refused_nodes(self, short: list[int]) -> tuple[tuple[str, int], ...]:
        """Returns why nodes do not count, with their number, for the first class that lacks capacity."""
        lacking = [each for each, number in zip(self._member_classes, short, strict=True) if number]
        first = (lacking or self._member_classes)[0]
        return tuple(sorted(lasting_reasons(first, self._columns).items()))

    def _node_need(self) -> str:
        """Returns what members need of one node, as their plugins describe it: `each member needs 4 free GPUs`."""
        needs: dict[str, int] = {}
        for member_class in self._member_classes:
            table = member_class.classified.table
            describing = [plugin for plugin in table.plugins.assigns if isinstance(plugin, DescribesNeed)]
            described = [call_plugin(plugin, plugin.node_need, table.pod) for plugin in describing]
            need = " and ".join(truncated(str(each)) for each in described if each)
            needs[need] = needs.get(need, 0) + 1
        if len(needs) == 1:
            (need,) = needs
            return f"each member needs {need}" if need else ""
        named = [need for need in needs if need]
        more = [f"{len(named) - MAX_NAMED} kinds of devices more"] if len(named) > MAX_NAMED else []
        return f"members need {', or '.join(named[:MAX_NAMED] + more)}" if named else ""

    def _unschedulable_plugins(self, never: bool) -> frozenset[str]:
        """Returns the plugins whose registered events may help."""
        if never:
            return frozenset({TOO_LARGE}.union(*(_refusing_for_good(each) for each in self._member_classes)))
        limits = {TOPOLOGY} if self._levels[-1].level else set[str]()
        return frozenset(limits.union(*(each.limiting_plugins(self._columns) for each in self._member_classes)))


def _refusing_for_good(member_class: MemberClass) -> set[str]:
    """Returns the plugins that refuse nodes even if these were empty, by what is known of them besides amounts."""
    table = member_class.classified.table
    return {
        column.plugin.name
        for column in table.filters
        if column.traits.usage and lasting_refusals(column).any() and measures_nothing(column.plugin, table.pod)
    }
