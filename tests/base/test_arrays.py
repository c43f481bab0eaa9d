import numpy as np
import pytest

from kubenexus.base.arrays import grow

ROWS = np.array([[1, 2], [3, 4]], np.int32)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"size": 3}, [[1, 2, 0], [3, 4, 0]], id="the last axis, with zeros"),
        pytest.param({"size": 3, "fill": -1}, [[1, 2, -1], [3, 4, -1]], id="with another value"),
        pytest.param({"size": 3, "axis": 0}, [[1, 2], [3, 4], [0, 0]], id="the first axis"),
        pytest.param({"size": 2}, [[1, 2], [3, 4]], id="to the same size"),
    ],
)
def test_an_array_grows_along_one_axis_and_keeps_what_it_has(
    options: dict[str, int], expected: list[list[int]]
) -> None:
    assert grow(ROWS, **options).tolist() == expected


@pytest.mark.parametrize("dtype", [np.bool_, np.uint32, np.uint64, np.int64])
def test_a_grown_array_has_the_same_type_in_the_same_layout_and_is_a_copy(dtype: type[np.generic]) -> None:
    old = np.ones((2, 2), dtype)
    new = grow(old, 4, axis=0)
    new[0, 0] = 0
    assert new.dtype == dtype
    assert new.flags.c_contiguous
    assert old.all()
