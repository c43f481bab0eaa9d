"""The record of evictions: no pair twice without a change, no cycle, pauses that grow, bounded memory."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubenexus.app.preemption import eviction_record
from kubenexus.app.preemption.eviction_record import LONGEST, MAX_SPARED, SPARED_SECONDS, EvictionRecord

COOLDOWN = 30.0


def recorded(*evictions: tuple[str, str], state: int = 0, now: float = 0.0) -> EvictionRecord:
    """Each of a job and the unit that was evicted for it; a job is its own unit."""
    record = EvictionRecord()
    for job, victim in evictions:
        record.evicted(job, job, victim, state, now, COOLDOWN)
    return record


def forbids(
    record: EvictionRecord, job: str, victim: str, *, state: int = 0, now: float = 1.0, equal: bool = True
) -> bool:
    return record.forbids(job, job, victim, state, now, outranks=not equal)


@pytest.mark.parametrize(
    ("evictions", "asked", "more", "expected"),
    [
        pytest.param([], ("a", "b"), {}, False, id="the first time"),
        pytest.param([("a", "b")], ("a", "b"), {"equal": False}, True, id="the same pair again"),
        pytest.param([("a", "b")], ("a", "b"), {"equal": False, "state": 1}, False, id="after a change of the state"),
        pytest.param([("a", "b")], ("a", "b"), {"equal": False, "now": LONGEST}, False, id="after an hour"),
        pytest.param([("a", "b")], ("c", "b"), {}, False, id="another job, the same victim"),
        pytest.param([("a", "b")], ("b", "a"), {}, True, id="back again"),
        pytest.param([("a", "b"), ("b", "c")], ("c", "a"), {"state": 9}, True, id="back again over a third"),
        pytest.param([("a", "b"), ("b", "c")], ("c", "a"), {"equal": False}, False, id="of lower priority by now"),
        pytest.param([("a", "b"), ("c", "d")], ("d", "a"), {}, False, id="two that have nothing to do with each other"),
        pytest.param([("a", "b")], ("b", "a"), {"now": LONGEST}, False, id="back again after an hour"),
    ],
)
def test_f44_the_same_eviction_or_one_that_leads_back_is_forbidden(
    evictions: list[tuple[str, str]], asked: tuple[str, str], more: dict[str, float], expected: bool
) -> None:
    assert forbids(recorded(*evictions), *asked, **more) is expected  # type: ignore[arg-type]


def test_a_job_that_landed_may_evict_the_same_again_but_not_be_evicted_in_turn() -> None:
    record = recorded(("a", "b"))
    record.landed("a", ["b"])
    assert not forbids(record, "a", "b")
    assert forbids(record, "b", "a")


def test_an_eviction_starts_a_pause_and_landing_ends_it() -> None:
    record = recorded(("a", "b"))
    assert record.rests_until("a", 1.0) == COOLDOWN
    assert record.rests_until("c", 1.0) <= 1.0, "others do not wait"
    record.landed("a", ["b"])
    assert record.rests_until("a", 1.0) <= 1.0


def test_each_failure_doubles_the_pause_up_to_an_hour() -> None:
    record, pauses = EvictionRecord(), []
    for number in range(10):
        now = number * 10_000.0
        record.failed("a", now, COOLDOWN)
        pauses.append(record.rests_until("a", now) - now)
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    record.landed("a", [])
    record.failed("a", 1e6, COOLDOWN)
    assert record.rests_until("a", 1e6) == 1e6 + 30


def test_after_a_restart_all_jobs_wait_once() -> None:
    record = EvictionRecord()
    record.restarted(100.0, COOLDOWN)
    assert record.rests_until("any", 100.0) == 130.0


def test_spared_pods_are_spared_for_a_while_and_a_job_with_too_many_waits() -> None:
    record = EvictionRecord()
    record.spare("a", ["x"], 0.0)
    assert record.spared("a", 1.0) == {"x"}
    assert record.spared("b", 1.0) == frozenset()
    assert record.spared("a", SPARED_SECONDS) == frozenset()
    record.spare("a", map(str, range(2 * MAX_SPARED)), 100.0)
    assert len(record.spared("a", 101.0)) == MAX_SPARED
    assert record.rests_until("a", 101.0) == 100.0 + SPARED_SECONDS


def test_the_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction_record, "MAX_PAIRS", 50)
    monkeypatch.setattr(eviction_record, "MAX_JOBS", 50)
    record = recorded(*[(f"job-{i}", f"victim-{i}") for i in range(200)])
    assert len(record) == 50
    assert len(record._evicted_by) == 50
    assert len(record._held_back) == 50
    assert forbids(record, "job-199", "victim-199")
    assert not forbids(record, "job-0", "victim-0")


UNITS = st.sampled_from("abcd")


class Evictions(RuleBasedStateMachine):
    """Units of equal priority that preempt each other as the record allows, and a list of all that happened."""

    def __init__(self) -> None:
        super().__init__()
        self.record, self.now, self.state = EvictionRecord(), 0.0, 0
        self.history: list[tuple[str, str, int, float]] = []
        self.landed_at: dict[str, float] = {}
        self.failures: dict[str, int] = {}
        self.pause: dict[str, float] = {}

    @rule(job=UNITS, victim=UNITS)
    def evict(self, job: str, victim: str) -> None:
        if job == victim or self.record.rests_until(job, self.now) > self.now:
            return
        if self.record.forbids(job, job, victim, self.state, self.now, outranks=False):
            return
        before = [each for each in self.history if each[:2] == (job, victim)]
        if before:
            *_, state, at = before[-1]
            changed = state != self.state or self.landed_at.get(job, -1.0) >= at or at + LONGEST <= self.now
            assert changed, f"{job} evicted {victim} twice, and nothing had changed"
        self.record.evicted(job, job, victim, self.state, self.now, COOLDOWN)
        self.history.append((job, victim, self.state, self.now))
        self.pause[job] = self.now + COOLDOWN

    @rule(job=UNITS)
    def land(self, job: str) -> None:
        self.record.landed(job, "abcd")
        self.landed_at[job] = self.now
        self.failures.pop(job, None)
        self.pause.pop(job, None)

    @precondition(lambda self: bool(self.history))
    @rule(job=UNITS)
    def fail(self, job: str) -> None:
        self.failures[job] = self.failures.get(job, 0) + 1
        self.record.failed(job, self.now, COOLDOWN)
        self.pause[job] = max(self.pause.get(job, 0.0), self.now + min(30 * 2 ** (self.failures[job] - 1), LONGEST))

    @rule()
    def change(self) -> None:
        self.state += 1

    @rule(seconds=st.sampled_from([1.0, 31.0, 700.0, LONGEST]))
    def later(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def pauses_are_kept(self) -> None:
        for job in "abcd":
            expected = self.pause.get(job, -1.0)
            assert (self.record.rests_until(job, self.now) > self.now) == (expected > self.now)

    @invariant()
    def no_cycle_within_an_hour(self) -> None:
        edges = {(job, victim) for job, victim, _, at in self.history if at + LONGEST > self.now}
        for unit in "abcd":
            reached = {unit}
            for _ in range(4):
                reached |= {victim for job, victim in edges if job in reached}
            assert not any(victim == unit and job in reached for job, victim in edges), edges


TestEvictions = Evictions.TestCase
TestEvictions.settings = settings(stateful_step_count=30)
