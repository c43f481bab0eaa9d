"""Label selectors: what nothing and everything mean, what is refused, and a naive twin."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.codec import from_data
from kubenexus.api.selectors import LabelSelector, Operator, Requirement, compile_selector, is_label_key, parse_int64
from kubenexus.base.errors import Malformed
from tests.api import reference
from tests.api.oracle import steady

Json = dict[str, Any]

keys = st.sampled_from(["app", "tier", "x.io/y"])
values = st.sampled_from(["", "web", "db", "10", "9"])
labels = st.dictionaries(keys, values, max_size=3)
several = st.builds(
    lambda key, op, values: {"key": key, "operator": op, "values": values},
    keys,
    st.sampled_from(["In", "NotIn"]),
    st.lists(values, min_size=1, max_size=4),
)
bare = st.builds(lambda key, op: {"key": key, "operator": op}, keys, st.sampled_from(["Exists", "DoesNotExist"]))
selectors = st.none() | st.fixed_dictionaries(
    {}, optional={"matchLabels": labels, "matchExpressions": st.lists(several | bare, max_size=3)}
)


@steady
@given(selectors, st.lists(labels, min_size=1, max_size=4))
def test_a_selector_selects_what_the_naive_twin_selects(data: Json | None, sets: list[dict[str, str]]) -> None:
    selector = compile_selector(None if data is None else from_data(data, LabelSelector))
    assert [selector.matches(each) for each in sets] == [reference.selects(data, each) for each in sets]


@steady
@given(selectors, labels)
def test_only_the_keys_it_asks_for_matter(data: Json | None, each: dict[str, str]) -> None:
    selector = compile_selector(None if data is None else from_data(data, LabelSelector))
    projected = {key: value for key, value in each.items() if key in selector.keys}
    assert selector.matches(projected) == selector.matches(each)
    assert selector.keys == (set() if data is None else from_data(data, LabelSelector).keys())


def test_none_selects_nothing_and_empty_selects_everything() -> None:
    assert not compile_selector(None).matches({})
    assert not compile_selector(None).matches({"app": "web"})
    assert compile_selector(LabelSelector()).matches({})
    assert compile_selector(LabelSelector()).matches({"app": "web"})


def test_two_ways_to_say_the_same_give_equal_requirements() -> None:
    short = compile_selector(from_data({"matchLabels": {"app": "web"}}, LabelSelector))
    long = compile_selector(
        from_data({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, LabelSelector)
    )
    assert short.requirements == long.requirements == (Requirement("app", Operator.IN, ("web",)),)
    assert (str(short), str(long)) == ("app=web", "app in (web)")


def test_the_canonical_form_is_sorted_by_key_and_value() -> None:
    data = {
        "matchLabels": {"z": "1", "b": "2"},
        "matchExpressions": [
            {"key": "m", "operator": "NotIn", "values": ["y", "x", "y"]},
            {"key": "a", "operator": "DoesNotExist"},
            {"key": "c", "operator": "Exists"},
        ],
    }
    assert str(compile_selector(from_data(data, LabelSelector))) == "!a,b=2,c,m notin (x,y,y),z=1"


@pytest.mark.parametrize(
    ("key", "operator", "values", "message"),
    [
        ("app", "Gt", ["1"], '"Gt" is not a valid label selector operator'),
        ("app", "", [], '"" is not a valid label selector operator'),
        ("app", "In", [], "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (
            "app",
            "Exists",
            ["x"],
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
        ("", "Exists", [], 'key: Invalid value: "": name part must be non-empty; name part must consist of'),
        ("/x", "Exists", [], 'key: Invalid value: "/x": prefix part must be non-empty'),
        ("UP.io/x", "Exists", [], 'key: Invalid value: "UP.io/x": prefix part a lowercase RFC 1123 subdomain must'),
        ("a/b/c", "Exists", [], 'key: Invalid value: "a/b/c": a valid label key must consist of'),
        ("a" * 64, "Exists", [], f'key: Invalid value: "{"a" * 64}": name part must be no more than 63 bytes'),
        ("app", "In", ["-x"], 'values[0][app]: Invalid value: "-x": a valid label must be an empty string or'),
        ("app", "In", ["é" * 40], f'values[0][app]: Invalid value: "{"é" * 40}": must be no more than 63 bytes; a'),
    ],
)
def test_what_is_refused_and_in_which_words(key: str, operator: str, values: list[str], message: str) -> None:
    data = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    with pytest.raises(Malformed) as raised:
        compile_selector(from_data(data, LabelSelector))
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("-5", -5),
        ("+5", 5),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        (str(-(2**63)), -(2**63)),
        (str(-(2**63) - 1), None),
        ("0" * 10**6 + "1", 1),
        ("9" * 10**6, None),
        *((text, None) for text in ("", "-", "1.5", "abc", " 1", "1_000", "\u0661", "0x1", "1e3", "--1")),
    ],
)
def test_integers_are_gos(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


def test_many_values_are_found_as_few_are() -> None:
    many = Requirement("app", Operator.IN, tuple(sorted(f"v{i}" for i in range(1000))))
    assert many.accepts("v0")
    assert many.accepts("v999")
    assert not many.accepts("v1000")
    assert not many.accepts("")
    assert not many.accepts(None)


@pytest.mark.parametrize("key", ["a", "a.b/c", "A_b-C.9", "x" * 63, "d." * 126 + "d/n"])
def test_label_keys(key: str) -> None:
    assert is_label_key(key)


@pytest.mark.parametrize("key", ["", "a/", "/a", "a//b", "-a", "a-", "x" * 64, "d." * 127 + "d/n", "a\n", "ü", "A.b/c"])
def test_no_label_keys(key: str) -> None:
    assert not is_label_key(key)
