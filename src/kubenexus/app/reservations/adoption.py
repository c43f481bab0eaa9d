"""Builds entries of the ledger's table of reserved capacity, from the spec or the status of a ResourceReservation."""

from collections.abc import Iterable, Mapping
from typing import Final

from kubenexus.api.reservations.request import ReservationEntry, ReservationRequest, quantity_text
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.observe.reservation_status import MAX_PODS, Phase
from kubenexus.state.ledger import Ledger
from kubenexus.state.reservations.table import ReservationRecord, ReservedCapacity

_IN_EFFECT: Final = (Phase.ACTIVE, Phase.CLAIMED)


def placed_entries(
    request: ReservationRequest, entries: Iterable[ReservationEntry], nodes: Mapping[str, str]
) -> dict[str, ReservedCapacity]:
    """Returns entries of the table, each on its node."""
    return {each.name: ReservedCapacity(each.name, request.key, nodes[each.name], each.amounts) for each in entries}


def enter(ledger: Ledger, request: ReservationRequest, entries: Mapping[str, ReservedCapacity]) -> None:
    """Reserves these entries, and those of the same reservation that are in the ledger already."""
    before = ledger.release_reservation(request.key)
    kept = {} if before is None else before.entries
    ledger.reserve(ReservationRecord(request.key, request.owner, {**kept, **entries}, request.priority))


def nodes_before(thing: ResourceReservation, request: ReservationRequest) -> Mapping[str, str]:
    """Returns the node of each entry by the object's status, if this very reservation was in effect; else nothing."""
    nodes, names = thing.status.nodes, {each.name for each in request.entries}
    same = thing.status.observed_generation == thing.metadata.generation and set(nodes) == names
    pinned = all(nodes.get(each.name) == each.node for each in request.entries if each.node)
    return nodes if same and pinned and thing.status.phase in _IN_EFFECT else {}


def is_complete(thing: ResourceReservation) -> bool:
    """Whether the status is Complete, and of this generation of the object."""
    return thing.status.phase == Phase.COMPLETE and thing.status.observed_generation == thing.metadata.generation


def adopt(ledger: Ledger, request: ReservationRequest, nodes: Mapping[str, str], pods: Iterable[str]) -> bool:
    """Reserves what an earlier process reserved on these nodes, with the pods on it. Returns False, and reserves
    nothing, if the nodes no longer have it."""
    enter(ledger, request, placed_entries(request, request.entries, nodes))
    entries = list(ledger.reservations.by_key[request.key].entries.values())
    ledger.claim([ledger.pods[key] for key in list(pods)[:MAX_PODS] if key in ledger.pods], entries)
    if ledger.reservations.lacking(request.key):
        ledger.release_reservation(request.key)
        return False
    return True


def take_lacking(ledger: Ledger, request: ReservationRequest) -> tuple[ReservationEntry, ...]:
    """Takes the entries out of the ledger whose nodes are gone or too full, and returns what has to be reserved for
    them elsewhere. What pods use on a node that is still there is not reserved a second time."""
    lacking = ledger.reservations.lacking(request.key)
    record = ledger.release_reservation(request.key) if lacking else None
    if record is None:
        return ()
    lost = [record.entries.pop(name) for name in lacking]
    if record.entries:
        ledger.reserve(record)
    return tuple([_entry_elsewhere(each, each.node in ledger.nodes.row_of, request) for each in lost])


def _entry_elsewhere(entry: ReservedCapacity, there: bool, request: ReservationRequest) -> ReservationEntry:
    amounts = tuple(sorted(entry.left().items())) if there else entry.amounts
    texts = tuple([(name, quantity_text(name, amount)) for name, amount in amounts])
    node = next((each.node for each in request.entries if each.name == entry.name), "")
    return ReservationEntry(entry.name, amounts, texts, node)
