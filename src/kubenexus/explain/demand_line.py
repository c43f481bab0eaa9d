"""The line of an explanation about demand: what the chosen node leaves for expected pods, if that decided."""

from typing import TYPE_CHECKING

from kubenexus.api.core import Pod
from kubenexus.plan.decide import Planner
from kubenexus.plugins.devices.demand.reason import demand_reason
from kubenexus.plugins.devices.fragmentation import ResourceFragmentationScore
from kubenexus.state.ledger import Ledger
from kubenexus.state.view import Nodes, OneNode

if TYPE_CHECKING:
    from kubenexus.explain.explanation import NodeRating


def demand_line(pod: Pod, best: "tuple[NodeRating, ...]", ledger: Ledger, planner: Planner) -> str:
    """Returns a sentence; "" unless ResourceFragmentationScore, by demand, put the first of the nodes before the
    second."""
    name, columns = ResourceFragmentationScore.name, ledger.nodes
    plugin = next((each for each in planner.profile_plugins.plugins if each.name == name), None)
    if len(best) < 2 or not isinstance(plugin, ResourceFragmentationScore):
        return ""
    pod_class = planner.class_cache.lookup(pod, columns).table.pod
    demand = plugin.demand_for(pod_class, Nodes(columns))
    ours, theirs = (next((each for each in rating.scores if each.plugin == name), None) for rating in best[:2])
    if demand is None or ours is None or theirs is None:
        return ""
    ahead, points = best[0].total - best[1].total, ours.normalized - theirs.normalized
    if points <= 0 or ours.weight * points < ahead:  # the other plugins alone choose the same node
        return ""
    chosen, other = (OneNode(columns, columns.row_of[rating.node]) for rating in best[:2])
    return demand_reason(pod_class, chosen, other, demand, points)
