"""The levels of the topology as columns: which domain of a level each node is in, and which levels a gang may use."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.gangs.levels import TopologyLevel, topology_level
from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.job import Job
from kubenexus.state.nodes import NodeColumns

HOST = "node"


class TopologyDomains(msgspec.Struct, gc=False):
    """One level. `codes[n]` is the domain of row n, 0 for none; `names` by code. `is_node_level`: every node is a
    domain of its own. The name does not say so: a label of nodes may be called `node`, too."""

    level: str
    codes: Any
    names: Sequence[str]
    is_node_level: bool = False

    @property
    def size(self) -> int:
        return len(self.names)

    def split_by(self, outer: "TopologyDomains") -> "TopologyDomains":
        """The level's domains, cut where those of another level end, for no domain may reach beyond. A row that is in
        no domain of the other level is in none of this one either: nothing may be placed there."""
        if not is_nested(self, outer):
            return _pieces(self, outer)
        beyond = (outer.codes == 0) & (self.codes != 0)
        return TopologyDomains(self.level, np.where(beyond, 0, self.codes), self.names) if beyond.any() else self


def is_nested(level: TopologyDomains, outer: TopologyDomains) -> bool:
    """Whether each domain of the level lies in a single domain of the other. Rows in no domain of the other are not
    looked at: the caller keeps members off them (`TopologyDomains.split_by`, `GangSolver`)."""
    found, known = np.zeros(level.size, np.int64), outer.codes != 0
    found[level.codes[known]] = outer.codes[known]
    return bool((found[level.codes] == outer.codes)[known & (level.codes != 0)].all())


def _pieces(level: TopologyDomains, outer: TopologyDomains) -> TopologyDomains:
    pairs = level.codes * outer.size + outer.codes
    pairs[(level.codes == 0) | (outer.codes == 0)] = 0
    found, codes = np.unique(np.append(0, pairs), return_inverse=True)
    parts = [divmod(pair, outer.size) for pair in found.tolist()]
    return TopologyDomains(
        level.level, codes[1:], [f"{level.names[a]} of {outer.level} {outer.names[b]}" for a, b in parts]
    )


def whole_cluster(nodes: NodeColumns) -> TopologyDomains:
    """The whole cluster as one domain without a name."""
    found: TopologyDomains = nodes.cached_until_node_change(
        "everywhere", lambda: TopologyDomains("", np.ones(nodes.size, np.int64), ["", ""])
    )
    return found


def node_level(nodes: NodeColumns) -> TopologyDomains:
    """Every node by itself."""
    found: TopologyDomains = nodes.cached_until_node_change("hosts", lambda: _hosts(nodes))
    return found


def _hosts(nodes: NodeColumns) -> TopologyDomains:
    return TopologyDomains(HOST, np.arange(1, nodes.size + 1), ["", *nodes.names], is_node_level=True)


def domains_of_label(key: str, nodes: NodeColumns) -> TopologyDomains:
    """The values of one label as rules see them: the codes are those of the column."""
    column = nodes.labels.column(key)
    return TopologyDomains(key, column.codes[: nodes.size].astype(np.int64), column.values.names)


def domains_of_level(level: str, keys: Sequence[str], nodes: NodeColumns) -> TopologyDomains:
    """The level that a label stands for. Where a node lacks the first of several labels, the next one counts."""
    found: TopologyDomains = nodes.cached_until_node_change(
        ("axis", level, tuple(keys)), lambda: _by_labels(level, keys, nodes)
    )
    return found


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


def candidate_levels(
    wish: TopologyRequest, together: Sequence[str], known: Sequence[TopologyLevel], nodes: NodeColumns
) -> list[TopologyDomains]:
    """From the inside out: nodes, the levels above them that nodes have labels for, and what is required, for all
    members must be in one domain of the last; levels whose domains reach beyond that are left out. `together`: labels
    of which all members must have the same value."""
    outer: TopologyDomains | None = None
    for axis in _required(wish, together, known, nodes):
        outer = axis if outer is None else axis.split_by(outer)
    wanted = [level.name for level in known[1:]]
    extra = topology_level(wish.preferred, known) if wish.preferred else None
    levels = [*([extra] if extra is not None and extra.name not in wanted else []), *known[1:]]
    inner = [domains_of_level(level.name, level.keys, nodes) for level in levels]
    inner = [axis for axis in inner if axis.size > 1 and (outer is None or _inside(axis, outer))]
    return [node_level(nodes), *inner, outer or whole_cluster(nodes)]


def beside(job: Job, known: Sequence[TopologyLevel], nodes: NodeColumns) -> BoolColumn | None:
    """The rows in that domain of the required level where members run already. None: there is no such domain, and the
    others may choose one."""
    anchors = [nodes.row_of[name] for name in job.bound_nodes if name in nodes.row_of]
    if not job.topology.required or not anchors:
        return None
    level = topology_level(job.topology.required, known)
    codes = domains_of_level(level.name, level.keys, nodes).codes
    taken = codes[anchors]
    found: BoolColumn | None = np.isin(codes, taken[taken != 0]) if taken.any() else None
    return found


def _inside(level: TopologyDomains, outer: TopologyDomains) -> bool:
    return level.level != outer.level and is_nested(level, outer)


def _required(
    wish: TopologyRequest, together: Sequence[str], known: Sequence[TopologyLevel], nodes: NodeColumns
) -> list[TopologyDomains]:
    found = []
    if wish.required:
        level = topology_level(wish.required, known)
        found.append(domains_of_level(level.name, level.keys, nodes))
    return found + [domains_of_label(key, nodes) for key in together]
