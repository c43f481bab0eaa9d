"""FGD: places a pod where it adds least fragmentation (Weng et al., USENIX ATC 2023).

The fragmentation of a node is the idle GPU that a randomly drawn pod of the target workload cannot use there. The
target workload is the arguments' `shapes`: the most frequent shapes of the trace, each with its share of the pods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.sim.replay.policies.node_state import (
    ChoosesGpu,
    PodRequest,
    free_cpu,
    gpus_left,
    models_of,
    request_of,
)
from kubenexus.sim.replay.policies.simple import whole_points
from kubenexus.sim.replay.traces.trace import JobShape, Trace
from kubenexus.state.view import Nodes

COVERED = 0.95  # of the pods, by the shapes of the target workload


class FGD(ChoosesGpu):
    name = "FGD"
    normalize = AS_IS

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._workload = TargetWorkload(args["shapes"])
        super().__init__()

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn:
        """Returns 100 times the logistic function of the fragmentation that the pod takes away, in GPUs."""
        scores: IntColumn = self._by_gpu(request_of(pod), nodes).max(axis=1, initial=0)
        return scores

    def choose_gpu(self, pod: PodClass, request: PodRequest, node: Nodes) -> int:
        """Returns the GPU with the best score."""
        return int(self._by_gpu(request, node)[0].argmax())

    def _by_gpu(self, request: PodRequest, nodes: Nodes) -> Any:
        """Returns the scores of rows for each GPU that a part may take, -1 where it cannot. Whole GPUs and pods without
        have one column: which of the free GPUs they take makes no difference."""
        cpu, left = free_cpu(nodes), gpus_left(nodes)
        codes, models = models_of(nodes)
        before = self._workload.fragmentation(cpu, left, codes, models)
        if not request.is_part:
            taken = (left == WHOLE) & (np.cumsum(left == WHOLE, axis=1) <= request.gpus)
            after = self._workload.fragmentation(cpu - request.cpu, np.where(taken, 0, left), codes, models)
            return _points(before - after)[:, None]
        rows, slots = np.nonzero(left >= request.gpu_milli)
        states = left[rows]
        states[np.arange(len(rows)), slots] -= request.gpu_milli
        after = self._workload.fragmentation(cpu[rows] - request.cpu, states, codes[rows], models)
        points = np.full(left.shape, -1, np.int64)
        points[rows, slots] = _points(before[rows] - after)
        return points


class TargetWorkload:
    """Shapes with their shares: `[cpu, gpus, gpu_milli, models, share]` each, models joined by `|`."""

    def __init__(self, shapes: Sequence[Sequence[Any]]) -> None:
        on_gpus = [shape for shape in shapes if shape[1]]
        self._without_gpus = float(sum(shape[4] for shape in shapes if not shape[1]))
        self._cpu = np.array([shape[0] for shape in on_gpus], np.int64)
        self._gpus = np.array([shape[1] for shape in on_gpus], np.int64)
        self._share = np.array([shape[4] for shape in on_gpus], np.float64)
        self._models = [frozenset(filter(None, shape[3].split("|"))) for shape in on_gpus]
        self._amounts, self._which = np.unique(np.array([shape[2] for shape in on_gpus], np.int64), return_inverse=True)
        self._access: tuple[int, Any] = (-1, None)

    def fragmentation(self, cpu: Any, left: Any, codes: Any, models: list[str]) -> Any:
        """Returns the fragmentation of each state in thousandths of a GPU."""
        total = left.sum(axis=1)
        small = left[:, :, None] < self._amounts
        fitting = (left.shape[1] - small.sum(axis=1))[:, self._which] >= self._gpus
        usable = fitting & (cpu[:, None] >= self._cpu) & self._accessible(models)[codes]
        wasted = (left[:, :, None] * small).sum(axis=1)[:, self._which]
        idle = np.where(usable, wasted, total[:, None])
        return idle @ self._share + total * self._without_gpus

    def _accessible(self, models: list[str]) -> Any:
        """Returns which shapes a node of each model may run."""
        if self._access[0] != len(models):
            table = [[not wanted or model in wanted for wanted in self._models] for model in models]
            self._access = (len(models), np.array(table, np.bool_).reshape(len(models), len(self._models)))
        return self._access[1]


def target_workload(trace: Trace) -> list[list[Any]]:
    """Returns the most frequent shapes that cover 95 percent of a trace's pods, memory aside."""
    return mix_of(trace, COVERED)


def mix_of(trace: Trace, covered_share: float = 1.0) -> list[list[Any]]:
    """Returns the most frequent shapes that cover this part of a trace's pods, memory aside, each with its share."""
    counts: dict[tuple[int, int, int, str], int] = {}
    for job in trace.jobs:
        key = _without_memory(job.shape)
        counts[key] = counts.get(key, 0) + job.pods
    ordered = sorted(counts.items(), key=lambda each: (each[1], each[0]), reverse=True)
    total, covered, chosen = sum(counts.values()), 0, []
    for key, count in ordered:
        if covered >= covered_share * total:
            break
        covered += count
        chosen.append((key, count))
    return [[*key, count / covered] for key, count in chosen]


def _without_memory(shape: JobShape) -> tuple[int, int, int, str]:
    return shape.cpu, shape.gpus, shape.gpu_milli if shape.gpus else 0, "|".join(shape.models)


def _points(less: Any) -> IntColumn:
    return whole_points(100 / (1 + np.exp(-less / WHOLE)))
