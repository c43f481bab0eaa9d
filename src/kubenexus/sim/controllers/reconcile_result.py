"""The result of a reconcile: the status and the calls."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubenexus.base.timestamps import format_time
from kubenexus.client.calls import Call
from kubenexus.sim.controllers.types import Item

MAX_PODS_PER_STEP = 100  # pods created or deleted in one step, so that other workloads run in between


class WorkloadEvent(NamedTuple):
    """An event about the workload."""

    reason: str
    text: str
    type: str = "Normal"


class ReconcileResult(NamedTuple):
    """`status` is the whole status (None: unchanged), and `annotations` are written with it.

    `again` is when to reconcile even without a change.
    """

    status: Item | None = None
    calls: Sequence[Call] = ()
    again: float | None = None
    notes: Sequence[WorkloadEvent] = ()
    annotations: Mapping[str, str] = {}


def without_zero_fields(status: Mapping[str, Any], *always: str) -> Item:
    """Removes fields that are zero or empty, as Go's omitempty does; `always` names those that stay."""
    return {key: value for key, value in status.items() if value or key in always}


def condition(old: Item, type: str, status: str, reason: str, message: str, now: float, **more: str) -> Item:
    """Returns a condition of a status; `lastTransitionTime` stays while `status` does."""
    before: Item = next((each for each in old.get("conditions", ()) if each["type"] == type), {})
    same = before.get("status") == status
    since = before["lastTransitionTime"] if same else format_time(now)
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since, **more}


def earliest(*moments: float | None) -> float | None:
    known = [each for each in moments if each is not None]
    return min(known) if known else None
