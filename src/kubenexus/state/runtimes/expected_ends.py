"""When the pods on nodes are expected to end, as a column by the pods' slots (`pod_columns`).

Pods without a declared or learned runtime have no expected end, and no job waits for them. Without any known runtime
the column is empty, and nothing reads it.
"""

import math
from typing import Any, Final

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.runtimes import WorkloadIdentity, declared_runtime, seconds_run, workload_identity
from kubenexus.base.arrays import grow
from kubenexus.state.pods import PodRecord, is_finished
from kubenexus.state.runtimes.estimate import RuntimeEstimate
from kubenexus.state.runtimes.memory import RuntimeMemory
from kubenexus.state.runtimes.start_outcomes import StartOutcomes
from kubenexus.state.runtimes.untried import untried_factors

MAX_LOOKS: Final = 1000  # pods without a known runtime that are looked at again at a time
MAX_OUTLIVED: Final = 1000  # pods that are newly found to outlive their runtime, at a time


class ExpectedEnds:
    """One entry for each pod that counts on a node: `runtime` in seconds, infinite if it is not known, and `since`:
    when it started or was placed. Only `PodColumns` adds and removes pods. `memory` has what earlier runs tell,
    `starts` what earlier forecasts do."""

    def __init__(self) -> None:
        self.memory, self.starts = RuntimeMemory(), StartOutcomes()
        self.runtime, self.since = np.full(64, np.inf), np.full(64, np.inf)
        self._next_count = np.ones(64)  # how many times its runtime a pod has run when it is next counted as late
        self._records: dict[int, PodRecord] = {}  # by slot: pods that may have a runtime
        self._unknown: dict[int, None] = {}  # slots of those whose runtime is not known
        self.known = 0  # pods whose runtime is known

    def grow(self, capacity: int) -> None:
        self.runtime, self.since = grow(self.runtime, capacity, np.inf), grow(self.since, capacity, np.inf)
        self._next_count = grow(self._next_count, capacity, 1.0)

    def add(self, slot: int, record: PodRecord) -> None:
        if record.identity is None:
            return
        self._records[slot] = record
        estimate = self.memory.estimate(record.identity, record.declared)
        self._set(slot, record, estimate)

    def remove(self, slot: int) -> None:
        if self._records.pop(slot, None) is None:
            return
        self._unknown.pop(slot, None)
        self.known -= bool(self.runtime[slot] < math.inf)
        self.runtime[slot], self._next_count[slot] = math.inf, 1.0

    def update(self, record: PodRecord) -> None:
        """Reads a record again that counts already: when its pod started."""
        if record.slot in self._records:
            self.since[record.slot] = _since(record)

    def _set(self, slot: int, record: PodRecord, estimate: RuntimeEstimate | None) -> None:
        self.since[slot] = _since(record)
        if estimate is None:
            self._unknown[slot] = None
        else:
            self.runtime[slot] = estimate.high
            self.known += 1

    # --- runs ------------------------------------------------------------------------------------------------------

    def ended(self, pod: Pod) -> None:
        """Learns from a pod that counts on a node and has ended by itself."""
        seconds = seconds_run(pod) if is_finished(pod) else None
        if seconds is not None:
            self.memory.observe(workload_identity(pod), seconds, declared_runtime(pod))

    def estimate(self, pod: Pod) -> RuntimeEstimate | None:
        """Returns how long a pod that waits will run; None if nothing tells."""
        return self.memory.estimate(workload_identity(pod), declared_runtime(pod))

    def look_again(self, now: float) -> None:
        """Estimates pods again whose runtime was not known when they were placed, some at a time, and counts those that
        have outlived what they declared: then, and each time that they have run twice as long. A pod that never ends
        by itself is known for how long it runs."""
        for slot in list(self._unknown)[:MAX_LOOKS] if len(self.memory) else ():
            record = self._records[slot]
            del self._unknown[slot]
            estimate = self.memory.estimate(record.identity, record.declared) if record.identity else None
            self._set(slot, record, estimate)
        if not self.known:
            return
        late = self.since + np.maximum(self.runtime, 1.0) * self._next_count < now
        for slot in np.flatnonzero(late)[:MAX_OUTLIVED].tolist():
            record = self._records[slot]
            seconds = now - float(self.since[slot])
            self._next_count[slot] = 2.0 * seconds / max(float(self.runtime[slot]), 1.0)
            if record.identity is not None:
                self.memory.outlived(record.identity, seconds, record.declared)

    def untried(self, now: float) -> tuple[float, ...]:
        """Returns how many times its declared runtime a workload takes of which no run is known. Members of a gang
        count once."""
        under_way: dict[tuple[WorkloadIdentity, float], float] = {}
        for slot, record in list(self._records.items())[:MAX_LOOKS]:
            since = float(self.since[slot])
            if record.declared is not None and record.identity is not None and since < now:
                under_way[record.identity, since] = (now - since) / record.declared.seconds
        return untried_factors(self.memory.factors(), under_way.values())

    # --- reading ---------------------------------------------------------------------------------------------------

    def ends(self, now: float, as_of: float | None = None, slots: Any = slice(None)) -> Any:
        """Returns when each slot's pod is expected to end. A pod that has outlived its runtime is expected to take
        twice as long, then four times; with `as_of` one that had by then, so that an end may have passed. `slots` are
        the only ones that are wanted: 0.1 ms for 1,000 of 100,000, 4 ms for all."""
        since, runtime = self.since[slots], np.maximum(self.runtime[slots], 1.0)
        since = np.where(np.isfinite(since), since, now)
        with np.errstate(invalid="ignore"):
            elapsed = np.maximum((now if as_of is None else as_of) - since, 0.0) / runtime
            doublings = np.where(elapsed >= 1.0, np.floor(np.log2(np.maximum(elapsed, 1.0))) + 1.0, 0.0)
        return since + runtime * np.exp2(doublings)


def _since(record: PodRecord) -> float:
    if record.started_at < math.inf:
        return record.started_at
    return record.assumed_at or math.inf
