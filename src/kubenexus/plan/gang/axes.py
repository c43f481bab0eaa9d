"""The levels of the topology as columns: which domain of a level each node is in, and which levels a gang may use."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.gangs.claim import Nearness
from kubenexus.api.gangs.levels import Level, level_of
from kubenexus.base.numbers import BoolColumn
from kubenexus.framework.job import Job
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


def levels_for(wish: Nearness, together: Sequence[str], known: Sequence[Level], nodes: NodeColumns) -> list[Axis]:
    """From the inside out: nodes, the levels above them that nodes have labels for, and what is required, for all
    members must be in one domain of the last; levels whose domains reach beyond that are left out. `together`: labels
    of which all members must have the same value."""
    outer: Axis | None = None
    for axis in _required(wish, together, known, nodes):
        outer = axis if outer is None else axis.cut(outer)
    wanted = [level.name for level in known[1:]]
    extra = level_of(wish.preferred, known) if wish.preferred else None
    levels = [*([extra] if extra is not None and extra.name not in wanted else []), *known[1:]]
    inner = [by_labels(level.name, level.keys, nodes) for level in levels]
    inner = [axis for axis in inner if axis.size > 1 and (outer is None or _inside(axis, outer))]
    return [hosts(nodes), *inner, outer or everywhere(nodes)]


def beside(job: Job, known: Sequence[Level], nodes: NodeColumns) -> BoolColumn | None:
    """The rows in that domain of the required level where members run already. None: there is no such domain, and the
    others may choose one."""
    anchors = [nodes.row_of[name] for name in job.anchors if name in nodes.row_of]
    if not job.topology.required or not anchors:
        return None
    level = level_of(job.topology.required, known)
    codes = by_labels(level.name, level.keys, nodes).codes
    taken = codes[anchors]
    found: BoolColumn | None = np.isin(codes, taken[taken != 0]) if taken.any() else None
    return found


def _inside(axis: Axis, outer: Axis) -> bool:
    return axis.level != outer.level and within(axis, outer)


def _required(wish: Nearness, together: Sequence[str], known: Sequence[Level], nodes: NodeColumns) -> list[Axis]:
    found = []
    if wish.required:
        level = level_of(wish.required, known)
        found.append(by_labels(level.name, level.keys, nodes))
    return found + [by_value(key, nodes) for key in together]
