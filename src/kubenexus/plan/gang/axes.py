"""The levels of the topology as columns: which domain of a level each node is in."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.state.nodes import NodeColumns

HOST = "node"


class Axis(msgspec.Struct, gc=False):
    """One level. `codes[n]` is the domain of row n, 0 for none; `names` by code. `hosts`: every node is a domain of its
    own. The name does not say so: a label of nodes may be called `node`, too."""

    level: str
    codes: Any
    names: Sequence[str]
    hosts: bool = False

    @property
    def size(self) -> int:
        return len(self.names)

    def cut(self, outer: "Axis") -> "Axis":
        """The level's domains, cut where those of another level end, for no domain may reach beyond. A row that is in
        no domain of the other level is in none of this one either: nothing may be placed there."""
        if not within(self, outer):
            return _pieces(self, outer)
        beyond = (outer.codes == 0) & (self.codes != 0)
        return Axis(self.level, np.where(beyond, 0, self.codes), self.names) if beyond.any() else self


def within(axis: Axis, outer: Axis) -> bool:
    """Whether each domain of the level lies in a single domain of the other. Rows in no domain of the other are not
    looked at: the caller keeps members off them (`Axis.cut`, `Quest`)."""
    found, known = np.zeros(axis.size, np.int64), outer.codes != 0
    found[axis.codes[known]] = outer.codes[known]
    return bool((found[axis.codes] == outer.codes)[known & (axis.codes != 0)].all())


def _pieces(axis: Axis, outer: Axis) -> Axis:
    pairs = axis.codes * outer.size + outer.codes
    pairs[(axis.codes == 0) | (outer.codes == 0)] = 0
    found, codes = np.unique(np.append(0, pairs), return_inverse=True)
    parts = [divmod(pair, outer.size) for pair in found.tolist()]
    return Axis(axis.level, codes[1:], [f"{axis.names[a]} of {outer.level} {outer.names[b]}" for a, b in parts])


def everywhere(nodes: NodeColumns) -> Axis:
    """The whole cluster as one domain without a name."""
    found: Axis = nodes.remembered("everywhere", lambda: Axis("", np.ones(nodes.size, np.int64), ["", ""]))
    return found


def hosts(nodes: NodeColumns) -> Axis:
    """Every node by itself."""
    found: Axis = nodes.remembered("hosts", lambda: _hosts(nodes))
    return found


def _hosts(nodes: NodeColumns) -> Axis:
    return Axis(HOST, np.arange(1, nodes.size + 1), ["", *nodes.names], hosts=True)


def by_value(key: str, nodes: NodeColumns) -> Axis:
    """The values of one label as rules see them: the codes are those of the column."""
    column = nodes.labels.column(key)
    return Axis(key, column.codes[: nodes.size].astype(np.int64), column.values.names)


def by_labels(level: str, keys: Sequence[str], nodes: NodeColumns) -> Axis:
    """The level that a label stands for. Where a node lacks the first of several labels, the next one counts."""
    found: Axis = nodes.remembered(("axis", level, tuple(keys)), lambda: _by_labels(level, keys, nodes))
    return found


def _by_labels(level: str, keys: Sequence[str], nodes: NodeColumns) -> Axis:
    codes: Any = np.zeros(nodes.size, np.int64)
    known: dict[str, int] = {"": 0}
    for key in keys:
        column = nodes.labels.column(key)
        own = column.codes[: nodes.size]
        # The same value under another label is the same domain; an empty value is none.
        shared = np.array([known.setdefault(name, len(known)) for name in column.values.names], np.int64)
        codes = np.where(codes == 0, shared[own], codes)
    return Axis(level, codes, list(known))
