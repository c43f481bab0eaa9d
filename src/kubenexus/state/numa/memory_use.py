"""How much of the memory of NUMA nodes is taken, over all rows."""

from typing import Final

import numpy as np

from kubenexus.state.numa.columns import NumaColumns

LEVELS: Final = {"low": 0, "medium": 50, "high": 80}  # from so many percent on


def shares_by_use(numa: NumaColumns) -> dict[str, float]:
    """Returns the percentage of NUMA nodes by how much of their memory is taken; nothing if no node reports any."""
    if not numa.any:
        return {}
    codes = numa.codes[: numa.zones, numa.layouts >= 0]
    total, free, _ = numa.states.amounts("memory", "memory", codes)
    known = total > 0
    if not known.any():
        return {}
    taken = 100 * (total[known] - free[known]) / total[known]
    reached = np.digitize(taken, list(LEVELS.values())) - 1
    counts = np.bincount(reached, minlength=len(LEVELS))
    return {level: 100 * int(count) / len(taken) for level, count in zip(LEVELS, counts, strict=True)}
