"""Which reservations take effect, and how many.

A reservation keeps capacity from all other tenants. So one in a namespace that the configuration does not name has no
effect, and a namespace that it names has a limit. Every limit refuses one object, with a condition.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubenexus.api.reservations.request import ReservationRequest, total_amounts
from kubenexus.config.reservation_settings import ReservationSettings
from kubenexus.state.nodes import NodeColumns

MAX_RESERVATIONS: Final = 256  # under way at the same time; each costs microseconds a second
MAX_ENTRIES: Final = 1024  # of all of them
MAX_IN_NAMESPACE: Final = 16  # of a namespace with a limit
MAX_ENTRIES_IN_NAMESPACE: Final = 128

NOT_ALLOWED: Final = "NotAllowed"
TOO_MANY: Final = "TooMany"
TOO_LONG: Final = "TooLong"
TOO_LARGE: Final = "TooLarge"


class Refusal(NamedTuple):
    """Why a reservation has no effect: a word for programs, and a sentence."""

    reason: str
    message: str


def not_allowed() -> Refusal:
    """Returns the refusal of a reservation in a namespace that the configuration does not name."""
    text = "the scheduler's configuration does not name this namespace; see pluginConfig ResourceReservation"
    return Refusal(NOT_ALLOWED, text)


def refusal(
    request: ReservationRequest, under_way: Iterable[ReservationRequest], settings: ReservationSettings
) -> Refusal | None:
    """Returns why a reservation may not take effect beside those under way, None if it may."""
    namespace = request.namespace
    if not settings.allows(namespace):
        return not_allowed()
    seconds = request.expires_at - request.starts_at
    if seconds > settings.max_seconds:
        return Refusal(TOO_LONG, f"lasts {seconds:.0f} seconds; at most {settings.max_seconds:.0f} are allowed")
    others = list(under_way)
    if len(others) >= MAX_RESERVATIONS:
        return Refusal(TOO_MANY, f"{MAX_RESERVATIONS} reservations are under way, which is the limit")
    entries = len(request.entries)
    if sum(len(each.entries) for each in others) + entries > MAX_ENTRIES:
        return Refusal(TOO_MANY, f"the reservations under way would have more than {MAX_ENTRIES} entries")
    if namespace in settings.unlimited:
        return None
    own = [each for each in others if each.namespace == namespace]
    if len(own) >= MAX_IN_NAMESPACE:
        return Refusal(TOO_MANY, f"{MAX_IN_NAMESPACE} reservations of this namespace are under way, which is the limit")
    if sum(len(each.entries) for each in own) + entries > MAX_ENTRIES_IN_NAMESPACE:
        return Refusal(
            TOO_MANY, f"the reservations of this namespace would have more than {MAX_ENTRIES_IN_NAMESPACE} entries"
        )
    return None


def share_refusal(
    request: ReservationRequest,
    active: Iterable[ReservationRequest],
    settings: ReservationSettings,
    columns: NodeColumns,
) -> Refusal | None:
    """Returns why a namespace would reserve too much of some resource with this reservation, None if it would not."""
    if request.namespace in settings.unlimited:
        return None
    sums = total_amounts(request.entries)
    for each in active:
        if each.namespace == request.namespace:
            for name, amount in total_amounts(each.entries).items():
                sums[name] = sums.get(name, 0) + amount
    resources = columns.resources
    for name, amount in sums.items():
        r = resources.index.get(name)
        offered = 0 if r is None else int(resources.alloc[r, : columns.size].sum())
        if amount * 100 > offered * settings.max_percent:
            part = f"more than {settings.max_percent} % of the {name} of the cluster"
            return Refusal(TOO_LARGE, f"this namespace would reserve {part}")
    return None
