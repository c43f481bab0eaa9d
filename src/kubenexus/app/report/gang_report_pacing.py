"""Who of a gang is told what, and how often: so that a gang of N costs O(N) writes in all, and O(1) a minute.

Each member is told once what its gang waits for, in words without numbers. The whole sentence, with its numbers, goes
to the first member alone (and to the gang's PodGroup), again at most once a minute; to one that is new at once, since
the others name it as the one that says why. When the gang waits for something
else, all are told: three times at once, since a gang that is completed and then refused is no rarity, and then after
1, 2, 4, ... 60 minutes. If all were told each number, members that come one by one would cost N^2 writes, and one that
comes and goes N each time.
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
UNPACED_CHANGES: Final = 3  # changes that all members are told of at once
MAX_INTERVAL: Final = 3600.0  # seconds between two further ones; a gang that kept still for longer starts over
_FORGET: Final = 1024  # gangs that are remembered before it is worth looking for those that are gone


class LastReport(msgspec.Struct, frozen=True, gc=False):
    """What a pod was last told: of a gang's member also what its gang waited for, and whether it was told in full."""

    uid: str
    sentence: str
    kind: str = ""
    full: bool = True


class _Gang(msgspec.Struct, gc=False):
    """What all members were told last (`kind`), how often that changed and when; when the gang last waited for another
    thing than that; and when the first member was last told in full."""

    kind: str
    changes: int = 0
    changed: float = -math.inf
    restless: float = -math.inf
    told: float = -math.inf

    @property
    def may_change(self) -> float:
        """From when on the members may be told of something else."""
        further = self.changes - UNPACED_CHANGES
        return -math.inf if further < 0 else self.changed + min(MINUTE * 2.0 ** min(further, 10), MAX_INTERVAL)

    def change(self, kind: str, now: float) -> None:
        quiet = max(self.changed, self.restless) + MAX_INTERVAL < now
        self.kind, self.changes, self.changed = kind, 1 if quiet else self.changes + 1, now


class GangReportPacing:
    """Called by the herald alone. `is_there`: whether a job, by key, still waits."""

    def __init__(self, clock: Clock, is_there: Callable[[str], bool]) -> None:
        self._clock, self._is_there = clock, is_there
        self._gangs: dict[str, _Gang] = {}
        self._most = _FORGET
        self._later: set[str] = set()  # gangs of which something has yet to be told, by key
        self._order: list[tuple[float, str]] = []  # the same as a heap

    @property
    def due(self) -> float | None:
        return self._order[0][0] if self._order else None

    def take_due(self) -> list[str]:
        """The keys of gangs that may be told now what they could not be told before."""
        found, now = [], self._clock.now()
        while self._order and self._order[0][0] <= now:
            found.append(heapq.heappop(self._order)[1])
        self._later.difference_update(found)
        return found

    def members_to_report(
        self, job: Job, kind: str, sentence: str, last_report: Mapping[str, LastReport]
    ) -> list[tuple[Pod, bool]]:
        """The members to tell something now, each with whether in full. `kind` is what the gang waits for, whatever the
        numbers in the `sentence`; `last_report` what each pod was last told, by key."""
        now, gang, first = self._clock.now(), self._gang(job.key, kind), job.pods[0]
        changing = gang.kind != kind and gang.may_change <= now
        if changing:
            gang.change(kind, now)
        elif gang.kind != kind:
            gang.restless = now
            self._tell_later(job.key, gang.may_change)
        known = last_report.get(first.key)
        in_full = changing or gang.told + MINUTE <= now or _is_new(first, known)
        if in_full:
            gang.told = now
        elif known is None or known.sentence != sentence:
            self._tell_later(job.key, gang.told + MINUTE)
        chosen = [(first, True)] if in_full else []
        settled = gang.kind == kind
        for pod in job.pods[in_full:]:
            known = last_report.get(pod.key)
            if _is_new(pod, known) or (settled and known is not None and _outdated(known, kind, pod is first)):
                chosen.append((pod, False))
        return chosen

    def _gang(self, key: str, kind: str) -> _Gang:
        if len(self._gangs) > self._most:
            self._gangs = {key: gang for key, gang in self._gangs.items() if self._is_there(key)}
            self._most = 2 * len(self._gangs) + _FORGET
        return self._gangs.setdefault(key, _Gang(kind))

    def _tell_later(self, key: str, when: float) -> None:
        if key not in self._later:
            self._later.add(key)
            heapq.heappush(self._order, (when, key))


def _is_new(pod: Pod, last_report: LastReport | None) -> bool:
    return last_report is None or last_report.uid != pod.metadata.uid


def _outdated(last_report: LastReport, kind: str, first: bool) -> bool:
    """Whether it was told something else, or has the numbers though another is the first now."""
    return last_report.kind != kind or (last_report.full and not first)
