"""What `kubenexus reserve create` makes of its options, and how `reserve list` shows reservations."""

from datetime import timedelta, timezone

import pytest
from click.testing import CliRunner

from kubenexus.api.reservations.manifest import start_time
from kubenexus.base.errors import Malformed
from kubenexus.cli import main
from kubenexus.explain.reservation_report import render_reservations
from tests.api.reservations.test_request import a_reservation

NOON = 1_794_916_800.0  # 2026-11-17T12:00:00Z
CREATE = ["reserve", "create", "r", "--dry-run", "--resource"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("18:00", "2026-11-17T17:00:00Z"),
        ("09:30", "2026-11-18T08:30:00Z"),
        ("2026-11-17T18:00:00+02:00", "2026-11-17T16:00:00Z"),
    ],
)
def test_a_time_of_the_day_is_the_next_one_in_the_local_zone(text: str, expected: str) -> None:
    assert start_time(text, NOON, timezone(timedelta(hours=1))) == expected


def test_another_text_is_no_time() -> None:
    with pytest.raises(Malformed, match="must be a time like 18:00"):
        start_time("tomorrow", NOON)


def test_all_options_are_in_the_manifest() -> None:
    words = "cpu=4 --count 2 --duration 1h --for-gang llama --for-namespace ml --for-pod-label app=x"
    words += " --node-label pool=a"
    more = "--toleration dedicated=x:NoSchedule --priority 10 --for-tier gold --for-namespace-label team=a"
    result = CliRunner().invoke(main, [*CREATE, *words.split(), *more.split()])
    assert result.exit_code == 0, result.output
    for line in ("count: 2", "podGroupName: llama", "tenantTier: gold", "priority: 10", "pool: a", "team: a", "app: x"):
        assert f" {line}\n" in result.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cpu=x"], "spec.resources[cpu]"),
        (["cpu"], "--resource must be KEY=VALUE"),
        (["cpu=1", "--duration", "soon"], "spec.duration"),
        (["cpu=1", "--from", "later"], "must be a time like 18:00"),
    ],
)
def test_what_the_scheduler_could_not_use_is_an_error_of_the_command(words: list[str], expected: str) -> None:
    result = CliRunner().invoke(main, [*CREATE, *words])
    assert result.exit_code == 2
    assert expected in result.output


def test_the_list_has_a_line_for_each_and_survives_one_that_cannot_be_read() -> None:
    good, bad = a_reservation(count=2, resources={"cpu": 1}, owner={"namespaces": ["team-a"]}), a_reservation()
    lines = render_reservations([good, bad]).splitlines()
    assert lines[0].split() == [
        "NAMESPACE", "NAME", "PHASE", "OWNER", "ENTRIES", "NODES", "PODS", "FROM", "UNTIL", "REASON",
    ]  # fmt: skip
    assert lines[1].split()[:7] == ["ml", "r", "-", "team-a", "2", "0", "0"]
    assert "must have entries" in lines[2]
