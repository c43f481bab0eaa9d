"""Ranges are stretched by how earlier ones came out: coverage on starts that no fit has seen, and bounds."""

import math
import random

import pytest

from kubenexus.state.runtimes.start_outcomes import LAST, MAX_OPEN, USUAL, StartOutcomes, Stretch

DRAWN = (600.0, 1000.0, 2000.0)


def after(*waits: float, jobs: int = 60) -> StartOutcomes:
    """Jobs for which `DRAWN` was expected started after these seconds, in turn."""
    found = StartOutcomes()
    for number in range(jobs):
        found.expect(f"job-{number}", DRAWN, 0.0)
        found.started(f"job-{number}", waits[number % len(waits)])
    return found


def test_without_starts_ranges_are_stretched_as_the_fit_has_it() -> None:
    assert StartOutcomes().stretch(0.0) == Stretch(USUAL, 0)
    assert Stretch().apply((100.0, 200.0, 300.0), 0.0) == pytest.approx((90.0, 200.0, 390.0))


def test_starts_that_are_later_than_expected_make_the_next_ranges_later() -> None:
    found = after(4000.0, 5000.0, 6000.0).stretch(9e9)
    early, _, late = found.apply(DRAWN, 0.0)
    assert 1000.0 < early <= 4000.0
    assert late >= 6000.0
    assert found.starts == 60


def test_starts_that_were_foreseen_well_make_them_narrow() -> None:
    early, likely, late = after(*[1000.0 + number for number in range(100)], jobs=LAST).stretch(9e9).apply(DRAWN, 0.0)
    assert 900.0 <= early <= likely <= late <= 1300.0


def test_a_job_that_still_waits_counts_once_its_range_has_passed() -> None:
    found = StartOutcomes()
    for number in range(40):
        found.expect(f"job-{number}", DRAWN, 0.0)
    assert found.stretch(500.0) == Stretch(USUAL, 0)
    assert found.stretch(8000.0).times[2] == pytest.approx(4.0)
    for number in range(40):
        found.forget(f"job-{number}")
    assert found.stretch(8000.0) == Stretch(USUAL, 0), "those that are gone do not count"


@pytest.mark.parametrize("bias", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("spread", [0.3, 1.5])
def test_the_range_holds_eight_starts_of_ten_however_wrong_the_draws_are(bias: float, spread: float) -> None:
    rng, found, inside = random.Random(7), StartOutcomes(), 0
    for number in range(600):
        now = 100.0 * number
        scale = rng.uniform(600.0, 90_000.0)
        drawn = (now + 0.8 * scale, now + scale, now + 1.25 * scale)
        start = now + bias * scale * math.exp(spread * rng.gauss(0, 1))
        early, _, late = found.stretch(now).apply(drawn, now)
        inside += number >= 100 and early <= start <= late
        found.expect(f"{number}", drawn, now)
        found.started(f"{number}", start)
    assert 0.75 <= inside / 500 <= 0.9


def test_the_three_times_are_in_order_whatever_happened() -> None:
    early, likely, late = Stretch((3.0, 0.1, 0.2)).apply(DRAWN, 0.0)
    assert early <= likely <= late


def test_what_is_noted_is_bounded_and_the_first_forecast_of_a_job_counts() -> None:
    found = after(1000.0, jobs=3 * LAST)
    assert found.stretch(0.0).starts == LAST
    for number in range(2 * MAX_OPEN):
        found.expect(f"open-{number}", DRAWN, 0.0)
    assert len(found.jobs) == MAX_OPEN
    found.expect("open-0", (9e9, 9e9, 9e9), 0.0)
    found.started("open-0", 1000.0)
    assert found.stretch(0.0).times == after(1000.0, jobs=LAST).stretch(0.0).times


def test_a_job_without_a_known_start_is_not_noted() -> None:
    found = StartOutcomes()
    found.expect("job", (1.0, 2.0, math.inf), 0.0)
    assert not found.jobs
