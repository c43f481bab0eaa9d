"""ResourceReservations as a table, for `kubenexus reserve list`."""

from collections.abc import Iterable

from kubenexus.api.reservations.request import request_of
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.errors import Malformed, truncated
from kubenexus.base.timestamps import format_time
from kubenexus.explain.text_table import text_table
from kubenexus.observe.reservation_status import ACTIVE

HEADER = ("NAMESPACE", "NAME", "PHASE", "OWNER", "ENTRIES", "NODES", "PODS", "FROM", "UNTIL", "REASON")


def render_reservations(things: Iterable[ResourceReservation]) -> str:
    """Returns a line for each reservation, and a sentence if there is none."""
    rows = [_row(thing) for thing in sorted(things, key=lambda each: each.metadata.key)]
    return "\n".join(text_table([HEADER, *rows])) + "\n" if rows else "No reservations.\n"


def _row(thing: ResourceReservation) -> tuple[str, ...]:
    meta, status = thing.metadata, thing.status
    condition = next((each for each in status.conditions if each.type == ACTIVE), None)
    try:
        request = request_of(thing)
    except Malformed as problem:
        return (meta.namespace, meta.name, status.phase or "-", "-", "-", "-", "-", "-", "-", truncated(str(problem)))
    reason = "not read by a scheduler yet" if condition is None else condition.reason
    if condition is not None and condition.status == "False":
        reason += f": {truncated(condition.message)}"
    return (
        meta.namespace,
        meta.name,
        status.phase or "-",
        request.owner.describe(),
        str(len(request.entries)),
        str(len(set(status.nodes.values()))),
        str(len(status.pods)),
        format_time(request.starts_at),
        format_time(request.expires_at),
        reason,
    )
