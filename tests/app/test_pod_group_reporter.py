"""Kubernetes' own PodGroups say whether they were scheduled, and if not why: in kube-scheduler's words, and once."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod, PodCondition, SchedulingGroup
from kubenexus.api.workloads import PodGroup, PodGroupStatus
from kubenexus.client import kinds
from kubenexus.client.kinds import ApiResource
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import pod_group
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.bind.server import BUSY, FORBIDDEN

TYPE = "PodGroupInitiallyScheduled"
SHORT = (
    "0/1 nodes are available: 2 of at least 3 members fit in the whole cluster; 1 more needs 1 cpu; "
    "more than the nodes there are would hold if they were empty."
)
PATH = "/apis/scheduling.k8s.io/%s/namespaces/default/podgroups/llama/status"


def group(least: int = 3, uid: str = "g1", *conditions: PodCondition) -> PodGroup:
    made = pod_group("llama", least)
    meta = msgspec.structs.replace(made.metadata, uid=uid, generation=1)
    return msgspec.structs.replace(made, metadata=meta, status=PodGroupStatus(conditions=list(conditions)))


def members(count: int, **fields: Any) -> list[Pod]:
    named = SchedulingGroup(pod_group_name="llama")
    return [a_pod(f"m{i}", cpu=1, scheduling_group=named, **fields) for i in range(count)]


def written(fixture: SchedulerFixture) -> list[tuple[str, str, str]]:
    """Status, reason and message of all that was sent to PodGroups."""
    said = [body["status"]["conditions"] for body in fixture.server.said("/podgroups/llama/status")]
    assert all(len(each) == 1 and each[0]["type"] == TYPE for each in said)
    return [(each["status"], each["reason"], each["message"]) for (each,) in said]


async def refused(fixture: SchedulerFixture) -> None:
    """Three members where there is room for two."""
    fixture.nodes(a_node("n", cpu=2))
    fixture.things(group())
    fixture.pods(*members(3))
    await fixture.work()
    await fixture.notes()
    first, *others = [body["status"]["conditions"][0]["message"] for body in fixture.server.said("/pods/")]
    assert first == SHORT
    assert set(others) == {"its gang was refused as a whole: pod m0 says why"}


def test_a_group_that_does_not_fit_has_the_certificate_that_its_first_member_has() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await refused(fixture)
        assert written(fixture) == [("False", "Unschedulable", SHORT)]
        (call,) = [call for call in fixture.server.calls if "/podgroups/" in call.path]
        assert call.path == PATH % "v1beta1"
        body = msgspec.json.decode(call.body)
        assert body["metadata"] == {"uid": "g1"}
        assert body["status"]["conditions"][0]["observedGeneration"] == 1
        assert body["status"]["conditions"][0]["lastTransitionTime"]

    scheduler_test(life)


def test_it_is_said_again_only_when_it_is_something_else() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await refused(fixture)
        for i in range(3):
            fixture.nodes(a_node("n", cpu=2, labels={"x": str(i)}))
            fixture.clock.advance(400)
            await fixture.work()
            await fixture.notes()
        assert len(written(fixture)) == 1
        fixture.nodes(a_node("n", cpu=1))
        fixture.clock.advance(400)
        await fixture.work()
        await fixture.notes()
        assert len(written(fixture)) == 2
        assert written(fixture)[1][2] != SHORT

    scheduler_test(life)


def test_a_group_whose_members_are_bound_is_scheduled_and_stays_so() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await refused(fixture)
        fixture.nodes(a_node("o", cpu=1))
        fixture.clock.advance(60)
        await fixture.work()
        fixture.echo()
        await fixture.work()
        await fixture.notes()
        assert written(fixture)[1:] == [("True", "Scheduled", "")]
        fixture.pods(*members(5)[3:])  # more than there is room for
        await fixture.work()
        await fixture.notes()
        assert len(written(fixture)) == 2

    scheduler_test(life)


def test_it_is_not_scheduled_while_its_binds_fail() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=3))
        fixture.things(group())
        fixture.pods(*members(3))
        fixture.server.script.extend([FORBIDDEN, None, None, FORBIDDEN])  # the first, and once more
        await fixture.work()
        await fixture.notes()
        assert written(fixture) == [], "two have a node, and it needs three"
        fixture.echo()
        fixture.clock.advance(60)
        await fixture.work()
        fixture.echo()
        await fixture.work()
        await fixture.notes()
        assert written(fixture) == [("True", "Scheduled", "")]

    scheduler_test(life)


def test_a_group_whose_members_go_by_themselves_is_scheduled_with_the_first() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.things(group(0))
        fixture.pods(*members(2))
        await fixture.work()
        fixture.echo()
        await fixture.work()
        await fixture.notes()
        assert written(fixture)[-1] == ("True", "Scheduled", "")
        fixture.clock.advance(400)
        await fixture.work()
        await fixture.notes()
        assert written(fixture)[-1] == ("True", "Scheduled", "")

    scheduler_test(life)


@pytest.mark.parametrize("status", ["False", "True"])
def test_what_a_predecessor_wrote_is_not_written_again(status: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        told = PodCondition(type=TYPE, status=status, reason="Unschedulable", message=SHORT)
        fixture.nodes(a_node("n", cpu=2))
        fixture.things(group(3, "g1", told))
        fixture.pods(*members(3))
        await fixture.work()
        await fixture.notes()
        assert written(fixture) == []

    scheduler_test(life)


def test_a_group_made_again_under_its_name_is_another() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        await refused(fixture)
        fixture.handlers.objects.on_delete("PodGroup", "default/llama")
        fixture.things(group(3, "g2"))
        fixture.clock.advance(400)
        fixture.nodes(a_node("n", cpu=2, labels={"x": "y"}))
        await fixture.work()
        await fixture.notes()
        assert written(fixture) == [("False", "Unschedulable", SHORT)] * 2
        assert fixture.server.said("/podgroups/")[1]["metadata"] == {"uid": "g2"}

    scheduler_test(life)


def test_nothing_is_remembered_of_groups_that_are_gone() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        for i in range(20):
            name = f"g{i}"
            fixture.things(pod_group(name, 2))
            named = SchedulingGroup(pod_group_name=name)
            fixture.pods(*(a_pod(f"{name}-{j}", cpu=1, scheduling_group=named) for j in range(2)))
            await fixture.work()
            for j in range(2):
                fixture.delete(f"default/{name}-{j}")
            fixture.handlers.objects.on_delete("PodGroup", f"default/{name}")
        assert len(fixture.scheduler.pod_group_reporter._last_condition) <= 3

    scheduler_test(life)


def test_an_attempt_that_broke_down_is_said_to_be_our_mistake() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError("by a mistake")

        fixture.scheduler.planners["default-scheduler"].decide = broken  # type: ignore[method-assign, assignment]
        fixture.nodes(a_node("n", cpu=9))
        fixture.things(group())
        fixture.pods(*members(3))
        fixture.scheduler.loop.run_burst()
        await fixture.notes()
        assert written(fixture) == [("False", "SchedulerError", "ZeroDivisionError: by a mistake")]

    scheduler_test(life)


def test_it_is_written_when_the_server_is_well_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.server.patches.extend([BUSY] * 6)
        await refused(fixture)
        await fixture.notes(seconds=60)
        assert ("False", "Unschedulable", SHORT) in written(fixture)
        assert len(fixture.server.patches) == 0
        assert not fixture.scheduler.pod_group_reporter.status_patcher

    scheduler_test(life)


def test_who_does_not_lead_writes_nothing() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.things(group())
        fixture.pods(*members(3))
        await fixture.work()
        fixture.guard.leads = False
        await fixture.notes()
        assert written(fixture) == []
        fixture.guard.leads = True
        await fixture.notes(seconds=60)
        assert ("False", "Unschedulable", SHORT) in written(fixture), "who leads again tells it after all"

    scheduler_test(life)


@pytest.mark.parametrize(
    ("form", "kind"),
    [(kinds.POD_GROUPS_ALPHA, TYPE), (kinds.POD_GROUPS_OLD, "PodGroupScheduled")],
    ids=["1.37 alpha", "1.36"],
)
def test_it_is_written_in_the_form_that_the_server_knows(form: ApiResource, kind: str) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        (reflector,) = [each for each in fixture.scheduler.watches.reflectors if each.resource == kinds.POD_GROUPS]
        reflector._form = reflector._forms.index(form)
        fixture.nodes(a_node("n", cpu=2))
        fixture.things(group())
        fixture.pods(*members(3))
        await fixture.work()
        await fixture.notes()
        (call,) = [call for call in fixture.server.calls if "/podgroups/" in call.path]
        assert call.path == PATH % form.version
        assert msgspec.json.decode(call.body)["status"]["conditions"][0]["type"] == kind

    scheduler_test(life)
