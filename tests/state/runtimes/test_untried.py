"""What a declared runtime means where no run of the workload is known."""

import pytest

from kubenexus.api.runtimes import DeclaredRuntime, WorkloadIdentity
from kubenexus.state.runtimes.memory import RuntimeMemory
from kubenexus.state.runtimes.untried import ASSUMED, POINTS, untried_factors


def test_without_any_run_it_is_what_is_assumed() -> None:
    assert untried_factors([], []) == ASSUMED


@pytest.mark.parametrize(
    ("ended", "running", "early", "latest"),
    [
        pytest.param([], [0.01] * 80, 5, 1.0, id="pods that have just started tell nothing"),
        pytest.param([], [0.95] * 80, 1, 1.0, id="pods that are nearly through tell that few end early"),
        pytest.param([0.2] * 80, [], 16, 1.0, id="runs that ended early do that more will"),
        pytest.param([0.2] * 4, [0.5] * 80, 3, 1.0, id="a few that ended early do not beside many that run on"),
        pytest.param([], [4.0] * 80, 1, 4.0, id="pods that outlived their time take as long at least"),
    ],
)
def test_it_is_between_what_is_assumed_and_what_is_seen(
    ended: list[float], running: list[float], early: int, latest: float
) -> None:
    found = untried_factors(ended, running)
    assert len(found) == POINTS
    assert list(found) == sorted(found)
    assert sum(factor < 0.95 for factor in found) == pytest.approx(early, abs=1)
    assert found[-1] == latest


def test_the_last_runs_of_each_namespace_count_for_workloads_without_any() -> None:
    memory, said = RuntimeMemory(), DeclaredRuntime(100.0, "max-runtime")
    for number in range(40):
        memory.observe(WorkloadIdentity("a", "Job", "x"), 20.0, said)
        memory.observe(WorkloadIdentity(f"b{number}", "Job", "x"), 50.0, said)
    factors = memory.factors()
    assert sum(factor < 0.3 for factor in factors) < 10, "no tenant decides alone"
    runs = memory.runs(WorkloadIdentity("new", "Job", "x"), said, untried_factors(factors, []))
    assert runs is not None
    assert runs.seconds[POINTS // 2] == pytest.approx(50.0)
