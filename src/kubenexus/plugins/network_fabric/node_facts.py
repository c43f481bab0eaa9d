"""A node's place in the network, from its labels: the fabric it is on, its line rate, and the domains it is in.

All columns are computed once for all rows and cached until a node changes. Labels alone count: a clique that a device
driver numbers by itself (the DRA attribute `nvlink-domain`) has a meaning on its own node only.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kubenexus.api.gangs.levels import CLIQUE, topology_level
from kubenexus.api.keys import network
from kubenexus.api.keys.entry import KeyEntry, KeyKind
from kubenexus.api.keys.reading import read_key
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.topology import TopologyDomains, domains_of_level
from kubenexus.state.view import Nodes

# The tiers of fabrics, by the word in a label. A node without a readable label is of tier 0.
TIERS: Final[Mapping[str, int]] = {"nvswitch": 5, "nvlink": 4, "infiniband": 3, "roce": 2, "ethernet": 1}
UNKNOWN: Final = 0
FAST: Final = 200_000_000_000  # bits a second from which a node wins a tie
# From the outside in: the level, and the points of a node in a domain where a member of the job is.
_FABRIC: Final = "fabric"
CLOSENESS: Final[tuple[tuple[str, int], ...]] = (
    ("zone", 25),
    ("rack", 50),
    (_FABRIC, 75),
    ("tor", 75),
    (CLIQUE, 100),
)


def tier_of(labels: Mapping[str, str]) -> int:
    """Returns the tier of the fabric that a node's labels name."""
    return TIERS.get(read_key(network.FABRIC_TYPE, labels, {}).value or "", UNKNOWN)


def fabric_tiers(nodes: Nodes) -> Any:
    """Returns the tier of each row."""
    return _all_rows(nodes, network.FABRIC_TYPE, lambda word: TIERS[word])[nodes.where]


def has_fast_link(nodes: Nodes) -> Any:
    """Returns for each row whether its line rate is FAST or more."""
    return _all_rows(nodes, network.BANDWIDTH, int)[nodes.where] >= FAST


def closeness(rows: tuple[int, ...], nodes: Nodes) -> Any:
    """Returns for each row of the view how close it is to the nearest of `rows`: 0 to 100 points.

    A row without a label is in no domain of that level, and so not close to a row that has one, or to one that has
    none.
    """
    columns, placed = nodes.columns, np.array(rows, np.intp)
    points = np.zeros(columns.size, np.int64)
    for name, value in CLOSENESS:
        level = _domains(name, columns)
        if level.size > 1:
            here = np.zeros(level.size, np.bool_)
            here[level.codes[placed]] = True
            here[0] = False  # no domain
            points[here[level.codes]] = value
    points[placed] = 100
    return points[nodes.where]


def is_labelled(nodes: Nodes) -> bool:
    """Returns whether any node of the cluster has a label about its fabric or line rate."""
    rows_with = nodes.columns.labels.rows_with
    return any(rows_with(key) for entry in (network.FABRIC_TYPE, network.BANDWIDTH) for key in _labels(entry))


def _domains(name: str, columns: NodeColumns) -> TopologyDomains:
    keys = _labels(network.FABRIC_ID) if name == _FABRIC else topology_level(name).keys
    return domains_of_level(name, keys, columns)


def _all_rows(nodes: Nodes, entry: KeyEntry[Any], number: Any) -> Any:
    """Returns a number for each row of the cluster: that of the first label of the entry that can be read, else 0."""
    columns = nodes.columns
    return columns.cached_until_node_change(("fabric", entry.key), lambda: _read(columns, entry, number))


def _read(columns: NodeColumns, entry: KeyEntry[Any], number: Any) -> Any:
    found = np.zeros(columns.size, np.int64)
    for key in _labels(entry):
        if columns.labels.rows_with(key):
            column = columns.labels.column(key)
            values = [read_key(entry, {key: text}, {}).value for text in column.values.names]
            numbers = np.array([0 if value is None else number(value) for value in values], np.int64)
            found = np.where(found == 0, numbers[column.codes[: columns.size]], found)
    return found


def _labels(entry: KeyEntry[Any]) -> tuple[str, ...]:
    return tuple(each.key for each in entry.spellings if KeyKind.LABEL in each.kind)
