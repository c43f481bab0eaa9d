"""The scores of the policies for one pod and one node in plain Python."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kubenexus.sim.replay.traces.trace import JobShape

WHOLE = 1000


class State(NamedTuple):
    """What is free of a node: cpu, and thousandths of each GPU."""

    cpu: int
    gpus: tuple[int, ...]
    model: str = ""


Mix = Sequence[tuple[JobShape, float]]


def after(state: State, shape: JobShape, gpu: int | None = None) -> State:
    """The node after the pod; on this GPU, or on the fullest ones that it fits."""
    gpus, wanted = list(state.gpus), shape.gpus
    if gpu is not None:
        gpus[gpu] -= shape.gpu_milli
        wanted = 0
    for i in sorted(range(len(gpus)), key=lambda i: gpus[i]):
        if wanted and gpus[i] >= shape.gpu_milli:
            gpus[i] -= shape.gpu_milli
            wanted -= 1
    return State(state.cpu - shape.cpu, tuple(gpus), state.model)


def fragmentation(state: State, mix: Mix) -> float:
    total = 0.0
    for shape, share in mix:
        fits = [left for left in state.gpus if shape.gpus and left >= shape.gpu_milli]
        allowed = not shape.models or state.model in shape.models
        usable = bool(shape.gpus) and allowed and len(fits) >= shape.gpus and state.cpu >= shape.cpu
        total += share * (sum(left for left in state.gpus if left < shape.gpu_milli) if usable else sum(state.gpus))
    return total


def fgd(state: State, shape: JobShape, mix: Mix) -> tuple[int, int | None]:
    """The score, and the GPU for a part of one."""
    before = fragmentation(state, mix)

    def points(then: State) -> int:
        return int(100 / (1 + math.exp(-(before - fragmentation(then, mix)) / 1000)))

    if not shape.is_part:
        return points(after(state, shape)), None
    fitting = [i for i, left in enumerate(state.gpus) if left >= shape.gpu_milli]
    best = max(fitting, key=lambda i: (points(after(state, shape, i)), -i))
    return points(after(state, shape, best)), best


def bestfit(state: State, shape: JobShape) -> int:
    left = after(state, shape)
    return int((1 - left.cpu / 128_000 * 0.5 - sum(left.gpus) / 8000 * 0.5) * 100)


def dotprod(state: State, shape: JobShape) -> int:
    cpu, gpu = state.cpu / 128_000 * (shape.cpu / 128_000), sum(state.gpus) / 8000 * (shape.milli / 8000)
    return int((1 - (cpu + gpu) / 2) * 100)


def packing(state: State, shape: JobShape) -> int:
    if not shape.gpus:
        return 0
    free = [left for left in state.gpus if left == WHOLE]
    if len(free) == len(state.gpus):
        return max(33 - len(free), len(free))
    taken = sorted(left for left in state.gpus if left >= shape.gpu_milli)[: shape.gpus]
    if WHOLE in taken:
        return max(50 - taken.count(WHOLE), 33)
    return max(100 - sum(left * 100 // WHOLE for left in taken) // 10, 50)


def clustering(state: State, shape: JobShape, sizes: Sequence[str], own: str) -> int:
    if not shape.gpus:
        return 0
    used = 25 * (8000 - sum(state.gpus)) // 8000
    if own in sizes:
        return used + (75 if len(set(sizes)) == 1 else 50)
    return used + (0 if sizes else 25)
