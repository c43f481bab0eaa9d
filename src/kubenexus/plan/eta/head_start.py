"""In a simulation: when the first job that does not fit is expected to start, on which rows, and what it leaves."""

import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kubenexus.plan.eta.queue_model import ModelJob, QueueModel, RunningJob, RunningPod
from kubenexus.plan.eta.row_capacity import RowCapacity
from kubenexus.plan.eta.row_choice import choose_rows
from kubenexus.plan.eta.simulation_work import END, TRIAL, SimulationWork

TRIALS_APART: Final = 8  # after a trial that failed, an eighth more pods have to end before the next one


class HeadStart:
    """The believed start of the first job, and what jobs that run longer may take on its rows."""

    def __init__(self, at: float, free: Any, cards: Any, rows: Sequence[int]) -> None:
        self.at = at
        self._rows = np.array(sorted(set(rows)), np.int64)
        self._free, self._cards = free, cards

    def limited(self, capacity: Any, kind: int, room: RowCapacity) -> Any:
        """Returns the capacity of a kind, on the rows of the first job only what that leaves."""
        rows = self._rows
        left = room.of_kind(kind, self._free[rows], self._cards[rows], rows)
        found = capacity.copy()
        found[rows] = np.minimum(found[rows], left)
        return found

    def took(self, pods: Iterable[RunningPod]) -> None:
        """Counts pods that run longer than until the first job starts."""
        for pod in pods:
            self._free[pod.row] -= pod.amounts
            for slot, share in pod.cards:
                self._cards[pod.row, slot] -= share


class _LaterRoom:
    """How many pods of one kind rows take after some pods have ended. Plain numbers: about 2 µs for each end."""

    def __init__(self, model: QueueModel, job: ModelJob, room: RowCapacity) -> None:
        members = job.members[0]
        self._room, self._kind, self._need = room, members.kind, members.need
        self._asks = [(i, int(amount)) for i, amount in enumerate(model.demand[members.kind].tolist()) if amount]
        self._number, self._share = int(model.card_number[members.kind]), int(model.card_share[members.kind])
        self._number = self._number if model.cards.size else 0
        self._open = model.open[members.kind]
        self._codes = model.levels[job.level] if job.level >= 0 else None
        self._rows: dict[int, tuple[list[int], list[int], int]] = {}
        sums = np.bincount(self._codes, weights=room.capacity[members.kind]) if self._codes is not None else [0.0]
        self._sums = [int(each) for each in sums]
        self._total = int(room.total[members.kind])

    def ends(self, pod: RunningPod) -> bool:
        """Counts the end of a pod. Returns whether there may be room for the job now: of its first kind there is."""
        row = pod.row
        if not self._open[row]:
            return False
        known = self._rows.get(row)
        if known is None:
            known = (
                self._room.free[row].tolist(),
                self._room.cards[row].tolist(),
                int(self._room.capacity[self._kind, row]),
            )
        free, cards, before = known
        for i, amount in enumerate(pod.amounts.tolist()):
            free[i] += amount
        for slot, share in pod.cards:
            cards[slot] += share
        now = min((free[i] // amount for i, amount in self._asks), default=1 << 31)
        if self._number:
            now = min(now, sum(each // self._share for each in cards) // self._number)
        now = max(now, 0)
        self._rows[row] = (free, cards, now)
        self._total += now - before
        if self._codes is None:
            return self._total >= self._need
        code = int(self._codes[row])
        self._sums[code] += now - before
        return code > 0 and self._sums[code] >= self._need


class BelievedEnds:
    """What runs, in the order in which the scheduler believes it to end. One change costs some microseconds."""

    def __init__(self, running: Mapping[int, RunningJob]) -> None:
        self._running = running  # by number; what is not there any more has ended
        self._ends: list[tuple[float, int]] = []

    def add(self, number: int, now: float) -> None:
        job = self._running[number]
        if job.believed < math.inf:
            insort(self._ends, (job.believed_end(now), number))

    def __call__(self, now: float) -> Iterator[tuple[float, RunningJob]]:
        """Yields the ends after `now`. What was believed to have ended by now is expected later."""
        passed = bisect_right(self._ends, (now, math.inf))
        late, self._ends = self._ends[:passed], self._ends[passed:]
        for _, number in late:
            if number in self._running:
                self.add(number, now)
        for at, number in self._ends:
            job = self._running.get(number)
            if job is not None:
                yield at, job


def head_start(
    model: QueueModel,
    job: ModelJob,
    ends: Iterable[tuple[float, RunningJob]],
    room: RowCapacity,
    work: SimulationWork,
) -> HeadStart | None:
    """Returns the believed start of a job that does not fit now; None if no believed ends make room for it, or if no
    work is left. Where the first kind of its members fits and another does not, trials become rare."""
    later, ended, next_trial = _LaterRoom(model, job, room), list[RunningPod](), 0
    may_fit, at = False, math.inf
    for at, each in ends:
        for pod in each.pods:
            ended.append(pod)
            may_fit |= later.ends(pod)
        work.spend(END * len(each.pods))
        if may_fit and len(ended) >= next_trial:
            found = _trial(at, model, job, room, ended, work)
            if found is not None or work.is_done:
                return found
            may_fit, next_trial = False, len(ended) + len(ended) // TRIALS_APART
    return _trial(at, model, job, room, ended, work) if may_fit else None


def _trial(
    at: float, model: QueueModel, job: ModelJob, room: RowCapacity, ended: list[RunningPod], work: SimulationWork
) -> HeadStart | None:
    """Returns the start of the job after these pods have ended, None if it does not fit."""
    free, cards = _after(ended, room)
    work.spend(TRIAL + len(ended), (1 + len(job.members)) * (free.size + cards.size))
    rows = _rows_of(model, job, room, free, cards)
    return _start(at, rows, free, cards, model) if rows else None


def _after(ended: Sequence[RunningPod], room: RowCapacity) -> tuple[Any, Any]:
    """Returns what is free by row, and of its cards, after pods have ended."""
    free, cards = room.free.copy(), room.cards.copy()
    np.add.at(free, [pod.row for pod in ended], np.array([pod.amounts for pod in ended]))
    for pod in ended:
        for slot, share in pod.cards:
            cards[pod.row, slot] += share
    return free, cards


def _start(at: float, rows: list[tuple[int, int, int]], free: Any, cards: Any, model: QueueModel) -> HeadStart:
    """Returns the start, with what is left on the rows beside the job."""
    for row, kind, count in rows:
        free[row] -= model.demand[kind] * count
        share, left = int(model.card_share[kind]), cards[row]
        for _ in range(count * int(model.card_number[kind]) if left.size else 0):
            slot = int(np.where(left >= share, left, np.iinfo(np.int64).max).argmin())
            left[slot] -= share
    return HeadStart(at, free, cards, [row for row, _, _ in rows])


def _rows_of(model: QueueModel, job: ModelJob, room: RowCapacity, free: Any, cards: Any) -> list[tuple[int, int, int]]:
    """Returns row, kind and number of the members with these amounts free; empty if they do not fit."""
    found: list[tuple[int, int, int]] = []
    codes = model.levels[job.level] if job.level >= 0 else None
    for members in job.members:
        rows = choose_rows(room.of_kind(members.kind, free, cards), members, codes)
        if not rows:
            return []
        for row, count in rows:
            found.append((row, members.kind, count))
            if len(job.members) > 1:
                free = free.copy()
                free[row] -= model.demand[members.kind] * count
        if codes is not None and len(job.members) > 1:
            codes = np.where(codes == codes[rows[0][0]], codes, 0)
    return found
