"""A small scenario of the form of Kueue's performance tests: all is admitted, within quotas, and always alike."""

from pathlib import Path

import pytest

from bench.kueue_perf.__main__ import lines
from bench.kueue_perf.play import Result, play
from bench.kueue_perf.scenario import arrivals, read_scenario

FOLDER = Path(__file__).parent / "kueue_perf"
SCENARIO, BOUNDS = read_scenario(FOLDER)


@pytest.fixture(scope="module")
def result() -> Result:
    return play(SCENARIO)


def test_all_workloads_of_all_queues_are_admitted_in_little_more_than_the_least_time(result: Result) -> None:
    assert result.workloads == 6 * (12 + 4)
    assert sorted(result.waits) == ["large", "small"]
    least = 3 * (12 * 0.2 * 1 + 4 * 0.5 * 4) / 12  # the work of a cohort, by its quota
    assert least <= result.seconds <= 1.3 * least
    assert BOUNDS is not None
    assert result.use >= BOUNDS.least_use
    assert result.most == 1.0, "queues borrow, and a cohort uses no more than its quota"


def test_a_higher_priority_waits_less(result: Result) -> None:
    assert result.waits["large"] < result.waits["small"]


def test_the_same_scenario_takes_the_same_time(result: Result) -> None:
    assert play(SCENARIO)._replace(cpu=0.0) == result._replace(cpu=0.0)


def test_a_part_has_at_least_one_workload_of_each_set() -> None:
    assert len(list(arrivals(SCENARIO, 0.001))) == 6 * 2


def test_the_report_has_the_bounds_beside_the_figures(result: Result) -> None:
    text = "\n".join(lines("small", result, BOUNDS))
    assert "96 workloads" in text
    assert "(Kueue at most 5)" in text
    assert "(Kueue at least 60)" in text
    assert "Kueue" not in "\n".join(lines("small", result, None))
