"""`decide(job, snapshot, now) -> Decision`: pure, deterministic, all or nothing.

Members are seated one after the other on a private attempt, so that each sees the ones before it; then everything is
taken back. Committing a decision is another step (`commit`). A single pod goes the same way: it is a job of one.
"""

from kubenexus.api.core import Pod
from kubenexus.cycle.bench import Bench
from kubenexus.framework.decision import Decision, Diagnosis, Placement
from kubenexus.framework.job import ALONE, Job, JobView
from kubenexus.framework.profile import Lineup
from kubenexus.framework.verdict import Code
from kubenexus.plan.seat import Seat, Usher
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, Stage, record_of
from kubenexus.state.snapshot import Snapshot, StaleSnapshot


class Planner:
    """One for each profile. Its only memory is the bench's cache, which changes no answer."""

    def __init__(self, lineup: Lineup, bench: Bench | None = None) -> None:
        self.lineup = lineup
        self.bench = bench or Bench(lineup)
        self._usher = Usher(self.bench)

    def decide(self, job: Job, snapshot: Snapshot, now: float) -> Decision:
        """As many members as fit if they are at least `job.minimum`; else none, with the first refusal's reasons.

        Called by the loop, the simulator, `explain` and tests. Changes nothing; `now` is the only clock it has.
        """
        if len(job.pods) < job.minimum:
            missing = f"{len(job.pods)} of at least {job.minimum} members exist"
            diagnosis = Diagnosis(snapshot.nodes.count, message=missing)
            return Decision(job.key, Code.PENDING, snapshot.generation, now, diagnosis=diagnosis)
        if len(job.pods) == 1:  # nobody after it has to see it: no need to write
            seat = self._usher.seat(job.pods[0], snapshot, ALONE)
            seated, refusal = ([seat], None) if seat.placement is not None else ([], seat)
        else:
            seated, refusal = self._seat_all(job, snapshot)
        return _decision(job, seated, refusal, snapshot.generation, now)

    def _seat_all(self, job: Job, snapshot: Snapshot) -> tuple[list[Seat], Seat | None]:
        seated: list[Seat] = []
        refusal: Seat | None = None
        with snapshot.attempt() as attempt:
            for i, pod in enumerate(job.pods):
                keys = frozenset(seat.placement.pod for seat in seated if seat.placement is not None)
                view = JobView(len(job.pods), tuple(seat.row for seat in seated), keys)
                seat = self._usher.seat(pod, snapshot, view)
                if seat.placement is not None:
                    seated.append(seat)
                    attempt.lay(seat.row, _member(pod, seat.placement))
                    continue
                refusal = refusal or seat
                if seat.code is Code.ERROR or len(seated) + len(job.pods) - i - 1 < job.minimum:
                    return [], seat if seat.code is Code.ERROR else refusal
        return seated, refusal


def _member(pod: Pod, placement: Placement) -> PodRecord:
    """A member as it would count on its node."""
    record = record_of(pod, placement.node, Stage.ASSUMED, placement.footprint)
    record.takes, record.picks = placement.assignment.takes, placement.assignment.volumes
    return record


def commit(decision: Decision, job: Job, ledger: Ledger, now: float) -> list[PodRecord]:
    """Every placement of the decision becomes Assumed, in one step. Called right after `decide`, before any other
    transition of the ledger: a decision on an older state is refused."""
    if decision.generation != ledger.generation:
        raise StaleSnapshot(f"decision of generation {decision.generation}, ledger at {ledger.generation}")
    pods = {pod.key: pod for pod in job.pods}
    with ledger.attempt() as attempt:
        for placement in decision.placements:
            given = placement.assignment
            attempt.place(pods[placement.pod], placement.node, placement.footprint, given.takes, given.volumes)
        return attempt.keep(now)


def _decision(job: Job, seated: list[Seat], refusal: Seat | None, generation: int, now: float) -> Decision:
    placements = tuple([seat.placement for seat in seated if seat.placement is not None])
    last = refusal or (seated[-1] if seated else None)
    if placements and len(placements) >= job.minimum:
        code, error = Code.SUCCESS, ""
    else:
        placements = ()
        code, error = (refusal.code, refusal.error) if refusal else (Code.SUCCESS, "")
    diagnosis = last.diagnosis if last else Diagnosis(nodes=0)
    return Decision(job.key, code, generation, now, placements, diagnosis, error)
