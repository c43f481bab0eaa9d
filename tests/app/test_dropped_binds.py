"""A leader that cannot send its binds says so once, without -v; one that may not send them has nothing to report; of
those that are refused a namespace has one line a minute."""

import logging

import pytest

from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town
from tests.bind.server import AWAY, FORBIDDEN


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "kubenexus.bind"]


def test_the_first_bind_that_a_leader_cannot_send_is_an_error_until_one_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.server.script.extend([AWAY] * 3)
        town.pods(*(a_pod(f"p{i}") for i in range(3)))
        await town.work()
        assert errors(caplog) == ["Failed to send a bind; later ones are logged with -v 2"]
        town.clock.advance(5)
        await town.work()
        assert len(town.bound()) == 3
        town.server.script.append(AWAY)
        town.pods(a_pod("late"))
        await town.work()
        assert len(errors(caplog)) == 2

    with caplog.at_level(logging.ERROR):
        in_town(life)


def test_binds_that_are_held_back_on_purpose_are_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.pods(a_pod("p"))
        town.guard.leads = False
        await town.work()
        assert town.server.binds == []
        assert errors(caplog) == []

    with caplog.at_level(logging.ERROR):
        in_town(life)


def test_refused_binds_are_one_line_a_minute_for_each_namespace(caplog: pytest.LogCaptureFixture) -> None:
    def logged() -> list[tuple[str, int]]:
        keys = [record.__dict__["keys"] for record in caplog.records if record.name == "kubenexus.bind"]
        return [(each["pod"].metadata.namespace, each["leftOut"]) for each in keys]

    async def life(town: Town) -> None:
        town.nodes(a_node("n"))
        town.server.script.extend([FORBIDDEN] * 6)
        town.pods(*(a_pod(f"p{i}", namespace="evil") for i in range(5)), a_pod("web", namespace="good"))
        await town.work()
        assert sorted(logged()) == [("evil", 0), ("good", 0)]
        town.clock.advance(61)
        town.server.script.extend([FORBIDDEN] * 2)
        await town.work()
        assert sorted(logged()) == [("evil", 0), ("evil", 4), ("good", 0)]
        assert len(town.bound()) == 4

    with caplog.at_level(logging.ERROR):
        in_town(life)
