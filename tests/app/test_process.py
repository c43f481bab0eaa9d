"""The process as it is run, on the embedded server: what goes on in it, whether it leads or stands by."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

import pytest

from kubenexus.app import ledger_auditor
from kubenexus.app.election import loop_activity
from kubenexus.app.election.leader import LeadershipLost
from kubenexus.app.flags import Flags, apply_flags
from kubenexus.app.process import Process
from kubenexus.app.scheduler import Scheduler
from kubenexus.base.clock import WallClock
from kubenexus.client.calls import Call, Uncertain
from kubenexus.client.client_config import ClientOptions, load_client_config
from kubenexus.client.kinds import LEASES
from kubenexus.client.verbs import patch
from kubenexus.config import defaults
from kubenexus.config.durations import Duration
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.embedded_cluster import EmbeddedCluster, run_in_background
from kubenexus.state.resources import CPU
from tests.app.embedded_story import cluster
from tests.async_helpers import HANGS


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(HANGS):
        while not true():
            await asyncio.sleep(0)  # the server lives in this loop, too


def replica(box: EmbeddedCluster, name: str) -> Process:
    """A process with an identity of its own, one of several."""
    plugins, clock = load_plugins(BUILT_IN), WallClock()
    election = {"resource_namespace": "default", "retry_period": Duration.of("100ms")}
    flags = Flags(secure_port=0, leader_election=election)
    configuration = apply_flags(defaults(plugins), flags)
    access, for_lease = (load_client_config(ClientOptions(kubeconfig=str(box.kubeconfig)), clock) for _ in range(2))
    return Process(
        configuration,
        plugins,
        access,
        clock,
        random.Random(5),
        lease_access=for_lease,
        flags=flags,
        identity=name,
    )


@contextlib.asynccontextmanager
async def started(box: EmbeddedCluster, name: str) -> AsyncIterator[Scheduler]:
    """A replica that has seen everything."""
    process = replica(box, name)
    async with run_in_background(process.run()):
        await until(lambda: process._scheduler is not None and not process._scheduler.watches.unsynced)
        assert process._scheduler is not None
        yield process._scheduler


async def found_out(scheduler: Scheduler) -> None:
    """A miscounted node, sooner or later."""
    scheduler.ledger.nodes.resources.used[CPU, 0] += 1
    await until(lambda: scheduler.metrics.ledger_corrections.labels().value)


def test_leader_and_standby_both_audit_their_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_auditor, "MAX_PAUSE", 0.0)

    async def life() -> None:
        async with cluster(2, "2") as box, started(box, "one") as leader:
            await until(leader.guard.may_write)
            async with started(box, "other") as standby:
                await found_out(leader)
                await found_out(standby)
                assert not standby.guard.may_write()

    asyncio.run(life())


def test_a_process_that_is_asked_to_end_while_it_starts_ends_at_once_and_in_peace() -> None:
    """The server takes the call, and does not answer."""

    async def life() -> None:
        async with cluster(1, "2") as box:
            process = replica(box, "one")
            asked = asyncio.Event()

            async def silent() -> None:
                asked.set()
                await asyncio.Event().wait()

            process._check_connection = silent  # type: ignore[method-assign]
            running = asyncio.ensure_future(process.run())
            await asked.wait()
            process.stop()
            async with asyncio.timeout(HANGS):
                await running

    asyncio.run(life())


def test_in_a_quiet_cluster_the_server_is_called_to_know_whether_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stands still leaves all watches open, and nothing else may be sent for minutes."""
    monkeypatch.setattr("kubenexus.app.process.PROBE_SECONDS", 0.02)
    monkeypatch.setattr("kubenexus.app.process.PROBE_TIMEOUT", 0.05)

    async def life() -> None:
        async with cluster(1, "2") as box:
            process, asked = replica(box, "one"), list[str]()
            client, answers = process._client, True
            send = client.send

            async def counted(call: Call, *, timeout: float = 10.0) -> bytes:
                asked.append(call.path)
                if not answers:
                    raise Uncertain("no answer in time")
                return await send(call, timeout=timeout)

            client.send = counted  # type: ignore[method-assign]
            async with run_in_background(process.run()):
                await until(lambda: asked.count("/version") > 5)
                assert client.unanswered_seconds < 5.0
                answers = False
                await until(lambda: client.unanswered_seconds > 0.3)
                answers = True
                await until(lambda: client.unanswered_seconds < 0.1)

    asyncio.run(life())


def test_the_main_loop_shows_life_while_it_finishes_its_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the lease thread would end the process with an error, where that takes long."""
    monkeypatch.setattr(loop_activity, "HEARTBEAT_SECONDS", 0.0)

    async def life() -> None:
        async with cluster(1, "2") as box:
            process, finished = replica(box, "one"), list[int]()

            async def finish(scheduler: Scheduler) -> None:
                shown, before = scheduler.loop.activity, scheduler.loop.activity.beats
                await until(lambda: shown.beats > before + 3)
                finished.append(shown.beats)

            process._finish = finish  # type: ignore[method-assign]
            running = asyncio.ensure_future(process.run())
            await until(lambda: process._elector is not None and process._elector.may_write())
            process.stop()
            await running
            assert finished

    asyncio.run(life())


def test_who_is_asked_to_end_hands_the_lease_over_and_who_is_robbed_of_it_ends_with_an_error() -> None:
    async def life() -> None:
        async with cluster(1, "2") as box:
            first = replica(box, "one")
            running = asyncio.ensure_future(first.run())
            await until(lambda: first._elector is not None and first._elector.may_write())
            second = replica(box, "other")
            waiting = asyncio.ensure_future(second.run())
            first.stop()
            await running
            assert first._elector is not None
            assert not first._elector.may_write()
            await until(lambda: second._elector is not None and second._elector.may_write())
            body = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}}
            await box.client.send(patch(LEASES, "default", "kubenexus-scheduler", body))
            with pytest.raises(LeadershipLost, match="lease kubenexus-scheduler is held by thief"):
                await waiting

    asyncio.run(life())
