"""Waiting makes urgent: who has waited long is not overtaken for ever, and kinds, not jobs, are looked at again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.framework.aging import CRITICAL, HIGHEST, Aging
from kubenexus.framework.cluster_events import ActionType, ClusterEvent, EventResource
from kubenexus.queue.queued_job import QueueState
from kubenexus.testing.builders import a_pod
from tests.api.gangs.builders import a_member
from tests.queue.assembler_fixture import AssemblerFixture
from tests.queue.queue_fixture import NODE, QueueFixture
from tests.queue.test_many import JOBS, KINDS, LEFT, Crowd

AGING = Aging(threshold=60.0, boost=100, ceiling=1000)


def an_easy(aging: Aging | None = AGING) -> QueueFixture:
    fixture = QueueFixture()
    fixture.profile.aging = aging
    return fixture


# --- how urgent ---------------------------------------------------------------------------------------------------


def test_a_job_gains_its_boost_once_a_threshold_up_to_the_ceiling() -> None:
    ages = (0.0, 59.9, 60.0, 119.0, 120.0, 599.0, 600.0, 1e9)
    assert [AGING.effective_priority(5, 100.0, 100.0 + age) for age in ages] == [5, 5, 105, 105, 205, 905, 1000, 1000]


def test_who_is_above_the_ceiling_stays_where_it_is() -> None:
    assert AGING.effective_priority(5_000, 0.0, 1e9) == 5_000
    assert AGING.next_increase(5_000, 0.0, 1e9) is None


def test_nobody_comes_before_what_is_critical() -> None:
    assert Aging().effective_priority(HIGHEST, 0.0, 1e12) < CRITICAL


@given(
    st.integers(-100, 1_100),
    st.floats(0, 2e9, allow_nan=False),
    st.floats(0, 1e5, allow_nan=False),
    st.sampled_from([0.1, 1.0, 7.3, 60.0]),
)
def test_it_changes_just_when_it_says_so(priority: int, since: float, age: float, threshold: float) -> None:
    aging, now = Aging(threshold, 100, 1000), since + age
    grows, urgency = aging.next_increase(priority, since, now), aging.effective_priority(priority, since, now)
    if grows is None:
        assert aging.effective_priority(priority, since, now + 1e9) == urgency
    else:
        assert grows > now - 1e-3
        assert aging.effective_priority(priority, since, grows) > urgency


# --- in the queue -------------------------------------------------------------------------------------------------


def test_one_who_has_waited_long_goes_before_more_priority() -> None:
    fixture = an_easy()
    fixture.add("old", since=100.0)
    fixture.clock.advance(60.0)
    fixture.add("urgent", priority=50)
    fixture.add("more urgent", priority=150)
    assert fixture.popped() == ["more urgent", "old", "urgent"]


def test_one_who_waits_its_turn_gains_on_the_others_meanwhile() -> None:
    fixture = an_easy()
    fixture.add("old")
    fixture.clock.advance(59.0)
    fixture.add("urgent", priority=50)
    fixture.add("later", kind="urgent", priority=50)
    assert fixture.place().job.key == "default/urgent"
    fixture.clock.advance(1.0)
    assert fixture.popped() == ["old", "later"]


def test_one_that_was_refused_keeps_what_it_has_waited() -> None:
    fixture = an_easy()
    fixture.add("old")
    fixture.refuse("Room")
    fixture.clock.advance(200.0)
    fixture.add("urgent", priority=250)
    fixture.queue.on_event(NODE)
    assert fixture.popped() == ["old", "urgent"]


def test_without_aging_the_order_is_kube_schedulers() -> None:
    fixture = an_easy(None)
    fixture.add("old", since=0.0)
    fixture.clock.advance(1e6)
    fixture.add("urgent", priority=1)
    assert fixture.popped() == ["urgent", "old"]


Jobs = list[tuple[int, int, str, int]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500), st.sampled_from("abc"), st.integers(0, 90))))
def test_the_order_is_that_of_the_jobs_by_what_they_count_with_when_they_are_popped(jobs: Jobs) -> None:
    fixture, waiting = an_easy(), dict[str, tuple[int, float, int]]()
    for i, (priority, since, kind, pause) in enumerate(jobs):
        fixture.add(f"p{i}", kind=kind, since=float(since), priority=priority * 100)
        waiting[f"p{i}"] = (priority * 100, float(since), i)
        fixture.clock.advance(float(pause))
    while waiting:
        now = fixture.clock.now()
        first = min(waiting, key=lambda name: _key(waiting[name], now))
        assert fixture.place().job.key == f"default/{first}"
        del waiting[first]
        fixture.clock.advance(7.0)


def _key(job: tuple[int, float, int], now: float) -> tuple[Any, ...]:
    priority, since, number = job
    return (-AGING.effective_priority(priority, since, now), since, number)


def test_a_crowd_is_looked_at_again_by_kinds_not_by_jobs() -> None:
    crowd = Crowd()
    crowd.profile.aging = Aging(threshold=100_000.0, boost=1)
    crowd.refuse_all()
    crowd.clock.advance(60.0)
    assert crowd.queue.on_event(LEFT) == KINDS
    ripening = crowd.queue._job_classes.sub_queues.aging
    assert len(ripening) == KINDS
    crowd.clock.advance(300_000.0)
    crowd.queue.tick()
    assert len(ripening) == KINDS
    assert crowd.queue.pending(QueueState.ACTIVE).jobs == JOBS


def test_who_has_come_to_the_ceiling_is_not_looked_at_again() -> None:
    fixture = an_easy()
    fixture.add("old")
    ripening = fixture.queue._job_classes.sub_queues.aging
    for gained in range(10):
        assert len(ripening) == 1, f"after {gained} thresholds"
        fixture.clock.advance(60.0)
        fixture.queue.tick()
    assert len(ripening) == 0


# --- from when it counts --------------------------------------------------------------------------------------------


def opened(fixture: QueueFixture, name: str) -> None:
    fixture.gate.shut.discard(f"default/{name}")
    fixture.queue.on_event(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD))


def test_time_behind_a_gate_is_no_waiting() -> None:
    fixture = an_easy()
    fixture.gate.shut.add("default/gated")
    fixture.add("gated")
    fixture.clock.advance(600.0)
    opened(fixture, "gated")
    fixture.clock.advance(59.0)
    fixture.add("urgent", priority=50)
    assert fixture.queue.is_before("default/urgent", "default/gated")
    fixture.clock.advance(1.0)
    assert fixture.popped() == ["gated", "urgent"]


@pytest.mark.parametrize(
    ("complete", "first"),
    [
        pytest.param(100.0, "default/gang/llama", id="complete for a minute"),
        pytest.param(101.0, "default/urgent", id="complete for less, though its first member is old"),
    ],
)
def test_a_gang_waits_from_when_its_last_member_was_made_also_after_a_restart(complete: float, first: str) -> None:
    fixture = AssemblerFixture()
    fixture.fixture.profile.aging = AGING
    fixture.clock.advance(60.0)
    fixture.waits(a_member("m0"), since=0.0)
    fixture.waits(a_member("m1"), since=complete)
    fixture.waits(a_pod("urgent", priority=50), since=160.0)
    attempt = fixture.pop()
    assert attempt is not None
    assert attempt.job.key == first


@pytest.mark.parametrize(
    ("gone", "made", "least", "old"),
    [
        pytest.param([], [], 2, True, id="nothing changes"),
        pytest.param([], ["m2"], 2, True, id="a member joins beyond the minimum"),
        pytest.param(["m1"], ["m2"], 2, False, id="one is exchanged"),
        pytest.param(["m1"], ["m2", "m3"], 3, False, id="one is exchanged, and the minimum raised"),
        pytest.param([], ["m2", "m3"], 4, False, id="only the minimum is raised"),
        pytest.param(["m1"], ["m1"], 2, False, id="a controller has made one again under its name"),
    ],
)
def test_a_gang_is_as_old_as_the_members_that_make_it_complete_now(
    gone: list[str], made: list[str], least: int, old: bool
) -> None:
    """An old gang that does not fit would else lend its age to any pods that are put in."""
    fixture = AssemblerFixture()
    fixture.fixture.profile.aging = AGING
    fixture.waits(a_member("m0"), a_member("m1"), since=0.0)
    fixture.assembler.build_changed()
    fixture.clock.advance(10_000.0)
    now = fixture.clock.now()
    fixture.waits(a_pod("urgent", priority=50), since=now - 10.0)
    fixture.gone(*gone)
    fixture.waits(*(a_member(name, least=least, uid=f"new-{name}") for name in made), since=now)
    fixture.waits(*(a_member(name, least=least) for name in ("m0", "m1") if name not in gone), since=0.0)
    fixture.assembler.build_changed()
    assert fixture.queue.is_before("default/gang/llama", "default/urgent") is old
    fixture.clock.advance(600.0)
    assert fixture.queue.is_before("default/gang/llama", "default/urgent")


@pytest.mark.parametrize("steps", [[("m0", "m1")], [("m0",), ("m1",)], [("m1",), ("m0",)]])
def test_nor_does_it_keep_the_age_of_members_that_have_left(steps: list[tuple[str, ...]]) -> None:
    fixture = AssemblerFixture()
    fixture.fixture.profile.aging = AGING
    fixture.waits(a_member("m0"), a_member("m1"), since=0.0)
    fixture.assembler.build_changed()
    fixture.clock.advance(10_000.0)
    now = fixture.clock.now()
    fixture.waits(a_pod("web"), since=now - 1.0)
    fixture.waits(a_member("m2"), a_member("m3"), since=now)
    fixture.assembler.build_changed()
    assert fixture.queue.is_before("default/gang/llama", "default/web")
    for names in steps:
        fixture.gone(*names)
        fixture.assembler.build_changed()
    assert fixture.queue.is_before("default/web", "default/gang/llama")


def test_a_gang_whose_members_were_behind_gates_waits_from_when_they_are_open() -> None:
    fixture = AssemblerFixture()
    fixture.fixture.profile.aging = AGING
    fixture.waits(a_member("m0", gates=["wait"]), a_member("m1", gates=["wait"]), since=0.0)
    fixture.assembler.build_changed()
    fixture.clock.advance(600.0)
    fixture.waits(a_member("m0"), a_member("m1"), since=0.0)
    fixture.assembler.build_changed()
    fixture.clock.advance(59.0)
    fixture.waits(a_pod("urgent", priority=50), since=759.0)
    assert fixture.queue.is_before("default/urgent", "default/gang/llama")
    fixture.clock.advance(1.0)
    assert fixture.queue.is_before("default/gang/llama", "default/urgent")


def test_who_may_keep_room_from_whom_does_not_change_with_waiting() -> None:
    fixture = an_easy()
    old, urgent = fixture.add("old"), fixture.add("urgent", priority=1)
    fixture.clock.advance(1e6)
    first, second = fixture.queue.rank(urgent), fixture.queue.rank(old)
    assert first is not None
    assert second is not None
    assert first < second
    assert fixture.queue.rank("default/nobody") is None
