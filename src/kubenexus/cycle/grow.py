"""Longer copies of arrays that have an element for each row."""

from typing import Any

import numpy as np


def grown(array: Any, size: int, fill: int = 0) -> Any:
    """Returns a copy with `size` elements, the new ones equal to `fill`."""
    longer = np.full(size, fill, array.dtype)
    longer[: len(array)] = array
    return longer
