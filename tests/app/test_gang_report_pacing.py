"""What a gang costs the API server in words: each member is told once, the first one the numbers, once a minute."""

from collections import Counter

import msgspec
import pytest

from kubenexus.api.core import Pod, SchedulingGroup
from kubenexus.app.report import pod_reporter
from kubenexus.app.report.gang_report_pacing import GangReportPacing, LastReport
from kubenexus.base.clock import VirtualClock
from kubenexus.framework.job import Job
from kubenexus.queue.gangs.gang_jobs import INCOMPLETE
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member, pod_group
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

REFUSED = "its gang was refused as a whole: pod m0000 says why"


def members(size: int, **fields: object) -> list[Pod]:
    return [a_member(f"m{i:04}", "llama", size, **fields) for i in range(size)]


async def settled(fixture: SchedulerFixture, seconds: float = 0.0) -> None:
    """So much later, with all that is to be said said."""
    await fixture.work()
    fixture.clock.advance(seconds)
    await fixture.work()
    await fixture.notes()


def statuses(fixture: SchedulerFixture) -> list[tuple[str, str, str]]:
    """Every patch of a pod's status: which, its reason and its message."""
    calls = [call for call in fixture.server.calls if call.path.endswith("/status") and "/pods/" in call.path]
    found = [(call.path.split("/")[6], msgspec.json.decode(call.body)["status"]["conditions"][0]) for call in calls]
    return [(name, each["reason"], each["message"]) for name, each in found]


def writes(fixture: SchedulerFixture) -> int:
    """Patches of a status, and events that are sent."""
    return len(fixture.server.said("/status")) + len(fixture.told())


# --- how much -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [50, 100, 200])
def test_members_that_come_one_by_one_cost_two_writes_each_and_two_a_minute(size: int) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        for pod in members(size)[:-1]:
            fixture.pods(pod)
            await settled(fixture, 1.5)
        minutes = size * 1.5 / 60
        assert writes(fixture) <= 2 * size + 2 * (minutes + 1)
        assert set(Counter(name for name, _, _ in statuses(fixture) if name != "m0000").values()) == {1}

    scheduler_test(life)


def test_a_member_that_comes_and_goes_does_not_cost_a_write_of_every_other_each_time() -> None:
    """It completes the gang, which is refused then, and leaves it incomplete again: a hundred times in 17 minutes."""

    async def life(fixture: SchedulerFixture) -> None:
        size, flaps = 50, 100
        fixture.nodes(a_node("n", cpu=1))
        *others, last = members(size, cpu=1)
        fixture.pods(*others)
        await settled(fixture, 2.0)
        for i in range(flaps):
            uid = f"again {i}"
            fixture.pods(msgspec.structs.replace(last, metadata=msgspec.structs.replace(last.metadata, uid=uid)))
            await settled(fixture, 5.0)
            fixture.delete(last.key)
            await settled(fixture, 5.0)
        changes = 1 + 3 + 5  # the first time, three at once, and after 1, 2, 4, 8 and 16 minutes
        of_the_one = 2 * 2 * flaps
        assert writes(fixture) <= 2 * changes * size + of_the_one + 2 * 2 * (flaps * 10 / 60)

    scheduler_test(life)


def test_a_refusal_with_other_numbers_each_time_is_told_to_the_first_member_once_a_minute() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        size = 50
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(*members(size, cpu=1))
        await settled(fixture)
        for i in range(60):
            fixture.nodes(a_node(f"more{i}", cpu=1))  # one member more fits: another sentence
            await settled(fixture, 10.0)
            fixture.scheduler.queue.tick()
        told = Counter(name for name, _, _ in statuses(fixture))
        assert told.pop("m0000") in range(5, 13)
        assert set(told.values()) <= {1}
        assert len(set(statuses(fixture))) == len(statuses(fixture)), "nothing is written twice"

    scheduler_test(life)


def test_a_pod_group_says_the_numbers_once_a_minute() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        made = pod_group("llama", 5)
        fixture.things(msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, uid="g")))
        fixture.nodes(a_node("n", cpu=1))
        group = SchedulingGroup(pod_group_name="llama")
        fixture.pods(*(a_pod(f"m{i}", cpu=1, scheduling_group=group) for i in range(5)))
        await settled(fixture)
        for i in range(3):
            fixture.nodes(a_node(f"more{i}", cpu=1))
            await settled(fixture, 15.0)
        groups = [call for call in fixture.server.calls if "/podgroups/" in call.path]
        assert len(groups) == 1
        await settled(fixture, 60.0)
        groups = [call for call in fixture.server.calls if "/podgroups/" in call.path]
        assert len(groups) == 2
        assert b"4 of at least 5" in groups[-1].body

    scheduler_test(life)


def test_a_pod_by_itself_is_told_each_reason_as_it_changes() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("big", cpu=8))
        await settled(fixture)
        for i in range(3):
            fixture.nodes(a_node(f"more{i}", taints=["mine:NoSchedule"]))
            await settled(fixture, 11.0)
        assert len(statuses(fixture)) == 4

    scheduler_test(life)


# --- what, and when -----------------------------------------------------------------------------------------------


def test_what_a_gang_waits_for_is_told_to_all_at_once_when_it_changes() -> None:
    """An autoscaler looks at the reason: it is to make nodes for all members, and for none that is not tried."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        first, *others = members(4, cpu=1)
        fixture.pods(first, *others[:2])
        await settled(fixture, 2.0)
        assert [each[1:] for each in statuses(fixture)][1:] == [("SchedulingGated", INCOMPLETE)] * 2
        fixture.pods(others[2])
        await settled(fixture)
        assert {name: (reason, said) for name, reason, said in statuses(fixture) if name != "m0000"} == dict.fromkeys(
            ("m0001", "m0002", "m0003"), ("Unschedulable", REFUSED)
        )
        fixture.delete(others[2].key)
        await settled(fixture, 2.0)
        assert {name: reason for name, reason, _ in statuses(fixture)[-3:]} == dict.fromkeys(
            ("m0000", "m0001", "m0002"), "SchedulingGated"
        )

    scheduler_test(life)


def test_a_large_gang_is_told_in_portions_and_each_member_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To tell ten thousand members at once would take a tenth of a second."""
    monkeypatch.setattr(pod_reporter, "MEMBERS", 300)

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        pods = members(800, cpu=1)
        fixture.pods(*pods)
        fixture.scheduler.loop.run_burst()
        assert 300 <= len(fixture.told()) <= 600
        await fixture.work()
        assert Counter(said.split()[1] for said in fixture.told()) == {f"{pod.metadata.name}:": 1 for pod in pods}

    scheduler_test(life)


def test_a_large_gang_that_lacks_members_is_told_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_reporter, "MEMBERS", 20)

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        pods = members(90, cpu=1)[:-1]
        fixture.pods(*pods)
        await settled(fixture, 2.0)
        assert Counter(name for name, _, _ in statuses(fixture)) == {pod.metadata.name: 1 for pod in pods}

    scheduler_test(life)


def test_the_first_member_hears_the_new_number_after_a_minute() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        some = members(9)
        fixture.pods(*some[:3])
        await settled(fixture, 2.0)
        fixture.pods(*some[3:7])
        await settled(fixture, 30.0)
        sentences = [said for name, _, said in statuses(fixture) if name == "m0000"]
        assert [said.rpartition("has ")[2] for said in sentences] == ["3 of at least 9"]
        await settled(fixture, 31.0)
        sentences = [said for name, _, said in statuses(fixture) if name == "m0000"]
        assert [said.rpartition("has ")[2] for said in sentences] == ["3 of at least 9", "7 of at least 9"]
        before = writes(fixture)
        await settled(fixture, 600.0)
        assert writes(fixture) == before, "nothing has changed since"

    scheduler_test(life)


def test_when_the_first_member_is_gone_the_next_one_says_the_numbers() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(*members(9)[:4])
        await settled(fixture, 2.0)
        fixture.delete("default/m0000")
        await settled(fixture, 2.0)
        await settled(fixture, 60.0)
        assert statuses(fixture)[-1][0] == "m0001"
        assert statuses(fixture)[-1][2].endswith("has 3 of at least 9")

    scheduler_test(life)


def test_a_gang_that_is_made_again_has_its_reason_at_once() -> None:
    """Under its old name, within a minute: its first member must not refer to itself."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(*members(3, cpu=1))
        await settled(fixture)
        for pod in members(3):
            fixture.delete(pod.key)
        await settled(fixture, 5.0)
        before = len(statuses(fixture))
        for pod in members(3, cpu=1):
            meta = msgspec.structs.replace(pod.metadata, uid=f"{pod.key} again")
            fixture.pods(msgspec.structs.replace(pod, metadata=meta))
        await settled(fixture)
        said = {name: message for name, _, message in statuses(fixture)[before:]}
        assert "1 of at least 3 members fit" in said.pop("m0000")
        assert said == dict.fromkeys(("m0001", "m0002"), REFUSED)

    scheduler_test(life)


def test_one_that_is_no_longer_the_first_has_no_old_numbers() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(*members(9)[:3])
        await settled(fixture, 2.0)
        fixture.pods(a_member("urgent", "llama", 9, priority=5))
        await settled(fixture, 2.0)
        await settled(fixture, 60.0)
        last = {name: said for name, _, said in statuses(fixture)}
        assert last["m0000"] == INCOMPLETE
        assert last["urgent"].endswith("has 4 of at least 9")

    scheduler_test(life)


# --- by itself ----------------------------------------------------------------------------------------------------


def test_gangs_that_are_gone_are_forgotten() -> None:
    clock = VirtualClock(0.0)
    report_pacing = GangReportPacing(clock, lambda key: False)
    for i in range(10_000):
        report_pacing.members_to_report(Job(f"default/gang/g{i}", tuple(members(2))), "kind", "sentence", {})
    assert len(report_pacing._gangs) <= 1025


def test_a_change_is_told_ever_more_rarely_until_it_has_been_quiet() -> None:
    clock = VirtualClock(0.0)
    report_pacing, pods = GangReportPacing(clock, lambda key: True), tuple(members(3))
    last_report: dict[str, LastReport] = {}
    heard: list[float] = []

    def say(kind: str) -> None:
        chosen = report_pacing.members_to_report(Job("default/gang/g", pods), kind, kind, last_report)
        last_report.update({pod.key: LastReport(pod.metadata.uid, kind, kind, full) for pod, full in chosen})
        if len(chosen) == 3:
            heard.append(clock.now())

    for i in range(20 * 3600 // 30):
        say("ab"[i % 2])
        clock.advance(30.0)
    assert heard[:5] == [0.0, 30.0, 60.0, 90.0, 180.0]
    assert len(heard) <= 4 + 7 + 20
    clock.advance(2 * 3600.0)
    before = len(heard)
    for i in range(4):
        say("ab"[i % 2])
        clock.advance(1.0)
    assert len(heard) >= before + 3
