"""The rank of the tier that a node is reserved for, by its label `tenant.kubenexus.io/reserved-tier`."""

from typing import Any

import numpy as np

from kubenexus.api.keys import tenant
from kubenexus.plugins.devices.tenant_tier import RANKS
from kubenexus.state.view import Nodes


def reserved_ranks(nodes: Nodes) -> Any:
    """Returns the rank for each row, 0 where a node is not reserved."""
    return nodes.cached_until_node_change("reserved tiers", _ranks)


def reserved_rank(value: str) -> int:
    """Returns the rank of the tier that a node is reserved for; 0 for none. A word that cannot be read counts as the
    highest: the label is meant to keep a node, and one that is kept too well shows in the reasons of pods."""
    if not value.strip():
        return 0
    try:
        return RANKS[tenant.RESERVED_TIER.values.parse(value)]
    except ValueError:
        return max(RANKS.values())


def _ranks(nodes: Nodes) -> Any:
    codes, column = nodes.label(tenant.RESERVED_TIER.key)
    return np.array([reserved_rank(value) for value in column.values.names], np.int64)[codes]
