"""Reads jobs of Microsoft's Philly cluster as a CSV file: timestamp, duration, num_gpus and cluster (its tenant).

The trace has no cpu and no memory: each GPU comes with an equal part of its node. A job with more GPUs than a node has
becomes a gang of pods that take whole nodes.
"""

from datetime import datetime
from pathlib import Path

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.traces.csv_table import Row, read_rows
from kubenexus.sim.replay.traces.trace import JobShape, TraceJob, TraceNode

COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")
CPU_PER_GPU, MEMORY_PER_GPU = 8_000, 64 << 30
_MAX_GPUS = 4096  # of a job


def read_jobs(path: Path, gpus_per_node: int) -> tuple[TraceJob, ...]:
    """Returns the jobs in the order of their arrival; the first arrives at 0."""
    found = [(_seconds(row), count, row) for count, row in enumerate(read_rows(path, COLUMNS))]
    if not found:
        raise KubeNexusError(f"{path}: no jobs")
    found.sort(key=lambda each: each[:2])
    begin = found[0][0]
    return tuple([_job(row, count, at - begin, gpus_per_node) for at, count, row in found])


def even_nodes(count: int, gpus: int, model: str = "GPU") -> tuple[TraceNode, ...]:
    """Returns nodes of one size that have as much cpu and memory for each GPU as a job takes."""
    width = len(str(count - 1))
    return tuple(
        TraceNode(f"node-{i:0{width}}", CPU_PER_GPU * gpus, MEMORY_PER_GPU * gpus, gpus, model) for i in range(count)
    )


def _seconds(row: Row) -> float:
    try:
        return datetime.fromisoformat(row.text("timestamp")).timestamp()
    except (ValueError, OverflowError):
        raise row.error("timestamp", f"not a time: {row.text('timestamp')[:40]!r}") from None


def _job(row: Row, count: int, at: float, gpus_per_node: int) -> TraceJob:
    gpus = row.whole("num_gpus", most=_MAX_GPUS)
    pods = -(-gpus // gpus_per_node) if gpus else 1
    each = -(-gpus // pods)
    shape = JobShape(cpu=CPU_PER_GPU * max(each, 1), memory=MEMORY_PER_GPU * max(each, 1), gpus=each)
    return TraceJob(f"job-{count}", shape, at, row.number("duration"), pods, row.text("cluster") or "default")
