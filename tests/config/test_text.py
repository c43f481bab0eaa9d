"""Any text gives data or a sentence that says what is wrong with it, quickly, whatever the text wants to do to us."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.config.field_errors import FieldPath, InvalidConfiguration
from kubenexus.config.parse_yaml import parse_yaml

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<", min_size=1), inner, max_size=4),
    max_leaves=12,
)


def parsed(text: str | bytes) -> tuple[Any, list[str]]:
    place = FieldPath()
    return parse_yaml(text, place), [str(problem) for problem in place.found]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("a: 1\nb: [x, 2.5, true, ~]", {"a": 1, "b": ["x", 2.5, True, None]}, id="YAML"),
        pytest.param('{"a": {"b": [1e3, -0.5, null]}}', {"a": {"b": [1000.0, -0.5, None]}}, id="JSON"),
        pytest.param('{\n\t"a":\t1\n}', {"a": 1}, id="JSON indented with tabs"),
        pytest.param("a: yes\nb: 010\nc: 2020-01-01", {"a": True, "b": 8, "c": "2020-01-01"}, id="YAML 1.1, as in Go"),
        pytest.param("a: '1'\nb: \"true\"\nc: !!str 5", {"a": "1", "b": "true", "c": "5"}, id="quoted is text"),
        pytest.param("1: a\ntrue: b", {"1": "a", "true": "b"}, id="keys are texts"),
        pytest.param("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}, id="aliases"),
        pytest.param(
            "a: &x {k: 1, l: 1}\nb: {<<: *x, k: 2}", {"a": {"k": 1, "l": 1}, "b": {"k": 2, "l": 1}}, id="merge"
        ),
        pytest.param("---\n# nothing\n---\na: 1\n---\n", {"a": 1}, id="empty documents beside the one"),
        pytest.param(b"\xef\xbb\xbfa: 1", {"a": 1}, id="a byte order mark"),
        pytest.param("", None, id="empty"),
        pytest.param("# only\n# comments\n", None, id="only comments"),
    ],
)
def test_a_document_becomes_plain_data(text: str | bytes, data: Any) -> None:
    assert parsed(text) == (data, [])


@given(data=ANYTHING)
def test_json_is_read_as_json(data: Any) -> None:
    assert parsed(json.dumps(data, ensure_ascii=False)) == (data, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: 1\na: 2", "a: the key is already set in this map (line 2)", id="a key twice"),
        pytest.param("x:\n- b: {c: 1, c: 2}", "x[0].b.c: the key is already set in this map (line 2)", id="deeper"),
        pytest.param("a: .nan", 'a: cannot be read: ".nan" as tag:yaml.org,2002:float (line 1)', id="not a number"),
        pytest.param("a: !!bool x", 'a: cannot be read: "x" as tag:yaml.org,2002:bool (line 1)', id="a false tag"),
        pytest.param(
            "a: !!python/name:os.system x",
            'a: cannot be read: "x" as tag:yaml.org,2002:python/name:os.system (line 1)',
            id="python",
        ),
    ],
)
def test_what_is_wrong_with_one_value_is_said_with_its_path(text: str, problem: str) -> None:
    assert parsed(text)[1] == [problem]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
CHAIN = "- &a0 1\n" + "".join(f"- &a{i} {'[' * 9}*a{i - 1}{']' * 9}\n" for i in range(1, 200))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: 1\n---\nb: 1", "expected one document, found 2", id="two documents"),
        pytest.param(
            "a:\n\tb: 1", "line 2: cannot be parsed: found character that cannot start any token (a tab?", id="tab"
        ),
        pytest.param("a: [1", "line 2: cannot be parsed: did not find expected", id="not closed"),
        pytest.param("? [a]\n: 1", "line 1: a key must be a plain text", id="a list as a key"),
        pytest.param("<<: 5", "line 1: << merges maps only", id="merging a number"),
        pytest.param(b"\xff\xfea\x00", "the file is not UTF-8", id="UTF-16"),
        pytest.param(b"a: \x00", "cannot be parsed: unacceptable character", id="a null byte"),
        pytest.param("a: \ud800", "the file is not UTF-8", id="half a character"),
        pytest.param("#" * (1 << 20) + "\n", "the file is larger than 1024 KiB", id="huge"),
        pytest.param("[" * 500_000, "line 1: nested more than 50 levels deep", id="deep lists"),
        pytest.param("{a: " * 200_000, "line 1: nested more than 50 levels deep", id="deep maps"),
        pytest.param("\n".join(" " * i + "a:" for i in range(500)), "line 52: nested more than 50", id="deep blocks"),
        pytest.param(CHAIN, "line 7: nested more than 50 levels deep", id="deep through aliases"),
        pytest.param("a: &a [*a]", "line 1: *a refers to nothing before it", id="an alias within itself"),
        pytest.param("a: *b", "line 1: *b refers to nothing before it", id="an alias to nothing"),
        pytest.param(BOMB, "line 5: more than 20000 values, counted with aliases written out", id="a bomb of anchors"),
        pytest.param("[" + "1," * 300_000 + "]", "line 1: more than 20000 values", id="a long list"),
        pytest.param("%YAML 9.9\n---\na: 1", "line 1: cannot be parsed: found incompatible YAML", id="another YAML"),
    ],
)
def test_what_cannot_be_parsed_is_refused_in_one_sentence_and_at_once(text: str | bytes, problem: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidConfiguration) as refused:
        parsed(text)
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)
    assert time.process_time() - started < 5


@given(text=st.text("ab:-[]{}&*!?<|>%\"'#\n\t 1~,", max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(InvalidConfiguration):
        parsed(text)
