"""What earlier runs tell: quantiles, distrust of runtimes that were outlived, and bounds of the memory."""

import pytest

from kubenexus.api.runtimes import DeclaredRuntime, WorkloadIdentity
from kubenexus.state.runtimes.estimate import span
from kubenexus.state.runtimes.memory import MAX_IDENTITIES, MAX_NAMESPACES, RUNS, RuntimeMemory

TRAIN = WorkloadIdentity("ml", "Job", "train")
HOUR = DeclaredRuntime(3600.0, "max-runtime")


def test_two_runs_tell_nothing_and_three_do() -> None:
    memory = RuntimeMemory()
    for seconds in (60.0, 70.0):
        memory.observe(TRAIN, seconds, None)
    assert memory.estimate(TRAIN, None) is None
    memory.observe(TRAIN, 80.0, None)
    found = memory.estimate(TRAIN, None)
    assert found is not None
    assert (found.low, found.median, found.high, found.runs) == (60.0, 70.0, 80.0, 3)
    assert found.basis() == "9 of 10 of 3 runs of Job ml/train took at most 1m20s"
    assert "ml" not in found.general_basis()


def test_nothing_is_learned_from_another_namespace() -> None:
    memory = RuntimeMemory()
    for _ in range(5):
        memory.observe(TRAIN, 60.0, HOUR)
    other = TRAIN._replace(namespace="other")
    assert memory.estimate(other, None) is None
    assert memory.estimate(other, HOUR)[:3] == (0.0, 3600.0, 3600.0)  # type: ignore[index]


def test_a_declared_runtime_is_a_limit_that_shorter_runs_do_not_lower() -> None:
    memory = RuntimeMemory()
    for _ in range(5):
        memory.observe(TRAIN, 60.0, HOUR)
    assert memory.estimate(TRAIN, HOUR).high == 3600.0  # type: ignore[union-attr]


def test_a_runtime_that_was_outlived_counts_as_many_times_longer() -> None:
    memory = RuntimeMemory()
    for _ in range(3):
        memory.observe(TRAIN, 36_000.0, HOUR)
    found = memory.estimate(TRAIN, HOUR)
    assert found is not None
    assert found.high == 36_000.0
    assert "earlier runs took up to 10 times as long" in found.basis()
    capped = memory.estimate(TRAIN, HOUR._replace(limit=7200.0))
    assert capped is not None
    assert capped.high == 7200.0


def test_a_new_name_does_not_help_and_does_not_hurt_an_identity_with_runs_of_its_own() -> None:
    memory = RuntimeMemory()
    honest = TRAIN._replace(stem="honest")
    for _ in range(3):
        memory.observe(honest, 1800.0, HOUR)
    for i in range(8):
        memory.outlived(TRAIN._replace(stem=f"liar-{i}"), 72_000.0, HOUR)
    assert memory.estimate(TRAIN._replace(stem="fresh"), HOUR).high == 72_000.0  # type: ignore[union-attr]
    assert memory.estimate(honest, HOUR).high == 3600.0  # type: ignore[union-attr]


def test_a_record_is_not_washed_by_short_pods_that_keep_their_word() -> None:
    memory, minute = RuntimeMemory(), DeclaredRuntime(60.0, "max-runtime")
    for _ in range(3):
        memory.observe(TRAIN, 3600.0, minute)
    for i in range(3 * RUNS):
        memory.observe(TRAIN._replace(stem="washed"), 30.0, minute)
        memory.observe(TRAIN, 30.0, minute)
        assert memory.estimate(TRAIN._replace(stem=f"new-{i}"), minute).high == 3600.0  # type: ignore[union-attr]
    assert memory.estimate(TRAIN._replace(stem="washed"), minute).high == 3600.0  # type: ignore[union-attr]
    assert memory.estimate(TRAIN, minute).high == 3600.0  # type: ignore[union-attr]


def test_runs_in_time_count_again_when_they_lasted_as_long_as_others_were_late() -> None:
    memory, minute, fresh = RuntimeMemory(), DeclaredRuntime(60.0, "max-runtime"), TRAIN._replace(stem="fresh")
    for _ in range(3):
        memory.observe(TRAIN, 3600.0, minute)  # late by 59 minutes each: 10,620 seconds in all
    for _ in range(2):
        memory.observe(fresh, 3600.0, HOUR)
    assert memory.estimate(fresh, minute).high == 3600.0  # type: ignore[union-attr]
    for _ in range(3):
        memory.observe(fresh, 3600.0, HOUR)
    assert memory.estimate(fresh, minute).high == 60.0  # type: ignore[union-attr]


def test_a_workload_that_is_expected_to_be_late_owes_nothing() -> None:
    memory, fresh = RuntimeMemory(), TRAIN._replace(stem="fresh")
    for _ in range(3):
        memory.observe(TRAIN, 36_000.0, HOUR)
    for _ in range(30):
        memory.observe(TRAIN, 36_000.0, HOUR)
        memory.observe(fresh, 3600.0, HOUR)
    assert memory.estimate(TRAIN, HOUR).high == 36_000.0  # type: ignore[union-attr]
    assert memory.estimate(fresh, HOUR).high == 3600.0  # type: ignore[union-attr]


def test_an_enforced_deadline_is_always_believed() -> None:
    memory, deadline = RuntimeMemory(), HOUR._replace(enforced=True, limit=3600.0)
    for _ in range(5):
        memory.outlived(TRAIN, 36_000.0, HOUR)
    assert memory.estimate(TRAIN, deadline).high == 3600.0  # type: ignore[union-attr]


def test_the_memory_is_bounded_and_forgets_what_is_oldest() -> None:
    memory = RuntimeMemory()
    for i in range(MAX_NAMESPACES + 10):
        memory.observe(WorkloadIdentity(f"n{i}", "Job", "a"), 1.0, None)
    assert len(memory) == MAX_NAMESPACES
    for i in range(MAX_IDENTITIES * 2):
        memory.observe(TRAIN._replace(stem=f"s{i}"), 1.0, None)
    mine = [identity for identity, _ in memory if identity.namespace == "ml"]
    assert len(mine) == MAX_IDENTITIES
    assert mine[-1].stem == f"s{MAX_IDENTITIES * 2 - 1}"
    for i in range(RUNS * 2):
        memory.observe(TRAIN, float(i), None)
    assert memory.estimate(TRAIN, None).low >= RUNS  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (3600, "1h"), (9000, "2h30m"), (90_061, "1d1h"), (86_461, "1d")]
)
def test_time_spans_have_their_two_largest_units(seconds: float, text: str) -> None:
    assert span(seconds) == text
