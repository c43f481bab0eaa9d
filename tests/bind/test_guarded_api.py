"""Writes that nobody waits for: none once another may lead, and none that takes longer than that."""

import asyncio

import pytest

from kubenexus.bind.job_binding import GuardedApi
from kubenexus.client.calls import Call, Unreachable
from tests.bind.server import Guard

EVENT = Call("POST", "/apis/events.k8s.io/v1/namespaces/default/events", b"{}")


class Carrier:
    def __init__(self) -> None:
        self.sent: list[tuple[Call, float]] = []

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        self.sent.append((call, timeout))
        return b"done"


def test_who_leads_writes_and_does_not_take_too_long() -> None:
    carrier = Carrier()
    assert asyncio.run(GuardedApi(carrier, Guard(3.0)).send(EVENT, timeout=5.0)) == b"done"
    assert carrier.sent == [(EVENT, 3.0)]


def test_who_does_not_lead_writes_nothing() -> None:
    carrier, guard = Carrier(), Guard()
    guard.leads = False
    with pytest.raises(Unreachable, match="does not lead"):
        asyncio.run(GuardedApi(carrier, guard).send(EVENT))
    assert carrier.sent == []
