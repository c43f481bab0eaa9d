"""Compares expected starts with the truth: asks when a job arrives and has to wait, and looks when it started."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from kubenexus.plan.eta.queue_snapshot import QueueSnapshots
from kubenexus.plan.eta.start_ranges import StartRange, drawn_ranges, stretched
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.waiting_jobs import WaitingJob
from kubenexus.state.pods import PodRecord

MAX_JOBS: Final = 500  # of the queue


class StartRecord(NamedTuple):
    """What was expected of a job when it was asked for, and when it started (infinite: it has not)."""

    job: str
    asked: float
    place: int
    expected: StartRange
    started: float = math.inf

    @property
    def is_known(self) -> bool:
        return self.expected.late < math.inf

    @property
    def holds(self) -> bool:
        return self.expected.early <= self.started <= self.expected.late


def forecast_figures(records: Sequence[StartRecord]) -> dict[str, float]:
    """Returns the number of jobs that were asked about, of those with a range, the part of these that started in it,
    before and after it, and medians in seconds: how wide ranges were, how far starts were from `likely`, and how long
    jobs waited."""
    known = [each for each in records if each.is_known]
    found: dict[str, float] = {"asked": len(records), "known": len(known)}
    if not known:
        return found
    before = sum(each.started < each.expected.early for each in known)
    inside = sum(each.holds for each in known)
    return found | {
        "in_range": round(inside / len(known), 3),
        "before": round(before / len(known), 3),
        "after": round((len(known) - inside - before) / len(known), 3),
        "width": round(median(each.expected.late - each.expected.early for each in known), 1),
        "error": round(median(abs(each.started - each.expected.likely) for each in known), 1),
        "wait": round(median(each.started - each.asked for each in known), 1),
    }


class StartForecasts:
    """Asks about every `every`-th job that has to wait."""

    def __init__(self, cluster: ReplayCluster, every: int) -> None:
        self._cluster, self._every = cluster, every
        self._snapshots = QueueSnapshots({cluster.profile: cluster.planner}, self._gang_of)
        self._gangs: dict[str, str] = {}
        self._waited = 0
        self._open: dict[int, StartRecord] = {}
        self.records: list[StartRecord] = []

    def _gang_of(self, record: PodRecord) -> str:
        return self._gangs.get(record.uid, "")

    def ask(self, waiting: Sequence[WaitingJob], arrived: range, now: float) -> None:
        """Asks about jobs that have just arrived, by their numbers, and wait."""
        wanted = []
        for place, each in enumerate(waiting):
            if each.order in arrived:
                self._waited += 1
                if place < MAX_JOBS and self._waited % self._every == 0:
                    wanted.append((place, each))
        if not wanted:
            return
        jobs = [self._cluster.made(each.job) for each in waiting[:MAX_JOBS]]
        ends = self._cluster.ledger.nodes.pods.expected_ends
        ends.look_again(now)
        snapshot = self._snapshots.take(jobs, self._cluster.ledger.nodes, now)
        ranges, stretch = drawn_ranges(snapshot, now), ends.starts.stretch(now)
        for place, each in wanted:
            self._open[each.order] = StartRecord(each.job.name, now, place, stretched(ranges[place], stretch, now))
            ends.starts.expect(str(each.order), ranges[place], now)

    def started(self, waiting: WaitingJob, uids: Sequence[str], now: float) -> None:
        """Takes in the start of a job."""
        for uid in uids:
            self._gangs[uid] = waiting.job.name
        record = self._open.pop(waiting.order, None)
        if record is not None:
            self._cluster.ledger.nodes.pods.expected_ends.starts.started(str(waiting.order), now)
            self.records.append(record._replace(started=now))
