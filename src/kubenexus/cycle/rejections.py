"""Finds the first plugin that refused each row, and its reasons.

kube-scheduler runs filters in order and stops at the first that refuses a node. A class's table holds the results of
all filters, and reports the first, so that the message is the same.
"""

from typing import Any

import numpy as np

from kubenexus.base.arrays import BoolColumn, any_true
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.verdict import Code, Reason, code_of

UNREADABLE_POD = "UnreadablePod"
UNREADABLE_POD_REASON = Reason("node(s) ran a pod that could not be read", Code.UNSCHEDULABLE)

Rejection = tuple[str, tuple[Reason, ...], BoolColumn]


def first_rejections(
    filters: list[FilterColumn], rows: Any, refused: BoolColumn, blocked: BoolColumn
) -> list[Rejection]:
    """Returns the rows that each plugin was the first to refuse, by combination of reasons.

    `rows` selects rows of the table; masks are over that selection. `refused` are the existing nodes that are not
    feasible, `blocked` those that run an unreadable pod.
    """
    found: list[Rejection] = []
    remaining = refused.copy()
    hidden = remaining & blocked
    if any_true(hidden):
        found.append((UNREADABLE_POD, (UNREADABLE_POD_REASON,), hidden))
        remaining &= ~hidden
    for column in filters:
        if column.bits is None or not any_true(remaining):
            continue
        bits, known = column.bits[rows], column.reasons
        hit = remaining & (bits != 0)
        if not any_true(hit):
            continue
        if len(known.reasons) == 1:
            found.append((column.plugin.name, known.read(1), hit))
        else:
            values = np.unique(bits[hit]).tolist()
            found.extend((column.plugin.name, known.read(value), hit & (bits == value)) for value in values)
        remaining &= ~hit
    return found


def error_text(plugin: str, reason: Reason) -> str:
    """Returns a reason that is an error as kube-scheduler reports it."""
    return f'running "{plugin}" filter plugin: {reason.text}'


def count_reasons(found: list[Rejection]) -> tuple[dict[str, int], set[str], list[str]]:
    """Returns the number of nodes per reason, the plugins that refused, and the texts of reasons that are errors."""
    counts: dict[str, int] = {}
    errors: list[str] = []
    for plugin, reasons, where in found:
        number = int(np.count_nonzero(where))
        for reason in reasons:
            counts[reason.text] = counts.get(reason.text, 0) + number
        if code_of(reasons) is Code.ERROR:
            errors.extend(error_text(plugin, reason) for reason in reasons if not reason.unfinished)
    return counts, {plugin for plugin, _, _ in found}, errors


def unfinished(found: list[Rejection]) -> str:
    """Returns the text of an error that says that a plugin has not looked at some rows yet, or ""."""
    for plugin, reasons, where in found:
        for reason in reasons:
            if reason.unfinished:
                return f"{error_text(plugin, reason)} ({int(np.count_nonzero(where))} nodes)"
    return ""
