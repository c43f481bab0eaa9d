"""Matches node selector terms on all nodes at once: each requirement is a comparison of label codes."""

import numpy as np

from kubenexus.api.node_selectors import NodeTerm
from kubenexus.api.selectors import Operator
from kubenexus.base.arrays import BoolColumn
from kubenexus.state.labels import matching
from kubenexus.state.view import Nodes


def rows_matching(term: NodeTerm, nodes: Nodes) -> BoolColumn:
    """Returns the rows on which every requirement of the term holds."""
    found: BoolColumn = np.ones(nodes.width, np.bool_)
    for wanted in term.labels:
        codes, column = nodes.label(wanted.key)
        found &= matching(wanted, codes, column)
    for wanted in term.names:
        named = nodes.named(wanted.values)
        found &= named if wanted.op is Operator.IN else ~named
    return found
