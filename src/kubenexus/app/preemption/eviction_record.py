"""The record of evictions: which pods were evicted for which job, so that no two jobs evict each other for ever.

Pods come back under other names and UIDs. So a victim is recorded by its unit: its gang, else its controller, else the
pod itself. The record has four rules:

- A job does not evict a unit again, before it has landed or the state of the cluster has changed.
- A job evicts no unit of its own priority from which evictions lead back to it: A for B, B for C, C for A.
- A job that evicted a pod begins no other preemption for `cooldown` seconds, unless it landed.
- Each time that evictions did not help, the job waits twice as long, up to an hour.

The record is bounded: the oldest entries are dropped. It is not persisted. After a restart that finds a preemption
under way, no job begins one for `cooldown` seconds.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

MAX_PAIRS: Final = 10_000
MAX_JOBS: Final = 10_000
MAX_SPARED: Final = 256  # pods that one job may not evict; a job that has more waits
LONGEST: Final = 3600.0  # seconds that a job is held back at most, and for which evictions are remembered
SPARED_SECONDS: Final = 60.0  # seconds for which a pod is spared whose budget, or this record, forbade its eviction
MAX_STEPS: Final = 1000  # units that the search for a cycle visits; beyond that the eviction is forbidden


class Eviction(msgspec.Struct, gc=False):
    """An eviction of `victim` for `job`. `state` is the state of the cluster then. `landed`: the job got its nodes."""

    job: str
    preemptor: str
    victim: str
    state: int
    at: float
    landed: bool = False


class HeldBack(msgspec.Struct, gc=False):
    """A job that begins no preemption before `until`. `failures` counts evictions in a row that did not help. `spared`
    are the pods by UID that it may not evict, and until when."""

    until: float = -math.inf
    failures: int = 0
    spared: dict[str, float] = msgspec.field(default_factory=dict)


class EvictionRecord:
    """The record of one process. Has no clock. `job` is a job's key, `preemptor` and `victim` are units."""

    def __init__(self) -> None:
        self._evictions: dict[tuple[str, str], Eviction] = {}  # by job and victim, the oldest first
        self._evicted_by: dict[str, dict[str, int]] = {}  # by preemptor and victim, how many evictions
        self._held_back: dict[str, HeldBack] = {}
        self._all_until = -math.inf

    def __len__(self) -> int:
        return len(self._evictions)

    # --- rules ----------------------------------------------------------------------------------------------------

    def rests_until(self, job: str, now: float) -> float:
        """Returns until when the job may begin no preemption; a time in the past if it may."""
        held_back = self._held_back.get(job)
        if held_back is None:
            return self._all_until
        full = len(self.spared(job, now)) >= MAX_SPARED
        return max(self._all_until, held_back.until, min(held_back.spared.values()) if full else -math.inf)

    def spared(self, job: str, now: float) -> frozenset[str]:
        """Returns the UIDs of pods that the job may not evict now."""
        held_back = self._held_back.get(job)
        if held_back is None or not held_back.spared:
            return frozenset()
        for uid in [uid for uid, until in held_back.spared.items() if until <= now]:
            del held_back.spared[uid]
        return frozenset(held_back.spared)

    def forbids(self, job: str, preemptor: str, victim: str, state: int, now: float, *, outranks: bool) -> bool:
        """Returns whether the job may not evict a unit. `outranks`: the job has a higher priority than the unit; then
        no chain of evictions leads back to it."""
        known = self._evictions.get((job, victim))
        if known is not None and not known.landed and known.state == state and known.at + LONGEST > now:
            return True
        return not outranks and self._leads_back(victim, preemptor, now)

    def _leads_back(self, victim: str, preemptor: str, now: float) -> bool:
        """Returns whether `preemptor` was evicted for `victim`, or for a unit that was evicted for it, and so on."""
        self._drop_old(now)
        visited, todo = {victim}, [victim]
        while todo:
            if len(visited) > MAX_STEPS:
                return True
            for unit in self._evicted_by.get(todo.pop(), ()):
                if unit == preemptor:
                    return True
                if unit not in visited:
                    visited.add(unit)
                    todo.append(unit)
        return False

    # --- events ---------------------------------------------------------------------------------------------------

    def evicted(self, job: str, preemptor: str, victim: str, state: int, now: float, cooldown: float) -> None:
        """Records an eviction, and starts the cooldown of the job."""
        self._remove((job, victim))
        self._evictions[job, victim] = Eviction(job, preemptor, victim, state, now)
        edges = self._evicted_by.setdefault(preemptor, {})
        edges[victim] = edges.get(victim, 0) + 1
        while len(self._evictions) > MAX_PAIRS:
            self._remove(next(iter(self._evictions)))
        held_back = self._of(job)
        held_back.until = max(held_back.until, now + cooldown)

    def landed(self, job: str, victims: Iterable[str]) -> None:
        """Records that a job got its nodes after these units were evicted for it: it is not held back any more."""
        for victim in victims:
            eviction = self._evictions.get((job, victim))
            if eviction is not None:
                eviction.landed = True
        self._held_back.pop(job, None)

    def failed(self, job: str, now: float, cooldown: float) -> None:
        """Records that evictions did not help a job. It waits twice as long as the last time."""
        held_back = self._of(job)
        held_back.failures += 1
        held_back.until = max(held_back.until, now + min(cooldown * 2.0 ** min(held_back.failures - 1, 30), LONGEST))

    def spare(self, job: str, uids: Iterable[str], now: float) -> None:
        """Records pods that the job may not evict for a while."""
        spared = self._of(job).spared
        for uid in uids:
            if len(spared) < MAX_SPARED:
                spared[uid] = now + SPARED_SECONDS

    def spare_none(self) -> None:
        """Ends the time for which pods are spared, since budgets allow more now."""
        for held_back in self._held_back.values():
            held_back.spared.clear()

    def forget(self, job: str) -> None:
        """Forgets a job that is gone. Its evictions are remembered: its pods may come back as another job."""
        self._held_back.pop(job, None)

    def restarted(self, now: float, cooldown: float) -> None:
        """Starts one cooldown for all jobs: an earlier process evicted pods, and its record is lost."""
        self._all_until = now + cooldown

    # --- bounds ---------------------------------------------------------------------------------------------------

    def _of(self, job: str) -> HeldBack:
        held_back = self._held_back.pop(job, None) or HeldBack()
        self._held_back[job] = held_back  # the last one now
        while len(self._held_back) > MAX_JOBS:
            del self._held_back[next(iter(self._held_back))]
        return held_back

    def _drop_old(self, now: float) -> None:
        while self._evictions:
            oldest = next(iter(self._evictions))
            if self._evictions[oldest].at + LONGEST > now:
                return
            self._remove(oldest)

    def _remove(self, key: tuple[str, str]) -> None:
        eviction = self._evictions.pop(key, None)
        if eviction is None:
            return
        edges = self._evicted_by[eviction.preemptor]
        edges[eviction.victim] -= 1
        if not edges[eviction.victim]:
            del edges[eviction.victim]
        if not edges:
            del self._evicted_by[eviction.preemptor]
