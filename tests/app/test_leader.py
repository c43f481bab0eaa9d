"""Leader election as an operator sees it: who leads, when, and what is on the Lease."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from kubenexus.app.election.candidate import Candidate
from kubenexus.app.election.leader import LeaderElector, LeadershipLost
from kubenexus.app.election.lease import LeaseConfig
from kubenexus.base.clock import VirtualClock
from kubenexus.client.calls import ApiError, Uncertain, Unreachable
from kubenexus.config.v1 import LeaderElection as Configured
from tests.app.leases import CONFLICT, LeaseServer, Line
from tests.observe.answers import Sleeper

TERMS = LeaseConfig(namespace="kubenexus-system", name="kubenexus-scheduler")
START = 1_794_792_257.0


class Replica:
    """A process that wants to lead. All share a server and a clock."""

    def __init__(self, name: str, server: LeaseServer, clock: VirtualClock) -> None:
        self.clock, self.line, self.sleep = clock, Line(server, clock), Sleeper(clock)
        self.problems: list[str] = []
        self.leaders: list[str] = []
        self.candidate = Candidate(name, TERMS)
        self.elector = LeaderElector(
            self.line,
            clock,
            self.candidate,
            Random(name),
            sleep=self.sleep,
            on_problem=self.problems.append,
            on_leader=self.leaders.append,
        )

    def acquire(self) -> "Replica":
        asyncio.run(self.elector.acquire())
        return self

    def hold(self, rounds: int) -> None:
        """Renew so many times."""

        async def for_a_while() -> None:
            task: Coroutine[Any, Any, Any] = self.elector.hold()
            running = asyncio.create_task(task)
            before = len(self.line.calls)
            while len(self.line.calls) < before + rounds and not running.done():
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            if running.done():
                await running
            running.cancel()

        asyncio.run(for_a_while())


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


@pytest.fixture
def a(server: LeaseServer, clock: VirtualClock) -> Replica:
    return Replica("host-a_1", server, clock)


@pytest.fixture
def b(server: LeaseServer, clock: VirtualClock) -> Replica:
    return Replica("host-b_2", server, clock)


def test_the_first_candidate_makes_the_lease(a: Replica, server: LeaseServer) -> None:
    a.acquire()
    assert server.lease == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kubenexus-scheduler", "namespace": "kubenexus-system", "resourceVersion": "1"},
        "spec": {
            "holderIdentity": "host-a_1",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-16T01:24:17.000000Z",
            "renewTime": "2026-11-16T01:24:17.000000Z",
            "leaseTransitions": 0,
        },
    }
    assert a.leaders == ["host-a_1"]
    assert a.elector.may_write()


def test_renewing_moves_the_renew_time_and_nothing_else(a: Replica, server: LeaseServer) -> None:
    a.acquire()
    assert server.lease is not None
    server.lease["metadata"]["labels"] = {"kept": "yes"}
    server.lease["spec"]["strategy"] = "somebody else's"
    server.version += 1
    server.lease["metadata"]["resourceVersion"] = str(server.version)
    a.hold(rounds=3)  # a conflict, then read, then written
    assert a.line.calls[-3:] == ["PUT", "GET", "PUT"]
    assert server.spec["acquireTime"] == "2026-11-16T01:24:17.000000Z"
    assert server.spec["renewTime"] > server.spec["acquireTime"]
    assert server.spec["leaseTransitions"] == 0
    assert server.spec["strategy"] == "somebody else's"
    assert server.lease["metadata"]["labels"] == {"kept": "yes"}


def test_a_leader_renews_without_reading(a: Replica) -> None:
    a.acquire().hold(rounds=5)
    assert a.line.calls == ["GET", "POST", *["PUT"] * 5]
    assert all(timeout < 4 for timeout in a.line.timeouts)


def test_another_waits_until_it_has_seen_the_lease_unchanged_for_its_whole_length(
    a: Replica, b: Replica, server: LeaseServer, clock: VirtualClock
) -> None:
    a.acquire()
    clock.advance(1000)  # how long ago it was renewed by its own account does not matter
    b.acquire()
    assert clock.now() > START + 1000 + 15
    assert server.spec["holderIdentity"] == "host-b_2"
    assert server.spec["leaseTransitions"] == 1
    assert b.leaders == ["host-a_1", "host-b_2"]
    waits = set(b.sleep.slept)
    assert all(2 <= wait <= 4.4 for wait in waits)
    assert len(waits) > 1  # jittered


def test_a_lease_that_was_given_up_is_taken_at_once(
    a: Replica, b: Replica, server: LeaseServer, clock: VirtualClock
) -> None:
    a.acquire()
    assert asyncio.run(a.elector.release())
    assert not a.elector.may_write()
    assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
    b.acquire()
    assert (clock.now(), server.spec["leaseTransitions"]) == (START, 1)


def test_giving_up_survives_a_conflict_and_an_outage(a: Replica, server: LeaseServer) -> None:
    a.acquire()
    a.line.script.extend([None, CONFLICT, Unreachable("down"), None, None])
    assert asyncio.run(a.elector.release())
    assert server.spec["holderIdentity"] == ""


def test_giving_up_ends_even_when_the_server_is_gone(a: Replica, clock: VirtualClock) -> None:
    a.acquire()
    a.line.always = Unreachable("down")
    assert not asyncio.run(a.elector.release())
    assert clock.now() <= START + 6


def test_who_does_not_hold_the_lease_gives_nothing_up(a: Replica, b: Replica, server: LeaseServer) -> None:
    a.acquire()
    assert asyncio.run(b.elector.release())
    assert server.spec["holderIdentity"] == "host-a_1"


def test_no_write_starts_after_the_renew_deadline(a: Replica, clock: VirtualClock) -> None:
    a.acquire()
    clock.advance(9.999)
    assert a.elector.may_write()
    clock.advance(0.001)
    assert not a.elector.may_write()
    assert a.elector.write_timeout == 5


@pytest.mark.parametrize(
    ("stopped", "left"),
    [
        pytest.param(0, 5, id="just renewed"),
        pytest.param(9.5, 5, id="just before the renew deadline"),
        pytest.param(13, 2, id="beyond the renew deadline: until the lease ends"),
        pytest.param(15, 0, id="the lease is over"),
        pytest.param(60, 0, id="long after it"),
    ],
)
def test_a_write_has_no_more_time_than_the_lease(a: Replica, clock: VirtualClock, stopped: float, left: float) -> None:
    """A process may be stopped after it asked whether it may write: the time it then gives the write says so."""
    a.acquire()
    clock.advance(stopped)
    assert a.elector.write_timeout == left


def test_who_does_not_lead_has_no_time_for_a_write(a: Replica) -> None:
    assert a.elector.write_timeout == 0


def test_the_fence_counts_from_when_the_renewal_was_sent(a: Replica, clock: VirtualClock) -> None:
    a.acquire()
    answer = a.candidate.renewal(clock.now())
    assert answer is not None
    sent = clock.now()
    clock.advance(8)
    a.candidate.on_written(a.candidate._lease, sent, clock.now())  # type: ignore[arg-type]
    assert a.elector.may_write(sent + 9.9)
    assert not a.elector.may_write(sent + 10)


@pytest.mark.parametrize(
    "trouble", [Unreachable("no route"), Uncertain("no answer"), ApiError(500, "", "etcd is gone")]
)
def test_a_leader_that_cannot_renew_ends(a: Replica, clock: VirtualClock, trouble: Exception) -> None:
    a.acquire()
    a.line.always = trouble
    with pytest.raises(LeadershipLost, match=str(trouble)):
        a.hold(rounds=100)
    assert START + 9.9 <= clock.now() <= START + 10
    assert a.problems == [str(trouble)]


def test_an_outage_shorter_than_the_deadline_is_survived(a: Replica) -> None:
    a.acquire()
    a.line.script.extend([Unreachable("down"), Uncertain("slow"), "lost"])
    a.hold(rounds=6)
    assert a.elector.may_write()


def test_a_leader_that_was_robbed_stops_at_once(a: Replica, server: LeaseServer, clock: VirtualClock) -> None:
    a.acquire()
    server.spec["holderIdentity"] = "thief"
    server.lease["metadata"]["resourceVersion"] = "99"  # type: ignore[index]
    with pytest.raises(LeadershipLost, match="held by thief"):
        a.hold(rounds=100)
    assert clock.now() == START + 2
    assert not a.elector.may_write()


def test_why_the_lease_cannot_be_had_is_said_once(a: Replica) -> None:
    forbidden = ApiError(403, "Forbidden", "leases is forbidden")
    a.line.script.extend([forbidden] * 5)
    a.acquire()
    assert a.problems == ["leases is forbidden"]


def test_a_namespace_that_does_not_exist_is_a_problem(a: Replica) -> None:
    missing = ApiError(404, "NotFound", 'namespaces "kubenexus-system" not found')
    a.line.script.extend([ApiError(404), missing, ApiError(404), missing])
    a.acquire()
    assert a.problems == ['namespaces "kubenexus-system" not found']


def test_something_that_is_no_lease_is_no_crash(a: Replica, server: LeaseServer) -> None:
    server.lease = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": 7}}
    a.line.script.extend([None, None, ApiError(404)])
    server.version = 1
    original, server.lease = server.lease, None
    a.acquire()
    server.lease = original
    with pytest.raises(LeadershipLost):
        a.hold(rounds=100)
    assert "holderIdentity" in a.problems[0]


def test_a_lease_without_a_spec_is_free(a: Replica, server: LeaseServer) -> None:
    server.lease = {"metadata": {"name": "x", "resourceVersion": "0"}, "spec": None}
    a.acquire()
    assert server.spec["holderIdentity"] == "host-a_1"


def test_a_lease_that_was_deleted_is_made_again_by_its_holder_only(
    a: Replica, b: Replica, server: LeaseServer, clock: VirtualClock
) -> None:
    a.acquire()
    b.candidate.on_read(None, clock.now())
    asyncio.run(b.elector._round(5))  # sees who holds it
    server.lease = None
    assert not asyncio.run(b.elector._round(5))
    a.hold(rounds=3)
    assert server.spec["holderIdentity"] == "host-a_1"
    server.lease = None
    clock.advance(16)
    assert asyncio.run(b.elector._round(5))


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [
        pytest.param(14, False, id="its holder may still write"),
        pytest.param(16, True, id="no replica of this configuration writes for so long"),
    ],
)
def test_a_deleted_lease_keeps_none_waiting_for_longer_than_their_own_lasts(
    a: Replica, b: Replica, server: LeaseServer, clock: VirtualClock, seconds: float, taken: bool
) -> None:
    a.acquire()
    assert server.lease is not None
    server.lease["spec"]["leaseDurationSeconds"] = 1_000_000_000
    assert not asyncio.run(b.elector._round(5))  # sees who holds it, and for how long
    clock.advance(seconds)
    assert not asyncio.run(b.elector._round(5)), "while it is there it counts"
    server.lease = None
    assert asyncio.run(b.elector._round(5)) is taken


def test_an_answer_that_was_lost_still_counts_when_it_is_read(a: Replica, server: LeaseServer) -> None:
    a.line.script.extend([None, "lost"])  # the lease was made, but we did not hear of it
    a.acquire()
    assert a.line.calls == ["GET", "POST", "GET", "PUT"]
    assert server.spec["leaseTransitions"] == 0


def test_a_sick_leader_is_reported_after_a_while(a: Replica, clock: VirtualClock) -> None:
    a.acquire()
    assert a.elector.check() is None
    clock.advance(35)
    assert a.elector.check() is None
    clock.advance(1)
    assert a.elector.check() == "failed election to renew leadership on lease kubenexus-scheduler"


def test_the_terms_come_from_the_configuration() -> None:
    assert LeaseConfig.of(Configured()) == TERMS
    assert LeaseConfig.of(Configured()).write_timeout == 5
