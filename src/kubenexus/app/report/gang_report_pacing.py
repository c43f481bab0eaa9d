"""Decides which members of a gang get a report and when: a gang of N costs O(N) writes in all, and O(1) a minute.

Each member gets one short report of what its gang waits for, without numbers. The full sentence with numbers goes only
to the first member and to the PodGroup of the gang, at most once a minute. A new first member gets it at once, because
the reports of the others name it.

When the gang waits for something else, all members get a report: three times at once, since a gang is often completed
and then refused, and then after 1, 2, 4, ... 60 minutes.

If all members got every number, members that arrive one by one would cost N^2 writes, and one that comes and goes N
each time.
"""

import heapq
import math
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock
from kubenexus.framework.job import Job

MINUTE: Final = 60.0
UNPACED_CHANGES: Final = 3  # changes that are reported to all members at once
MAX_INTERVAL: Final = 3600.0  # seconds between two further changes; after a longer pause the count starts again
_FORGET: Final = 1024  # gangs that are remembered until those that are gone are removed


class LastReport(msgspec.Struct, frozen=True, gc=False):
    """The last report to a pod. For a member of a gang also what the gang waited for (`kind`), and whether the report
    had the full sentence."""

    uid: str
    sentence: str
    kind: str = ""
    full: bool = True


class _Gang(msgspec.Struct, gc=False):
    """The reports to one gang. `kind` is what the gang waits for, as last reported to all members; `changes` and
    `changed_at` are how often and when that changed. `unsettled_at` is when the gang last waited for something else.
    `full_report_at` is when the first member last got the full sentence."""

    kind: str
    changes: int = 0
    changed_at: float = -math.inf
    unsettled_at: float = -math.inf
    full_report_at: float = -math.inf

    @property
    def may_change(self) -> float:
        """Returns from when on all members may get a report of another kind."""
        further = self.changes - UNPACED_CHANGES
        return -math.inf if further < 0 else self.changed_at + min(MINUTE * 2.0 ** min(further, 10), MAX_INTERVAL)

    def change(self, kind: str, now: float) -> None:
        quiet = max(self.changed_at, self.unsettled_at) + MAX_INTERVAL < now
        self.kind, self.changes, self.changed_at = kind, 1 if quiet else self.changes + 1, now


class GangReportPacing:
    """Paces the reports to gangs for `PodReporter`, its only caller. `is_there` returns whether a job still waits, by
    key."""

    def __init__(self, clock: Clock, is_there: Callable[[str], bool]) -> None:
        self._clock, self._is_there = clock, is_there
        self._gangs: dict[str, _Gang] = {}
        self._max_gangs = _FORGET
        self._postponed: set[str] = set()  # keys of gangs with a postponed report
        self._order: list[tuple[float, str]] = []  # the same as a heap

    @property
    def due(self) -> float | None:
        """Returns when `take_due` will have a gang, None for never."""
        return self._order[0][0] if self._order else None

    def take_due(self) -> list[str]:
        """Returns the keys of gangs whose postponed reports may be made now. Each is returned once."""
        found, now = [], self._clock.now()
        while self._order and self._order[0][0] <= now:
            found.append(heapq.heappop(self._order)[1])
        self._postponed.difference_update(found)
        return found

    def members_to_report(
        self, job: Job, kind: str, sentence: str, last_report: Mapping[str, LastReport]
    ) -> list[tuple[Pod, bool]]:
        """Returns the members that get a report now, each with whether it is the full sentence. `kind` is what the gang
        waits for, independent of the numbers in `sentence`. `last_report` has the last report to each pod, by key."""
        now, gang, first = self._clock.now(), self._gang(job.key, kind), job.pods[0]
        changing = gang.kind != kind and gang.may_change <= now
        if changing:
            gang.change(kind, now)
        elif gang.kind != kind:
            gang.unsettled_at = now
            self._postpone(job.key, gang.may_change)
        last = last_report.get(first.key)
        in_full = changing or gang.full_report_at + MINUTE <= now or _is_new(first, last)
        if in_full:
            gang.full_report_at = now
        elif last is None or last.sentence != sentence:
            self._postpone(job.key, gang.full_report_at + MINUTE)
        chosen = [(first, True)] if in_full else []
        settled = gang.kind == kind
        for pod in job.pods[in_full:]:
            last = last_report.get(pod.key)
            if _is_new(pod, last) or (settled and last is not None and _outdated(last, kind, pod is first)):
                chosen.append((pod, False))
        return chosen

    def _gang(self, key: str, kind: str) -> _Gang:
        if len(self._gangs) > self._max_gangs:
            self._gangs = {key: gang for key, gang in self._gangs.items() if self._is_there(key)}
            self._max_gangs = 2 * len(self._gangs) + _FORGET
        return self._gangs.setdefault(key, _Gang(kind))

    def _postpone(self, key: str, when: float) -> None:
        if key not in self._postponed:
            self._postponed.add(key)
            heapq.heappush(self._order, (when, key))


def _is_new(pod: Pod, last_report: LastReport | None) -> bool:
    return last_report is None or last_report.uid != pod.metadata.uid


def _outdated(last_report: LastReport, kind: str, first: bool) -> bool:
    """Returns whether the last report was of another kind, or was a full sentence though another member is the first
    now."""
    return last_report.kind != kind or (last_report.full and not first)
