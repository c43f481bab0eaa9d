"""A whole gang at once: how many members each node can take, the site that holds them, the fewest nodes there; or why
not, with a certificate."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kubenexus.api.gangs.levels import LEVELS, Level
from kubenexus.cycle.bench import Bench
from kubenexus.framework.bonds import Tie
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.job import Job, JobView
from kubenexus.framework.verdict import Code
from kubenexus.plan.gang.axes import beside, levels_for
from kubenexus.plan.gang.crews import Crew, bonds, count_room, muster
from kubenexus.plan.gang.ground import Budget
from kubenexus.plan.gang.limits import LIMITS, MEMBERS, BeyondLimitError, too_many_members
from kubenexus.plan.gang.quest import Outcome, Quest
from kubenexus.plan.gang.search import FailedError, Search
from kubenexus.plan.seat import Seat, Usher
from kubenexus.state.pods import PodRecord
from kubenexus.state.snapshot import Snapshot


class GangPlanner:
    """One for each profile; keeps nothing between two gangs. `levels` from the inside out."""

    def __init__(self, bench: Bench, usher: Usher, levels: Sequence[Level] = LEVELS) -> None:
        self._bench, self._usher, self._levels = bench, usher, levels

    def plan(self, job: Job, snapshot: Snapshot, within: Any = None) -> Outcome:
        """Called by `Planner.decide`. The columns are as before when it returns. `within`: a mask over the rows it may
        choose from, if not from all."""
        try:
            return self._within_limits(job, snapshot, within)
        except BeyondLimitError as limit:
            diagnosis = Diagnosis(snapshot.nodes.count, refused_by=(LIMITS,), message=str(limit))
            return Outcome(refusal=Seat(Code.UNSCHEDULABLE, diagnosis))

    def _within_limits(self, job: Job, snapshot: Snapshot, within: Any) -> Outcome:
        """Of more members than one decision places the first ones: the others follow in the next."""
        if job.minimum > MEMBERS:
            raise too_many_members(job.minimum)
        if len(job.pods) > MEMBERS:
            job = msgspec.structs.replace(job, pods=job.pods[:MEMBERS])
        with snapshot.attempt() as attempt:
            promised: set[str] = set()
            for row, nominee in _waiting(job, snapshot):
                attempt.lay(row, nominee)  # room that was promised to others is not there
                promised.add(nominee.key)
            try:
                return self._plan(job, snapshot, within, frozenset(promised))
            except FailedError as failure:
                return Outcome(refusal=failure.seat)

    def _plan(self, job: Job, snapshot: Snapshot, within: Any, promised: frozenset[str]) -> Outcome:
        columns, budget = snapshot.nodes, Budget()
        crews = muster(job.pods, self._bench, columns, budget)
        failure = self._failure(crews, snapshot, promised) or self._hopeless(job, crews, snapshot, promised)
        if failure is not None:
            return Outcome(refusal=failure)
        ties = bonds(crews, columns)
        for crew in crews:
            count_room(crew, columns, freely={bond.plugin for bond in ties if bond.tie is Tie.EVEN})
        together = [bond.topology for bond in ties if bond.tie is Tie.TOGETHER]
        joined = beside(job, self._levels, columns)
        within = joined if within is None else within if joined is None else within & joined
        axes = levels_for(job.topology, together, self._levels, columns)
        quest = Quest(job, crews, axes, columns, budget, within)
        others = [bond for bond in ties if bond.tie is not Tie.TOGETHER]
        if len(others) > 1 or any(bond.tie is Tie.OTHER for bond in others):
            return quest.searched(Search(self._usher, snapshot, promised))
        return quest.packed() if len(crews) > 1 else quest.filled(others)

    def _failure(self, crews: Sequence[Crew], snapshot: Snapshot, promised: frozenset[str]) -> Seat | None:
        """A rule that fails for one member fails the gang: what it would have said is not known."""
        for crew in crews:
            table = crew.member.table
            if table.may_fail or table.failed is not None or crew.member.refused is not None:
                seat = self._usher.seat(crew.member.pod, snapshot, JobView(seated=promised))
                if seat.code is Code.ERROR:
                    return seat
        return None

    def _hopeless(self, job: Job, crews: Sequence[Crew], snapshot: Snapshot, promised: frozenset[str]) -> Seat | None:
        """Members that are refused whatever room there is, where too few others are left: what it is that refuses them
        is the gang's answer. It lacks no room, and none is kept for it."""
        refused = [crew for crew in crews if crew.member.refused is not None]
        if not refused or sum(crew.size for crew in crews) - sum(crew.size for crew in refused) >= job.minimum:
            return None
        return self._usher.seat(refused[0].member.pod, snapshot, JobView(seated=promised))


def _waiting(job: Job, snapshot: Snapshot) -> Iterator[tuple[int, PodRecord]]:
    """Pods nominated to a node, with its row, that no member may push aside."""
    waiting, rows = snapshot.nominees(), snapshot.nodes.row_of
    if not waiting:
        return
    members = {pod.metadata.uid for pod in job.pods}
    least = min(pod.spec.priority for pod in job.pods)
    for node, nominees in waiting.items():
        for nominee in nominees if node in rows else ():
            if nominee.priority >= least and nominee.uid not in members and nominee.key not in job.holes:
                yield rows[node], nominee
