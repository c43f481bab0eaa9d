"""Labels over columns: a requirement on one becomes a comparison of codes on all nodes at once, and its values are the
domains that nodes are in."""

from typing import Any, NamedTuple

import numpy as np

from kubenexus.api.node_selectors import Term
from kubenexus.api.selectors import Op
from kubenexus.base.numbers import BoolColumn
from kubenexus.state.labels import holds
from kubenexus.state.view import Nodes


def where(term: Term, nodes: Nodes) -> BoolColumn:
    """The nodes on which every requirement of the term holds."""
    found: BoolColumn = np.ones(nodes.width, np.bool_)
    for wanted in term.labels:
        codes, column = nodes.label(wanted.key)
        found &= holds(wanted, codes, column)
    for wanted in term.names:
        named = nodes.named(wanted.values)
        found &= named if wanted.op is Op.IN else ~named
    return found


class Axis(NamedTuple):
    """The domains of a topology: the code of each row's (0 where the node lacks the label), and the rows of each."""

    codes: Any
    rows: Any


def axis(topology: str, nodes: Nodes) -> Axis:
    """Over all rows it is made once, until a node changes, and nobody may write into it."""
    column = nodes.columns.labels.column(topology)
    found: Axis = nodes.remembered(("axis", column), lambda nodes: _axis(topology, nodes))
    return found


def codes_of(topology: str, nodes: Nodes) -> Any:
    """The code of each row's domain, in the form that is quickest to look up by."""
    return axis(topology, nodes).codes if nodes.rows is None else nodes.label(topology)[0]


def _axis(topology: str, nodes: Nodes) -> Axis:
    codes, column = nodes.label(topology)
    # NumPy looks up by native integers twice as quickly as by the labels' own.
    return Axis(codes.astype(np.intp), np.bincount(codes, minlength=len(column.values)))
