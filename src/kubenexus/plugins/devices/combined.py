"""DeviceFit, GPUTopology and ResourceFragmentationScore combined, for one row and pods that ask for no more than a
number of devices or a round part of one.

The rule has no arithmetic of its own. It keeps what the plugins returned for a state of the row's devices: 3 us a row
instead of 14 for a pod with four GPUs.
"""

from typing import Any

from kubenexus.framework.extension_points import RowRefusals
from kubenexus.framework.job import SINGLE_POD_VIEW
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict, ReasonTable
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.plugins.devices.request import requests_of
from kubenexus.plugins.devices.row_states import StateResults
from kubenexus.plugins.devices.topology import GPUTopology
from kubenexus.state.view import Nodes, OneNode

_RowResults = tuple[int, ...] | RowRefusals


class CombinedDeviceRule:
    """See `framework.extension_points.CombinedRule`. By demand ResourceFragmentationScore reads the free cpu, too; then
    it is called each time."""

    def __init__(
        self, fit: Any, topology: GPUTopology | None, fragmentation: ResourceFragmentationScore | None
    ) -> None:
        self._fragmentation = fragmentation
        self._filters: list[Any] = [fit] if topology is None else [fit, topology]
        self._scores: list[Any] = [each for each in (fragmentation, topology) if each is not None]
        self.names = [*[each.name for each in self._scores], fit.name]
        self._results: StateResults[_RowResults] = StateResults()

    def concerns(self, pod: PodClass) -> bool:
        requests = requests_of(pod)
        return len(requests) == 1 and requests[0].is_common

    def rows(self, pod: PodClass, nodes: Nodes) -> None:
        """Returns None: classes share the columns of all rows already (`shared_columns`)."""

    def row(self, pod: PodClass, node: OneNode) -> _RowResults:
        request, fragmentation = requests_of(pod)[0], self._fragmentation
        if node.columns.demand is None or fragmentation is None or fragmentation.demand_for(pod, node) is None:
            return self._results.get(False, request, node, self._ask, pod)
        results = self._results.get(True, request, node, self._ask, pod)
        return results if isinstance(results, dict) else (fragmentation.score_row(pod, node), *results[1:])

    def _ask(self, node: OneNode, pod: PodClass) -> _RowResults:
        refusals = {}
        for plugin in self._filters:
            verdict = NodeVerdict(ReasonTable())
            plugin.filter(pod, node, verdict)
            if verdict.row_bits:
                refusals[plugin.name] = verdict.table.read(verdict.row_bits)
        if refusals:
            return refusals
        return (*[plugin.score(pod, node, SINGLE_POD_VIEW) for plugin in self._scores], 0)  # DeviceFit has no score
