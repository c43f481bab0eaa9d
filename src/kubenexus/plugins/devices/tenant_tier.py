"""The tier of a pod's tenant (`state.tenants`), for plugins that sign it."""

from typing import Final

from kubenexus.api.core import Pod
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.tenants import RANKS

__all__ = ["RANKS", "TIER_EVENT", "tier_of"]

# For plugins that refuse pods by their tier. The queue sends it to the jobs of the tenant alone.
TIER_EVENT: Final = ClusterEventWithHint(EventResource.NAMESPACE, ActionType.ALL)


def tier_of(pod: Pod, nodes: NodeColumns) -> str:
    """Returns the tier of the pod's tenant: gold, silver or bronze."""
    return nodes.tenants.of(pod).tier
