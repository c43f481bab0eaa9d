"""Random: any feasible node, and any GPU there that fits."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.devices.device_share import DeviceShare
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import Normalize
from kubenexus.framework.job import Assignment, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import Verdict
from kubenexus.plugins.devices.fit import DeviceFit
from kubenexus.sim.replay.policies.node_state import ReadsResources, gpus_left, request_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_BITS = 20  # of a score


class RandomNode(ReadsResources):
    """Each pod is a class by itself, with random scores that follow from its name, the seed and the nodes' names."""

    name = "RandomNode"
    normalize = Normalize("random")  # used as they are, though larger than 100: ties would go to the first name

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._seed = int(args.get("seed", 0))
        self._fit = DeviceFit({})

    def sign(self, pod: Pod, nodes: NodeColumns) -> int:
        return zlib.crc32(pod.key.encode(), self._seed)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn:
        """Returns a random number for each node."""
        names = nodes.cached_until_node_change("replay: hashes of names", _name_hashes)
        mixed = names ^ np.uint64(pod.signed[self.name] * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
            mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
        scores: IntColumn = ((mixed ^ mixed >> np.uint64(31)) >> np.uint64(64 - _BITS)).astype(np.int64)
        return scores

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        request = request_of(pod)
        if not request.is_part:
            return self._fit.assign(pod, row, nodes)
        fitting = np.flatnonzero(gpus_left(Nodes(nodes.columns, np.array([row])))[0] >= request.gpu_milli)
        slot = int(fitting[pod.signed[self.name] // 97 % len(fitting)])
        device = nodes.columns.devices.of_row(row).node.devices[slot]
        return Assignment(device_shares=(DeviceShare(device.name, request.gpu_milli),))


def _name_hashes(nodes: Nodes) -> Any:
    names = [nodes.columns.names[row] or "" for row in nodes.table_rows().tolist()]
    return np.array([zlib.crc32(name.encode()) << 32 | zlib.adler32(name.encode()) for name in names], np.uint64)
