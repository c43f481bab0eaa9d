"""ResourceReservations for tests of the whole scheduler: made, written back and read again as a server would."""

from typing import Any

import msgspec

from kubenexus.api.codec import from_data
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.timestamps import format_time
from kubenexus.observe.reservation_status import ReservationReport
from tests.app.scheduler_fixture import SchedulerFixture

SYSTEM = "kubenexus-system"
START = 1_000_000.0  # of the fixture's clock
KIND = "ResourceReservation"


def a_reservation(
    name: str = "r", *, namespace: str = SYSTEM, at: float = START, generation: int = 1, labels: Any = None, **spec: Any
) -> ResourceReservation:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid of {namespace}/{name}",
        "resourceVersion": "1",
        "generation": generation,
        "creationTimestamp": format_time(at),
        "labels": labels or {},
    }
    return from_data({"metadata": metadata, "spec": spec}, ResourceReservation)


def for_team(team: str = "team-a") -> dict[str, Any]:
    return {"namespaces": [team]}


def report(fixture: SchedulerFixture, key: str = f"{SYSTEM}/r") -> ReservationReport:
    """What the status of a reservation says, or is about to say."""
    return fixture.scheduler.reservation_reporter._last[key][2]


def said(fixture: SchedulerFixture, key: str = f"{SYSTEM}/r") -> tuple[str, str]:
    """Its phase and reason."""
    found = report(fixture, key)
    return str(found.phase), found.reason


def written(thing: ResourceReservation, fixture: SchedulerFixture) -> ResourceReservation:
    """The object as the next process reads it."""
    from kubenexus.observe.reservation_status import status_patch

    call = status_patch(thing, report(fixture, thing.metadata.key), fixture.clock.now())
    assert call is not None
    status = msgspec.json.decode(call.body)["status"]
    nodes = {name: node for name, node in status["nodes"].items() if node is not None}
    pods = {name: word for name, word in status["pods"].items() if word is not None}
    data = msgspec.json.decode(msgspec.json.encode(thing))
    return from_data(data | {"status": status | {"nodes": nodes, "pods": pods}}, ResourceReservation)
