"""Node selectors, parsed into requirements: the nodes that a pod requires or prefers.

This module only parses. The NodeAffinity plugin compiles the terms into masks over label columns. `matches` below
evaluates the same terms for a single node, and is the reference in tests.

Upstream's rules, some of them surprising:

- terms are alternatives, and an *empty* term matches nothing;
- a required term that cannot be parsed is skipped: the node does not match by it, but may match by another term
  (the API server admits no such term, but old objects and test data have them);
- a preferred term that cannot be parsed fails the whole attempt, with an error that names its place;
- Gt and Lt compare whole numbers, and their operand must be a valid label value, so it cannot be negative;
- of a node's fields only `metadata.name` exists; any other one reads as empty.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubenexus.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from kubenexus.api.selectors import Operator, Requirement, aggregate, quote, requirement, requirement_errors
from kubenexus.base.errors import Malformed, truncated

NAME_FIELD: Final = "metadata.name"
# The node's name again, in a requirement that the scheduler adds to a pod: nodes whose kubelet refused equal pods. The
# API server admits no field but `metadata.name` in a pod, so no pod arrives with this one.
REFUSING_FIELD: Final = "refused.kubenexus.io/name"

_NEVER: Final = Requirement(NAME_FIELD, Operator.IN, ())
_OPERATORS: Final = {op.value: op for op in Operator}
_FIELD_OPERATORS: Final = {op.value: op for op in (Operator.IN, Operator.NOT_IN)}


class NodeTerm(msgspec.Struct, frozen=True, gc=False):
    """Requirements on labels and on the node's name, all of which must hold. A term without requirements always
    holds."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(wanted.key for wanted in self.labels)

    @property
    def wanted(self) -> "NodeTerm":
        """The term without the requirements that the scheduler added."""
        return NodeTerm(self.labels, tuple(each for each in self.names if each.key != REFUSING_FIELD))


class RequiredTerms(msgspec.Struct, frozen=True, gc=False):
    """The alternatives that were parsed; `problem` describes the others."""

    terms: tuple[NodeTerm, ...] = ()
    problem: str = ""

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(matches(term, name, labels) for term in self.terms)


class Preference(msgspec.Struct, frozen=True, gc=False):
    """A preferred term, and the weight that a matching node gets."""

    weight: int
    term: NodeTerm


def matches(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Returns whether a node with this name and these labels satisfies the term."""
    return all(wanted.accepts(labels.get(wanted.key)) for wanted in term.labels) and all(
        wanted.accepts(name) for wanted in term.names
    )


def parse_required(selector: NodeSelector) -> RequiredTerms:
    """Parses the terms of a required node affinity, or of a volume's node affinity."""
    terms, problems = [], []
    for index, term in enumerate(selector.node_selector_terms):
        if _is_empty(term):
            continue
        found = _term_flaws(term, f"nodeSelectorTerms[{index}]")
        if found:
            problems.extend(found)
        else:
            terms.append(_term(term))
    return RequiredTerms(tuple(terms), aggregate(problems) if problems else "")


def parse_preferred(preferences: Iterable[PreferredSchedulingTerm]) -> tuple[Preference, ...]:
    """Parses the preferences that count. Raises Malformed with upstream's text if one of these cannot be parsed."""
    counted, problems = [], []
    for index, preference in enumerate(preferences):
        if preference.weight == 0 or _is_empty(preference.preference):
            continue
        found = _term_flaws(preference.preference, f"[{index}]")
        if found:
            problems.extend(found)
        else:
            counted.append(Preference(preference.weight, _term(preference.preference)))
    if problems:
        raise Malformed(aggregate(problems))
    return tuple(counted)


def node_selector_term(labels: Mapping[str, str]) -> NodeTerm:
    """Returns a pod's `nodeSelector` as a term. Upstream does not validate it: an impossible value matches no node."""
    return NodeTerm(tuple(Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels.items())))


def required_node_names(selector: NodeSelector) -> frozenset[str] | None:
    """Returns the only nodes a selector can match, if *every* term names some by `metadata.name In`; else None.

    An empty set means that the names contradict each other. As upstream, it reads the raw terms, valid or not.
    """
    names: set[str] = set()
    for term in selector.node_selector_terms:
        if not term.match_fields:
            return None
        allowed = [
            set(wanted.values) for wanted in term.match_fields if (wanted.key, wanted.operator) == (NAME_FIELD, "In")
        ]
        if not allowed:
            return None
        names |= set.intersection(*allowed)
    return frozenset(names) if selector.node_selector_terms else None


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _term(term: NodeSelectorTerm) -> NodeTerm:
    labels = tuple(
        requirement(wanted.key, _OPERATORS[wanted.operator], wanted.values) for wanted in term.match_expressions
    )
    return NodeTerm(labels, tuple(_names(term.match_fields)))


def _names(wanted: Sequence[NodeSelectorRequirement]) -> Iterable[Requirement]:
    """Yields requirements on the name. Requirements on other fields are decided here."""
    for field in wanted:
        op = _FIELD_OPERATORS[field.operator]
        if field.key in (NAME_FIELD, REFUSING_FIELD):
            yield Requirement(field.key, op, tuple(field.values))
        elif (op is Operator.IN) != (field.values[0] == ""):
            yield _NEVER


def _term_flaws(term: NodeSelectorTerm, path: str) -> list[str]:
    found = []
    for index, wanted in enumerate(term.match_expressions):
        place, op = f"{path}.matchExpressions[{index}]", _OPERATORS.get(wanted.operator)
        found.extend(
            requirement_errors(wanted.key, op, wanted.values, place)
            if op
            else [_unsupported(wanted, place, _OPERATORS)]
        )
    for index, wanted in enumerate(term.match_fields):
        place = f"{path}.matchFields[{index}]"
        if wanted.operator not in _FIELD_OPERATORS:
            found.append(_unsupported(wanted, place, _FIELD_OPERATORS))
        elif len(wanted.values) != 1:
            listed = truncated(msgspec.json.encode(wanted.values).decode()) if wanted.values else "null"
            found.append(f"{place}.values: Invalid value: {listed}: must have one element")
    return found


def _unsupported(wanted: NodeSelectorRequirement, place: str, operators: Iterable[str]) -> str:
    supported = ", ".join(quote(operator) for operator in operators)
    return f"{place}.operator: Unsupported value: {quote(wanted.operator)}: supported values: {supported}"
