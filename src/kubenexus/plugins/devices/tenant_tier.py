"""The tier of a pod's tenant, from the labels of its namespace."""

from typing import Final

from kubenexus.api.core import Pod
from kubenexus.api.keys import tenant
from kubenexus.api.keys.reading import read_key
from kubenexus.state.nodes import NodeColumns

# By rank: a node that is reserved for a tier takes pods of that rank and above.
RANKS: Final = {"none": 0, "bronze": 1, "silver": 2, "gold": 3}


def tier_of(pod: Pod, nodes: NodeColumns) -> str:
    """Returns the tier of the namespace, or the pod's own if that is lower. A namespace without a tier is bronze."""
    meta = pod.metadata
    labels = nodes.pods.namespace_labels(meta.namespace)
    given: str = read_key(tenant.TIER, labels, {}).value if labels else tenant.TIER.default
    if given == tenant.TIER.default:  # the lowest
        return given
    own = read_key(tenant.POD_TIER, meta.labels, meta.annotations).value
    return own if own is not None and RANKS[own] < RANKS[given] else given
