"""Member by member, for gangs whose members limit each other in ways that only asking again can tell: affinity between
different pods, several spread constraints, volumes. Tries again with other choices, within a counted budget."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.errors import KubeNexusError
from kubenexus.framework.decision import Placement
from kubenexus.framework.job import JobView
from kubenexus.framework.verdict import Code
from kubenexus.plan.gang.crews import Crew
from kubenexus.plan.seat import Seat, Usher
from kubenexus.state.pods import PodRecord, Stage, record_of
from kubenexus.state.snapshot import Snapshot

_DEEPEST = 48  # members up to which choices are taken back one by one


Taken = tuple[tuple[int, int], ...]  # which crew sits on which row, sorted


class FailedError(KubeNexusError):
    """A rule failed for a member: nobody knows what it would have said, so the gang is not placed."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat.error)
        self.seat = seat


class Found(msgspec.Struct, gc=False):
    """Who sits where. `refusal` is that of the first member without a seat; `exhausted`: not everything was tried."""

    seats: list[Seat]
    refusal: Seat | None = None
    exhausted: bool = False


class Search:
    """For one decision. The columns are written to and restored. `promised` are nominated pods that count on their
    nodes already: nobody need make room for them once more."""

    def __init__(self, usher: Usher, snapshot: Snapshot, promised: frozenset[str] = frozenset()) -> None:
        self._usher, self._snapshot, self._promised = usher, snapshot, promised
        self._left = self.keep = 0
        self._followed = usher.of_job or bool(snapshot.nominees())  # does anybody ask where the others sit?

    def allow(self, seats: int, keep: int) -> None:
        """So many seats may be looked for, however often the search starts again; `keep` of them not yet."""
        self._left, self.keep = seats, keep

    @property
    def spent(self) -> bool:
        return self._left <= self.keep

    def place(self, crews: Sequence[Crew], minimum: int, within: Any) -> Found:
        """As many members as can be found seats for on the rows of `within` (None: on all); all, if some order does
        it."""
        best = Found([])
        orders = [list(crews), sorted(crews, key=lambda crew: int(np.count_nonzero(crew.room))), list(crews)[::-1]]
        for order in orders if len(crews) > 1 else orders[:1]:
            pods = [pod for crew in order for pod in crew.pods]
            found = self._greedy(pods, minimum, within)
            best = found if len(found.seats) > len(best.seats) or best.refusal is None else best
            if len(best.seats) == len(pods) or found.exhausted:
                return best
        rest = self._thorough(orders[1] if len(crews) > 1 else orders[0], within)
        return best if rest is None or not rest.seats else rest

    # --- straight on ----------------------------------------------------------------------------------------------

    def _greedy(self, pods: list[Pod], minimum: int, within: Any) -> Found:
        """Each takes the best seat there is when its turn comes; who finds none stays behind."""
        found = Found([])
        with self._snapshot.attempt() as attempt:
            for i, pod in enumerate(pods):
                if self.spent:
                    found.exhausted = True
                    break
                self._left -= 1
                seat = self._seat(pod, found.seats, len(pods), within)
                if seat.placement is not None:
                    found.seats.append(seat)
                    attempt.lay(seat.row, member_record(pod, seat.placement))
                    continue
                found.refusal = found.refusal or seat
                if len(found.seats) + len(pods) - i - 1 < minimum:
                    break
        return found

    # --- with second thoughts -------------------------------------------------------------------------------------

    def _thorough(self, crews: Sequence[Crew], within: Any) -> Found | None:
        """All members or none: where one finds no seat, those before it try their next best."""
        pods = [(i, pod) for i, crew in enumerate(crews) for pod in crew.pods]
        if len(pods) > _DEEPEST:
            return None
        seats: list[Seat] = []
        done = self._next(pods, seats, (), set(), within)
        return Found(seats) if done else None

    def _next(
        self,
        pods: list[tuple[int, Pod]],
        seats: list[Seat],
        taken: Taken,
        hopeless: set[Taken],
        within: Any,
    ) -> bool:
        if len(seats) == len(pods):
            return True
        crew, pod = pods[len(seats)]
        tried = np.ones(self._snapshot.nodes.size, np.bool_) if within is None else np.array(within, np.bool_)
        while not self.spent:
            self._left -= 1
            seat = self._seat(pod, seats, len(pods), tried)
            if seat.placement is None:
                break
            state = tuple(sorted((*taken, (crew, seat.row))))
            tried[seat.row] = False
            if state in hopeless:
                continue
            with self._snapshot.attempt() as attempt:
                attempt.lay(seat.row, member_record(pod, seat.placement))
                seats.append(seat)
                if self._next(pods, seats, state, hopeless, within):
                    return True
                seats.pop()
            hopeless.add(state)
        return False

    def _seat(self, pod: Pod, seats: list[Seat], size: int, within: Any) -> Seat:
        view = view_of(seats, size, self._promised) if self._followed else JobView(size)
        seat = self._usher.seat(pod, self._snapshot, view, within)
        if seat.code is Code.ERROR:
            raise FailedError(seat)
        return seat


def view_of(seats: list[Seat], size: int, promised: frozenset[str] = frozenset()) -> JobView:
    """What a rule may know of the members before this one; and who waits for a node no longer, besides them."""
    keys = promised.union(seat.placement.pod for seat in seats if seat.placement is not None)
    return JobView(size, tuple(seat.row for seat in seats), keys)


def member_record(pod: Pod, placement: Placement) -> PodRecord:
    """A member as it would count on its node."""
    record = record_of(pod, placement.node, Stage.ASSUMED, placement.footprint)
    record.takes, record.picks = placement.assignment.takes, placement.assignment.volumes
    return record
