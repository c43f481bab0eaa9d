"""Replays: what is counted, in which order waiting jobs are tried, and that equal seeds give equal results."""

from typing import Any

import pytest

from kubenexus.sim.replay import fill as fill_module
from kubenexus.sim.replay.cluster import ReplayCluster, ledger_of
from kubenexus.sim.replay.fill import fill
from kubenexus.sim.replay.lifetimes import with_lifetimes
from kubenexus.sim.replay.policies.named import policy_plugins
from kubenexus.sim.replay.timeline import play
from kubenexus.sim.replay.timeline_result import TimelineResult
from kubenexus.sim.replay.traces.trace import JobShape, Trace, TraceJob, TraceNode

NODE = TraceNode("n", 64_000, 1 << 40, 8, "A")


def a_cluster(trace: Trace, policy: str = "bestfit") -> ReplayCluster:
    return ReplayCluster(ledger_of(trace.nodes, shared=True), policy_plugins(policy, trace, 1))


def gpus(name: str, number: int, at: float = 0.0, duration: float | None = None, **fields: Any) -> TraceJob:
    shape = JobShape(cpu=1000, gpus=number, priority=fields.pop("priority", 0))
    return TraceJob(name, shape, at, duration, **fields)


def played(*jobs: TraceJob, policy: str = "bestfit") -> TimelineResult:
    trace = Trace("t", (NODE,), jobs)
    return play(trace, a_cluster(trace, policy), policy=policy, seed=1)


def test_a_fill_counts_as_the_paper_does() -> None:
    jobs = [gpus(f"j{i}", number) for i, number in enumerate([4, 2, 4, 2, 1])]
    trace = Trace("t", (NODE,), tuple(jobs))
    result = fill(trace, a_cluster(trace), policy="bestfit", seed=1)
    assert (result.pods, result.placed) == (5, 3)
    assert result.first_refusal_at == 125.0
    assert [result.allocated_at(k) for k in (50, 75, 100, 125, 150, 163, 170)] == [50, 75, 75, 75, 100, 100, None]


def test_a_fill_that_is_interrupted_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace("t", (NODE,), tuple(gpus(f"j{i}", 1) for i in range(6)))
    cluster = a_cluster(trace)
    monkeypatch.setattr(fill_module, "STEP", 2)

    def interrupt(done: int) -> None:
        if cluster.decisions == 4:
            raise KeyboardInterrupt

    result = fill(trace, cluster, policy="bestfit", seed=1, progress=interrupt)
    assert (result.complete, result.pods) == (False, 4)
    assert result.as_json()["complete"] is False


def test_a_job_waits_until_another_ends_and_smaller_ones_pass() -> None:
    result = played(gpus("a", 6, 0, 100), gpus("b", 8, 10, 50), gpus("c", 2, 20, 30))
    assert result.waits == {"6": [0.0], "2": [0.0], "8": [90.0]}
    assert result.unstarted == 0


def test_waiting_jobs_go_by_priority_then_by_arrival() -> None:
    waiting = [gpus("b", 8, 1, 10), gpus("c", 8, 2, 10, tenant="x"), gpus("d", 8, 3, 10, priority=5)]
    result = played(gpus("a", 8, 0, 100), *waiting)
    assert result.waits["8"] == [0.0, 97.0, 109.0, 118.0]


def test_a_gang_starts_as_a_whole_or_not_at_all() -> None:
    nodes = (NODE, TraceNode("m", 64_000, 1 << 40, 8, "A"))
    trace = Trace("t", nodes, (gpus("a", 1, 0, 50), gpus("g", 8, 5, 10, pods=2)))
    result = play(trace, a_cluster(trace), policy="bestfit", seed=1)
    assert result.waits == {"1": [0.0], "16": [45.0]}


def test_what_never_fits_is_counted_and_utilisation_is_over_the_time_of_arrivals() -> None:
    result = played(gpus("a", 4, 0, 50), gpus("big", 9, 0, 5), gpus("last", 0, 100, 5))
    assert result.unstarted == 1
    assert result.utilisation == 25.0
    assert result.as_json()["tenant_gpu_hours"] == {"default": round(4 * 50 / 3600, 2)}


@pytest.mark.parametrize("policy", ["shipped", "fgd", "random"])
def test_equal_seeds_give_equal_results(policy: str) -> None:
    jobs = tuple(gpus(f"j{i}", 1 + i % 3, 5.0 * i, 40.0 + i) for i in range(20))

    def line() -> dict[str, Any]:
        found = played(*jobs, policy=policy).as_json()
        del found["decisions_per_s"]
        return found

    assert line() == line()


def test_lifetimes_ask_for_the_load() -> None:
    trace = Trace("t", (NODE,), tuple(gpus(f"j{i}", 2, 0, 100.0) for i in range(500)))
    drawn = with_lifetimes(trace, 7, 0.5)
    asked = sum(job.milli * (job.duration or 0) for job in drawn.jobs)
    assert asked / (trace.capacity * drawn.jobs[-1].at) == pytest.approx(0.5, rel=0.1)
    assert with_lifetimes(trace, 7, 0.5) == drawn
