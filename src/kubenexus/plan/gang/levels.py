"""Which levels of the topology a gang may choose its site from."""

from collections.abc import Sequence

import numpy as np

from kubenexus.api.gangs.levels import Level, level_of
from kubenexus.base.numbers import BoolColumn
from kubenexus.framework.job import Job, Topology
from kubenexus.plan.gang.axes import Axis, by_labels, by_value, everywhere, hosts, within
from kubenexus.state.nodes import NodeColumns


def levels_for(wish: Topology, together: Sequence[str], known: Sequence[Level], nodes: NodeColumns) -> list[Axis]:
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


def _required(wish: Topology, together: Sequence[str], known: Sequence[Level], nodes: NodeColumns) -> list[Axis]:
    found = []
    if wish.required:
        level = level_of(wish.required, known)
        found.append(by_labels(level.name, level.keys, nodes))
    return found + [by_value(key, nodes) for key in together]
