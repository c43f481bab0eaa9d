"""Selector terms over columns: a requirement on a label becomes a comparison of codes on all nodes at once."""

from typing import Any

import numpy as np

from kubenexus.api.node_selectors import Term
from kubenexus.api.selectors import Op, Requirement
from kubenexus.base.intern import ABSENT
from kubenexus.base.numbers import BoolColumn
from kubenexus.state.view import Nodes


def where(term: Term, nodes: Nodes) -> BoolColumn:
    """The nodes on which every requirement of the term holds."""
    found: BoolColumn = np.ones(nodes.width, np.bool_)
    for wanted in term.labels:
        found &= _labelled(wanted, nodes)
    for wanted in term.names:
        named = nodes.named(wanted.values)
        found &= named if wanted.op is Op.IN else ~named
    return found


def _labelled(wanted: Requirement, nodes: Nodes) -> Any:
    codes, column = nodes.label(wanted.key)
    match wanted.op:
        case Op.EXISTS:
            return codes != ABSENT
        case Op.DOES_NOT_EXIST:
            return codes == ABSENT
        case Op.IN if len(wanted.values) == 1:
            return codes == column.values.find(wanted.values[0])
        case Op.IN:
            return np.isin(codes, [column.values.find(value) for value in wanted.values])
        case Op.NOT_IN:
            return ~np.isin(codes, [column.values.find(value) for value in wanted.values])
    # Comparing as numbers: each distinct value is judged once, then looked up.
    holds = np.array([code != ABSENT and wanted.accepts(name) for code, name in enumerate(column.values.names)])
    return holds[codes]
