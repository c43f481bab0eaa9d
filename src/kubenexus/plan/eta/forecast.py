"""The answer to "when will my job run?": its place, the range of its expected start, and what that is based on."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubenexus.framework.job import Job
from kubenexus.plan.eta.queue_limits import QueueLimits
from kubenexus.plan.eta.queue_snapshot import ProfileParts, QueueSnapshot, QueueSnapshots
from kubenexus.plan.eta.start_ranges import StartRange, drawn_ranges, stretched
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.queues.queue_tree import QueueTree

MAX_JOBS: Final = 500  # of the queue that are simulated
MAX_LIMITED: Final = 4 * MAX_JOBS  # jobs beyond a limit that are looked at; the others count as held
NEVER: Final = StartRange(math.inf, math.inf, math.inf)


class WaitingEntry(NamedTuple):
    """A job in the queue. `held`: why it is not tried, however much is free. `refused`: it was tried and did not fit,
    and nothing is free for it but what is kept for others. `limit`: the limit of a queue that it is rejected for."""

    job: Job
    held: str = ""
    refused: bool = False
    limit: str = ""


class StartForecast(NamedTuple):
    """What is expected of one job. `place` counts from 1, 0 for a job that is not tried. Times are infinite where they
    are not known; `basis` says what they are based on, or why there is none. It names no object. `drawn`: the range as
    it was before it was stretched (`state.runtimes.start_outcomes`)."""

    place: int
    expected: StartRange = NEVER
    basis: str = ""
    drawn: StartRange = NEVER

    @property
    def is_known(self) -> bool:
        return self.expected.likely < math.inf


def forecast_starts(
    entries: Sequence[WaitingEntry],
    planners: Mapping[str, ProfileParts],
    columns: NodeColumns,
    now: float,
    queues: QueueTree | None = None,
) -> list[StartForecast]:
    """Returns the forecast of each job; `entries` are in the order of the queue. Jobs start within the limits of
    `queues`. Pure, and bounded by counts: some seconds for a long queue, so it is not called in a turn of the loop."""
    limits = QueueLimits(queues)
    entries = _with_limits(entries, limits)
    tried = [number for number, each in enumerate(entries) if not each.held]
    some = tried[:MAX_JOBS]
    snapshot = QueueSnapshots(planners).take([entries[number].job for number in some], columns, now, limits)
    ranges = iter(drawn_ranges(snapshot, now) if snapshot.model.jobs else ())
    stretch = columns.pods.expected_ends.starts.stretch(now)
    basis = running_basis(snapshot) + (f"; fitted to the last {stretch.starts} starts" if stretch.starts else "")
    places = {number: place for place, number in enumerate(tried, 1)}
    found = [StartForecast(0, basis=f"not capacity: {each.held}") for each in entries]
    for place, number in enumerate(some):
        if place in snapshot.left_out:
            found[number] = StartForecast(place + 1, basis=f"not known: {snapshot.left_out[place]}")
        else:
            drawn = next(ranges)
            forecast = _forecast(place + 1, stretched(drawn, stretch, now), entries[number], basis, now)
            found[number] = forecast._replace(drawn=drawn)
    last = min((found[number].expected.early for number in some[-1:]), default=math.inf)
    for number in tried[MAX_JOBS:]:
        text = (
            f"beyond the first {MAX_JOBS} jobs, which alone are simulated; the last of these is expected to start first"
        )
        found[number] = StartForecast(places[number], StartRange(last, math.inf, math.inf), text)
    return found


def _with_limits(entries: Sequence[WaitingEntry], limits: QueueLimits) -> list[WaitingEntry]:
    """Returns the jobs, and as held those that are rejected for another reason than use that is foreseen: what queues
    do not lend, for instance."""
    found, asked = list[WaitingEntry](), 0
    for each in entries:
        if each.limit and not each.held:
            asked += 1
            if asked > MAX_LIMITED or limits.allow(each.job):
                each = each._replace(held=each.limit)  # noqa: PLW2901
        found.append(each)
    return found


def _forecast(place: int, expected: StartRange, entry: WaitingEntry, basis: str, now: float) -> StartForecast:
    if expected.late <= now:
        text = "not capacity: by amounts of resources it fits now" if entry.refused else "it fits now"
        return StartForecast(place, NEVER if entry.refused else expected, text)
    if expected.likely == math.inf and entry.limit:
        return StartForecast(place, NEVER, f"not capacity: {entry.limit}")
    if expected.likely == math.inf:
        text = "not known: no node is large enough, pods without a known end hold what it needs, or it is too far away"
        return StartForecast(place, NEVER, text)
    return StartForecast(place, expected, f"{basis}; it waits for a limit of its queue" if entry.limit else basis)


def running_basis(snapshot: QueueSnapshot) -> str:
    """Returns what is known about the pods that run, as numbers."""
    declared = learned = typical = 0
    for each in snapshot.running:
        typical += each.is_typical
        declared += each.is_declared and not each.is_typical
        learned += not (each.is_declared or each.is_typical)
    parts = [
        f"{number} {text}"
        for number, text in (
            (declared, "with a declared runtime"),
            (learned, "with earlier runs"),
            (typical, "with neither, which count as others of the cluster"),
        )
        if number
    ]
    return f"jobs that run: {', '.join(parts)}" if parts else "nothing runs"
