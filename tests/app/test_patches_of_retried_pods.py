"""The condition of a pod says what was last found out, whatever happened to earlier patches of it."""

import msgspec

from kubenexus.api.core import PodCondition
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test


def test_a_patch_that_was_dropped_during_an_attempt_is_made_again() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("large", cpu=9))
        await fixture.work()
        decision = fixture.queue.last_decision("default/large")
        assert decision is not None
        fixture.queue.activate("default/large")
        fixture.clock.advance(60.0)
        attempt = fixture.queue.pop(lambda job: True, fixture.scheduler.assembler)
        assert attempt is not None
        await fixture.notes()
        assert patches(fixture) == 0, "while it is tried, nothing is known"
        fixture.queue.done(attempt, decision)
        fixture.scheduler.pod_reporter.report_unschedulable("default/large", decision)
        await fixture.notes()
        assert patches(fixture) == 1

    scheduler_test(life)


def patches(fixture: SchedulerFixture) -> int:
    return sum(call.method == "PATCH" for call in fixture.server.calls)


def test_an_earlier_patch_that_is_not_written_yet_is_replaced_although_the_pod_says_the_right_thing_now() -> None:
    """As after a change of the leader: the pod says why it waits already, an error is reported, and then that again."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=1))
        fixture.pods(a_pod("large", cpu=9))
        await fixture.work()
        decision = fixture.queue.last_decision("default/large")
        assert decision is not None
        sentence = decision.sentence("default")
        status = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": sentence}
        pod = fixture.server.pods["default/large"]
        said = msgspec.structs.replace(pod.status, conditions=[msgspec.convert(status, PodCondition)])
        fixture.pods(msgspec.structs.replace(pod, status=said))
        reporter, job = fixture.scheduler.pod_reporter, fixture.queue.job("default/large")
        assert job is not None
        await fixture.notes()
        before = len(written(fixture))
        reporter.held(job, "binds of this namespace fail")
        reporter.report_unschedulable("default/large", decision)
        await fixture.notes()
        assert written(fixture)[before:] == ["Unschedulable"]

    scheduler_test(life)


def written(fixture: SchedulerFixture) -> list[str]:
    bodies = [msgspec.json.decode(call.body) for call in fixture.server.calls if call.method == "PATCH"]
    return [each["reason"] for body in bodies for each in body["status"]["conditions"]]
