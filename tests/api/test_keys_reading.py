"""Values of any length: what is longer than any valid value is refused before it is parsed."""

from typing import Any

import pytest

from kubenexus.api import keys
from kubenexus.api.keys.entry import KeyEntry, KeyKind
from kubenexus.api.keys.reading import read_key
from kubenexus.api.keys.values import Present

ENTRIES = [entry for section in keys.SECTIONS for entry in section.entries if not entry.slots]


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.key for entry in ENTRIES])
def test_a_quarter_of_a_megabyte_is_no_value(entry: KeyEntry[Any]) -> None:
    text = {entry.key: "9" * (256 << 10)}
    said = ({}, text) if KeyKind.ANNOTATION in entry.kind else (text, {})
    found = read_key(entry, *said)
    if isinstance(entry.values, Present):
        assert found.value is True
        return
    assert found.value == entry.default
    (problem,) = found.problems
    assert entry.key in str(problem)
    assert str(problem).endswith(f"must have at most {entry.values.longest} characters")
