"""One gang's search for a site, in the way that suits what ties its members to each other."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from kubenexus.base.numbers import BoolColumn
from kubenexus.framework.bonds import Bond, Tie
from kubenexus.framework.decision import Certificate, Placement, Shortage
from kubenexus.framework.job import NOTHING, Job
from kubenexus.framework.profile import stands_in
from kubenexus.plan.gang.axes import Axis, by_value
from kubenexus.plan.gang.capacity import TOO_LARGE, TOPOLOGY, prospect
from kubenexus.plan.gang.crews import Crew
from kubenexus.plan.gang.even import Even
from kubenexus.plan.gang.ground import Budget, Plan
from kubenexus.plan.gang.limits import seat_cells, too_many_seats
from kubenexus.plan.gang.mixed import Mixed
from kubenexus.plan.gang.packings import Apart, Free, Jointly, Packing, Share
from kubenexus.plan.gang.search import Found, Search
from kubenexus.plan.gang.sites import Site, Sites
from kubenexus.plan.seat import Seat
from kubenexus.state.nodes import NodeColumns

_SITES = 12  # domains of a level that are tried where room alone does not tell
_LAST = 3  # domains of the outermost level that members are asked about one by one
_WIDE = 1 << 20  # cells of a table of domains by domains


class Outcome(msgspec.Struct, gc=False):
    """Placements for enough members, or a certificate; `refusal` is that of one member that found no node, `blamed` are
    the plugins that limit the members."""

    placements: tuple[Placement, ...] = ()
    certificate: Certificate | None = None
    refusal: Seat | None = None
    blamed: frozenset[str] = frozenset()


class Quest:
    """`axes` are the levels that it may choose from, the outermost last. `within`: a mask over the rows that may be
    chosen from, if not all may."""

    def __init__(
        self,
        job: Job,
        crews: list[Crew],
        axes: list[Axis],
        columns: NodeColumns,
        budget: Budget,
        within: BoolColumn | None = None,
    ) -> None:
        self._job, self._crews, self._axes, self._columns = job, crews, axes, columns
        self._budget = budget
        self._near = sorted({columns.row_of[name] for name in job.anchors if name in columns.row_of})
        self._rank = crews[0].member.table.rank
        outside = axes[-1].codes == 0
        self._outside = outside if within is None else outside | ~within
        for crew in crews if self._outside.any() else ():
            crew.room[self._outside] = 0

    # --- one crew -------------------------------------------------------------------------------------------------

    def filled(self, ties: list[Bond]) -> Outcome:
        """Members that can stand in for each other: counting is enough."""
        crew, axes = self._crews[0], self._axes
        packing = self._packing(crew, next((bond for bond in ties if bond.tie is not Tie.TOGETHER), None))
        if isinstance(packing, Even):
            axes = [axis for axis in axes[:-1] if not axis.hosts and packing.suits(axis, _WIDE)] + axes[-1:]
        sites = self._sites(packing, axes)
        widest = sites.widest()
        if widest.holds < self._job.minimum:
            return self._uneven(widest, packing) if isinstance(packing, Even) else self._narrow(widest, packing)
        members = min(crew.size, widest.holds)
        site = sites.tightest(members) or widest
        shares = packing.fill(site.rows, members, site.below)
        return Outcome(self._placed([shares]))

    def _narrow(self, site: Site, packing: Packing) -> Outcome:
        return self._refused(site, site.holds, [self._job.minimum - site.holds], packing.constraint)

    def _uneven(self, site: Site, packing: Even) -> Outcome:
        """Room for those who are missing is not enough: it has to be in the right domains of the label."""
        spots = packing.wanting(site.rows, self._job.minimum) if site.code else ()
        short = [sum(spot.members for spot in spots)]
        return self._refused(site, site.holds, short, packing.constraint, spread=packing.level, spots=spots)

    def _packing(self, crew: Crew, bond: Bond | None) -> Packing:
        if bond is None:
            return Free(crew.room, self._rank)
        domains = by_value(bond.topology, self._columns)
        if bond.tie is Tie.EVEN:
            return Even(crew.room, self._rank, domains, bond)
        return Apart(crew.room, self._rank, domains)

    # --- several crews --------------------------------------------------------------------------------------------

    def packed(self) -> Outcome:
        """Crews that share rows, with room as the only limit."""
        counts = [crew.size for crew in self._crews]
        mixed = Mixed(self._crews, self._columns, self._budget)
        jointly = Jointly([crew.room for crew in self._crews], counts)
        sites = self._sites(jointly, self._axes)
        best, where = Plan([[] for _ in counts], exhausted=True), sites.widest()
        self._budget.keep(2 * mixed.price(len(where.rows)))  # whatever the narrower sites take
        for site in sites.in_order(sum(counts), jointly.loose, _SITES):
            if site.axis is self._axes[-1]:
                self._budget.release()
            whole = mixed.all(site.rows, site.below)
            if whole is not None:
                return Outcome(self._placed(whole.shares))
        self._budget.release()
        for site in sites.outermost(_SITES):
            plan = mixed.most(site.rows, site.below)
            if plan.members > best.members or not best.members:
                best, where = plan, site
        if best.members >= self._job.minimum:
            return Outcome(self._placed(best.shares))
        behind = [count - sum(s.members for s in shares) for count, shares in zip(counts, best.shares, strict=True)]
        short = self._short(behind, best.members)
        return self._refused(where, best.members, short, exhausted=best.exhausted)

    # --- anything else --------------------------------------------------------------------------------------------

    def searched(self, search: Search) -> Outcome:
        """Members that have to be asked about one after the other."""
        counts = [crew.size for crew in self._crews]
        search.allow(self._affordable(), keep=sum(counts))
        # What a row holds now says little: a member may open it for the next.
        anywhere = Jointly([np.where(self._outside, 0, count) for count in counts], counts)
        sites = self._sites(anywhere, self._axes[1:])
        best, where = Found([]), sites.widest()
        for site in self._in_turn(search, sites.in_order(sum(counts), self._loose, _SITES)):
            found = search.place(self._crews, self._job.minimum, self._mask(site))
            if len(found.seats) > len(best.seats) or best.refusal is None:
                best, where = found, site
            if len(found.seats) == sum(counts):
                break
        if len(best.seats) >= self._job.minimum:
            return Outcome(tuple([seat.placement for seat in best.seats if seat.placement is not None]))
        fit, said = len(best.seats), "members limit each other"
        short = self._short(self._behind(best), fit)
        return self._refused(where, fit, short, said, exhausted=True, refusal=best.refusal)

    def _affordable(self) -> int:
        """How many seats the budget is enough for. Raises if these are fewer than the gang needs."""
        rows = self._columns.count
        price = max(seat_cells(crew.member.table.pod.signature, rows) for crew in self._crews)
        most = max(0, self._budget.left) // price
        if self._job.minimum > most:
            raise too_many_seats(self._job.minimum, most, rows)
        return most

    def _in_turn(self, search: Search, sites: list[Site]) -> Iterator[Site]:
        """One seat for each member is kept for the outermost domains, those with most room first: where members fit
        anywhere they fit there, and no gang is refused because its seats were spent on narrower ones."""
        last = 0
        for site in sites:
            if site.axis is self._axes[-1]:
                last += 1
                search.keep = 0
            if last <= _LAST and not search.spent:
                yield site

    def _loose(self, axis: Axis) -> Any:
        rooms = sum(np.minimum(crew.room, crew.size) for crew in self._crews)
        return -np.bincount(axis.codes, weights=rooms, minlength=axis.size)

    def _mask(self, site: Site) -> Any:
        """None if that is everywhere, which is quicker to look through."""
        mask = np.zeros(self._columns.size, np.bool_)
        mask[site.rows] = True
        mask &= ~self._outside
        return None if mask[self._columns.alive[: self._columns.size]].all() else mask

    def _behind(self, found: Found) -> list[int]:
        seated = {seat.placement.uid for seat in found.seats if seat.placement is not None}
        return [sum(pod.metadata.uid not in seated for pod in crew.pods) for crew in self._crews]

    # --- what comes of it -----------------------------------------------------------------------------------------

    def _sites(self, packing: Any, axes: list[Axis]) -> Sites:
        return Sites(packing, axes, self._rank, self._near)

    def _placed(self, shares: list[list[Share]]) -> tuple[Placement, ...]:
        names, placements = self._columns.names, list[Placement]()
        for crew, own in zip(self._crews, shares, strict=True):
            footprint, feasible = crew.member.table.pod.footprint, crew.member.table.feasible
            taken = [names[row] for row, members in own for _ in range(members)]
            placements += [
                # Without keywords, and without what no gang has: a thousand of them are most of what is left to do.
                Placement(pod.key, pod.metadata.uid, node, footprint, NOTHING, (), 0, None, feasible)
                for pod, node in zip(crew.pods, taken, strict=False)
            ]
        return tuple(placements)

    def _short(self, behind: list[int], fit: int) -> list[int]:
        """For how many of each crew room is missing, given how many of it found no place."""
        missing, short = self._job.minimum - fit, []
        for left in behind:
            short.append(min(left, missing))
            missing -= short[-1]
        return short

    def _refused(
        self, site: Site, fit: int, short: list[int], constraint: str = "", *, refusal: Seat | None = None, **more: Any
    ) -> Outcome:
        """`short`: for how many of each crew room is missing; `more` is said in the certificate, too."""
        outer = self._axes[-1]
        if outer.level and not outer.codes.any():
            unlabelled = Certificate(self._job.minimum, 0, outer.level, unlabelled=True)
            return Outcome(certificate=unlabelled, blamed=frozenset({TOPOLOGY}))
        lacking = dict[str, int]()
        for crew, number in zip(self._crews, short, strict=True):
            for resource, amount in crew.member.table.pod.demand.amounts:
                lacking[resource] = lacking.get(resource, 0) + number * amount
        shortages = tuple(Shortage(resource, amount) for resource, amount in lacking.items() if amount)
        name, needed = site.name if fit or more.get("spots") else "", self._job.minimum
        ahead = prospect(self._crews, needed, self._axes[-1], self._columns)
        more |= {"never": refusal is None and ahead.never, "endless": ahead.endless}
        constraint = constraint or (self._not_built() if more["never"] else "")
        certificate = Certificate(needed, fit, site.axis.level, name, shortages, constraint, **more)
        return Outcome(certificate=certificate, refusal=refusal, blamed=self._blamed(certificate.never))

    def _not_built(self) -> str:
        """What keeps members from nodes because its plugin is not built yet."""
        columns = (column for crew in self._crews for column in crew.member.table.filters)
        refusing = (c for c in columns if stands_in(c.plugin) and c.bits is not None)
        return next((column.reasons.reasons[0].text for column in refusing if column.reasons.reasons), "")

    def _blamed(self, never: bool) -> frozenset[str]:
        """Whose events may help."""
        if never:
            return frozenset({TOO_LARGE})
        limits = {TOPOLOGY} if self._axes[-1].level else set[str]()
        return frozenset(limits.union(*(crew.refusing for crew in self._crews)))
