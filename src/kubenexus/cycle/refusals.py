"""Which plugin was the first to refuse each row, and why: the material of every explanation.

kube-scheduler runs filters in order and stops at the first that refuses a node; we know all answers and report the
first, so that the sentence comes out the same.
"""

from typing import Any

import numpy as np

from kubenexus.base.numbers import BoolColumn, somewhere
from kubenexus.cycle.columns import FilterColumn
from kubenexus.framework.verdict import Code, Reason, code_of

FENCE = "UnreadablePod"
FENCED = Reason("node(s) ran a pod that could not be read", Code.UNSCHEDULABLE)

Combination = tuple[str, tuple[Reason, ...], BoolColumn]


def first_refusals(
    filters: list[FilterColumn], rows: Any, refused: BoolColumn, fenced: BoolColumn
) -> list[Combination]:
    """For each combination of plugin and reasons the rows it was the first to refuse. `rows` selects from the table,
    masks are over that selection; `refused` are the live rows that are not feasible."""
    found: list[Combination] = []
    remaining = refused.copy()
    fence = remaining & fenced
    if somewhere(fence):
        found.append((FENCE, (FENCED,), fence))
        remaining &= ~fence
    for column in filters:
        if column.bits is None or not somewhere(remaining):
            continue
        bits, known = column.bits[rows], column.reasons
        hit = remaining & (bits != 0)
        if not somewhere(hit):
            continue
        if len(known.reasons) == 1:
            found.append((column.plugin.name, known.read(1), hit))
        else:
            values = np.unique(bits[hit]).tolist()
            found.extend((column.plugin.name, known.read(value), hit & (bits == value)) for value in values)
        remaining &= ~hit
    return found


def tally(found: list[Combination]) -> tuple[dict[str, int], set[str], list[str]]:
    """Nodes per reason, the plugins that refused, and the texts of reasons that are errors."""
    counts: dict[str, int] = {}
    errors: list[str] = []
    for _, reasons, where in found:
        number = int(np.count_nonzero(where))
        for reason in reasons:
            counts[reason.text] = counts.get(reason.text, 0) + number
        if code_of(reasons) is Code.ERROR:
            errors.extend(reason.text for reason in reasons)
    return counts, {plugin for plugin, _, _ in found}, errors
