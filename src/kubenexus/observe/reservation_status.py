"""The status of a ResourceReservation, and the patch that writes it. Pure."""

import enum
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kubenexus.api.core import PodCondition
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.timestamps import format_time
from kubenexus.client import verbs
from kubenexus.client.calls import Call
from kubenexus.client.kinds import RESOURCE_RESERVATIONS
from kubenexus.observe.conditions import Condition

ACTIVE: Final = "ReservationActive"
COMPLETE: Final = "GangComplete"
MAX_PODS: Final = 256  # in a status


class Phase(enum.StrEnum):
    """The phases of a reservation (see `app.reservations.controller`)."""

    PENDING = "Pending"
    ACTIVE = "Active"
    CLAIMED = "Claimed"
    COMPLETE = "Complete"
    EXPIRED = "Expired"


class ReservationReport(msgspec.Struct, frozen=True, gc=False):
    """The content of a reservation's status. `nodes` is by entry, `pods` by the key of a pod. `expires_at` is None
    for an object that cannot be read."""

    phase: Phase
    reason: str
    message: str
    expires_at: float | None
    owner: str = ""
    nodes: Mapping[str, str] = {}
    pods: Mapping[str, str] = {}


def status_patch(thing: ResourceReservation, report: ReservationReport, now: float) -> Call | None:
    """Returns the call that writes the status, or None if the object has it already."""
    old = thing.status
    wanted: dict[str, Any] = {
        "phase": str(report.phase),
        "owner": report.owner,
        "expiresAt": "" if report.expires_at is None else format_time(report.expires_at),
        "nodes": dict(report.nodes),
        "pods": dict(list(report.pods.items())[:MAX_PODS]),
        "conditions": [_as_data(each, thing, now) for each in _conditions(report)],
    }
    has: dict[str, Any] = {
        "phase": old.phase,
        "owner": old.owner,
        "expiresAt": old.expires_at,
        "nodes": old.nodes,
        "pods": old.pods,
        "conditions": [_plain(each) for each in old.conditions],
    }
    if has == wanted and old.observed_generation == thing.metadata.generation:
        return None
    # A merge keeps what it does not name: the keys that are gone are named with null.
    for name, known in (("nodes", old.nodes), ("pods", old.pods)):
        wanted[name] |= dict.fromkeys([key for key in known if key not in wanted[name]])
    body = {
        "metadata": {"uid": thing.metadata.uid},
        "status": wanted | {"observedGeneration": thing.metadata.generation},
    }
    return verbs.patch(RESOURCE_RESERVATIONS, thing.metadata.namespace, thing.metadata.name, body, part="status")


def _conditions(report: ReservationReport) -> list[Condition]:
    active = report.phase in (Phase.ACTIVE, Phase.CLAIMED)
    found = [Condition(ACTIVE, str(active), report.reason, report.message)]
    if report.phase is Phase.COMPLETE:
        found.append(Condition(COMPLETE, "True", "Bound", "as many pods of the group are bound as it needs"))
    return found


def _as_data(condition: Condition, thing: ResourceReservation, now: float) -> dict[str, Any]:
    old = [each for each in thing.status.conditions if (each.type, each.status) == (condition.type, condition.status)]
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": old[0].last_transition_time if old else format_time(now),
        "observedGeneration": thing.metadata.generation,
    }


def _plain(condition: PodCondition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
        "observedGeneration": condition.observed_generation,
    }
