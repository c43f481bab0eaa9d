"""The places in a JSON text, without reading it: held against what Python's own reader makes of the same text."""

import json
import random
from typing import Any

import pytest

from kubenexus.api import json_outline
from kubenexus.api.core import Pod
from kubenexus.api.json_outline import JsonOutline, without_deep_parts, without_unread_fields
from tests.rounds import rounds

TEXTS = ["", "a", '"', "\\", '\\"', "[", "]}", ",:", "\n", "é", "😀", '\\\\"', "nodeName"]


def anything(dice: random.Random, capacity: int = 6) -> Any:
    if capacity == 0 or dice.random() < 0.2:
        return dice.choice([None, True, 5, -1.5, *TEXTS])
    if dice.random() < 0.5:
        return [anything(dice, capacity - 1) for _ in range(dice.randrange(4))]
    return {dice.choice(TEXTS): anything(dice, capacity - 1) for _ in range(dice.randrange(4))}


def emptied(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return type(value)()
    if isinstance(value, list):
        return [emptied(held, levels - 1) for held in value]
    return {key: emptied(held, levels - 1) for key, held in value.items()}


@pytest.mark.parametrize("portion", [7, 1 << 20], ids=["in many portions", "in one portion"])
@pytest.mark.parametrize("seed", range(rounds(10, 40)))
def test_a_text_is_cut_at_a_depth_and_nowhere_else(seed: int, portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_outline, "PORTION", portion)
    dice = random.Random(seed)
    for _ in range(20):
        value = anything(dice)
        raw = json.dumps(value, ensure_ascii=dice.random() < 0.5, indent=dice.choice([None, 1])).encode()
        for levels in range(5):
            short = without_deep_parts(raw, levels)
            assert json.loads(short) == emptied(value, levels)
            assert len(short) == len(raw)


@pytest.mark.parametrize("portion", [7, 1 << 20], ids=["in many portions", "in one portion"])
@pytest.mark.parametrize("seed", range(rounds(5, 20)))
def test_members_and_items_lie_where_a_reader_finds_them(
    seed: int, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_outline, "PORTION", portion)
    dice = random.Random(seed)
    for _ in range(50):
        value = {"metadata": anything(dice), "items": [anything(dice) for _ in range(3)], "spec": anything(dice)}
        raw = json.dumps(value, indent=dice.choice([None, 2])).encode()
        found = JsonOutline(raw)
        parts = dict(found.members(1, found.top))
        assert found.whole
        assert {key: json.loads(raw[start:end]) for key, (start, end) in parts.items()} == value
        for key, held in value.items():
            if isinstance(held, list):
                assert [json.loads(raw[start:end]) for start, end in found.items(2, parts[key])] == held
            elif isinstance(held, dict):
                inner = found.members(2, parts[key])
                assert {name: json.loads(raw[start:end]) for name, (start, end) in inner} == held


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"5",
        b'"',
        b"}",
        b"]]",
        b'{"a"',
        b'{"a":{"b":"c',
        b"{}{}",
        b"[1,2",
        b'{"a":1}}',
        b"{,,}",
        b"\\",
        b"{:}",
    ],
    ids=lambda raw: raw.decode() or "nothing",
)
def test_what_is_no_object_has_an_outline_too(raw: bytes) -> None:
    found = JsonOutline(raw)
    assert not found.whole or raw in (b"{,,}", b"{:}")
    assert all(isinstance(key, str) for key, _ in found.members(1, found.top))
    assert len(without_deep_parts(raw)) == len(without_unread_fields(raw, Pod)) == len(raw)


@pytest.mark.parametrize("portion", range(1, 9))
def test_what_a_backslash_means_does_not_depend_on_where_portions_end(
    portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_outline, "PORTION", portion)
    for text in ['"', "\\", '\\"', '"\\', '\\\\"', '\\\\\\"[', "<\\" * 20, '"' * 20 + "]"]:
        for blanks in range(9):
            raw = b" " * blanks + json.dumps({text: [text, [text]], "items": [text]}).encode()
            found = JsonOutline(raw)
            parts = dict(found.members(1, found.top))
            assert {key: json.loads(raw[start:end]) for key, (start, end) in parts.items()} == json.loads(raw)
            assert json.loads(without_deep_parts(raw, 2)) == {text: [text, []], "items": [text]}


@pytest.mark.parametrize("length", [0, 1, 5], ids=["a short one", "a megabyte", "a long one"])
def test_the_places_in_a_text_are_found_in_steps(length: int) -> None:
    raw = b"[%s]" % b",".join([b"[5]"] * (length * json_outline.STEP // 4))
    assert sum(1 for _ in json_outline.find_outline(raw)) == length


def test_of_a_text_that_is_cut_off_the_beginning_has_its_places() -> None:
    raw = b'{"metadata":{"name":"p","annotations":{"nodeName":"n1"}},"spec":{"nodeName":"n2","x":[{"nodeName":"n3'
    found = JsonOutline(raw)
    parts = dict(found.members(1, found.top))
    assert [raw[slice(*span)] for name, span in found.members(2, parts["spec"]) if name == "nodeName"] == [b'"n2"']


def test_only_the_fields_that_a_kind_has_are_left() -> None:
    raw = b'{"x":{"name":[]},"metadata":{"name":"p","managedFields":[{"f":"\xff"}]},"spec":{"nodeName":"n","y":"z"}}'
    assert json.loads(without_unread_fields(raw, Pod)) == {
        "x": 0,
        "metadata": {"name": "p", "managedFields": 0},
        "spec": {"nodeName": "n", "y": 0},
    }
