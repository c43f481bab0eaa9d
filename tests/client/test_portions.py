"""News is handed over in portions of about a megabyte, in order and without a loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.client.watch_events import PORTION, portions


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([10, 20, 30], [[0, 1, 2]], id="small ones together"),
        pytest.param([PORTION + 1], [[0]], id="one that is larger than a portion"),
        pytest.param([5, PORTION + 1, 5], [[0], [1], [2]], id="a large one by itself"),
        pytest.param([PORTION // 2] * 4, [[0, 1], [2, 3]], id="two halves fill one"),
        pytest.param([PORTION, 1], [[0], [1]], id="a full one takes no more"),
    ],
)
def test_portions(sizes: list[int], expected: list[list[int]]) -> None:
    assert list(portions(list(range(len(sizes))), sizes)) == expected


@given(sizes=st.lists(st.integers(0, 2 * PORTION), max_size=30))
def test_nothing_is_lost_and_only_a_single_one_is_larger_than_a_portion(sizes: list[int]) -> None:
    found = list(portions(list(range(len(sizes))), sizes))
    assert [each for portion in found for each in portion] == list(range(len(sizes)))
    assert all(len(portion) == 1 or sum(sizes[i] for i in portion) <= PORTION for portion in found)
