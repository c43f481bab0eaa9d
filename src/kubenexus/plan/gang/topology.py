"""The topology levels that a gang may use, from the innermost to the outermost."""

from collections.abc import Sequence

import numpy as np

from kubenexus.api.gangs.declaration import TopologyRequest
from kubenexus.api.gangs.levels import TopologyLevel, topology_level
from kubenexus.base.arrays import BoolColumn
from kubenexus.framework.job import Job
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.topology import (
    TopologyDomains,
    domains_of_label,
    domains_of_level,
    is_nested,
    node_level,
    whole_cluster,
)
from kubenexus.state.view import Nodes


def candidate_levels(
    request: TopologyRequest, together: Sequence[str], known: Sequence[TopologyLevel], nodes: NodeColumns
) -> list[TopologyDomains]:
    """Returns the nodes, the levels above them that nodes have labels for, and last the required level.

    All members must be in one domain of the last level; without a requirement that is the whole cluster. Levels whose
    domains reach beyond it are left out. `together` are labels of which all members must have the same value.
    """
    outer: TopologyDomains | None = None
    for required in _required(request, together, known, nodes):
        outer = required if outer is None else required.split_by(outer)
    wanted = [level.name for level in known[1:]]
    extra = topology_level(request.preferred, known) if request.preferred else None
    named = [*([extra] if extra is not None and extra.name not in wanted else []), *known[1:]]
    inner = [domains_of_level(level.name, level.keys, nodes) for level in named]
    inner = [level for level in inner if level.size > 1 and (outer is None or _inside(level, outer))]
    return [node_level(nodes), *inner, outer or whole_cluster(nodes)]


def beside(job: Job, known: Sequence[TopologyLevel], nodes: NodeColumns) -> BoolColumn | None:
    """Returns the rows in the domain of the required level where members run already.

    None: there is no such domain, and the planner may choose one.
    """
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
    request: TopologyRequest, together: Sequence[str], known: Sequence[TopologyLevel], nodes: NodeColumns
) -> list[TopologyDomains]:
    found = []
    if request.required:
        level = topology_level(request.required, known)
        found.append(domains_of_level(level.name, level.keys, nodes))
    return found + [domains_of_label(key, Nodes(nodes)) for key in together]
