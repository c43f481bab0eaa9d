"""Selector terms over columns: a requirement on a label becomes a comparison of codes on all nodes at once."""

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
