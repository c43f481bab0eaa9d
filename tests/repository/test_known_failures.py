"""Each row of the page of other schedulers' failures lists exactly the tests that are named after it."""

import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.repository.test_differences import ROOT, TEST, functions_of

PAGE = ROOT / "docs" / "known_failures.md"
ROWS = {
    line.split("|")[1].strip(): line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[2:3].isdigit()
}
NUMBER = re.compile(r"_f(\d\d)(?=_)")


@functools.cache
def numbered_tests() -> dict[str, set[tuple[str, Path]]]:
    """By the number of a row: the tests whose names begin with it."""
    found: dict[str, set[tuple[str, Path]]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"def (test_f\d\d_\w+)", path.read_text(encoding="utf-8")):
            for number in NUMBER.findall(name):
                found[str(int(number))].add((name, path.relative_to(ROOT)))
    return found


def test_every_number_in_the_name_of_a_test_is_a_row() -> None:
    assert numbered_tests().keys() == ROWS.keys()


@pytest.mark.parametrize("number", ROWS)
def test_a_row_names_all_tests_with_its_number(number: str) -> None:
    named = {(name, Path(path)) for name, path in TEST.findall(ROWS[number])}
    assert named == numbered_tests()[number]
    assert all(name in functions_of(ROOT / path) for name, path in named)
