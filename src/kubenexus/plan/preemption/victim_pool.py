"""The pods that may go for one job, as columns: who they are, and which of them only go together."""

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.framework.decision import VictimCost
from kubenexus.framework.job import Job
from kubenexus.plan.preemption.policy import PreemptionPolicy
from kubenexus.plan.preemption.taken_back import TakenBack, TakenBackPods, take_back
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_kinds import BATCH, DRIVER, EXEMPT, MOVABLE, GangTable
from kubenexus.state.pods import PodRecord, endless
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.tenants import RANKS

# Seconds for which the driver of a gang that forms is no victim. Labels cost nothing: without an end a pod could call
# itself the driver of a gang that never forms.
DRIVER_GRACE: Final = 600.0
_FRACTIONS: Final = 1024.0  # of a second


class GangColumns(NamedTuple):
    """The gang of each slot, and by gang how many members may go without the others, and whether all may go."""

    gang: Any
    spare: Any
    whole: Any


class VictimPool:
    """Pods that may be victims, by index. Pods of a gang that has no spare members only go together, and then `level`
    is the highest priority among them.

        slots     of the pods' columns
        rows      of their nodes
        level     the highest priority that is hurt if this pod goes
        gang      the code of its gang, -1 without one
        jobs      a number that pods of one job share
        spare     by gang: how many members may go without the others
        whole     by gang: whether all members may go
    """

    def __init__(
        self,
        columns: NodeColumns,
        now: float,
        chosen: Any,
        level: Any,
        gangs: GangColumns,
        taken_back: TakenBack | None = None,
    ) -> None:
        gang, spare, whole = gangs
        self._columns, self._victims, self._now = columns, columns.pods.victims, now
        self.slots = np.flatnonzero(chosen)
        victims, every = self._victims, len(self.slots) == len(chosen)
        # Copies, since trials move pods to other slots. A plain one takes a quarter of the time of picking slots.
        columns_read = (columns.pods.placed[0], level, gang, victims.kind, victims.budget, victims.since)
        self.rows, self.level, self.gang, self.kind, self.budget, self._since = (
            column[: len(chosen)].copy() if every else column[self.slots] for column in columns_read
        )
        self.spare, self.whole = spare, whole
        self.jobs = np.where(self.gang >= 0, self.gang, len(spare) + self.slots)
        self._taken_back = (
            None if taken_back is None else TakenBackPods(taken_back, self.slots, self.rows, self.kind, columns)
        )
        self._members: dict[int, list[int]] = {}
        self._records: dict[int, PodRecord] = {}

    def __len__(self) -> int:
        return len(self.slots)

    def amounts(self, resource: str) -> Any:
        """Returns how much each pod frees of a resource, as floats."""
        return self._victims.kinds.amounts(resource)[self.kind]

    @cached_property
    def levels(self) -> list[int]:
        """The different levels, the lowest first."""
        if not len(self.level):
            return [0]
        low, high = int(self.level.min()), int(self.level.max())
        found: list[int] = [low] if low == high else np.unique(self.level).tolist()
        return found

    @cached_property
    def ranks(self) -> Any:
        """The rank of the tier of each pod's tenant."""
        return self._victims.kinds.ranks(self._columns.tenants)[self.kind]

    @cached_property
    def work(self) -> Any:
        """The seconds of work that each pod would lose, in multiples of 1/1024: sums are exact in any order."""
        return np.floor(np.maximum(self._now - self._since, 0.0) * _FRACTIONS) / _FRACTIONS

    def record(self, index: int) -> PodRecord:
        """Returns the record of a pod. First called before a transaction removes pods: that changes their slots."""
        known = self._records.get(index)
        if known is None:
            known = self._victims.records[int(self.slots[index])]
            assert known is not None, "a pod that counts on a row has a record"
            self._records[index] = known
        return known

    def on_row(self, row: int, level: int | None = None) -> list[int]:
        """Returns the pods of a row, up to a level."""
        there = self.rows == row
        if level is not None:
            there &= self.level <= level
        found: list[int] = np.flatnonzero(there).tolist()
        return found

    def members(self, gang: int) -> list[int]:
        """Returns the pods of a gang."""
        if gang not in self._members:
            self._members[gang] = np.flatnonzero(self.gang == gang).tolist()
        return self._members[gang]

    def closed(self, chosen: Iterable[int]) -> frozenset[int] | None:
        """Returns the pods with all others that have to go with them, or None if some of these may not."""
        found = set(chosen)
        taken: dict[int, int] = {}
        for index in found:
            gang = int(self.gang[index])
            if gang >= 0:
                taken[gang] = taken.get(gang, 0) + 1
        for gang, number in taken.items():
            if number > self.spare[gang]:
                if not self.whole[gang]:
                    return None
                found.update(self.members(gang))
        return frozenset(found)

    @property
    def takes_back(self) -> bool:
        """Whether some of these pods may go only because their queues borrow."""
        return self._taken_back is not None and bool(self._taken_back.pods.any())

    def keeps_guarantees(self, chosen: Iterable[int]) -> bool:
        """Whether all queues that pods are taken back from keep their guarantees without these pods."""
        return self._taken_back is None or self._taken_back.allows(chosen)

    def queues_taken_back(self, chosen: Iterable[int]) -> tuple[str, ...]:
        """Returns the queue of each of these pods that goes only because its queue borrows."""
        return () if self._taken_back is None else self._taken_back.queues(chosen)

    def violations(self, chosen: Iterable[int], allowed: Any) -> int:
        """Returns how many of these pods are more than their budgets allow."""
        taken: dict[int, int] = {}
        several = 0
        for index in chosen:
            code = int(self.budget[index])
            if code >= 0:
                taken[code] = taken.get(code, 0) + 1
            several += code < -1
        return several + sum(max(0, number - int(allowed[code])) for code, number in taken.items())

    def cost(self, chosen: frozenset[int], violations: int = 0) -> VictimCost:
        """Returns what the loss of these pods costs."""
        some = list(chosen)
        levels, jobs, ranks, work = (column[some].tolist() for column in (self.level, self.jobs, self.ranks, self.work))
        return VictimCost(violations, max(levels), len(set(jobs)), max(ranks), sum(work), len(some))


def victim_pool(
    job: Job,
    snapshot: Snapshot,
    policy: PreemptionPolicy,
    now: float,
    spared: Collection[str] = (),
    *,
    together: bool = False,
) -> VictimPool:
    """Returns the pods that may go for this job. `spared` are UIDs of pods that may not go for it now. `together`: of
    what is taken back, only pods that can all go without pushing a queue below its guarantee."""
    columns = snapshot.nodes
    pods, victims = columns.pods, columns.pods.victims
    pods.select_budgets()
    rows, priority, namespaces = pods.placed
    kind = victims.kind[: len(rows)]
    flags, gang = victims.kinds.flags[kind], victims.kinds.gang[kind]
    there = rows >= 0
    if policy.moves:
        chosen = there & _movable(job, columns, priority, kind, flags)
    else:
        chosen = there & _outranked(job, columns, policy, priority, kind, flags)
    taken_back: TakenBack | None = None
    if policy.reclaim and not policy.moves and snapshot.queues.is_active:
        taken_back = take_back(job, snapshot, there & ~chosen, together=together)
        if taken_back is not None:
            chosen |= taken_back.pods
    chosen &= (flags & EXEMPT) == 0
    for namespace in policy.protected_namespaces:
        code = pods.namespace_code(namespace)
        if code >= 0:
            chosen &= namespaces != code
    if policy.hard_budgets and len(victims.budgets):
        budget = victims.budget[: len(rows)]
        chosen &= (budget == -1) | ((budget >= 0) & (victims.budgets.allowed[np.maximum(budget, 0)] > 0))
    for uid in spared:
        slot = victims.slot_of.get(uid)
        if slot is not None:
            chosen[slot] = False
    gangs, none = victims.kinds.gangs, np.zeros(len(victims.kinds.gangs), np.int64)
    if not len(gangs.codes):
        return VictimPool(columns, now, chosen, priority, GangColumns(gang, none, none > 0), taken_back)
    gangs.refresh(snapshot.pod_groups)
    chosen &= gang != gangs.codes.get(job.key, -2)
    drivers = ((flags & DRIVER) > 0) & (now - victims.started[: len(rows)] < DRIVER_GRACE)
    found = _gang_columns(chosen, there, gang, gangs, drivers)
    return VictimPool(columns, now, chosen, _levels(chosen, priority, found), found, taken_back)


def _outranked(job: Job, columns: NodeColumns, policy: PreemptionPolicy, priority: Any, kind: Any, flags: Any) -> Any:
    """Returns which pods the job outranks."""
    least = min(pod.spec.priority for pod in job.pods)
    found = priority < least
    if policy.tier_preemption:
        own = min(RANKS[columns.tenants.of(pod).tier] for pod in job.pods)
        found |= (priority == least) & (columns.pods.victims.kinds.ranks(columns.tenants)[kind] < own)
    if policy.services_preempt_batch and all(endless(pod) for pod in job.pods):
        found |= (priority == least) & ((flags & BATCH) > 0)
    return found


def _movable(job: Job, columns: NodeColumns, priority: Any, kind: Any, flags: Any) -> Any:
    """Returns which pods may move for the job: preemptible ones of the same profile, of no more priority."""
    least = min(pod.spec.priority for pod in job.pods)
    movable = (flags & MOVABLE) > 0
    return movable & (priority <= least) & columns.pods.victims.kinds.of_scheduler(job.profile)[kind]


def _gang_columns(chosen: Any, there: Any, gang: Any, gangs: GangTable, drivers: Any) -> GangColumns:
    """Returns the gangs of pods, and takes out of `chosen` the drivers of gangs that form, and gangs of which some
    member may not go, unless members can be spared."""
    number, members = len(gangs), there & (gang >= 0)
    live = np.bincount(gang[members], minlength=number)
    minimum, together = gangs.minimum[:number], gangs.together[:number]
    chosen &= ~(drivers & (gang >= 0) & (live < minimum)[gang])
    spare = np.where(together, 0, np.maximum(live - minimum, 0))
    whole = np.bincount(gang[members & ~chosen], minlength=number) == 0
    chosen &= (gang < 0) | (whole | (spare > 0))[gang]
    return GangColumns(gang, spare, whole)


def _levels(chosen: Any, priority: Any, gangs: GangColumns) -> Any:
    """Returns the priority that is hurt if a pod goes: for gangs that only go as a whole the highest of all members."""
    gang = gangs.gang
    together = chosen & (gang >= 0) & (gangs.spare == 0)[gang]
    if not together.any():
        return priority
    highest = np.full(len(gangs.spare), np.iinfo(np.int64).min)
    np.maximum.at(highest, gang[together], priority[together])
    return np.where(together, highest[gang], priority)
