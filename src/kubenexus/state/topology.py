"""The domains of a topology level: which domain each node is in.

A level is a node label, several labels of which the first that a node has counts, every node by itself, or the whole
cluster. The gang planner, PodTopologySpread and InterPodAffinity all use `TopologyDomains`. What is derived from the
nodes alone is cached until a node changes; no caller may write into it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

HOST = "node"


class TopologyDomains(msgspec.Struct, gc=False):
    """One level over the rows of a view.

    `codes[n]` is the domain of row n, 0 where the node is in none, and `names` are the domains by code. With
    `is_node_level` every node is a domain of its own. `level` cannot express that, since a label of nodes may be called
    `node` as well.
    """

    level: str
    codes: Any
    names: Sequence[str]
    is_node_level: bool = False
    _row_counts: Any = None

    @property
    def size(self) -> int:
        """The number of codes, 0 included."""
        return len(self.names)

    @property
    def row_counts(self) -> Any:
        """How many rows each code has, counted at the first use."""
        if self._row_counts is None:
            self._row_counts = np.bincount(self.codes, minlength=self.size)
        return self._row_counts

    def split_by(self, outer: "TopologyDomains") -> "TopologyDomains":
        """Returns the level with its domains cut at the borders of the outer level's domains.

        A row in no domain of the outer level is in none of the result either: nothing may be placed there.
        """
        if not is_nested(self, outer):
            return _pieces(self, outer)
        beyond = (outer.codes == 0) & (self.codes != 0)
        return TopologyDomains(self.level, np.where(beyond, 0, self.codes), self.names) if beyond.any() else self


def is_nested(level: TopologyDomains, outer: TopologyDomains) -> bool:
    """Whether each domain of the level lies in a single domain of the outer one.

    Rows in no domain of the outer level do not count: callers keep members off them (`TopologyDomains.split_by`,
    `GangSolver`).
    """
    found, known = np.zeros(level.size, np.int64), outer.codes != 0
    found[level.codes[known]] = outer.codes[known]
    return bool((found[level.codes] == outer.codes)[known & (level.codes != 0)].all())


def whole_cluster(nodes: NodeColumns) -> TopologyDomains:
    """Returns the whole cluster as one domain without a name."""
    found: TopologyDomains = nodes.cached_until_node_change(
        "everywhere", lambda: TopologyDomains("", np.ones(nodes.size, np.int64), ["", ""])
    )
    return found


def node_level(nodes: NodeColumns) -> TopologyDomains:
    """Returns the level on which every node is a domain of its own."""
    found: TopologyDomains = nodes.cached_until_node_change("hosts", lambda: _hosts(nodes))
    return found


def domains_of_label(key: str, nodes: Nodes) -> TopologyDomains:
    """Returns the values of one label as domains. The codes are those of the label's column."""
    column = nodes.columns.labels.column(key)
    found: TopologyDomains = nodes.cached_until_node_change(("axis", column), lambda nodes: _by_label(key, nodes))
    return found


def domain_codes(key: str, nodes: Nodes) -> Any:
    """Returns the code of each row's domain, in the form that is cheapest to get: cached, or the column's own."""
    return domains_of_label(key, nodes).codes if nodes.rows is None else nodes.label(key)[0]


def domains_of_level(level: str, keys: Sequence[str], nodes: NodeColumns) -> TopologyDomains:
    """Returns the level that several labels stand for. Where a node lacks the first label, the next one counts."""
    found: TopologyDomains = nodes.cached_until_node_change(
        ("axis", level, tuple(keys)), lambda: _by_labels(level, keys, nodes)
    )
    return found


def _hosts(nodes: NodeColumns) -> TopologyDomains:
    return TopologyDomains(HOST, np.arange(1, nodes.size + 1), ["", *nodes.names], is_node_level=True)


def _by_label(key: str, nodes: Nodes) -> TopologyDomains:
    codes, column = nodes.label(key)
    # NumPy looks up by native integers twice as quickly as by the labels' own.
    return TopologyDomains(key, codes.astype(np.intp), column.values.names)


def _by_labels(level: str, keys: Sequence[str], nodes: NodeColumns) -> TopologyDomains:
    codes: Any = np.zeros(nodes.size, np.int64)
    known: dict[str, int] = {"": 0}
    for key in keys:
        column = nodes.labels.column(key)
        own = column.codes[: nodes.size]
        # The same value under another label is the same domain; an empty value is none.
        shared = np.array([known.setdefault(name, len(known)) for name in column.values.names], np.int64)
        codes = np.where(codes == 0, shared[own], codes)
    return TopologyDomains(level, codes, list(known))


def _pieces(level: TopologyDomains, outer: TopologyDomains) -> TopologyDomains:
    pairs = level.codes * outer.size + outer.codes
    pairs[(level.codes == 0) | (outer.codes == 0)] = 0
    found, codes = np.unique(np.append(0, pairs), return_inverse=True)
    parts = [divmod(pair, outer.size) for pair in found.tolist()]
    return TopologyDomains(
        level.level, codes[1:], [f"{level.names[a]} of {outer.level} {outer.names[b]}" for a, b in parts]
    )
