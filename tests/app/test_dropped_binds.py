"""A leader that cannot send its binds says so once, without -v; one that may not send them has nothing to report; of
those that are refused a namespace has one line a minute."""

import logging

import pytest

from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.bind.server import AWAY, FORBIDDEN


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kubenexus.bind"]


def test_the_first_bind_that_a_leader_cannot_send_is_an_error_until_one_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.server.script.extend([AWAY] * 3)
        fixture.pods(*(a_pod(f"p{i}") for i in range(3)))
        await fixture.work()
        assert errors(caplog) == ["Failed to send a bind; later ones are logged with -v 2"]
        fixture.clock.advance(5)
        await fixture.work()
        assert len(fixture.bound()) == 3
        fixture.server.script.append(AWAY)
        fixture.pods(a_pod("late"))
        await fixture.work()
        assert len(errors(caplog)) == 2

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)


def test_binds_that_are_held_back_on_purpose_are_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.pods(a_pod("p"))
        fixture.guard.leads = False
        await fixture.work()
        assert fixture.server.binds == []
        assert errors(caplog) == []

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)


def test_refused_binds_are_one_line_a_minute_for_each_namespace(caplog: pytest.LogCaptureFixture) -> None:
    def logged() -> list[tuple[str, int]]:
        keys = [record.__dict__["keys"] for record in caplog.records if record.name == "kubenexus.bind"]
        return [(each["pod"].metadata.namespace, each["leftOut"]) for each in keys]

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        fixture.server.script.extend([FORBIDDEN] * 6)
        fixture.pods(*(a_pod(f"p{i}", namespace="evil") for i in range(5)), a_pod("web", namespace="good"))
        await fixture.work()
        assert sorted(logged()) == [("evil", 0), ("good", 0)]
        fixture.clock.advance(61)
        fixture.server.script.extend([FORBIDDEN] * 2)
        await fixture.work()
        assert sorted(logged()) == [("evil", 0), ("evil", 4), ("good", 0)]
        assert len(fixture.bound()) == 4

    with caplog.at_level(logging.ERROR):
        scheduler_test(life)
