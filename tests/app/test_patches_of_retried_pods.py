"""A pod is refused again with the same words, after an attempt during which its patch was due: it is written then."""

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
