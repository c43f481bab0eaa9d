"""Reads our own form of a trace: JSON lines, each a node or a job.

    {"kind": "node", "name": "h100", "count": 4, "cpu": "64", "memory": "512Gi", "gpus": 8, "model": "H100"}
    {"kind": "job", "name": "train", "at": 60, "duration": 3600, "pods": 2, "cpu": "8", "memory": "64Gi", "gpus": 8}

docs/simulate.md lists all fields.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from kubenexus.api.core import QuantityText
from kubenexus.api.quantity import to_milli, to_units
from kubenexus.base.errors import KubeNexusError, Malformed
from kubenexus.sim.replay.traces.trace import WHOLE_GPU, JobShape, TraceJob, TraceNode

MAX_COUNT = 1_000_000
_Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)]
_Gpus = Annotated[int, msgspec.Meta(ge=0, le=64)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class _Line(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="kind"):
    name: _Name


class NodeLine(_Line, frozen=True, gc=False, tag="node"):
    """A node, or `count` equal ones: then `-0`, `-1` and so on follow the name."""

    count: _Count = 1
    cpu: QuantityText = 0
    memory: QuantityText = 0
    gpus: _Gpus = 0
    model: str = ""
    labels: dict[str, str] = {}


class JobLine(_Line, frozen=True, gc=False, tag="job"):
    """A job, or `count` equal ones that arrive together."""

    count: _Count = 1
    at: _Seconds = 0.0
    duration: _Seconds | None = None
    pods: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 1
    cpu: QuantityText = 0
    memory: QuantityText = 0
    gpus: _Gpus = 0
    gpu_fraction: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    models: tuple[str, ...] = ()
    tenant: _Name = "default"
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0


_DECODER = msgspec.json.Decoder(NodeLine | JobLine)


def read_lines(path: Path) -> tuple[tuple[TraceNode, ...], tuple[TraceJob, ...]]:
    """Returns the nodes and the jobs, the latter in the order of their arrival. Raises KubeNexusError."""
    nodes: dict[str, TraceNode] = {}
    jobs: list[TraceJob] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise KubeNexusError(f"cannot read {path}: {error.strerror}") from None
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = _DECODER.decode(text)
            if isinstance(line, NodeLine):
                nodes.update((node.name, node) for node in _nodes(line, nodes))
            else:
                jobs.extend(_jobs(line))
        except (msgspec.DecodeError, Malformed, ValueError) as error:
            raise KubeNexusError(f"{path}:{number}: {error}") from None
        if len(nodes) + len(jobs) > MAX_COUNT:
            raise KubeNexusError(f"{path}:{number}: more than {MAX_COUNT} nodes and jobs")
    jobs.sort(key=lambda job: job.at)
    return tuple(nodes.values()), tuple(jobs)


def _nodes(line: NodeLine, known: dict[str, TraceNode]) -> list[TraceNode]:
    cpu, memory = max(to_milli(line.cpu), 0), max(to_units(line.memory), 0)
    names = [line.name] if line.count == 1 else [f"{line.name}-{i}" for i in range(line.count)]
    for name in names:
        if name in known:
            raise ValueError(f"a node {name} is there already")
    return [TraceNode(name, cpu, memory, line.gpus, line.model, line.labels) for name in names]


def _jobs(line: JobLine) -> list[TraceJob]:
    milli = round(line.gpu_fraction * WHOLE_GPU)
    if milli < WHOLE_GPU and line.gpus > 1:
        raise ValueError("gpu_fraction is for jobs with one GPU")
    shape = JobShape(
        cpu=max(to_milli(line.cpu), 0),
        memory=max(to_units(line.memory), 0),
        gpus=line.gpus,
        gpu_milli=max(milli, 1) if line.gpus else WHOLE_GPU,
        models=tuple(sorted(line.models)),
        priority=line.priority,
    )
    names = [line.name] if line.count == 1 else [f"{line.name}-{i}" for i in range(line.count)]
    return [TraceJob(name, shape, line.at, line.duration, line.pods, line.tenant) for name in names]
