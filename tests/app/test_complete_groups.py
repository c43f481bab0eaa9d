"""That a gang was complete once is in the condition of its PodGroup: for members that were bound then."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod, PodCondition, PodStatus, SchedulingGroup
from kubenexus.api.meta import OwnerReference
from kubenexus.api.workloads import INITIALLY_SCHEDULED, INITIALLY_SCHEDULED_OLD, PodGroup, PodGroupStatus
from kubenexus.app.gangs.replacement_holds import HOLD_SECONDS
from kubenexus.observe.status_patcher import PAUSES
from kubenexus.queue.gangs.bound_members import COMPLETE
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import pod_group
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.bind.server import FORBIDDEN

OWNER = [OwnerReference(kind="Job", name="llama", uid="job", controller=True)]
CREATED = "1970-01-12T13:46:00Z"
EARLY, LAST, LATER = "1970-01-12T13:46:20Z", "1970-01-12T13:46:30Z", "1970-01-12T13:46:31Z"


def member(name: str, node: str = "", bound: str = EARLY) -> Pod:
    """A member of three. With a node it runs there, bound at that time; "" if the API server does not say when."""
    conditions = [PodCondition(type="PodScheduled", status="True", last_transition_time=bound)] if bound else []
    status = PodStatus(phase="Running", conditions=conditions) if node else PodStatus(phase="Pending")
    pod = a_pod(name, cpu=1, node=node, scheduling_group=SchedulingGroup(pod_group_name="llama"))
    meta = msgspec.structs.replace(pod.metadata, owner_references=OWNER, creation_timestamp=CREATED)
    return msgspec.structs.replace(pod, metadata=meta, status=status)


def group(*conditions: PodCondition) -> PodGroup:
    made = pod_group("llama", 3)
    meta = msgspec.structs.replace(made.metadata, uid="g1")
    return msgspec.structs.replace(made, metadata=meta, status=PodGroupStatus(conditions=list(conditions)))


def scheduled(at: str, name: str = INITIALLY_SCHEDULED) -> PodCondition:
    return PodCondition(type=name, status="True", reason="Scheduled", last_transition_time=at)


def of_group(fixture: SchedulerFixture) -> list[dict[str, Any]]:
    return [body["status"]["conditions"][0] for body in fixture.server.said("/podgroups/llama/status")]


def marked(fixture: SchedulerFixture) -> list[str]:
    """Members that got the condition themselves, by name."""
    calls = [call for call in fixture.server.calls if call.method == "PATCH" and COMPLETE.encode() in call.body]
    return [call.path.split("/")[6] for call in calls]


async def see(fixture: SchedulerFixture, *pods: Pod) -> None:
    fixture.pods(*pods)
    fixture.handlers.assembler.build_changed()
    await fixture.notes()


def test_a_complete_gang_is_one_write_to_its_group_with_the_time_of_the_last_bind() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=4) for i in range(3)))
        fixture.things(group())
        await see(fixture, member("a", "n0"), member("b", "n1", LAST))
        assert (of_group(fixture), marked(fixture)) == ([], []), "it is not complete"
        await see(fixture, member("c", "n2"))
        await see(fixture, member("c", "n2"))
        (said,) = of_group(fixture)
        assert (said["type"], said["status"], said["lastTransitionTime"]) == (INITIALLY_SCHEDULED, "True", LAST)
        assert marked(fixture) == []

    scheduler_test(life)


@pytest.mark.parametrize(
    ("conditions", "bound", "gone"),
    [
        pytest.param([scheduled(LAST)], LAST, [], id="they were bound when the group was complete"),
        pytest.param([scheduled(LAST, INITIALLY_SCHEDULED_OLD)], EARLY, [], id="by the old name of the condition"),
        pytest.param([scheduled(LAST)], LATER, ["a", "b"], id="they were made again since"),
        pytest.param([scheduled(LAST)], "", ["a", "b"], id="the API server does not say when they were bound"),
        pytest.param([], EARLY, ["a", "b"], id="the group has no condition"),
        pytest.param(
            [PodCondition(type=INITIALLY_SCHEDULED, status="False", last_transition_time=LAST)],
            EARLY,
            ["a", "b"],
            id="the group was never scheduled",
        ),
    ],
)
def test_a_scheduler_that_starts_reads_it_from_the_group(
    conditions: list[PodCondition], bound: str, gone: list[str]
) -> None:
    """It never saw the gang whole: a member was lost while no scheduler ran. The others run."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n1", cpu=2))
        fixture.clock.advance(9000)
        fixture.things(group(*conditions))
        await see(fixture, member("a", "n1", bound), member("b", "n1", bound), member("c"))
        fixture.clock.advance(HOLD_SECONDS)
        await fixture.scheduler.stale_gangs.step()
        evicted = [body["metadata"]["name"] for body in fixture.server.said("/eviction")]
        assert evicted == gone

    scheduler_test(life)


def test_members_say_it_themselves_when_too_few_are_left_that_were_bound_then() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(*(a_node(f"n{i}", cpu=4) for i in range(5)))
        fixture.things(group(scheduled(LAST)))
        early, late = [member(name, "n0") for name in "abc"], [member(name, "n1", LATER) for name in "de"]
        await see(fixture, *early, *late)
        assert marked(fixture) == []
        fixture.delete("default/a")
        fixture.handlers.assembler.build_changed()
        await fixture.notes()
        assert marked(fixture) == ["d"]

    scheduler_test(life)


def test_members_say_it_themselves_if_the_group_cannot_be_written() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n0", cpu=4))
        fixture.things(group())
        fixture.server.patches.extend([FORBIDDEN] * (len(PAUSES) + 1))
        fixture.pods(*(member(name, "n0") for name in "abc"))
        fixture.handlers.assembler.build_changed()
        await fixture.notes(seconds=sum(PAUSES) + 10)
        assert marked(fixture) == []
        await see(fixture, member("d", "n0", LATER))
        assert marked(fixture) == ["a", "b", "c"]

    scheduler_test(life)
