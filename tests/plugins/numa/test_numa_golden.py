"""The golden vectors: each is reproduced, or a deliberate change with the id of its bug; the page shows them."""

import pytest

from tests.golden_vectors import Vector, check_page, check_vector, vector_params
from tests.plugins.numa.golden import SECTIONS
from tests.plugins.numa.golden_page import BUGS, render


@pytest.mark.parametrize("vector", vector_params(SECTIONS))
def test_a_vector_is_reproduced_or_a_change_with_a_bug(vector: Vector) -> None:
    check_vector(vector, BUGS)


def test_each_bug_has_a_vector_and_the_page_is_what_they_say() -> None:
    check_page("numa-golden.md", render(), SECTIONS, BUGS)
