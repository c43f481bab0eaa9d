"""Orders of jobs that wait, on the small trace of the examples: what backfill gains, and what wrong estimates cost."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kubenexus.cli import main

TRACE = Path(__file__).parents[3] / "examples" / "traces" / "slots.jsonl"


def run(*options: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["simulate", "trace", str(TRACE), "-o", "json", *options])
    assert result.exit_code == 0, result.output
    return [msgspec.json.decode(line) for line in result.output.splitlines()]


def test_with_backfill_jobs_wait_less_than_in_fifo_and_the_largest_no_longer() -> None:
    """With `packing`, so that the orders differ and the placement does not: the shipped profile learns what comes."""
    fifo, backfill = run("--policy", "packing", "--order", "fifo", "--order", "backfill")
    assert (fifo["policy"], backfill["policy"]) == ("packing fifo", "packing backfill")
    assert fifo["placed"] == backfill["placed"] == fifo["pods"]
    assert backfill["wait"]["all"]["mean"] <= 0.8 * fifo["wait"]["all"]["mean"]
    assert backfill["wait"]["8"]["p95"] <= fifo["wait"]["8"]["p95"]
    assert backfill["expected_starts"]["late"] == 0


def test_estimates_that_are_wrong_by_ten_make_jobs_late_by_nine_runtimes_at_most() -> None:
    (wrong,) = run("--order", "backfill", "--estimates", "10")
    assert wrong["expected_starts"]["jobs"]
    assert wrong["expected_starts"]["latest_in_runtimes"] <= 9.0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(("--estimates", "1"), "a number from 2 to 1000", id="a factor that changes nothing"),
        pytest.param(("--estimates", "soon"), "a number from 2 to 1000", id="a word"),
        pytest.param(("--order", "fifo", "--against", "kube-scheduler"), "without it", id="orders beside policies"),
    ],
)
def test_what_cannot_be_is_refused(options: tuple[str, ...], problem: str) -> None:
    result = CliRunner().invoke(main, ["simulate", "trace", str(TRACE), *options])
    assert result.exit_code == 2
    assert problem in result.output
