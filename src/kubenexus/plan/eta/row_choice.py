"""The rows that members of one kind go to: the tightest that hold them, within one domain if a level is required."""

from typing import Any

import numpy as np

from kubenexus.plan.eta.queue_model import Members
from kubenexus.plan.eta.row_capacity import UNLIMITED


def choose_rows(capacity: Any, members: Members, codes: Any = None) -> list[tuple[int, int]]:
    """Returns rows with numbers of members, in all at least what is needed; empty if they do not fit. `codes`: the
    domain of each row, of which one has to hold all."""
    if codes is not None:
        domain = tightest_domain(capacity, codes, members.need)
        if domain is None:
            return []
        capacity = np.where(codes == domain, capacity, 0)
    most = members.most
    one = np.where(capacity >= most, capacity, UNLIMITED)
    row = int(one.argmin())
    if one[row] < UNLIMITED:
        return [(row, most)]
    if most == 1 or int(capacity.sum()) < members.need:
        return []
    found: list[tuple[int, int]] = []
    for row in np.argsort(-capacity, kind="stable").tolist():
        number = min(int(capacity[row]), most)
        if not number:
            break
        found.append((row, number))
        most -= number
        if not most:
            break
    return found


def tightest_domain(capacity: Any, codes: Any, need: int) -> int | None:
    """Returns the domain that holds `need` members and has the least room beyond."""
    sums = np.bincount(codes, weights=capacity).astype(np.int64)
    sums[0] = 0
    sums = np.where(sums >= need, sums, UNLIMITED << 20)
    domain = int(sums.argmin())
    return domain if sums[domain] < UNLIMITED << 20 else None
