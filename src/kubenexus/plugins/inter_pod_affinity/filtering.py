"""The filter of InterPodAffinity: which rows the terms of a class, and those of existing pods, refuse."""

import numpy as np

from kubenexus.base.arrays import BoolColumn
from kubenexus.plugins.inter_pod_affinity.class_affinity import ClassAffinity, Refusals
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.pod_counter import PodCounter
from kubenexus.state.topology import domain_codes, domains_of_label
from kubenexus.state.view import Nodes, OneNode

_MANY_ROWS = 64  # rows: to filter more than these costs as much as to filter all


def find_refusals(affinity: ClassAffinity, nodes: Nodes) -> Refusals:
    """Returns the rows that each kind of required terms refuses."""
    refusing = affinity.existing_terms(nodes.columns).refusing
    far = ~_meets_affinity(affinity, nodes) if affinity.required_affinity else None
    return far, _any(affinity.required_anti_affinity, nodes), _any(refusing, nodes)


def rows_of_domain(topology: str, row: int, nodes: NodeColumns) -> list[int] | None:
    """Returns all rows of this row's domain, or None if there are more than `_MANY_ROWS`."""
    domains = domains_of_label(topology, Nodes(nodes))
    codes = domains.codes
    code = codes.item(row)
    if not code:
        return []
    size = domains.row_counts.item(code)
    if size == 1:  # as with hostnames
        return [row]
    rows: list[int] | None = None if size > _MANY_ROWS else (codes == code).nonzero()[0].tolist()
    return rows


def _meets_affinity(affinity: ClassAffinity, nodes: Nodes) -> BoolColumn:
    """Returns the rows that meet all required affinity terms. If no pod is selected yet and the terms select the pod
    itself, these are all rows with the topology labels."""
    terms = affinity.required_affinity
    labels = [(domain_codes(topology, nodes), counter.by_domain(topology) > 0) for topology, counter in terms]
    for _, some in labels:
        some[0] = False  # nodes without the label are in no domain
    none_selected = not any([np.count_nonzero(some) for _, some in labels])  # noqa: C419
    if none_selected and affinity.affinity_selects_itself:
        return _all([codes != 0 for codes, _ in labels])
    return _all([some.take(codes) for codes, some in labels])


def _all(masks: list[BoolColumn]) -> BoolColumn:
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)


def has_pod_in_domain(topology: str, counter: PodCounter, node: OneNode) -> bool:
    """Returns whether the counter has a pod in the node's domain."""
    code = node.columns.labels.column(topology).codes.item(node.row)
    return bool(code) and counter.by_domain(topology).item(code) > 0


def _any(terms: list[tuple[str, PodCounter]], nodes: Nodes) -> BoolColumn | None:
    """Returns the rows in whose domain any of the terms counts a pod, or None if there are no terms."""
    found, by_topology = None, dict[str, list[PodCounter]]()
    for topology, counter in terms:
        by_topology.setdefault(topology, []).append(counter)
    for topology, counters in by_topology.items():  # by topology: a thousand terms may have a handful of them
        codes = domain_codes(topology, nodes)
        some = np.zeros(len(nodes.columns.labels.column(topology).values), np.bool_)
        for counter in counters:
            counter.mark(topology, some)
        some[0] = False
        here = some.take(codes)
        found = here if found is None else found | here
    return found
