"""What is written into a claim that belongs to a PodGroup: it is reserved once, for the group."""

import asyncio
from collections import UserDict
from collections.abc import ValuesView

import pytest

from kubenexus.bind.job_binding import PodBinding
from kubenexus.framework.decision import Decision, Diagnosis
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.plugins.dynamic_resources.plugin import DynamicResources
from kubenexus.state.pods import PodRecord
from kubenexus.testing.builders import a_pod
from tests.bind.test_claim_prebind import Fixture, in_group, play

GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "group"}


def test_the_claim_is_reserved_for_the_pod_group_and_once() -> None:
    async def story() -> None:
        fixture = Fixture(group=True)
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert fixture.status["reservedFor"] == [GROUP]
        other = in_group(a_pod("q", resource_claims=fixture.pod.spec.resource_claims))
        record = fixture.ledger.pods["default/p"]
        fixture.ledger.pods["default/q"] = type(record)(
            "default", "q", other.metadata.uid, "n1", record.stage, record.footprint
        )
        assert await fixture.point.pre_bind(PodBinding(other, "n1")) == ""
        assert fixture.server.writes == ["c", "status"]

    play(story)


def test_a_claim_that_the_pod_group_does_not_list_is_reserved_for_the_pod() -> None:
    async def story() -> None:
        fixture = Fixture(group=True)
        fixture.ledger.nodes.claims.pod_groups.remove("default/g")
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert [each["resource"] for each in fixture.status["reservedFor"]] == ["pods"]

    play(story)


def test_an_earlier_pod_group_of_the_same_name_is_another_user() -> None:
    async def story() -> None:
        fixture = Fixture(allocated=True, group=True)
        fixture.status["reservedFor"] = [{**GROUP, "uid": "earlier"}]
        fixture.seen()
        assert await fixture.point.pre_bind(fixture.binding) == ""
        assert [each["uid"] for each in fixture.status["reservedFor"]] == ["earlier", "group"]

    play(story)


def test_the_allocation_stays_when_a_member_is_not_bound() -> None:
    async def story() -> None:
        fixture = Fixture(group=True)
        assert await fixture.point.pre_bind(fixture.binding) == ""
        await fixture.point.un_bind(fixture.binding)
        assert fixture.status["reservedFor"] == [GROUP]
        assert "allocation" in fixture.status

    play(story)


@pytest.mark.parametrize(
    ("placed", "user", "left"),
    [
        pytest.param(False, GROUP, False, id="no member has a node"),
        pytest.param(True, GROUP, True, id="a member has a node"),
        pytest.param(False, {**GROUP, "uid": "other"}, True, id="another PodGroup uses it"),
    ],
)
def test_the_claim_of_a_refused_pod_group_is_deallocated(placed: bool, user: dict[str, str], left: bool) -> None:
    async def story() -> None:
        fixture = Fixture(allocated=True, group=True)
        fixture.status["reservedFor"] = [user]
        fixture.seen()
        if not placed:
            fixture.ledger.forget("default/p")
        diagnosis = Diagnosis(1, ((DynamicResources.AWAY.text, 1),), ("DynamicResources",))
        decision = Decision("default/g", Code.UNSCHEDULABLE, 0, 0.0, diagnosis=diagnosis)
        fixture.point.on_refused(Job("default/g", (fixture.pod,), 1), decision)
        for _ in range(10):
            await asyncio.sleep(0)
        assert ("allocation" in fixture.status) == left

    play(story)


class CountedPods(UserDict[str, PodRecord]):
    looks = 0

    def values(self) -> ValuesView[PodRecord]:
        self.looks += 1
        return super().values()


def test_the_pods_are_looked_through_once_for_all_members_and_claims() -> None:
    async def story() -> None:
        fixture = Fixture(allocated=True, group=True)
        fixture.status["reservedFor"] = [GROUP]
        fixture.seen()
        pods = fixture.point._pods = CountedPods(fixture.ledger.pods)
        claims = fixture.pod.spec.resource_claims
        members = tuple([in_group(a_pod(f"q{i}", resource_claims=claims)) for i in range(64)])
        diagnosis = Diagnosis(1, ((DynamicResources.AWAY.text, 1),), ("DynamicResources",))
        decision = Decision("default/g", Code.UNSCHEDULABLE, 0, 0.0, diagnosis=diagnosis)
        fixture.point.on_refused(Job("default/g", members, 1), decision)
        assert pods.looks == 1

    play(story)
