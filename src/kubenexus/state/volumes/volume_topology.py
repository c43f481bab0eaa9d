"""The nodes from which a volume can be used, by a node affinity, a class's topologies, or a capacity's topology.

All three are alternatives of requirements on node labels, and are compiled into the same form. Equal affinities share
one `VolumeTopology`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kubenexus.api.core import NodeSelector
from kubenexus.api.node_selectors import NodeTerm, parse_required
from kubenexus.api.selectors import LabelSelector, Operator, compile_selector, requirement, requirement_errors
from kubenexus.api.storage import TopologySelectorTerm
from kubenexus.base.errors import Malformed

Label = tuple[str, str]
_KEPT = 8192
_MAX_ENTRIES = 1_000  # terms, requirements and values that are read


class VolumeTopology(msgspec.Struct, frozen=True, gc=False):
    """The nodes whose labels satisfy one of these terms; without terms no node does. None instead of a topology: all
    nodes."""

    terms: tuple[NodeTerm, ...] = ()

    def admits(self, labels: Mapping[str, str]) -> bool:
        return any(all(wanted.accepts(labels.get(wanted.key)) for wanted in term.labels) for term in self.terms)

    @property
    def keys(self) -> set[str]:
        """The label keys that it uses: nodes with equal values of these are equivalent."""
        return {wanted.key for term in self.terms for wanted in term.labels}

    @property
    def simple(self) -> bool:
        """Whether each node with one of the `certain` labels is covered, without checking the terms."""
        return all(len(term.labels) == 1 and term.labels[0].op is Operator.IN for term in self.terms)

    @property
    def certain(self) -> set[Label | None]:
        """Labels of which every covered node has one. None is among them if a term has no such label: then any node may
        be covered."""
        return {label for term in self.terms for label in _certain(term)}


def topology_of_affinity(selector: NodeSelector) -> VolumeTopology:
    """Returns a volume's node affinity. Upstream matches it against the node's labels alone, so field requirements are
    matched against an empty name."""
    terms = selector.node_selector_terms
    _refuse_large(sum([_size(term.match_expressions) for term in terms]) + len(terms))
    return _of_node_affinity(_encoder.encode(selector))


def topology_of_class(terms: Sequence[TopologySelectorTerm]) -> VolumeTopology | None:
    """Returns a class's allowed topologies: None (all nodes) if there are none. Empty or invalid terms match no
    node."""
    _refuse_large(sum([_size(term.match_label_expressions) for term in terms]) + len(terms))
    return _of_topologies(_encoder.encode(terms)) if terms else None


def topology_of_capacity(selector: LabelSelector | None) -> VolumeTopology | None:
    """Returns the topology of a capacity: no node if missing or invalid, None (all nodes) if the selector is empty."""
    try:
        _refuse_large(0 if selector is None else selector.size)
        compiled = compile_selector(selector)
    except Malformed:
        return VolumeTopology()
    if compiled.nothing:
        return VolumeTopology()
    return VolumeTopology((NodeTerm(compiled.requirements),)) if compiled.requirements else None


def is_admitted(reach: VolumeTopology | None, labels: Mapping[str, str]) -> bool:
    return reach is None or reach.admits(labels)


def _size(wanted: Sequence[Any]) -> int:
    return len(wanted) + sum([len(each.values) for each in wanted])


def _refuse_large(size: int) -> None:
    """Raises Malformed above the limit: the topology is matched on every node for every pod that may use the volume."""
    if size > _MAX_ENTRIES:
        raise Malformed(f"node affinity or topology has {size} entries; at most {_MAX_ENTRIES} are read")


_encoder = msgspec.msgpack.Encoder(order="deterministic")


@lru_cache(maxsize=_KEPT)
def _of_node_affinity(encoded: bytes) -> VolumeTopology:
    parsed = parse_required(msgspec.msgpack.decode(encoded, type=NodeSelector))
    named = [term for term in parsed.terms if all(wanted.accepts("") for wanted in term.names)]
    return VolumeTopology(tuple(NodeTerm(term.labels) for term in named))


@lru_cache(maxsize=_KEPT)
def _of_topologies(encoded: bytes) -> VolumeTopology:
    terms = msgspec.msgpack.decode(encoded, type=list[TopologySelectorTerm])
    asked = [term.match_label_expressions for term in terms]
    readable = [
        each for each in asked if each and not any(requirement_errors(e.key, Operator.IN, e.values) for e in each)
    ]
    return VolumeTopology(
        tuple(NodeTerm(tuple(requirement(e.key, Operator.IN, e.values) for e in each)) for each in readable)
    )


def _certain(term: NodeTerm) -> set[Label | None]:
    for wanted in term.labels:
        if wanted.op is Operator.IN:
            return {(wanted.key, value) for value in wanted.values}
    return {None}
