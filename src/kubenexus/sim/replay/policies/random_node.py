"""Random: any feasible node, and any GPU there that fits."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import Normalize
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.sim.replay.policies.node_state import ChoosesGpu, PodRequest, gpus_left
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

_BITS = 20  # of a score


class RandomNode(ChoosesGpu):
    """Each pod is a class by itself, with random scores that follow from its name, the seed and the nodes' names."""

    name = "RandomNode"
    normalize = Normalize("random")  # used as they are, though larger than 100: ties would go to the first name

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._seed = int(args.get("seed", 0))
        super().__init__()

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

    def choose_gpu(self, pod: PodClass, request: PodRequest, node: Nodes) -> int:
        fitting = np.flatnonzero(gpus_left(node)[0] >= request.gpu_milli)
        return int(fitting[pod.signed[self.name] // 97 % len(fitting)])


def _name_hashes(nodes: Nodes) -> Any:
    names = [nodes.columns.names[row] or "" for row in nodes.table_rows().tolist()]
    return np.array([zlib.crc32(name.encode()) << 32 | zlib.adler32(name.encode()) for name in names], np.uint64)
