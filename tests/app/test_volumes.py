"""Claims that wait for their pod: what is written, what is waited for, and what becomes of it when it fails."""

import asyncio

import msgspec
import pytest

from kubenexus.api.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolumeClaim
from kubenexus.bind import prebind_waits
from kubenexus.client.calls import ApiError
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.async_helpers import yield_to_loop
from tests.bind.server import SILENT
from tests.volumes.builders import a_claim, a_class, a_mounting_pod, a_volume


def bound(claim: PersistentVolumeClaim, volume: str, node: str = "n") -> PersistentVolumeClaim:
    notes = claim.metadata.annotations | {BIND_COMPLETED: "yes", SELECTED_NODE: node}
    meta = msgspec.structs.replace(claim.metadata, annotations=notes)
    return msgspec.structs.replace(claim, metadata=meta, spec=msgspec.structs.replace(claim.spec, volume_name=volume))


def selected(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    notes = {SELECTED_NODE: node} if node else {}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=notes))


def opened(fixture: SchedulerFixture) -> PersistentVolumeClaim:
    """A pod that waits for its volume to be made on the only node."""
    claim = a_claim("data")
    fixture.nodes(a_node("n"))
    fixture.things(a_class("wait"), claim)
    fixture.pods(a_mounting_pod("db", "data"))
    return claim


async def asked_for(fixture: SchedulerFixture) -> PersistentVolumeClaim:
    """The same, when somebody has been asked to make it."""
    claim = opened(fixture)
    await fixture.work(waiting=1)
    await yield_to_loop()
    return claim


def test_a_volume_is_made_where_the_pod_goes_and_only_then_is_it_bound() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        claim = await asked_for(fixture)
        (said,) = fixture.server.said("persistentvolumeclaims/data")
        assert said["metadata"]["annotations"] == {SELECTED_NODE: "n"}
        assert fixture.server.binds == []
        fixture.things(selected(claim, "n"))
        await asyncio.sleep(0)
        assert fixture.server.binds == [], "it is not made yet"
        assert fixture.server.said("/status") == [], "and nobody is told where it will go"
        fixture.things(a_volume("pv", claim="data"), bound(claim, "pv"))
        await fixture.work()
        assert fixture.server.binds == ["db to n"]

    scheduler_test(life)


def test_a_volume_that_exists_is_promised_to_the_claim() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        claim = a_claim("data")
        fixture.nodes(a_node("n"))
        fixture.things(a_class("wait", by="kubernetes.io/no-provisioner"), claim, a_volume("pv", size="2Gi"))
        fixture.pods(a_mounting_pod("db", "data"))
        await fixture.work(waiting=1)
        await yield_to_loop()
        (said,) = fixture.server.said("persistentvolumes/pv")
        reference = said["spec"]["claimRef"]
        assert (reference["kind"], reference["namespace"], reference["name"], reference["uid"]) == (
            "PersistentVolumeClaim",
            "default",
            "data",
            claim.metadata.uid,
        )
        assert said["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        fixture.things(bound(claim, "pv"))
        await fixture.work()
        assert fixture.server.binds == ["db to n"]

    scheduler_test(life)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(ApiError(409, "Conflict", "the object has been modified"), "has been modified", id="conflict"),
        pytest.param(ApiError(403, "Forbidden", "you may not"), "you may not", id="forbidden"),
        pytest.param(SILENT, "no answer", id="no answer"),
    ],
)
def test_what_cannot_be_written_sends_the_pod_back(fault: Exception, said: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        opened(fixture)
        fixture.server.patches.append(fault)
        await fixture.work()
        assert (fixture.server.binds, fixture.where()) == ([], {})
        assert fixture.queue.state("default/db") is QueueState.BACKOFF
        (told,) = fixture.told()
        assert told.startswith('FailedScheduling db: running PreBind plugin "VolumeBinding": ')
        assert said in told

    scheduler_test(life)


def test_a_namespace_with_too_many_pods_that_wait_for_volumes_delays_its_own_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prebind_waits, "MAX_PER_NAMESPACE", 2)

    async def life(fixture: SchedulerFixture) -> None:
        claims = [a_claim(f"c{i}") for i in range(4)]
        fixture.nodes(a_node("n"))
        fixture.things(a_class("wait"), *claims, a_volume("old", claim="used"), bound(a_claim("used"), "old"))
        for i in range(2):
            fixture.pods(a_mounting_pod(f"db{i}", f"c{i}"))
            await fixture.work(waiting=2)
            await yield_to_loop()
        fixture.pods(a_mounting_pod("db2", "c2"), a_mounting_pod("ready", "used"), a_pod("web"))
        await fixture.work(waiting=2)
        assert sorted(fixture.server.binds) == ["ready to n", "web to n"]
        assert fixture.queue.state("default/db2") is QueueState.BACKOFF
        assert "db2" not in fixture.where(), "it holds no room meanwhile"
        why = 'running PreBind plugin "VolumeBinding": 2 pods of this namespace wait for volumes already'
        assert fixture.told()[0] == f"FailedScheduling db2: {why}"
        fixture.things(a_volume("pv", claim="c0"), bound(claims[0], "pv"))
        await fixture.work(waiting=1)
        fixture.clock.advance(11)
        await fixture.work(waiting=2)
        assert "db2" in fixture.where()
        await fixture.scheduler.dispatcher.close(1.0)

    scheduler_test(life)


def test_a_provisioner_that_gives_up_sends_the_pod_back() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        claim = await asked_for(fixture)
        fixture.things(selected(claim, "n"))
        await asyncio.sleep(0)
        fixture.things(selected(claim, ""))
        await fixture.work()
        assert (fixture.server.binds, fixture.where()) == ([], {})
        assert 'provisioning failed for PVC "data"' in fixture.told()[-1]

    scheduler_test(life)


def test_a_claim_that_is_deleted_sends_the_pod_back() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await asked_for(fixture)
        fixture.handlers.objects.on_delete("PersistentVolumeClaim", "default/data")
        await fixture.work()
        assert fixture.where() == {}

    scheduler_test(life)


def test_volumes_are_not_waited_for_for_ever() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.scheduler.volumes._timeouts = {"default-scheduler": 0.0}
        opened(fixture)
        await fixture.work()
        assert (fixture.server.binds, fixture.where()) == ([], {})
        assert "timed out waiting" in fixture.told()[-1]

    scheduler_test(life)


def test_a_pod_that_waits_for_its_volumes_does_not_hold_up_others() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        opened(fixture)
        fixture.pods(*(a_mounting_pod(f"p{i}") for i in range(300)))
        await fixture.work(waiting=1)
        assert len(fixture.server.binds) == 109, "all that the node takes"

    scheduler_test(life)
