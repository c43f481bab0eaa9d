"""Nodes as an option: `56x8`, or a file."""

import re
from pathlib import Path

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.traces.openb import read_nodes
from kubenexus.sim.replay.traces.philly import even_nodes
from kubenexus.sim.replay.traces.trace import TraceNode

MAX_NODES = 100_000
_EVEN = re.compile(r"(\d{1,6})x(\d{1,2})")


def nodes_of(text: str) -> tuple[TraceNode, ...]:
    """Returns N nodes with G GPUs for `NxG`, else the nodes of a CSV file in openb's form."""
    even = _EVEN.fullmatch(text)
    if even is None:
        return read_nodes(Path(text))
    count, gpus = int(even[1]), int(even[2])
    if not 1 <= count <= MAX_NODES or not 1 <= gpus <= 64:
        raise KubeNexusError(f"--nodes {text}: 1 to {MAX_NODES} nodes with 1 to 64 GPUs")
    return even_nodes(count, gpus)
