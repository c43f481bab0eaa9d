"""Counts the reasons why nodes were refused, and finds the node that came closest."""

from typing import Any

import numpy as np

from kubenexus.base.arrays import AMOUNT_CAP
from kubenexus.cycle.class_cache import ClassifiedPod
from kubenexus.cycle.nominated_pods import NominatedResult
from kubenexus.cycle.rejections import Rejection, count_reasons, first_rejections, unfinished
from kubenexus.framework.decision import Diagnosis, NearestMiss, Shortage
from kubenexus.framework.object_names import named_reasons
from kubenexus.framework.verdict import Code, Reason, code_of
from kubenexus.plan.quick_diagnosis import hopeful_rows, quick_diagnosis
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes


def rejections(classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None) -> list[Rejection]:
    """Returns each refused node once, under the plugin that refused it first. Masks are over all rows of the table."""
    table, size = classified.table, columns.size
    inside = _inside(classified, columns)
    candidates = columns.alive[:size] if inside is None else columns.alive[:size] & inside
    refused = candidates & ~table.feasible
    if yielding is not None:
        refused[yielding.rows] = False
    found = first_rejections(table.filters, slice(None), refused, columns.blocked[:size])
    if yielding is not None:
        there = candidates[yielding.rows]
        for plugin, reasons, where in first_rejections(yielding.filters, slice(None), there, ~there):
            found.append((plugin, reasons, _spread(where, yielding.rows, size)))
    return [(plugin, named_reasons(reasons, classified.pod), where) for plugin, reasons, where in found]


def diagnose(
    classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None
) -> tuple[Diagnosis, list[str]]:
    """Returns the diagnosis without the nearest miss, and the texts of errors among the reasons."""
    if classified.rejection is not None:
        refused_by = (classified.rejection.plugin,) if classified.rejection.plugin else classified.node_names_by
        return Diagnosis(
            nodes=columns.count, refused_by=refused_by, message=", ".join(classified.rejection.reasons)
        ), []
    if yielding is None and classified.node_names is None:
        quick = quick_diagnosis(classified.table, columns)
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


def not_looked_at(classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None = None) -> str:
    """Returns the error of a pod that no node fits among those that its plugins have looked at so far, or "" if they
    have looked at all. The next attempt calls them again, and they go on."""
    table = classified.table
    if not table.may_fail or classified.rejection is not None:
        return ""
    said = unfinished(rejections(classified, columns, yielding))
    table.built = table.built and not said
    return said


def nearest_miss(
    classified: ClassifiedPod, columns: NodeColumns, yielding: NominatedResult | None
) -> NearestMiss | None:
    """Returns the refused node that came closest; None if the pod was refused as a whole.

    The order is: a reason that may pass, the fewest plugins against it, the smallest part of a request lacking.
    """
    if classified.rejection is not None:
        return None
    rows = None
    if yielding is None and classified.node_names is None:
        rows = hopeful_rows(classified.table, columns)
    found = rejections(classified, columns, yielding) if rows is None else []
    if rows is None:
        rows = _hopeful(found, columns)
    if not len(rows):
        return None
    against = sum((f.bits[rows] != 0).astype(np.float64) for f in classified.table.filters if f.bits is not None)
    distance = against + _lacking(classified, columns, rows)
    closest = rows[distance == np.min(distance)] if np.ndim(distance) else rows
    row = int(closest[columns.name_hash[closest].argmax()])
    reasons = next((reasons for _, reasons, where in found if where[row]), ()) or _first_reasons(classified, row)
    said = tuple(sorted(reason.text for reason in reasons))  # the order of `reasons` depends on past decisions
    return NearestMiss(columns.names[row], said, _shortages(classified, columns, row))


def _hopeful(found: list[Rejection], columns: NodeColumns) -> Any:
    """Returns the rows with a reason that may pass; all refused rows if there are none."""
    candidates = np.zeros(columns.size, np.bool_)
    for _, _, where in [each for each in found if code_of(each[1]) is Code.UNSCHEDULABLE] or found:
        candidates |= where
    return np.flatnonzero(candidates)


def _first_reasons(classified: ClassifiedPod, row: int) -> tuple[Reason, ...]:
    """Returns the reasons of the first plugin against a row."""
    refusing = [column for column in classified.table.filters if column.at(row)]
    return refusing[0].reasons.read(refusing[0].at(row))


def _lacking(classified: ClassifiedPod, columns: NodeColumns, rows: Any) -> Any:
    """Returns how far each row is from fitting, 0..1: the largest part of a request that is lacking there."""
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
        lacking[resource] = amount - offered + used if offered else amount  # not offered, not used
    return tuple(Shortage(resource, amount) for resource, amount in lacking.items() if amount > 0)


def _inside(classified: ClassifiedPod, columns: NodeColumns) -> Any:
    return None if classified.node_names is None else Nodes(columns).named(classified.node_names)


def _spread(where: Any, rows: Any, size: int) -> Any:
    mask = np.zeros(size, np.bool_)
    mask[rows[where]] = True
    return mask
