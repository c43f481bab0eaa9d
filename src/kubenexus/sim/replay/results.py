"""The results of a replay without departures, as the FGD paper counts them."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.traces.trace import TraceJob

SHOWN_STEP = 10  # percent of arrived requests between two figures


class FillResult(msgspec.Struct, gc=False):
    """One run. `arrived` and `allocated` are GPUs in thousandths after each job, in order; `held` before the first."""

    trace: str
    policy: str
    seed: int
    capacity: int
    held: int = 0
    pods: int = 0
    placed: int = 0
    first_refusal_at: float | None = None
    nodes_in_use: int = 0
    complete: bool = True
    seconds: float = 0.0
    digest: str = ""
    arrived: list[int] = []
    allocated: list[int] = []

    @classmethod
    def of(cls, trace: str, policy: str, seed: int, cluster: ReplayCluster) -> "FillResult":
        return cls(trace, policy, seed, cluster.capacity, cluster.held, arrived=[], allocated=[])

    def record(self, job: TraceJob, *, placed: bool) -> None:
        """Counts one job that arrived."""
        arrived = (self.arrived[-1] if self.arrived else self.held) + job.milli
        self.arrived.append(arrived)
        self.allocated.append((self.allocated[-1] if self.allocated else self.held) + job.milli * placed)
        self.pods += job.pods
        self.placed += job.pods * placed
        if not placed and self.first_refusal_at is None:
            self.first_refusal_at = round(100 * arrived / self.capacity, 2) if self.capacity else 0.0

    def finish(self, seconds: float, cluster: ReplayCluster) -> None:
        self.seconds, self.digest, self.nodes_in_use = seconds, cluster.digest, cluster.nodes_in_use

    @property
    def decisions_per_s(self) -> float:
        return round(len(self.arrived) / self.seconds, 1) if self.seconds else 0.0

    def allocated_at(self, percent: int) -> float | None:
        """Returns the allocated GPUs in percent of capacity when requests for `percent` of it have arrived.

        It is the mean over the jobs whose arrival brings the requests to that percentage, rounded to a whole one, as
        the published results count it. Where a single job is more than that, it is the state before the job. None: the
        run did not come so far.
        """
        if not self.arrived or not self.capacity:
            return None
        arrived, allocated = np.rint(np.array(self.arrived) * 100 / self.capacity), np.array(self.allocated)
        here = allocated[arrived == percent]
        if not len(here):
            here = allocated[abs(arrived - percent) <= 1]
        if not len(here) and arrived[-1] >= percent:
            here = np.array([self.held, *self.allocated])[[int(np.searchsorted(arrived, percent))]]
        return round(float(here.mean()) * 100 / self.capacity, 2) if len(here) else None

    def as_json(self) -> dict[str, Any]:
        """Returns the line of this run. All but `decisions_per_s` follow from the trace, the policy and the seed."""
        last = int(100 * self.arrived[-1] / self.capacity) if self.arrived and self.capacity else 0
        line = {
            "trace": self.trace,
            "policy": self.policy,
            "seed": self.seed,
            "pods": self.pods,
            "placed": self.placed,
            "allocated_at": {str(percent): self.allocated_at(percent) for percent in steps(last)},
            "first_refusal_at": self.first_refusal_at,
            "nodes_in_use": self.nodes_in_use,
            "digest": self.digest,
            "decisions_per_s": self.decisions_per_s,
        }
        return line if self.complete else {**line, "complete": False}


def steps(last: int) -> range:
    """Returns the percentages of arrived requests that are shown, up to `last`."""
    return range(SHOWN_STEP, last + 1, SHOWN_STEP)
