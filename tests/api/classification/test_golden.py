"""The golden vectors: each is reproduced, or a deliberate change with the id of its bug; the page shows them."""

from pathlib import Path

import pytest

from tests.api.classification.golden import SECTIONS, Vector
from tests.api.classification.golden_page import BUGS, render

PAGE = Path(__file__).parents[3] / "docs" / "classification-golden.md"
CASES = [
    pytest.param(vector, id=f"{section.partition(':')[0]}, {vector.case}")
    for section, vectors in SECTIONS.items()
    for vector in vectors
]


@pytest.mark.parametrize("vector", CASES)
def test_a_vector_is_reproduced_or_a_change_with_a_bug(vector: Vector) -> None:
    assert vector.compute() == vector.ours
    assert (vector.before == vector.ours) == (vector.bug == ""), "a difference, and only that, has the id of a bug"
    assert vector.bug in ("", *BUGS)


def test_each_bug_is_shown_by_a_vector() -> None:
    assert {vector.bug for vectors in SECTIONS.values() for vector in vectors} - {""} == BUGS.keys()


def test_the_page_in_the_repository_is_what_the_vectors_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"
