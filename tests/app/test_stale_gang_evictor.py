"""Gangs that lost members, or never got them: what they hold is kept for a while, and then let go."""

import msgspec
import pytest

from kubenexus.api.core import Pod, PodCondition, PodStatus
from kubenexus.api.keys.gang import TIMEOUT
from kubenexus.api.meta import OwnerReference
from kubenexus.app.gangs.replacement_holds import HOLD_SECONDS
from kubenexus.queue.gangs.bound_members import COMPLETE
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
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


def evicted(fixture: SchedulerFixture) -> list[str]:
    return [body["metadata"]["name"] for body in fixture.server.said("/eviction")]


def leave(fixture: SchedulerFixture, pod: Pod) -> None:
    """It is deleted, as most are: first it is told to go, then it is gone."""
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=BEGAN)
    fixture.handlers.on_pod_update(msgspec.structs.replace(pod, metadata=meta))
    fixture.delete(pod.key)
    fixture.handlers.assembler.build_changed()


def waiting(name: str) -> Pod:
    """A member for which no node is large enough."""
    return a_member(name, "llama", 3, cpu=99)


# --- released -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "after", "gone"),
    [
        pytest.param([bound("a", "n1"), bound("b", "n2")], 299, [], id="there is time left"),
        pytest.param([bound("a", "n1"), bound("b", "n2")], 300, ["a", "b"], id="the deadline has come"),
        pytest.param(
            [bound("a", "n1", phase="Running"), bound("b", "n2"), waiting("c")],
            300,
            ["a", "b"],
            id="one runs, in vain",
        ),
        pytest.param(
            [bound("a", "n1", phase="Running"), bound("b", "n2")],
            300,
            ["b"],
            id="one runs, and no member waits: the others may have finished",
        ),
        pytest.param([bound("a", "n1"), bound("b", "n2"), bound("c", "n2")], 999, [], id="it lacks nobody"),
        pytest.param([bound("a", "n1", patience=60)], 60, ["a"], id="its own patience"),
        pytest.param([bound("a", "n1", patience=600)], 599, [], id="its own patience is longer"),
    ],
)
def test_f02_a_gang_that_stays_incomplete_is_released(members: list[Pod], after: int, gone: list[str]) -> None:
    """From what the API server says alone: this scheduler never placed any of them."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=4), a_node("n2", cpu=4))
        fixture.pods(*members)
        await fixture.work()
        fixture.clock.advance(after)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == gone
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == gone, "asked once, for a while"

    scheduler_test(life)


def test_a_bare_pod_is_never_deleted_and_is_told_that_it_is_stuck() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=4))
        fixture.pods(bound("a", "n1", owned=False))
        await fixture.work()
        fixture.clock.advance(300)
        await fixture.scheduler.stale_gangs.step()
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == []
        note = "gang default/llama did not have its 3 members on nodes in time; this one has no controller: not evicted"
        assert fixture.told() == [f"GangStuck a: {note}"]

    scheduler_test(life)


def test_a_member_that_may_not_go_yet_is_asked_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=4))
        fixture.pods(bound("a", "n1"))
        await fixture.work()
        fixture.clock.advance(300)
        fixture.server.script.append(BUSY)
        await fixture.scheduler.stale_gangs.step()
        assert fixture.told() == []
        fixture.clock.advance(60)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == ["a", "a"]
        assert [told.split(":")[0] for told in fixture.told()] == ["GangReleased a"]

    scheduler_test(life)


def test_who_does_not_lead_releases_nobody() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=4))
        fixture.pods(bound("a", "n1"))
        await fixture.work()
        fixture.clock.advance(300)
        fixture.guard.leads = False
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == []

    scheduler_test(life)


def complete(fixture: SchedulerFixture, *, phase: str = "Pending", patience: int = 0) -> list[Pod]:
    """A gang of three on three nodes, which it fills."""
    fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(4)))
    members = [bound(name, f"n{i}", phase=phase, patience=patience) for i, name in enumerate("abc")]
    fixture.pods(*members)
    fixture.handlers.assembler.build_changed()
    return members


@pytest.mark.parametrize(
    ("phase", "patience", "after", "gone"),
    [
        pytest.param("Pending", 0, 5, [], id="the replacement has no chance yet"),
        pytest.param("Pending", 0, 299, [], id="there is time left, though the first bind is long ago"),
        pytest.param("Pending", 0, 300, ["a", "b"], id="the deadline has come: those that have not started"),
        pytest.param("Pending", 60, 119, [], id="a short patience leaves the replacement its chance"),
        pytest.param("Pending", 60, 120, ["a", "b"], id="a short patience, and the chance is over"),
        pytest.param("Running", 0, 99_999, [], id="who runs goes on, for as long as it likes"),
    ],
)
def test_the_deadline_of_a_gang_that_was_complete_counts_from_its_loss(
    phase: str, patience: int, after: int, gone: list[str]
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        *_, last = complete(fixture, phase=phase, patience=patience)
        fixture.clock.advance(360)
        await fixture.scheduler.stale_gangs.step()
        leave(fixture, last)
        await fixture.work()
        fixture.clock.advance(after)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == gone

    scheduler_test(life)


def test_a_gang_that_is_complete_again_has_all_its_time_at_the_next_loss() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        *_, last = complete(fixture)
        leave(fixture, last)
        fixture.clock.advance(290)
        fixture.pods(bound("d", "n2"))
        fixture.handlers.assembler.build_changed()
        leave(fixture, bound("d", "n2"))
        fixture.clock.advance(290)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == []
        fixture.clock.advance(10)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == ["a", "b"]

    scheduler_test(life)


def test_half_a_gang_that_runs_is_released_and_its_room_is_anybodys() -> None:
    """Two gangs: of one a bind is refused for good, the other is whole and stays."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(2)), a_node("big", cpu=3))
        whole = [a_member(f"w{i}", "whole", 3, cpu=1, node="big") for i in range(3)]
        half = [bound("a", "n0", phase="Running"), bound("b", "n1", phase="Running")]
        fixture.pods(*whole, *half, a_member("c", "llama", 3, cpu=1))
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(300)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == ["a", "b"]
        for pod in half:
            leave(fixture, pod)
        fixture.pods(a_pod("other", cpu=1))
        await fixture.work()
        assert "other" in fixture.where(), "nothing is held for a gang that was released"

    scheduler_test(life)


def test_a_gang_whose_time_is_over_is_counted_once() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        *_, last = complete(fixture, phase="Running")
        leave(fixture, last)
        for _ in range(10):
            fixture.clock.advance(300)
            await fixture.scheduler.stale_gangs.step()
        assert fixture.scheduler.metrics.gang_decisions.labels("timeout").value == 1

    scheduler_test(life)


def of_another_scheduler(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name="volcano"))


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([bound("a", "n1"), of_another_scheduler(bound("b", "n1"))], id="ours first"),
        pytest.param([of_another_scheduler(bound("a", "n1")), bound("b", "n1")], id="theirs first"),
        pytest.param([of_another_scheduler(bound("a", "n1")), of_another_scheduler(bound("b", "n1"))], id="all theirs"),
    ],
)
def test_pods_of_another_scheduler_are_never_evicted(members: list[Pod]) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=4))
        fixture.pods(*members)
        await fixture.work()
        fixture.clock.advance(600)
        await fixture.scheduler.stale_gangs.step()
        ours = [pod.metadata.name for pod in members if pod.spec.scheduler_name != "volcano"]
        assert evicted(fixture) == ours

    scheduler_test(life)


# --- who says that a gang was complete ----------------------------------------------------------------------------


def says(pod: Pod) -> Pod:
    """It is a witness, by its condition."""
    told = PodCondition(type=COMPLETE, status="True", last_transition_time=BEGAN)
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, conditions=[*pod.status.conditions, told])
    )


def witnesses(fixture: SchedulerFixture) -> list[str]:
    """Pods that were made to say so, by name."""
    calls = [call for call in fixture.server.calls if call.method == "PATCH" and COMPLETE.encode() in call.body]
    return [call.path.split("/")[6] for call in calls]


def test_a_gang_that_is_complete_has_it_written_once_and_again_when_a_witness_is_lost() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=1) for i in range(4)))
        members = [bound(name, f"n{i}") for i, name in enumerate("abcd")]
        fixture.pods(*members[:2])
        fixture.handlers.assembler.build_changed()
        await fixture.notes()
        assert witnesses(fixture) == [], "it is not complete"
        fixture.pods(*members[2:])
        fixture.handlers.assembler.build_changed()
        await fixture.notes()
        assert witnesses(fixture) == ["a", "b", "c"]
        fixture.echo()
        await fixture.notes()
        leave(fixture, members[0])
        await fixture.notes()
        assert witnesses(fixture) == ["a", "b", "c", "d"]

    scheduler_test(life)


@pytest.mark.parametrize(
    ("witness", "gone"),
    [pytest.param(True, [], id="it was complete"), pytest.param(False, ["a", "b"], id="no member says that it was")],
)
def test_a_scheduler_that_starts_knows_whether_a_gang_was_complete(witness: bool, gone: list[str]) -> None:
    """It never saw the gang whole: a member was lost while no scheduler ran. The others run."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=4))
        first, second = bound("a", "n1", phase="Running"), bound("b", "n1", phase="Running")
        fixture.clock.advance(9000)
        fixture.pods(says(first) if witness else first, second, waiting("c"))
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(HOLD_SECONDS - 1)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == [], "a replacement has its chance"
        fixture.clock.advance(1)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == gone

    scheduler_test(life)


def test_a_gang_of_which_nobody_is_left_is_a_new_one() -> None:
    """Its pods were made again, and of these half have a node: it was not this gang that was complete."""

    async def life(fixture: SchedulerFixture) -> None:
        for pod in complete(fixture, phase="Running"):
            leave(fixture, pod)
        again = [
            msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"{pod.key} again"))
            for pod in (bound("a", "n0", phase="Running"), bound("b", "n1", phase="Running"))
        ]
        fixture.pods(*again, a_member("c", "llama", 3, cpu=1, uid="c again"))
        fixture.handlers.assembler.build_changed()
        fixture.clock.advance(300)
        await fixture.scheduler.stale_gangs.step()
        assert evicted(fixture) == ["a", "b"]

    scheduler_test(life)
