"""A faster way to count the reasons of the usual refusals. `diagnose.diagnose` is the plain way, with the same result.

The plain way makes a mask over all rows for each plugin and combination of reasons. At 5,000 nodes it takes 9 to 21 µs
more: a decision that fills its node, so that the counts change, takes 87 instead of 70 µs, and 98 instead of 77 with
node affinity; a warm refusal takes 126 instead of 112.
"""

from typing import Any

import numpy as np

from kubenexus.base.arrays import any_true
from kubenexus.cycle.class_table import ClassTable
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.decision import Diagnosis
from kubenexus.framework.verdict import Code, code_of
from kubenexus.state.nodes import NodeColumns

_NO_REASON = np.array(0, np.uint8)


def quick_diagnosis(table: ClassTable, columns: NodeColumns) -> Diagnosis | None:
    """Returns the diagnosis; None if a reason is an error, a node is blocked, a row has no node, or a plugin has more
    reasons than a byte has bits."""
    refusing = _refusing(table, columns)
    if not refusing:
        return None
    refused = columns.count - table.feasible_count
    if len(refusing) == 1 and len(refusing[0].reasons.reasons) == 2:
        return _two_reasons(refusing[0], columns.count, refused)
    if all([len(column.reasons.reasons) == 1 for column in refusing]):  # noqa: C419
        return _one_reason_each(refusing, columns.count, refused)
    if all([_is_countable(column) for column in refusing]):  # noqa: C419
        return _by_combination(refusing, columns.count)
    return None


def hopeful_rows(table: ClassTable, columns: NodeColumns) -> Any:
    """Returns the refused rows on which the first plugin against the pod may let it pass later; all refused rows if
    there are none. None where `quick_diagnosis` returns None."""
    refusing = _refusing(table, columns)
    if not refusing or not all([_is_countable(column) for column in refusing]):  # noqa: C419
        return None
    found, rest = np.zeros(columns.size, np.bool_), np.ones(columns.size, np.bool_)
    for column in refusing:
        numbers = np.bincount(column.bits).tolist()
        read = column.reasons.read
        may_pass = [bool(number) and code_of(read(value)) is Code.UNSCHEDULABLE for value, number in enumerate(numbers)]
        found |= rest & np.array(may_pass).take(column.bits)
        rest &= column.bits == _NO_REASON
    return np.flatnonzero(found if any_true(found) else ~rest)


def _refusing(table: ClassTable, columns: NodeColumns) -> list[FilterColumn]:
    """Returns the columns that refuse nodes; none if a reason is an error, a node is blocked, or a row has no node."""
    refusing = [column for column in table.filters if column.bits is not None]
    if columns.count != columns.size or columns.blocked_count:
        return []
    return [] if any([column.reasons.failing for column in refusing]) else refusing  # noqa: C419


def _one_reason_each(refusing: list[FilterColumn], nodes: int, refused: int) -> Diagnosis:
    """A node counts for the first column that is 1 there. The nodes that no other plugin counts are the last one's."""
    counts: dict[str, int] = {}
    plugins: list[str] = []
    earlier: Any = None
    for column in refusing:
        number = refused
        if column is not refusing[-1]:
            number = int(np.count_nonzero(column.bits if earlier is None else column.bits > earlier))
            earlier = column.bits if earlier is None else earlier | column.bits
        refused -= number
        if number:
            text = column.reasons.reasons[0].text
            counts[text] = counts.get(text, 0) + number
            plugins.append(column.plugin.name)
    return Diagnosis(nodes, tuple(sorted(counts.items())), tuple(sorted(plugins)))


def _two_reasons(column: FilterColumn, nodes: int, refused: int) -> Diagnosis:
    """A node counts for each of its reasons: 1 is the first, 2 the second, 3 both."""
    both, second = (int(np.count_nonzero(column.bits == bits)) for bits in (3, 2))
    counts: dict[str, int] = {}
    for reason, number in zip(column.reasons.reasons, (refused - second, second + both), strict=True):
        if number:
            counts[reason.text] = counts.get(reason.text, 0) + number
    return Diagnosis(nodes, tuple(sorted(counts.items())), (column.plugin.name,) if counts else ())


def _is_countable(column: FilterColumn) -> bool:
    """Whether each reason has a bit of a byte, and none has marks to be replaced by names of the pod's objects."""
    return column.bits.dtype == np.uint8 and not any(["\x01" in reason.text for reason in column.reasons.reasons])  # noqa: C419


def _by_combination(refusing: list[FilterColumn], nodes: int) -> Diagnosis:
    """Counts nodes by the combination of reasons that the first plugin against them has."""
    counts: dict[str, int] = {}
    plugins: list[str] = []
    rest: Any = None  # rows that no earlier plugin refused
    for column in refusing:
        bits = column.bits if rest is None else column.bits.take(rest)
        numbers = np.bincount(bits).tolist()
        for value, number in enumerate(numbers[1:], 1):
            if number:
                for reason in column.reasons.read(value):
                    counts[reason.text] = counts.get(reason.text, 0) + number
        if len(numbers) > 1:
            plugins.append(column.plugin.name)
            fitting = np.flatnonzero(bits == _NO_REASON)
            rest = fitting if rest is None else rest.take(fitting)
    return Diagnosis(nodes, tuple(sorted(counts.items())), tuple(sorted(plugins)))
