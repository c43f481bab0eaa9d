"""Claims that wait for their pod: what is written, what is waited for, and what becomes of it when it fails."""

import asyncio

import msgspec
import pytest

from kubenexus.api.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolumeClaim
from kubenexus.bind import waits
from kubenexus.client.calls import ApiError
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town
from tests.bind.server import SILENT
from tests.turns import turns
from tests.volumes.some import a_claim, a_class, a_mounting_pod, a_volume


def bound(claim: PersistentVolumeClaim, volume: str, node: str = "n") -> PersistentVolumeClaim:
    notes = claim.metadata.annotations | {BIND_COMPLETED: "yes", SELECTED_NODE: node}
    meta = msgspec.structs.replace(claim.metadata, annotations=notes)
    return msgspec.structs.replace(claim, metadata=meta, spec=msgspec.structs.replace(claim.spec, volume_name=volume))


def selected(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    notes = {SELECTED_NODE: node} if node else {}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=notes))


def opened(town: Town) -> PersistentVolumeClaim:
    """A pod that waits for its volume to be made on the only node."""
    claim = a_claim("data")
    town.nodes(a_node("n"))
    town.things(a_class("wait"), claim)
    town.pods(a_mounting_pod("db", "data"))
    return claim


async def asked_for(town: Town) -> PersistentVolumeClaim:
    """The same, when somebody has been asked to make it."""
    claim = opened(town)
    await town.work(waiting=1)
    await turns()
    return claim


def test_a_volume_is_made_where_the_pod_goes_and_only_then_is_it_bound() -> None:
    async def life(town: Town) -> None:
        claim = await asked_for(town)
        (said,) = town.server.said("persistentvolumeclaims/data")
        assert said["metadata"]["annotations"] == {SELECTED_NODE: "n"}
        assert town.server.binds == []
        town.things(selected(claim, "n"))
        await asyncio.sleep(0)
        assert town.server.binds == [], "it is not made yet"
        assert town.server.said("/status") == [], "and nobody is told where it will go"
        town.things(a_volume("pv", claim="data"), bound(claim, "pv"))
        await town.work()
        assert town.server.binds == ["db to n"]

    in_town(life)


def test_a_volume_that_exists_is_promised_to_the_claim() -> None:
    async def life(town: Town) -> None:
        claim = a_claim("data")
        town.nodes(a_node("n"))
        town.things(a_class("wait", by="kubernetes.io/no-provisioner"), claim, a_volume("pv", size="2Gi"))
        town.pods(a_mounting_pod("db", "data"))
        await town.work(waiting=1)
        await turns()
        (said,) = town.server.said("persistentvolumes/pv")
        reference = said["spec"]["claimRef"]
        assert (reference["kind"], reference["namespace"], reference["name"], reference["uid"]) == (
            "PersistentVolumeClaim",
            "default",
            "data",
            claim.metadata.uid,
        )
        assert said["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        town.things(bound(claim, "pv"))
        await town.work()
        assert town.server.binds == ["db to n"]

    in_town(life)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(ApiError(409, "Conflict", "the object has been modified"), "has been modified", id="conflict"),
        pytest.param(ApiError(403, "Forbidden", "you may not"), "you may not", id="forbidden"),
        pytest.param(SILENT, "no answer", id="no answer"),
    ],
)
def test_what_cannot_be_written_sends_the_pod_back(fault: Exception, said: str) -> None:
    async def life(town: Town) -> None:
        opened(town)
        town.server.patches.append(fault)
        await town.work()
        assert (town.server.binds, town.where()) == ([], {})
        assert town.room.place("default/db") is Place.BACKOFF
        (told,) = town.told()
        assert told.startswith('FailedScheduling db: running PreBind plugin "VolumeBinding": ')
        assert said in told

    in_town(life)


def test_a_namespace_with_too_many_pods_that_wait_for_volumes_delays_its_own_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waits, "PER_NAMESPACE", 2)

    async def life(town: Town) -> None:
        claims = [a_claim(f"c{i}") for i in range(4)]
        town.nodes(a_node("n"))
        town.things(a_class("wait"), *claims, a_volume("old", claim="used"), bound(a_claim("used"), "old"))
        for i in range(2):
            town.pods(a_mounting_pod(f"db{i}", f"c{i}"))
            await town.work(waiting=2)
            await turns()
        town.pods(a_mounting_pod("db2", "c2"), a_mounting_pod("ready", "used"), a_pod("web"))
        await town.work(waiting=2)
        assert sorted(town.server.binds) == ["ready to n", "web to n"]
        assert town.room.place("default/db2") is Place.BACKOFF
        assert "db2" not in town.where(), "it holds no room meanwhile"
        why = 'running PreBind plugin "VolumeBinding": 2 pods of this namespace wait for volumes already'
        assert town.told()[0] == f"FailedScheduling db2: {why}"
        town.things(a_volume("pv", claim="c0"), bound(claims[0], "pv"))
        await town.work(waiting=1)
        town.clock.advance(11)
        await town.work(waiting=2)
        assert "db2" in town.where()
        await town.scheduler.dispatcher.close(1.0)

    in_town(life)


def test_a_provisioner_that_gives_up_sends_the_pod_back() -> None:
    async def life(town: Town) -> None:
        claim = await asked_for(town)
        town.things(selected(claim, "n"))
        await asyncio.sleep(0)
        town.things(selected(claim, ""))
        await town.work()
        assert (town.server.binds, town.where()) == ([], {})
        assert 'provisioning failed for PVC "data"' in town.told()[-1]

    in_town(life)


def test_a_claim_that_is_deleted_sends_the_pod_back() -> None:
    async def life(town: Town) -> None:
        await asked_for(town)
        town.feed.gone("PersistentVolumeClaim", "default/data")
        await town.work()
        assert town.where() == {}

    in_town(life)


def test_volumes_are_not_waited_for_for_ever() -> None:
    async def life(town: Town) -> None:
        town.scheduler.volumes._timeouts = {"default-scheduler": 0.0}
        opened(town)
        await town.work()
        assert (town.server.binds, town.where()) == ([], {})
        assert "timed out waiting" in town.told()[-1]

    in_town(life)


def test_a_pod_that_waits_for_its_volumes_does_not_hold_up_others() -> None:
    async def life(town: Town) -> None:
        opened(town)
        town.pods(*(a_mounting_pod(f"p{i}") for i in range(300)))
        await town.work(waiting=1)
        assert len(town.server.binds) == 109, "all that the node takes"

    in_town(life)
