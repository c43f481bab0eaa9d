"""Gangs that lost members, or never got them: what they hold is kept for a while, and then let go."""

import msgspec
import pytest

from kubenexus.api.core import Pod, PodCondition, PodStatus
from kubenexus.api.keys.gang import TIMEOUT
from kubenexus.api.meta import OwnerReference
from kubenexus.app.holes import HELD
from kubenexus.state.digest import digest
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger, relist
from tests.api.gangs.small import a_member
from tests.app.town import Town, in_town
from tests.bind.server import BUSY

BEGAN = "1970-01-12T13:46:40Z"  # when a town's clock begins
OWNER = [OwnerReference(kind="Job", name="llama", uid="job", controller=True)]


def bound(name: str, node: str, *, owned: bool = True, phase: str = "Pending", patience: int = 0) -> Pod:
    """A member of a gang of three, bound when the clock began."""
    pod = a_member(name, "llama", 3, cpu=1, node=node)
    said = [PodCondition(type="PodScheduled", status="True", last_transition_time=BEGAN)]
    labels = pod.metadata.labels | ({TIMEOUT.key: str(patience)} if patience else {})
    meta = msgspec.structs.replace(pod.metadata, owner_references=OWNER if owned else [], labels=labels)
    return msgspec.structs.replace(pod, metadata=meta, status=PodStatus(phase=phase, conditions=said))


def evicted(town: Town) -> list[str]:
    return [body["metadata"]["name"] for body in town.server.said("/eviction")]


def leave(town: Town, pod: Pod) -> None:
    """It is deleted, as most are: first it is told to go, then it is gone."""
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=BEGAN)
    town.feed.pod_seen(msgspec.structs.replace(pod, metadata=meta))
    town.delete(pod.key)
    town.feed.assembly.flush()


# --- released -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "after", "gone"),
    [
        pytest.param([bound("a", "n1"), bound("b", "n2")], 299, [], id="there is time left"),
        pytest.param([bound("a", "n1"), bound("b", "n2")], 300, ["a", "b"], id="the deadline has come"),
        pytest.param([bound("a", "n1", phase="Running"), bound("b", "n2")], 300, ["b"], id="one runs, and may go on"),
        pytest.param([bound("a", "n1"), bound("b", "n2"), bound("c", "n2")], 999, [], id="it lacks nobody"),
        pytest.param([bound("a", "n1", patience=60)], 60, ["a"], id="its own patience"),
        pytest.param([bound("a", "n1", patience=600)], 599, [], id="its own patience is longer"),
    ],
)
def test_f02_a_gang_that_stays_incomplete_is_released(members: list[Pod], after: int, gone: list[str]) -> None:
    """From what the API server says alone: this scheduler never placed any of them."""

    async def life(town: Town) -> None:
        town.nodes(a_node("n1", cpu=4), a_node("n2", cpu=4))
        town.pods(*members)
        await town.work()
        town.clock.advance(after)
        await town.scheduler.keeper.step()
        assert evicted(town) == gone
        await town.scheduler.keeper.step()
        assert evicted(town) == gone, "asked once, for a while"

    in_town(life)


def test_a_bare_pod_is_never_deleted_and_is_told_that_it_is_stuck() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n1", cpu=4))
        town.pods(bound("a", "n1", owned=False))
        await town.work()
        town.clock.advance(300)
        await town.scheduler.keeper.step()
        await town.scheduler.keeper.step()
        assert evicted(town) == []
        note = "gang default/llama did not get its 3 members in time, and this one has no controller: not evicted"
        assert town.told() == [f"GangStuck a: {note}"]

    in_town(life)


def test_a_member_that_may_not_go_yet_is_asked_again() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n1", cpu=4))
        town.pods(bound("a", "n1"))
        await town.work()
        town.clock.advance(300)
        town.server.script.append(BUSY)
        await town.scheduler.keeper.step()
        assert town.told() == []
        town.clock.advance(60)
        await town.scheduler.keeper.step()
        assert evicted(town) == ["a", "a"]
        assert [told.split(":")[0] for told in town.told()] == ["GangReleased a"]

    in_town(life)


def test_who_does_not_lead_releases_nobody() -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n1", cpu=4))
        town.pods(bound("a", "n1"))
        await town.work()
        town.clock.advance(300)
        town.guard.leads = False
        await town.scheduler.keeper.step()
        assert evicted(town) == []

    in_town(life)


# --- holes --------------------------------------------------------------------------------------------------------


def three(town: Town) -> list[Pod]:
    """A gang on three nodes that it fills, and another pod that waits."""
    town.nodes(*(a_node(f"n{i}", cpu=1) for i in range(3)))
    members = [bound(name, f"n{i}", phase="Running") for i, name in enumerate("abc")]
    town.pods(*members)
    return members


def test_the_hole_of_a_lost_member_is_held_for_its_replacement() -> None:
    async def life(town: Town) -> None:
        *_, last = three(town)
        leave(town, last)
        town.pods(a_pod("thief", cpu=1))
        await town.work()
        assert "thief" not in town.where()
        town.pods(a_member("d", "llama", 3, cpu=1))
        await town.work()
        assert town.where()["d"] == "n2"

    in_town(life)


def test_a_hole_is_not_held_for_ever() -> None:
    async def life(town: Town) -> None:
        *_, last = three(town)
        leave(town, last)
        town.pods(a_pod("thief", cpu=1))
        await town.work()
        town.clock.advance(HELD)
        await town.scheduler.keeper.step()
        town.clock.advance(10)
        await town.work()
        assert town.where()["thief"] == "n2"

    in_town(life)


def test_who_is_more_urgent_does_not_respect_a_hole() -> None:
    async def life(town: Town) -> None:
        *_, last = three(town)
        leave(town, last)
        town.pods(a_pod("urgent", cpu=1, priority=1000))
        await town.work()
        assert town.where()["urgent"] == "n2"

    in_town(life)


def test_a_gang_that_goes_as_a_whole_leaves_no_holes() -> None:
    async def life(town: Town) -> None:
        for pod in three(town):
            leave(town, pod)
        town.pods(*(a_pod(f"next-{i}", cpu=1) for i in range(3)))
        await town.work()
        assert len(town.where()) == 3

    in_town(life)


def test_a_hole_is_not_part_of_what_a_list_would_make_the_ledger() -> None:
    """The digest of a ledger that holds room is that of one built from a list, and a list ends no hole."""

    async def life(town: Town) -> None:
        first, second, last = three(town)
        leave(town, last)
        rebuilt = a_ledger([a_node(f"n{i}", cpu=1) for i in range(3)], [first, second])
        assert digest(town.ledger) == digest(rebuilt)
        relist(town.ledger, [a_node(f"n{i}", cpu=1) for i in range(3)], [first, second])
        town.pods(a_pod("thief", cpu=1))
        await town.work()
        assert "thief" not in town.where()

    in_town(life)
