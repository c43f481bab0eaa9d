"""WorkloadAwareScoring: batch and training go to nodes that are in use already, everything else to empty ones.

Jobs that are packed leave whole nodes for gangs and large pods; services that are spread lose less with a node. Score
of a node whose pods request u percent of it (`utilization`): u for pods that are packed, 100 - u for others. The kind
of work decides, or the key `workload.kubenexus.io/placement`. Pods that fill gaps (`BackfillScoring`) are placed by the
same rule.
"""

from collections.abc import Mapping
from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.api.keys import workload
from kubenexus.api.keys.reading import read_key
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.plugins.workload.signed import workload_of
from kubenexus.plugins.workload.utilization import Weights, utilization_points
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

PACK: Final = "pack"
SPREAD: Final = "spread"


class WorkloadAwareScoring:
    name = "WorkloadAwareScoring"
    reads = ()
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True
    signs_template = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        usual = Weights()
        self._weights = Weights(
            int(args.get("cpuWeight", usual.cpu)),
            int(args.get("memoryWeight", usual.memory)),
            int(args.get("gpuWeight", usual.devices)),
        )

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return placement_of(pod)

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        found: IntColumn | int = self.scores(pod, nodes)
        return found

    def scores(self, pod: PodClass, nodes: Nodes) -> Any:
        """Returns the scores; also called by the rule that combines this plugin with those of resources."""
        return utilization_points(nodes, self._weights, packs=pod.signed[self.name] == PACK)


def placement_of(pod: Pod) -> str:
    """Returns whether a pod is packed or spread."""
    meta = pod.metadata
    said = read_key(workload.PLACEMENT, meta.labels, meta.annotations).value
    return said or (PACK if workload_of(pod).type.packs else SPREAD)
