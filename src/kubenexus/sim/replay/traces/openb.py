"""Reads openb, the traces of Alibaba's GPU cluster (clusterdata, cluster-trace-gpu-v2023), and orders their pods.

    nodes   sn, cpu_milli, memory_mib, gpu, model
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli and, where there are such, gpu_spec, creation_time and
            deletion_time

`inflated` makes the arrivals of the FGD paper (Weng et al., USENIX ATC 2023): the pods in a random order, then copies
of randomly chosen ones until they request 1.3 times the GPUs of the cluster. None departs.
"""

import random
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec.structs import replace

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.traces.csv_table import Row, read_rows
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, JobShape, Trace, TraceJob, TraceNode

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
NODES_FILE = "openb_node_list_gpu_node.csv"
PREFIX = "openb_pod_list_"
RATIO = 1.3  # requested GPUs over those of the cluster
_MIB = 1 << 20
_MAX_GPUS = 64  # of a node: as many as have a slot (docs/devices.md)
_MAX_COPIES = 1_000_000


def read_nodes(path: Path) -> tuple[TraceNode, ...]:
    """Returns the nodes of a file. Raises KubeNexusError if a line cannot be used, or if there is none."""
    nodes: dict[str, TraceNode] = {}
    for row in read_rows(path, NODE_COLUMNS):
        name = row.text("sn")
        if not name or name in nodes:
            raise row.error("sn", f"{name!r} is there twice" if name else "a node needs a name")
        nodes[name] = TraceNode(
            name=name,
            cpu=row.whole("cpu_milli"),
            memory=row.whole("memory_mib") * _MIB,
            gpus=row.whole("gpu", most=_MAX_GPUS),
            model=row.text("model"),
        )
    if not nodes:
        raise KubeNexusError(f"{path}: no nodes")
    return tuple(nodes.values())


def read_pods(path: Path) -> tuple[TraceJob, ...]:
    """Returns the pods of a file, in its order, with the times of the trace if it has them."""
    shapes: dict[JobShape, JobShape] = {}
    jobs = []
    for row in read_rows(path, POD_COLUMNS):
        shape = _shape(row)
        at, ends = row.text("creation_time"), row.text("deletion_time")
        begin = row.number("creation_time") if at else 0.0
        duration = max(row.number("deletion_time") - begin, 0.0) if at and ends else None
        jobs.append(TraceJob(row.text("name"), shapes.setdefault(shape, shape), begin, duration))
    if not jobs:
        raise KubeNexusError(f"{path}: no pods")
    return tuple(jobs)


def _shape(row: Row) -> JobShape:
    gpus, milli = row.whole("num_gpu", most=_MAX_GPUS), row.whole("gpu_milli", most=WHOLE_GPU)
    if (gpus and not milli) or (gpus > 1 and milli < WHOLE_GPU):
        raise row.error("gpu_milli", f"{gpus} GPUs with {milli} thousandths of each")
    return JobShape(
        cpu=row.whole("cpu_milli"),
        memory=row.whole("memory_mib") * _MIB,
        gpus=gpus,
        gpu_milli=milli if gpus else WHOLE_GPU,
        models=tuple(sorted(filter(None, row.text("gpu_spec").split("|")))),
    )


def pod_files(paths: Sequence[Path], names: Collection[str] = ()) -> list[Path]:
    """Returns the files of pods: each of `paths`, and of a folder all its traces, or those of `names`."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        here = sorted(path.glob(f"{PREFIX}*.csv"))
        found += [file for file in here if not names or trace_name(file) in names]
        missing = sorted(set(names) - {trace_name(file) for file in here})
        if missing or not here:
            raise KubeNexusError(f"{path}: no {PREFIX}{missing[0] if missing else '*'}.csv")
    return found


def trace_name(path: Path) -> str:
    """Returns `default` for `openb_pod_list_default.csv`."""
    return path.stem.removeprefix(PREFIX)


def inflated(trace: Trace, seed: int, ratio: float = RATIO) -> Trace:
    """Returns the arrivals of one run, one a second and without an end. The same seed gives the same ones."""
    rng = random.Random(seed)
    order = sorted(trace.jobs, key=lambda job: job.name)
    if not any(job.milli for job in order) or not trace.capacity:
        raise KubeNexusError(f"trace {trace.name}: no GPU is offered, or none is requested")
    shuffled = list(order)
    rng.shuffle(shuffled)
    requested, wanted = sum(job.milli for job in shuffled), ratio * trace.capacity
    while requested < wanted:
        if len(shuffled) >= len(order) + _MAX_COPIES:
            raise KubeNexusError(f"trace {trace.name}: more than {_MAX_COPIES} copies of its pods are needed")
        copied = order[rng.randrange(len(order))]
        shuffled.append(replace(copied, name=f"{copied.name}-copy-{len(shuffled)}"))
        requested += copied.milli
    jobs = [replace(job, at=float(i), duration=None) for i, job in enumerate(shuffled)]
    return Trace(trace.name, trace.nodes, tuple(jobs))
