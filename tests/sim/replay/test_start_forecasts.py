"""Expected starts against the truth, on a trace of our own."""

import json
from pathlib import Path

from click.testing import CliRunner

from kubenexus.cli import main
from kubenexus.plan.eta.start_ranges import StartRange
from kubenexus.sim.replay.start_forecasts import StartRecord, forecast_figures

TRACE = Path(__file__).parents[3] / "examples" / "traces" / "slots.jsonl"


def eta(*options: str) -> dict[str, float]:
    said = CliRunner().invoke(main, ["simulate", "trace", str(TRACE), "-o", "json", *options])
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)["eta"]


def test_ranges_hold_the_true_starts_with_learned_runtimes() -> None:
    found = eta("--order", "backfill", "--estimates", "learned", "--eta", "2")
    assert found["known"] == found["asked"] >= 4
    assert found["in_range"] >= 0.75
    assert found["error"] < found["width"]


def test_it_needs_the_order_that_it_simulates() -> None:
    said = CliRunner().invoke(main, ["simulate", "trace", str(TRACE), "--eta", "2"])
    assert said.exit_code == 2
    assert "--eta needs --order backfill" in said.output


def test_figures_count_what_is_known() -> None:
    hours, unknown = StartRange(10.0, 20.0, 30.0), StartRange(10.0, 20.0, float("inf"))
    starts = (5.0, 12.0, 30.0, 40.0)
    records = [StartRecord(f"job-{each}", 0.0, 1, hours, each) for each in starts]
    found = forecast_figures([*records, StartRecord("other", 0.0, 1, unknown, 20.0)])
    assert found == {
        "asked": 5,
        "known": 4,
        "in_range": 0.5,
        "before": 0.25,
        "after": 0.25,
        "width": 20.0,
        "error": 12.5,
        "wait": 21.0,
    }
