"""The zones, regions and racks of the cluster, and a code for each combination of them that a node has."""

from typing import Any

import msgspec
import numpy as np

from kubenexus.api.gangs.levels import topology_level
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.topology import TopologyDomains, domains_of_level

ZONE, REGION, RACK = "zone", "region", "rack"


class SpreadLevels(msgspec.Struct, gc=False):
    """Levels with at least two domains, and the combinations of their domains that rows have.

    `codes[n]` is the combination of row n, and `rows` the number of rows of each. `domains` has by level the domain of
    each combination, and `listed` the same as lists. `key` identifies the codes for the runtime.
    """

    levels: tuple[TopologyDomains, ...]
    codes: Any
    rows: Any
    domains: tuple[Any, ...]
    listed: tuple[list[int], ...]
    key: object

    @property
    def size(self) -> int:
        """The number of combinations."""
        return len(self.rows)


def level_names(zones: bool, racks: bool, nodes: NodeColumns) -> tuple[str, ...]:
    """Returns the levels that have at least two domains: of zones and regions, of racks, or of both."""
    found: tuple[str, ...] = nodes.cached_until_node_change(
        ("spread levels", zones, racks),
        lambda: tuple(
            name
            for name, wanted in ((ZONE, zones), (REGION, zones), (RACK, racks))
            if wanted and _has_several(_level(name, nodes))
        ),
    )
    return found


def spread_levels(names: tuple[str, ...], nodes: NodeColumns) -> SpreadLevels:
    """Returns these levels, which are some of `level_names`. Cached until a node changes."""
    found: SpreadLevels = nodes.cached_until_node_change(("spread codes", names), lambda: _combined(names, nodes))
    return found


def _level(name: str, nodes: NodeColumns) -> TopologyDomains:
    return domains_of_level(name, topology_level(name).keys, nodes)


def _has_several(level: TopologyDomains) -> bool:
    return int(np.count_nonzero(level.row_counts[1:])) > 1


def _combined(names: tuple[str, ...], nodes: NodeColumns) -> SpreadLevels:
    levels = tuple(_level(name, nodes) for name in names)
    mixed = levels[0].codes
    for level in levels[1:]:
        mixed = mixed * level.size + level.codes
    found, codes, rows = np.unique(mixed, return_inverse=True, return_counts=True)
    domains: list[Any] = []
    for level in reversed(levels):
        domains.insert(0, found % level.size)
        found = found // level.size
    listed = tuple(each.tolist() for each in domains)
    return SpreadLevels(levels, codes.astype(np.intp), rows, tuple(domains), listed, object())
