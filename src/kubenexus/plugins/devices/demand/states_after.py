"""The states of rows before and after a pod: what `gpu_states` has for its request, and the free cpu."""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.plugins.devices.demand.gpu_states import CoarseState, GpuRequest
from kubenexus.plugins.devices.demand.node_states import number_of_row, numbers_and_cpu, states_for
from kubenexus.state.view import Nodes, OneNode


class Wanted(NamedTuple):
    """What a pod takes: cpu in thousandths and GPUs. `cpus` is the cpu before and after it, to subtract."""

    cpu: int
    gpus: GpuRequest
    cpus: Any


def wanted_of_node(cpu: int, gpus: int, milli: int) -> Wanted:
    """Returns what a pod takes of a node."""
    return Wanted(cpu, GpuRequest(gpus, milli), np.array([[0], [cpu]]))


def states(wanted: Wanted, nodes: Nodes) -> tuple[Any, Any]:
    """Returns `[field, when, n]`, the fields of CoarseState before and after a pod, and `[when, n]`, the free cpu. Rows
    that cannot take it have anything after it."""
    numbers, cpu = numbers_and_cpu(nodes)
    return states_for(nodes.columns).table(wanted.gpus).take(numbers, axis=2), cpu - wanted.cpus


def states_of_row(wanted: Wanted, node: OneNode) -> tuple[CoarseState, CoarseState]:
    """Returns the states of one row before and after a pod."""
    number = number_of_row(node)
    fields = states_for(node.columns).table(wanted.gpus)[:, :, number].tolist()
    before, after = zip(*fields, strict=True)
    return CoarseState(*before), CoarseState(*after)
