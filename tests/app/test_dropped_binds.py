"""A leader that cannot send its binds says so once, without -v; one that may not send them has nothing to report."""

import logging

import pytest

from kubenexus.testing.builders import a_node, a_pod
from tests.app.town import Town, in_town
from tests.bind.server import AWAY


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
