"""Labels over columns: a requirement on one becomes a comparison of codes on all nodes at once, and its values are the
domains that nodes are in."""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.node_selectors import NodeTerm
from kubenexus.api.selectors import Operator
from kubenexus.base.arrays import BoolColumn
from kubenexus.state.labels import matching
from kubenexus.state.view import Nodes


def rows_matching(term: NodeTerm, nodes: Nodes) -> BoolColumn:
    """The nodes on which every requirement of the term holds."""
    found: BoolColumn = np.ones(nodes.width, np.bool_)
    for wanted in term.labels:
        codes, column = nodes.label(wanted.key)
        found &= matching(wanted, codes, column)
    for wanted in term.names:
        named = nodes.named(wanted.values)
        found &= named if wanted.op is Operator.IN else ~named
    return found


class TopologyDomains(NamedTuple):
    """The domains of a topology: the code of each row's (0 where the node lacks the label), and the rows of each."""

    codes: Any
    rows: Any


def topology_domains(topology: str, nodes: Nodes) -> TopologyDomains:
    """Over all rows it is made once, until a node changes, and nobody may write into it."""
    column = nodes.columns.labels.column(topology)
    found: TopologyDomains = nodes.cached_until_node_change(("axis", column), lambda nodes: _axis(topology, nodes))
    return found


def domain_codes(topology: str, nodes: Nodes) -> Any:
    """The code of each row's domain, in the form that is quickest to look up by."""
    return topology_domains(topology, nodes).codes if nodes.rows is None else nodes.label(topology)[0]


def _axis(topology: str, nodes: Nodes) -> TopologyDomains:
    codes, column = nodes.label(topology)
    # NumPy looks up by native integers twice as quickly as by the labels' own.
    return TopologyDomains(codes.astype(np.intp), np.bincount(codes, minlength=len(column.values)))
