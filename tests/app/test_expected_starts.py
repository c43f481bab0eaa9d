"""Expected starts in the condition of pods: what is written, and how seldom."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from kubenexus.api.codec import from_data
from kubenexus.api.core import Pod, PodCondition
from kubenexus.api.runtimes import declared_runtime, workload_identity
from kubenexus.app.http.api.waiting_questions import Question
from kubenexus.app.report.expected_starts import ExpectedStart, ExpectedStartReporter, ending
from kubenexus.plan.eta.start_ranges import MAX_AHEAD, _range, stretched
from kubenexus.state.runtimes.start_outcomes import Stretch
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

RUNTIME = "scheduling.kubenexus.io/max-runtime"
NOON = 1_795_003_200.0  # 2026-11-18 12:00 UTC


class InPlace:
    """Answers questions at once, in this process."""

    async def answer(self, question: Question) -> bytes:
        return question()

    async def close(self) -> None:
        return None


def reporter(fixture: SchedulerFixture) -> ExpectedStartReporter:
    parts = fixture.scheduler
    return ExpectedStartReporter(
        parts.queue,
        parts.ledger,
        parts.planners,
        parts.pod_reporter,
        copies=InPlace(),
        clock=fixture.clock,
        period=60.0,
    )


def a_job(name: str, runtime: str = "1h") -> Pod:
    return a_pod(name, cpu=2, annotations={RUNTIME: runtime})


def messages(fixture: SchedulerFixture) -> list[str]:
    """The messages of all patches so far."""
    return [body["status"]["conditions"][0]["message"] for body in fixture.server.said("/status")]


async def seen(fixture: SchedulerFixture, seconds: float) -> None:
    """Patches are written, the watch shows what they change, and time passes."""
    await fixture.notes(5.0)
    fixture.clock.advance(seconds)
    pod = fixture.server.pods["default/next"]
    said = fixture.server.said("/status")
    if said:
        conditions = [from_data(said[-1]["status"]["conditions"][0], PodCondition)]
        fixture.pods(replace(pod, status=replace(pod.status, conditions=conditions)))


async def waits_for_a_pod_that_ends(fixture: SchedulerFixture) -> None:
    fixture.nodes(a_node("n", cpu=2))
    fixture.pods(a_job("busy"))
    await fixture.work()
    fixture.echo()
    fixture.pods(a_job("next"))
    await fixture.work()
    await seen(fixture, 0.0)


def test_a_waiting_pod_gets_its_expected_start_and_an_equal_one_is_not_written_again() -> None:
    async def story(fixture: SchedulerFixture) -> None:
        await waits_for_a_pod_that_ends(fixture)
        before = messages(fixture)
        starts = reporter(fixture)
        for _ in range(4):
            await starts.step()
            await seen(fixture, 60.0)
        written = messages(fixture)[len(before) :]
        assert len(written) == 1
        assert written[0].startswith("0/1 nodes are available: 1 Insufficient cpu")
        assert "; expected to start between " in written[0]

    scheduler_test(story)


def test_a_start_that_is_later_than_expected_is_noted_and_corrects_the_next_ranges() -> None:
    async def story(fixture: SchedulerFixture) -> None:
        await waits_for_a_pod_that_ends(fixture)
        starts, outcomes = reporter(fixture), fixture.ledger.nodes.pods.expected_ends.starts
        asked = fixture.clock.now()
        await starts.step()
        assert outcomes.jobs == ("default/next",)
        fixture.clock.advance(40_000.0)
        fixture.delete("default/busy")
        await fixture.work()
        await starts.step()
        assert not outcomes.jobs
        assert outcomes.stretch(fixture.clock.now()).starts == 1
        assert fixture.ledger.pods["default/next"].assumed_at >= asked + 40_000.0

    scheduler_test(story)


def test_a_job_that_is_deleted_tells_nothing_about_starts() -> None:
    async def story(fixture: SchedulerFixture) -> None:
        await waits_for_a_pod_that_ends(fixture)
        starts, outcomes = reporter(fixture), fixture.ledger.nodes.pods.expected_ends.starts
        await starts.step()
        fixture.clock.advance(40_000.0)
        fixture.delete("default/next")
        await starts.step()
        assert (outcomes.jobs, outcomes.stretch(fixture.clock.now()).starts) == ((), 0)

    scheduler_test(story)


@pytest.mark.parametrize(
    ("later", "moved", "written"),
    [
        pytest.param(600.0, 0.0, False, id="a range that stays is not written"),
        pytest.param(600.0, 500.0, False, id="one that moves by less than a fifth of the time left is not"),
        pytest.param(600.0, 1500.0, True, id="one that moves by more is"),
        pytest.param(120.0, 9000.0, False, id="but not within five minutes"),
    ],
)
def test_a_range_that_moves_is_written_seldom(later: float, moved: float, written: bool) -> None:
    async def story(fixture: SchedulerFixture) -> None:
        await waits_for_a_pod_that_ends(fixture)
        starts, now = reporter(fixture), fixture.clock.now()
        starts._write([ExpectedStart("default/next", now + 3000.0, now + 5000.0)])
        await seen(fixture, later)
        before = len(messages(fixture))
        starts._write([ExpectedStart("default/next", now + 3000.0, now + 5000.0 + moved)])
        await seen(fixture, 1.0)
        assert len(messages(fixture)) - before == written

    scheduler_test(story)


def test_a_job_that_has_no_range_any_more_loses_the_ending() -> None:
    async def story(fixture: SchedulerFixture) -> None:
        await waits_for_a_pod_that_ends(fixture)
        starts, now = reporter(fixture), fixture.clock.now()
        starts._write([ExpectedStart("default/next", now + 3000.0, now + 5000.0)])
        await seen(fixture, 5.0)
        starts._write([])
        await seen(fixture, 5.0)
        assert "expected to start" in messages(fixture)[-2]
        assert "expected to start" not in messages(fixture)[-1]

    scheduler_test(story)


def test_nothing_is_computed_while_no_runtime_is_known() -> None:
    async def story(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("busy", cpu=2))
        await fixture.work()
        fixture.echo()
        fixture.pods(a_pod("next", cpu=2))
        await fixture.work()
        starts = reporter(fixture)
        starts._copies = None  # type: ignore[assignment]
        await starts.step()

    scheduler_test(story)


@pytest.mark.parametrize(
    ("early", "late", "text"),
    [
        pytest.param(301.0, 2401.0, "between 12:05 and 12:45 UTC", id="times are rounded outwards"),
        pytest.param(-50.0, 2400.0, "between 12:00 and 12:40 UTC", id="no time has passed already"),
        pytest.param(0.0, 90_000.0, "between 2026-11-18 12:00 and 2026-11-19 13:00 UTC", id="another day is named"),
    ],
)
def test_the_ending_has_times_that_people_read(early: float, late: float, text: str) -> None:
    assert ending(ExpectedStart("a", NOON + early, NOON + late), NOON) == f"; expected to start {text}"


@pytest.mark.parametrize("away", [MAX_AHEAD, 1.01 * MAX_AHEAD, 3e11, 1e300])
def test_the_latest_start_that_is_known_has_an_ending_and_later_ones_are_not_known(away: float) -> None:
    found = stretched(_range(np.full(32, NOON + away), NOON), Stretch((0.5, 1.0, 20.0)), NOON)
    assert (found.late < math.inf) == (away <= MAX_AHEAD)
    if found.late < math.inf:
        assert "2036" in ending(ExpectedStart("a", found.early, found.late), NOON)


def test_jobs_that_wait_for_one_another_for_thousands_of_years_harm_nothing() -> None:
    """Three pods that took 300 times as long as they declared, then pods that declare a year."""

    async def story(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        memory, short = fixture.scheduler.ledger.nodes.pods.expected_ends.memory, a_job("job-0", "1s")
        for _ in range(3):
            memory.observe(workload_identity(short), 300.0, declared_runtime(short))
        fixture.pods(a_job("job-0", "8784h"))
        await fixture.work()
        fixture.echo()
        fixture.pods(*[a_job(f"job-{i}", "8784h") for i in range(1, 110)])
        await fixture.work()
        await reporter(fixture).step()

    scheduler_test(story)
