"""The hardware tier of each row: for scores by tenant, and for limits of queues by tier."""

import functools
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubenexus.api.devices.hardware_tier import HardwareTier, labelled_tier
from kubenexus.api.keys import gpu
from kubenexus.state.view import Nodes, OneNode

TierColumn = NDArray[np.uint8]
_KEY, _ALIAS = (spelling.key for spelling in gpu.HARDWARE_TIER.spellings)
_UNSET: Final = 255


def hardware_tiers(nodes: Nodes) -> TierColumn:
    """Returns the `HardwareTier` of each row of a view, of a single one as a column of length one. Over all rows it is
    computed once until a node changes; the caller must not write into it."""
    if isinstance(nodes, OneNode):
        return np.array([row_tier(nodes)], np.uint8)
    found: TierColumn = nodes.cached_until_node_change("hardware tiers", _tiers)
    return found


def row_tier(node: OneNode) -> int:
    """Returns the `HardwareTier` of a single row as a plain integer."""
    labels = node.labels
    labelled = _by_texts(labels.get(_KEY, ""), labels.get(_ALIAS, ""))
    return node.columns.devices.tiers.item(node.row) if labelled == _UNSET else labelled


def _tiers(nodes: Nodes) -> TierColumn:
    labelled = np.full(nodes.width, _UNSET, np.uint8)
    for key in (_KEY, _ALIAS):  # the alias counts where the canonical key states no tier
        if nodes.columns.labels.rows_with(key):
            codes, column = nodes.label(key)
            by_code = np.array([_by_texts(text, "") for text in column.values.names], np.uint8)
            labelled = np.where(labelled == _UNSET, by_code[codes], labelled)
    return np.where(labelled == _UNSET, nodes.columns.devices.tiers[nodes.where], labelled)


@functools.lru_cache(maxsize=256)
def _by_texts(text: str, alias: str) -> int:
    """Returns the tier that the two labels state, `_UNSET` if none."""
    tier = labelled_tier({_KEY: text, _ALIAS: alias})
    return _UNSET if tier is None else int(tier)


def tier_codes(labels: Iterable[str]) -> list[int]:
    """Returns the `HardwareTier` of these words."""
    return [int(HardwareTier[label.upper()]) for label in labels]
