"""NodeResourcesBalancedAllocation: prefers nodes whose used fractions of resources the pod brings closer together.

For each node S = int((1 - std of the used fractions) * 100), with the pod and without it; the score is 50 + (50 +
S_with - S_without) / 2: 75 if nothing changes, more if the pod evens the node out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubenexus.api.resource_names import is_basic
from kubenexus.base.arrays import AmountVector, IntColumn
from kubenexus.framework.extension_points import AS_IS, Depends, Plugin
from kubenexus.framework.job import JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Skip
from kubenexus.plugins.node_resources.balance import balance, balance_of_node, current_balance
from kubenexus.plugins.node_resources.combined import CombinedResourceRule
from kubenexus.plugins.node_resources.fit import NodeResourcesFit
from kubenexus.plugins.node_resources.strategies import amounts_of
from kubenexus.plugins.workload.workload_aware import WorkloadAwareScoring
from kubenexus.state.view import ALLOC, USED, Nodes, OneNode

_DEFAULT = ({"name": "cpu"}, {"name": "memory"})
_ONE = np.array(1, np.uint8)


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    reads = ("spec.containers", "spec.initContainers", "spec.overhead", "spec.resources", "status.resize")
    depends = Depends.USAGE
    normalize = AS_IS
    supports_one_node = True

    def __init__(self, args: Mapping[str, Any]) -> None:
        names = [str(r["name"]) for r in args.get("resources") or _DEFAULT]
        self._resources = [(name, is_basic(name)) for name in names]

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int | Skip:
        wanted = pod.cached("NodeResourcesBalancedAllocation", lambda: self._wanted(pod))
        if not any(wanted.values):
            return SKIP  # else all pods without requests would go to the one most even node
        if isinstance(nodes, OneNode):
            return _score_one(nodes, wanted)
        amounts, offered = nodes.amounts(wanted.names)
        used = amounts[USED] + wanted.like(amounts)
        own = used if used.dtype == np.float64 else None
        result: IntColumn = balance(used, amounts[ALLOC], offered, out=own)
        result += nodes.derived(current_balance(wanted.names))
        result >>= _ONE  # in bytes: at most 100 + 150 before it is halved
        return result

    def combine(self, others: Mapping[str, Plugin]) -> CombinedResourceRule | None:
        fit = others.get(NodeResourcesFit.name)
        plain = self._resources == [("cpu", True), ("memory", True)]
        if not plain or not isinstance(fit, NodeResourcesFit) or not fit.plain:
            return None
        return CombinedResourceRule(fit.name, self.name, others.get(WorkloadAwareScoring.name))

    def _wanted(self, pod: PodClass) -> AmountVector:
        """Returns the pod's requests. An extended resource that it does not request does not count."""
        asked = dict(pod.demand.with_resize)
        names = tuple([n for n, basic in self._resources if basic or asked.get(n)])
        return amounts_of(pod, names, pod.demand.with_resize)


def _score_one(node: OneNode, wanted: AmountVector) -> int:
    cells, uses, allocs = wanted.cells(node.rows_of(wanted.names)), node.uses, node.allocs
    capacity = [allocs[r] for r, _ in cells]
    without = balance_of_node([uses[r] for r, _ in cells], capacity)
    return (150 + balance_of_node([uses[r] + amount for r, amount in cells], capacity) - without) // 2
