"""Forecasts on real columns: places, what is not capacity, draws of runtimes, and bounds against hostile input."""

import math
from typing import Any

import numpy as np
import pytest

from kubenexus.app.http.api.queue_entries import queue_entries
from kubenexus.framework.job import Job
from kubenexus.plan.eta import queue_snapshot, start_ranges
from kubenexus.plan.eta.forecast import MAX_JOBS, WaitingEntry, forecast_starts
from kubenexus.plan.eta.runtime_draws import DRAWS, RuntimeDraws, strata
from kubenexus.plan.eta.start_simulation import StartSimulation
from kubenexus.state.object_kinds import QUEUE
from kubenexus.state.runtimes.memory import KnownRuns
from kubenexus.testing.builders import a_node, a_pod
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test
from tests.app.test_queues import a_queue

RUNTIME = "scheduling.kubenexus.io/max-runtime"


def waiting(name: str, runtime: str = "1h", cpu: float = 2, **more) -> WaitingEntry:
    return WaitingEntry(Job.of(a_pod(name, cpu=cpu, annotations={RUNTIME: runtime})), **more)


def forecast(entries, runtime: str | None = "1h"):
    """The forecasts of jobs behind a pod that fills the only node since now."""
    found: list[Any] = []

    async def story(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        fixture.pods(a_pod("busy", cpu=2, annotations={RUNTIME: runtime} if runtime else {}))
        await fixture.work()
        now = fixture.clock.now()
        planners = fixture.scheduler.planners
        starts = forecast_starts(entries, planners, fixture.ledger.nodes, now)
        found.extend((each, tuple(time - now for time in each.expected)) for each in starts)

    scheduler_test(story)
    return found


def test_jobs_start_one_after_the_other_in_ranges_that_widen():
    (first, times), (second, later) = forecast([waiting("a"), waiting("b")])
    assert (first.place, second.place) == (1, 2)
    assert first.basis == "jobs that run: 1 with a declared runtime"
    assert 0 < times[0] <= times[1] <= times[2] < math.inf
    assert times[1] < later[1]
    assert later[2] - later[0] >= times[2] - times[0]


def test_what_is_held_has_no_place_and_others_do_not_wait_for_it():
    (held, _), (free, times) = forecast([waiting("a", held="queue q is at its limit"), waiting("b")])
    assert (held.place, held.basis) == (0, "not capacity: queue q is at its limit")
    assert (free.place, free.is_known) == (1, True)
    assert times[1] <= 3700


def limited_forecast(names: list[str], tiers: bool = False, cpu: float = 1, runtime: str | None = "1h"):
    """The forecasts of jobs at the limit of one cpu of their queue, which `busy` uses; seven more cpus are free."""
    found: list[Any] = []
    limit = {"tiers": {"premium": {"limit": {"cpu": 1}}}} if tiers else {"limit": {"cpu": 1}}

    async def story(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=8, labels={"hardware.kubenexus.io/tier": "premium"}))
        fixture.handlers.objects.on_update(QUEUE, a_queue("ml", namespaces=["ml"], **limit))
        fixture.pods(a_pod("busy", namespace="ml", cpu=1, annotations={RUNTIME: runtime} if runtime else {}))
        await fixture.work()
        fixture.pods(*(a_pod(each, namespace="ml", cpu=cpu, annotations={RUNTIME: "1h"}) for each in names))
        await fixture.work()
        now, scheduler = fixture.clock.now(), fixture.scheduler
        entries = [each.entry for each in queue_entries(fixture.queue, now)]
        starts = forecast_starts(entries, scheduler.planners, fixture.ledger.nodes, now, fixture.ledger.queues)
        found.extend((each, each.expected.likely - now) for each in starts)

    scheduler_test(story)
    return found


@pytest.mark.parametrize("tiers", [pytest.param(False, id="of the queue"), pytest.param(True, id="on nodes of a tier")])
def test_a_job_at_a_limit_starts_when_its_queue_uses_less_and_not_when_nodes_are_free(tiers):
    (first, soon), (second, later) = limited_forecast(["a", "b"], tiers)
    assert (first.place, second.place) == (1, 2)
    assert first.basis == "jobs that run: 1 with a declared runtime; it waits for a limit of its queue"
    assert 60 < soon < later < math.inf


@pytest.mark.parametrize(
    ("fields", "basis"),
    [
        pytest.param({"runtime": None}, "not capacity: queue ml is at its limit: 1 cpu of", id="no end is known"),
        pytest.param({"cpu": 2}, "not capacity: queue ml may use 1 cpu at most", id="it asks for more than the limit"),
    ],
)
def test_a_job_at_a_limit_without_an_expected_start_reads_the_limit(fields, basis):
    ((found, _),) = limited_forecast(["a"], **fields)
    assert not found.is_known
    assert found.basis.startswith(basis)


@pytest.mark.parametrize(
    ("entry", "runtime", "basis"),
    [
        pytest.param(waiting("a"), None, "not known", id="the end of what runs is not known"),
        pytest.param(waiting("a", cpu=9), "1h", "not known", id="no node is large enough"),
    ],
)
def test_a_job_without_an_expected_start_says_why(entry, runtime, basis):
    ((found, _),) = forecast([entry], runtime)
    assert not found.is_known
    assert found.basis.startswith(basis)


def test_a_job_that_fits_by_amounts_and_was_refused_does_not_wait_for_capacity():
    entries = []

    async def story(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        planners, now = fixture.scheduler.planners, fixture.clock.now()
        for refused in (True, False):
            entries.extend(forecast_starts([waiting("a", refused=refused)], planners, fixture.ledger.nodes, now))

    scheduler_test(story)
    assert [each.basis for each in entries] == ["not capacity: by amounts of resources it fits now", "it fits now"]


def test_ten_thousand_jobs_with_absurd_runtimes_are_bounded(monkeypatch):
    monkeypatch.setattr(start_ranges, "DRAWS", 2)
    monkeypatch.setattr(start_ranges.drawn_ranges, "__defaults__", (2,))
    entries = [waiting(f"a{number}", "9999999999h" if number % 2 else "1s", cpu=3) for number in range(10_000)]
    found = forecast(entries, "2147483647s")
    assert len(found) == 10_000
    assert sum("beyond the first" in each.basis for each, _ in found) == 10_000 - MAX_JOBS
    assert [each.place for each, _ in found[-2:]] == [9_999, 10_000]


def test_draws_are_equal_for_equal_names_and_cover_the_runs():
    runs = KnownRuns((10.0, 20.0, 30.0, 40.0, 50.0))
    drawn = RuntimeDraws(64).seconds("pod", "workload", runs)
    assert (drawn == RuntimeDraws(64).seconds("pod", "workload", runs)).all()
    assert 20 < float(np.median(drawn)) < 45
    assert (strata("pod", 8).argsort() != strata("other", 8).argsort()).any()


@pytest.mark.parametrize(
    ("elapsed", "limit"),
    [
        pytest.param(35.0, math.inf, id="a pod that runs has not ended yet"),
        pytest.param(500.0, math.inf, id="one that outlived all runs goes on"),
        pytest.param(45.0, 60.0, id="none runs beyond its deadline"),
    ],
)
def test_draws_know_how_long_a_pod_has_run(elapsed, limit):
    drawn = RuntimeDraws().seconds("pod", "workload", KnownRuns((10.0, 20.0, 30.0, 40.0, 50.0), limit), elapsed)
    assert (drawn >= elapsed).all()
    assert (drawn <= limit).all()


def test_a_queue_that_is_a_lot_of_work_has_fewer_draws(monkeypatch):
    draws = []
    run = StartSimulation.run

    def counted(self, *arguments):
        draws.append(run(self, *arguments))
        return draws[-1]

    monkeypatch.setattr(StartSimulation, "run", counted)
    entries = [waiting("a"), waiting("b")]
    usual = forecast(entries)
    assert len(draws) == DRAWS
    monkeypatch.setattr(start_ranges, "MAX_WORK", 10 * draws[0].work)
    draws.clear()
    fewer = forecast(entries)
    assert start_ranges.MIN_DRAWS <= len(draws) <= 12
    assert all(one.is_known and other.is_known for (one, _), (other, _) in zip(usual, fewer, strict=True))


def test_jobs_of_too_many_classes_are_not_known_and_those_before_them_are(monkeypatch):
    entries = [waiting(f"a{number}", cpu=1 + number / 1000) for number in range(40)]
    monkeypatch.setattr(queue_snapshot, "MAX_CELLS", 100_000)
    bases = [each.basis for each, _ in forecast(entries)]
    cut = bases.index(f"not known: {queue_snapshot.TOO_MUCH_WORK}")
    assert 0 < cut < 40
    assert bases[cut:] == [bases[cut]] * (40 - cut)
    assert all(each.startswith("jobs that run") for each in bases[:cut])


def test_resources_that_no_node_has_take_no_room_in_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 jobs may ask for a hundred such resources each: as columns over 5,000 nodes these are half a gigabyte."""
    shapes: list[tuple[int, ...]] = []
    plain = StartSimulation

    def simulation(model: Any, now: float) -> StartSimulation:
        shapes.append(model.free.shape)
        return plain(model, now)

    monkeypatch.setattr(start_ranges, "StartSimulation", simulation)
    strange = [
        WaitingEntry(Job.of(a_pod(f"s{i}", requests={f"example.com/r{i}-{j}": "1" for j in range(20)})))
        for i in range(10)
    ]
    *others, (last, times) = forecast([*strange, waiting("b")])
    assert [each.basis.startswith("not known: no node is large enough") for each, _ in others] == [True] * 10
    assert last.is_known
    assert times[1] <= 3700
    assert [columns for _, columns in shapes] == [2]  # cpu and pods
