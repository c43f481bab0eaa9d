"""What a soak notes and what is made of it; and a very small one, with all its processes but the real server."""

import xml.etree.ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.soak import churn, objects, report
from bench.soak.__main__ import main
from bench.soak.picture import nice
from bench.soak.report import Plan, Soak
from bench.soak.samples import Page, Sample, longest_lag, sample

PLAN = Plan("embedded", nodes=5, pods=20, alive=10, job=5, every=1.0, rest=1.0)
LAGS = """
kubenexus_loop_lag_seconds_bucket{le="0.001"} %d
kubenexus_loop_lag_seconds_bucket{le="0.002"} %d
kubenexus_loop_lag_seconds_bucket{le="+Inf"} %d
"""
PAGE = (
    LAGS % (1, 1, 1)
    + """
scheduler_pending_pods{queue="active"} 7
scheduler_pending_pods{queue="unschedulable"} 2
scheduler_cache_size{type="pods"} 40
scheduler_cache_size{type="nodes"} 5
kubenexus_events_dropped_total{reason="full"} 3
kubenexus_events_dropped_total{reason="rejected"} 1
"""
)


def at(seconds: float, rss: float) -> Sample:
    queues = dict.fromkeys(("active", "backoff", "unschedulable", "gated"), 1)
    return Sample(
        seconds=seconds,
        done=int(seconds),
        rss_mb=rss,
        cpu_s=1.0,
        lag_ms=2.0,
        queues=queues,
        known_pods=3,
        known_nodes=5,
        binding=0,
        events_dropped=0,
    )


@pytest.mark.parametrize(
    ("now", "longest"),
    [
        pytest.param((2, 2, 2), 0.001, id="once more, and in time"),
        pytest.param((1, 2, 2), 0.002, id="once more, and late"),
        pytest.param((1, 1, 1), 0.0, id="not looked at"),
        pytest.param((2, 2, 3), float("inf"), id="later than any bucket"),
    ],
)
def test_the_longest_lag_is_that_of_the_interval(now: tuple[int, int, int], longest: float) -> None:
    assert longest_lag(Page(LAGS % (1, 1, 1)), Page(LAGS % now)) == longest


def test_a_sample_is_read_from_the_page() -> None:
    pid = int(Path("/proc/self").resolve().name)
    noted = sample(Page(PAGE), Page(""), pid, 1.0, 9)
    assert noted.queues == {"active": 7, "backoff": 0, "unschedulable": 2, "gated": 0}
    assert (noted.known_pods, noted.known_nodes, noted.events_dropped, noted.lag_ms) == (40, 5, 4, 1.0)
    assert noted.rss_mb > 1


@pytest.mark.parametrize(("second", "kept"), [(105.0, True), (106.0, False)])
def test_memory_may_grow_by_a_twentieth(second: float, kept: bool) -> None:
    halves = [at(10, 100.0), at(20, second)]
    soaked = Soak(PLAN, 3, [at(0, 60.0), *halves], halves)
    assert soaked.kept is kept
    assert report.verdict(soaked).startswith("pass" if kept else "FAIL")


def test_the_table_is_short_and_the_picture_is_a_picture() -> None:
    samples = [at(float(seconds), 100.0) for seconds in range(500)]
    soaked = Soak(PLAN, 3, samples, samples[-2:])
    rows = report.markdown(soaked).splitlines()
    assert len(rows) < 30
    assert rows[-1].startswith("| 499 |")
    assert xml.etree.ElementTree.fromstring(report.picture(soaked)).tag.endswith("svg")


def test_a_soak_that_was_interrupted_says_so() -> None:
    assert report.verdict(Soak(PLAN, 3, [at(0, 60.0)], [])) == "not finished"


@pytest.mark.parametrize(("value", "round_one"), [(0, 1), (0.3, 0.5), (1, 1), (101, 200), (430, 500), (501, 1000)])
def test_scales_end_at_round_numbers(value: float, round_one: float) -> None:
    assert nice(value) == pytest.approx(round_one)


def test_jobs_have_names_of_their_own_and_some_have_wishes() -> None:
    pods = [objects.pod(number, job=7) for number in range(0, 20 * 7, 7)]
    assert len({each["metadata"]["labels"]["job-name"] for each in pods}) == 20
    assert sum(len(each["spec"]) > 3 for each in pods) == 8


def test_a_small_soak_runs_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(churn, "HUGE_LIVES", 0.5)  # seconds that a pod which fits nowhere waits
    wanted = ["--pods", "60", "--nodes", "5", "--alive", "30", "--every", "0.2", "--rest", "0.1"]
    files = [f"--json={tmp_path / 'soak.json'}", f"--picture={tmp_path / 'soak.svg'}"]
    done = CliRunner().invoke(main, [*wanted, *files], catch_exceptions=False)
    assert done.exit_code == 0
    assert "times the first" in done.output
    assert (tmp_path / "soak.svg").read_text().startswith("<svg")
