"""BestFit, DotProd and Packing: scores of one formula each."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.devices.device_share import WHOLE
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.sim.replay.policies.node_state import (
    MAX_CPU,
    MAX_GPU,
    ReadsResources,
    free_cpu,
    gpus_left,
    gpus_of,
    request_of,
)
from kubenexus.state.view import Nodes


class BestFit(ReadsResources):
    """The node with least cpu and GPU left after the pod, both as parts of the largest machine."""

    name = "BestFit"
    normalize = AS_IS

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn:
        request = request_of(pod)
        left = (free_cpu(nodes) - request.cpu) / MAX_CPU * 0.5
        left = left + (gpus_left(nodes).sum(axis=1) - request.milli) / MAX_GPU * 0.5
        return whole_points((1.0 - left) * 100)


class DotProd(ReadsResources):
    """The node where the dot product of free and requested resources is smallest."""

    name = "DotProd"
    normalize = AS_IS

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn:
        request = request_of(pod)
        product = free_cpu(nodes) / MAX_CPU * (request.cpu / MAX_CPU)
        product = product + gpus_left(nodes).sum(axis=1) / MAX_GPU * (request.milli / MAX_GPU)
        return whole_points((1.0 - product / 2) * 100)


class Packing(ReadsResources):
    """GPUs that are shared already first, then free GPUs of nodes in use, then nodes of which all GPUs are free.

        100 less a tenth of the percents that are free  on the GPUs taken, all of them shared already
        50 less the free GPUs taken                      at least 33
        33 less the GPUs of the node                     if all of them are free

    Pods without GPUs score 0 on all nodes.
    """

    name = "Packing"
    normalize = AS_IS

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        request = request_of(pod)
        if not request.gpus:
            return 0
        left, total = gpus_left(nodes), gpus_of(nodes)
        free = (left == WHOLE).sum(axis=1)
        fresh = np.maximum(33 - free, free)
        opened = np.full(nodes.width, max(50 - request.gpus, 33), np.int64)
        if request.is_part:
            begun = np.where((left >= request.gpu_milli) & (left < WHOLE), left, WHOLE).min(axis=1, initial=WHOLE)
            points = np.where(begun < WHOLE, np.maximum(100 - begun * 100 // WHOLE // 10, 50), opened)
        else:
            points = opened
        scores: IntColumn = np.where(free == total, fresh, points)
        return scores


def whole_points(points: Any) -> IntColumn:
    """Returns points as whole numbers from 0 to 100, cut off as a conversion to an integer does."""
    whole: IntColumn = np.clip(points, 0, 100).astype(np.int64)
    return whole
