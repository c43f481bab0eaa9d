"""The results of a replay with departures: waiting times by size, utilisation, fragmentation, and usage by tenant."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from kubenexus.sim.replay.backfill_order import HeadRecord
from kubenexus.sim.replay.cluster import ReplayCluster
from kubenexus.sim.replay.start_forecasts import StartRecord, forecast_figures
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, Trace, TraceJob

SAMPLES: Final = 200  # points of the curves
PERCENTILES: Final = (50, 95, 99)
_HOUR: Final = 3600


class Sample(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The cluster at one time: seconds, allocated GPUs in percent, waiting jobs, fragmentation in percent."""

    at: float
    allocated: float
    waiting: int
    fragmentation: float


class TimelineResult(msgspec.Struct, gc=False):
    """One run. `waits` has the seconds that each started job waited, by its number of GPUs."""

    trace: str
    policy: str
    seed: int
    capacity: int
    sample_every: float
    until: float  # the last arrival: what comes later is not part of the utilisation
    jobs: int
    pods: int
    placed: int = 0
    unstarted: int = 0
    complete: bool = True
    seconds: float = 0.0
    decisions: int = 0
    digest: str = ""
    now: float = 0.0
    allocated: int = 0
    allocated_seconds: float = 0.0
    waits: dict[str, list[float]] = {}
    tenant_gpu_hours: dict[str, float] = {}
    samples: list[Sample] = []
    heads: list[HeadRecord] = []
    forecasts: list[StartRecord] | None = None

    @classmethod
    def of(cls, trace: Trace, policy: str, seed: int, cluster: ReplayCluster) -> "TimelineResult":
        until = max((job.at for job in trace.jobs), default=0.0)
        return cls(
            trace=trace.name,
            policy=policy,
            seed=seed,
            capacity=cluster.capacity,
            allocated=cluster.held,
            sample_every=until / SAMPLES,
            until=until,
            jobs=len(trace.jobs),
            pods=sum(job.pods for job in trace.jobs),
            waits={},
            tenant_gpu_hours={},
            samples=[],
            heads=[],
        )

    def advance(self, now: float, waiting: int, fragmentation: Callable[[], float]) -> None:
        """Moves to `now`. What is allocated and waits has not changed since the last call."""
        self.allocated_seconds += self.allocated * max(min(now, self.until) - self.now, 0.0)
        due = len(self.samples) * self.sample_every
        if due <= now and len(self.samples) <= SAMPLES:
            measured = fragmentation()
            share = round(100 * self.allocated / self.capacity, 2) if self.capacity else 0.0
            while due <= now and len(self.samples) <= SAMPLES:
                self.samples.append(Sample(round(due, 3), share, waiting, measured))
                due = len(self.samples) * self.sample_every
        self.now = now

    def started(self, job: TraceJob, now: float) -> None:
        self.placed += job.pods
        self.allocated += job.milli
        self.waits.setdefault(size_name(job), []).append(now - job.at)
        hours = job.milli / WHOLE_GPU * (job.duration or 0.0) / _HOUR
        self.tenant_gpu_hours[job.tenant] = self.tenant_gpu_hours.get(job.tenant, 0.0) + hours

    def ended(self, job: TraceJob) -> None:
        self.allocated -= job.milli

    def never_started(self, jobs: Sequence[TraceJob]) -> None:
        self.unstarted = len(jobs)

    def finish(self, seconds: float, cluster: ReplayCluster) -> None:
        self.seconds, self.decisions, self.digest = seconds, cluster.decisions, cluster.digest

    @property
    def decisions_per_s(self) -> float:
        return round(self.decisions / self.seconds, 1) if self.seconds else 0.0

    @property
    def utilisation(self) -> float:
        """Allocated GPUs in percent of capacity, in the mean from the first to the last arrival."""
        whole = self.capacity * self.until
        return round(100 * self.allocated_seconds / whole, 2) if whole else 0.0

    @property
    def fragmentation(self) -> float:
        """The fragmented part of the idle GPU in percent, in the mean over all samples."""
        return round(float(np.mean([sample.fragmentation for sample in self.samples])), 2) if self.samples else 0.0

    def wait(self, size: str = "") -> dict[str, float]:
        """Returns mean and percentiles of the waiting times in seconds; of all jobs, or of those of one size."""
        waits = self.waits.get(size, []) if size else [each for some in self.waits.values() for each in some]
        if not waits:
            return {"jobs": 0}
        found = {"jobs": len(waits), "mean": round(float(np.mean(waits)), 1)}
        numbers = np.percentile(waits, PERCENTILES)
        return found | {f"p{p}": round(float(each), 1) for p, each in zip(PERCENTILES, numbers, strict=True)}

    @property
    def sizes(self) -> list[str]:
        """The sizes of jobs, smallest first."""
        return sorted(self.waits, key=float)

    def as_json(self) -> dict[str, Any]:
        """Returns the line of this run. All but `decisions_per_s` follow from the trace, the policy and the seed."""
        line = {
            "trace": self.trace,
            "policy": self.policy,
            "seed": self.seed,
            "jobs": self.jobs,
            "pods": self.pods,
            "placed": self.placed,
            "never_started": self.unstarted,
            "evictions": 0,  # no policy evicts pods in a replay
            "utilisation": self.utilisation,
            "fragmentation": self.fragmentation,
            "wait": {"all": self.wait(), **{size: self.wait(size) for size in self.sizes}},
            "tenant_gpu_hours": {name: round(hours, 2) for name, hours in sorted(self.tenant_gpu_hours.items())},
            "digest": self.digest,
            "decisions_per_s": self.decisions_per_s,
        }
        if self.heads:
            line["expected_starts"] = self.expected_starts()
        if self.forecasts is not None:
            line["eta"] = self.eta()
        return line if self.complete else {**line, "complete": False}

    def eta(self) -> dict[str, float]:
        """Returns how expected starts compare with the truth (`start_forecasts`)."""
        return forecast_figures(self.forecasts or [])

    def expected_starts(self) -> dict[str, float]:
        """Returns how late jobs were that had an expected start: their number, those that were late, by how many
        seconds at most, and by how many times the longest expected runtime of the pods that ran."""
        late = [each.started - each.promised for each in self.heads]
        times = [lateness / each.longest for each, lateness in zip(self.heads, late, strict=True) if each.longest]
        return {
            "jobs": len(late),
            "late": sum(each > 1.0 for each in late),
            "latest": round(max(late), 1),
            "latest_in_runtimes": round(max(times, default=0.0), 3),
        }


def size_name(job: TraceJob) -> str:
    """Returns the GPUs of a job as a number: `0`, `0.5`, `8`. Parts count as half a GPU, to keep sizes few."""
    if job.shape.is_part:
        return "0.5"
    return f"{job.milli // WHOLE_GPU}"
