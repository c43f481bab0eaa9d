"""Node selectors: the rules one would not guess, and a naive twin."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.codec import from_data
from kubenexus.api.core import NodeSelector, PreferredSchedulingTerm
from kubenexus.api.node_selectors import (
    NodeTerm,
    matches,
    node_selector_term,
    parse_preferred,
    parse_required,
    required_node_names,
)
from kubenexus.base.errors import Malformed
from tests.api import reference
from tests.api.oracle import steady

Json = dict[str, Any]

keys = st.sampled_from(["zone", "disk", "gen"])
values = st.sampled_from(["", "a", "b", "7", "10", "007"])
names = st.sampled_from(["n1", "n2", ""])
expressions = st.one_of(
    st.builds(
        lambda k, o, v: {"key": k, "operator": o, "values": v},
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=3),
    ),
    st.builds(lambda k, o: {"key": k, "operator": o}, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        lambda k, o, v: {"key": k, "operator": o, "values": [v]},
        keys,
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from(["7", "8", "007"]),
    ),
)
fields = st.builds(
    lambda k, o, v: {"key": k, "operator": o, "values": [v]},
    st.sampled_from(["metadata.name", "metadata.name", "metadata.uid"]),
    st.sampled_from(["In", "NotIn"]),
    names,
)
terms = st.fixed_dictionaries(
    {"matchExpressions": st.lists(expressions, max_size=3), "matchFields": st.lists(fields, max_size=2)}
)
labels = st.dictionaries(keys, values | st.sampled_from(["-9", "9223372036854775808", "x7"]), max_size=3)


def naively(term: Json, name: str, labels: dict[str, str]) -> bool:
    if not term["matchExpressions"] and not term["matchFields"]:
        return False
    node = {"metadata.name": name, "metadata.uid": ""}
    return all(reference.holds(each, labels) for each in term["matchExpressions"]) and all(
        reference.holds(each, node) for each in term["matchFields"]
    )


@steady
@given(st.lists(terms, max_size=3), st.sampled_from(["n1", "n2"]), labels)
def test_terms_are_alternatives_as_the_naive_twin_reads_them(
    data: list[Json], name: str, labels: dict[str, str]
) -> None:
    parsed = parse_required(from_data({"nodeSelectorTerms": data}, NodeSelector))
    assert not parsed.problem
    assert parsed.matches(name, labels) == any(naively(term, name, labels) for term in data)


@steady
@given(st.lists(terms, max_size=3), labels)
def test_a_pinned_selector_matches_no_other_node(data: list[Json], labels: dict[str, str]) -> None:
    selector = from_data({"nodeSelectorTerms": data}, NodeSelector)
    pinned = required_node_names(selector)
    if pinned is not None:
        assert not any(parse_required(selector).matches(name, labels) for name in {"n1", "n2", "n3"} - pinned)


def selector(*terms: Json) -> NodeSelector:
    return from_data({"nodeSelectorTerms": list(terms)}, NodeSelector)


def expression(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(key: str, operator: str, *values: str) -> Json:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def test_no_term_and_empty_terms_match_nothing() -> None:
    assert not parse_required(NodeSelector()).matches("n1", {"a": "b"})
    assert not parse_required(selector({}, {})).matches("n1", {"a": "b"})


def test_a_term_without_requirements_left_matches_everything() -> None:
    # Only parsing can leave such a term: the API's empty term is gone before.
    assert matches(NodeTerm(), "n1", {})
    assert parse_required(selector(field("metadata.uid", "In", ""))).matches("n1", {})


def test_an_unparsable_term_is_passed_over() -> None:
    parsed = parse_required(selector(expression("gen", "Gt", "x"), expression("zone", "In", "a")))
    assert parsed.matches("n1", {"zone": "a"})
    assert not parsed.matches("n1", {"zone": "b", "gen": "9"})
    assert parsed.problem.startswith("nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value:")


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        (
            expression("gen", "Gt", "1.5"),
            "values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            expression("gen", "Gt"),
            "values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        (
            expression("gen", "gt", "1"),
            'operator: Unsupported value: "gt": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        ),
        (field("metadata.name", "Exists"), 'operator: Unsupported value: "Exists": supported values: "In", "NotIn"'),
        (field("metadata.name", "In"), "values: Invalid value: null: must have one element"),
        (field("metadata.name", "In", "a", "b"), 'values: Invalid value: ["a","b"]: must have one element'),
    ],
)
def test_what_cannot_be_parsed_says_why(term: Json, problem: str) -> None:
    kind = next(iter(term))
    assert parse_required(selector(term)).problem == f"nodeSelectorTerms[0].{kind}[0].{problem}"
    with pytest.raises(Malformed) as raised:
        parse_preferred([from_data({"weight": 1, "preference": term}, PreferredSchedulingTerm)])
    assert str(raised.value) == f"[0].{kind}[0].{problem}"


def test_a_negative_operand_is_no_label_value() -> None:
    problem = parse_required(selector(expression("gen", "Lt", "-5"))).problem
    assert problem.startswith('nodeSelectorTerms[0].matchExpressions[0].values[0][gen]: Invalid value: "-5": a valid')


def test_preferences_without_weight_or_content_are_skipped_even_if_broken() -> None:
    skipped = [{"weight": 0, "preference": expression("gen", "Gt", "x")}, {"weight": 5, "preference": {}}]
    counted = {"weight": 7, "preference": expression("zone", "In", "a")}
    parsed = parse_preferred(from_data([*skipped, counted], list[PreferredSchedulingTerm]))
    assert [each.weight for each in parsed] == [7]


def test_two_problems_are_told_together_and_each_once() -> None:
    broken = {"weight": 1, "preference": expression("gen", "Gt", "x")}
    with pytest.raises(Malformed) as raised:
        parse_preferred(from_data([broken, broken], list[PreferredSchedulingTerm]))
    assert str(raised.value).startswith("[[0].matchExpressions")
    assert str(raised.value).count("must be an integer") == 2


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], None, id="no terms"),
        pytest.param([field("metadata.name", "In", "n1")], {"n1"}, id="one name"),
        pytest.param([field("metadata.name", "In", "n1"), expression("a", "Exists")], None, id="one term is free"),
        pytest.param([field("metadata.name", "NotIn", "n1")], None, id="all but one"),
        pytest.param(
            [field("metadata.name", "In", "n1"), field("metadata.name", "In", "n2")], {"n1", "n2"}, id="either"
        ),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]}],
            set(),
            id="both at once",
        ),
    ],
)
def test_named_nodes(terms: list[Json], expected: set[str] | None) -> None:
    assert required_node_names(selector(*terms)) == expected


def test_a_node_selector_of_a_pod_must_hold_exactly() -> None:
    term = node_selector_term({"zone": "a", "disk": ""})
    assert matches(term, "n1", {"zone": "a", "disk": "", "more": "x"})
    assert not matches(term, "n1", {"zone": "a"})
    assert matches(node_selector_term({}), "n1", {})
    assert term.keys == {"zone", "disk"}
