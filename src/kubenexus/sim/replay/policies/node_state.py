"""What the policies read of nodes and pods: free cpu, what is left of each GPU, and the model."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.devices.device_share import WHOLE, DeviceShare
from kubenexus.api.resource_names import CPU
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.job import Assignment
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Verdict
from kubenexus.plugins.devices.fit import DeviceFit
from kubenexus.plugins.devices.request import requests_of
from kubenexus.sim.replay.objects import MODEL_LABEL
from kubenexus.state.view import Nodes

# The largest machine of openb, by which papers normalise.
MAX_CPU, MAX_GPU = 128_000, 8_000


class PodRequest(NamedTuple):
    """What a pod asks for: cpu in thousandths, a number of GPUs, and thousandths of each."""

    cpu: int
    gpus: int
    gpu_milli: int

    @property
    def milli(self) -> int:
        return self.gpus * self.gpu_milli

    @property
    def is_part(self) -> bool:
        return 0 < self.gpu_milli < WHOLE


class ReadsResources:
    """A policy's plugin: it reads requests and usage."""

    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources")
    depends = Depends.USAGE


class ChoosesGpu(ReadsResources):
    """A policy's plugin that chooses the GPU of a pod that takes a part. Whole GPUs are any free ones."""

    def __init__(self) -> None:
        self._fit = DeviceFit({})

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        request = request_of(pod)
        if not request.is_part:
            return self._fit.assign(pod, row, nodes)
        slot = self.choose_gpu(pod, request, Nodes(nodes.columns, np.array([row])))
        device = nodes.columns.devices.of_row(row).node.devices[slot]
        return Assignment(device_shares=(DeviceShare(device.name, request.gpu_milli),))

    @abstractmethod
    def choose_gpu(self, pod: PodClass, request: PodRequest, node: Nodes) -> int:
        """Returns the slot of the GPU. `node` has one row."""


def request_of(pod: PodClass) -> PodRequest:
    """Returns what the class asks for."""
    return pod.cached("replay request", lambda: _request(pod))


def _request(pod: PodClass) -> PodRequest:
    cpu = dict(pod.demand.amounts).get(CPU, 0)
    wanted = requests_of(pod)
    if not wanted:
        return PodRequest(cpu, 0, 0)
    return PodRequest(cpu, wanted[0].number, wanted[0].share or WHOLE)


def free_cpu(nodes: Nodes) -> Any:
    """Returns the free cpu of each row, in thousandths."""
    return nodes.alloc(CPU) - nodes.used(CPU)


def gpus_left(nodes: Nodes) -> Any:
    """Returns what is left of each GPU in thousandths, as a table with a row for each node; 0 where there is none."""
    return nodes.columns.devices.share[:, nodes.where].T.astype(np.int64)


def gpus_of(nodes: Nodes) -> Any:
    """Returns the number of GPUs of each row."""
    return nodes.devices.count(nodes.devices.offered(""))


def models_of(nodes: Nodes) -> tuple[Any, list[str]]:
    """Returns a code for the GPU model of each row, and the model of each code."""
    codes, column = nodes.label(MODEL_LABEL)
    return codes, column.values.names
