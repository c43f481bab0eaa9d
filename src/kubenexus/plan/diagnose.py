"""Why nodes were refused, counted, and which one came closest."""

from typing import Any

import numpy as np

from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.cycle.class_cache import ClassifiedPod
from kubenexus.cycle.nominated_pods import NominatedResult
from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.cycle.rejections import Rejection, count_reasons, first_rejections
from kubenexus.framework.decision import Diagnosis, NearestMiss, Shortage
from kubenexus.framework.verdict import Code, code_of
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes


def rejections(classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None) -> list[Rejection]:
    """Each refused node once, under the plugin that refused it first. Masks are over all rows of the table."""
    table, size = classified.table, columns.size
    inside = _inside(classified, columns)
    looked_at = columns.alive[:size] if inside is None else columns.alive[:size] & inside
    refused = looked_at & ~table.feasible
    if yielding is not None:
        refused[yielding.rows] = False
    found = first_rejections(table.filters, slice(None), refused, columns.blocked[:size])
    if yielding is not None:
        there = looked_at[yielding.rows]
        for plugin, reasons, where in first_rejections(yielding.filters, slice(None), there, ~there):
            found.append((plugin, reasons, _spread(where, yielding.rows, size)))
    return found


def diagnose(
    classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None
) -> tuple[Diagnosis, list[str]]:
    """The diagnosis without the nearest miss, and the texts of errors among the refusals."""
    if classified.rejection is not None:
        refused_by = (classified.rejection.plugin,) if classified.rejection.plugin else classified.node_names_by
        return Diagnosis(
            nodes=columns.count, refused_by=refused_by, message=", ".join(classified.rejection.reasons)
        ), []
    if yielding is None and classified.node_names is None:
        quick = _counted(classified, columns)
        if quick is not None:
            return quick, []
    counts, plugins, errors = count_reasons(rejections(classified, columns, yielding))
    inside = _inside(classified, columns)
    if inside is not None:
        absent = int(np.count_nonzero(columns.alive[: columns.size] & ~inside))
        if absent:
            counts[f"node(s) didn't satisfy plugin(s) [{' '.join(classified.node_names_by)}]"] = absent
            plugins |= set(classified.node_names_by)
    return Diagnosis(columns.count, tuple(sorted(counts.items())), tuple(sorted(plugins))), errors


def _counted(classified: ClassifiedPod, columns: NodeColumns) -> Diagnosis | None:
    """The everyday case, counted in one go: one plugin refused all that are refused, and with few reasons; or several
    did, with one reason each."""
    refusing = [column for column in classified.table.filters if column.bits is not None]
    if not refusing or columns.count != columns.size or columns.blocked_count or refusing[0].bits.dtype != np.uint8:
        return None
    if len(refusing) > 1:
        return _one_reason_each(refusing, columns.count, columns.count - classified.table.feasible_count)
    known = refusing[0].reasons
    if known.failing:
        return None
    found = {1: columns.count - classified.table.feasible_count}
    if len(known.reasons) == 1 and found[1]:
        return Diagnosis(columns.count, ((known.reasons[0].text, found[1]),), (refusing[0].plugin.name,))
    if len(known.reasons) == 2:  # counting twice is quicker than NumPy's way of counting everything at once
        both, second = (int(np.count_nonzero(refusing[0].bits == bits)) for bits in (3, 2))
        found = {bits: number for bits, number in ((1, found[1] - both - second), (2, second), (3, both)) if number}
    elif len(known.reasons) > 2:
        found = {i: number for i, number in enumerate(np.bincount(refusing[0].bits).tolist()) if i and number}
    counts: dict[str, int] = {}
    for bits, number in found.items():
        for reason in known.read(bits):
            counts[reason.text] = counts.get(reason.text, 0) + number
    plugins = (refusing[0].plugin.name,) if counts else ()
    return Diagnosis(columns.count, tuple(sorted(counts.items())), plugins)


def _one_reason_each(refusing: list[FilterColumn], nodes: int, refused: int) -> Diagnosis | None:
    """Several plugins that gave one reason each, so that their columns are 0 or 1: a node counts for the first of them
    that refused it, and what no other counted is the last one's."""
    counts: dict[str, int] = {}
    plugins: list[str] = []
    so_far: Any = None
    for column in refusing:
        if len(column.reasons.reasons) != 1 or column.reasons.failing:
            return None
        number = refused
        if column is not refusing[-1]:
            number = int(np.count_nonzero(column.bits if so_far is None else column.bits > so_far))
            so_far = column.bits if so_far is None else so_far | column.bits
        refused -= number
        if number:
            text = column.reasons.reasons[0].text
            counts[text] = counts.get(text, 0) + number
            plugins.append(column.plugin.name)
    return Diagnosis(nodes, tuple(sorted(counts.items())), tuple(sorted(plugins)))


def nearest_miss(
    classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None
) -> NearestMiss | None:
    """The node that came closest: no hopeless reason, fewest plugins against it, least lacking for its size."""
    found = rejections(classified, columns, yielding)
    if classified.rejection is not None or not found:
        return None
    candidates = np.zeros(columns.size, np.bool_)
    hopeful = [f for f in found if code_of(f[1]) is Code.UNSCHEDULABLE] or found
    for _, _, where in hopeful:
        candidates |= where
    rows = np.flatnonzero(candidates)
    against = sum((f.bits[rows] != 0).astype(np.float64) for f in classified.table.filters if f.bits is not None)
    distance = against + _lacking(classified, columns, rows)
    closest = rows[distance == np.min(distance)] if np.ndim(distance) else rows
    row = int(closest[columns.name_hash[closest].argmax()])
    reasons = next(reasons for _, reasons, where in found if where[row])
    said = tuple(sorted(reason.text for reason in reasons))  # not in the order they were first given: that is history
    return NearestMiss(columns.names[row], said, _shortages(classified, columns, row))


def _lacking(classified: ClassifiedPod, columns: NodeColumns, rows: Any) -> Any:
    """How far each row is from fitting, 0..1: the largest part of a request that it cannot give."""
    view = Nodes(columns, rows)
    worst = np.zeros(len(rows))
    for resource, amount in classified.table.pod.demand.amounts:
        lacking = min(amount, AMOUNT_CAP) - (view.alloc(resource) - view.used(resource))
        np.maximum(worst, np.minimum(lacking / amount, 1.0), out=worst)
    return worst


def _shortages(classified: ClassifiedPod, columns: NodeColumns, row: int) -> tuple[Shortage, ...]:
    view = Nodes(columns, np.array([row]))
    lacking = {}
    for resource, amount in classified.table.pod.demand.amounts:
        offered, used = int(view.alloc(resource)[0]), int(view.used(resource)[0])
        lacking[resource] = amount - offered + used if offered else amount  # of nothing, nothing is in use
    return tuple(Shortage(resource, amount) for resource, amount in lacking.items() if amount > 0)


def _inside(classified: ClassifiedPod, columns: NodeColumns) -> Any:
    return None if classified.node_names is None else Nodes(columns).named(classified.node_names)


def _spread(where: Any, rows: Any, size: int) -> Any:
    mask = np.zeros(size, np.bool_)
    mask[rows[where]] = True
    return mask
