"""Waiting makes urgent: who has waited long is not overtaken for ever, and kinds, not jobs, are looked at again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.framework.aging import CRITICAL, HIGHEST, Aging
from kubenexus.framework.events import Action, Event, Resource
from kubenexus.queue.entry import Place
from kubenexus.testing.builders import a_pod
from tests.api.gangs.small import a_member
from tests.queue.easy import NODE, Easy
from tests.queue.hall import Hall
from tests.queue.test_many import JOBS, KINDS, LEFT, Crowd

AGING = Aging(threshold=60.0, boost=100, ceiling=1000)


def an_easy(aging: Aging | None = AGING) -> Easy:
    easy = Easy()
    easy.rules.aging = aging
    return easy


# --- how urgent ---------------------------------------------------------------------------------------------------


def test_a_job_gains_its_boost_once_a_threshold_up_to_the_ceiling() -> None:
    ages = (0.0, 59.9, 60.0, 119.0, 120.0, 599.0, 600.0, 1e9)
    assert [AGING.urgency(5, 100.0, 100.0 + age) for age in ages] == [5, 5, 105, 105, 205, 905, 1000, 1000]


def test_who_is_above_the_ceiling_stays_where_it_is() -> None:
    assert AGING.urgency(5_000, 0.0, 1e9) == 5_000
    assert AGING.grows_at(5_000, 0.0, 1e9) is None


def test_nobody_comes_before_what_is_critical() -> None:
    assert Aging().urgency(HIGHEST, 0.0, 1e12) < CRITICAL


@given(
    st.integers(-100, 1_100),
    st.floats(0, 2e9, allow_nan=False),
    st.floats(0, 1e5, allow_nan=False),
    st.sampled_from([0.1, 1.0, 7.3, 60.0]),
)
def test_it_changes_just_when_it_says_so(priority: int, since: float, age: float, threshold: float) -> None:
    aging, now = Aging(threshold, 100, 1000), since + age
    grows, urgency = aging.grows_at(priority, since, now), aging.urgency(priority, since, now)
    if grows is None:
        assert aging.urgency(priority, since, now + 1e9) == urgency
    else:
        assert grows > now - 1e-3
        assert aging.urgency(priority, since, grows) > urgency


# --- in the queue -------------------------------------------------------------------------------------------------


def test_one_who_has_waited_long_goes_before_more_priority() -> None:
    easy = an_easy()
    easy.add("old", since=100.0)
    easy.clock.advance(60.0)
    easy.add("urgent", priority=50)
    easy.add("more urgent", priority=150)
    assert easy.popped() == ["more urgent", "old", "urgent"]


def test_one_who_waits_its_turn_gains_on_the_others_meanwhile() -> None:
    easy = an_easy()
    easy.add("old")
    easy.clock.advance(59.0)
    easy.add("urgent", priority=50)
    easy.add("later", kind="urgent", priority=50)
    assert easy.place().job.key == "default/urgent"
    easy.clock.advance(1.0)
    assert easy.popped() == ["old", "later"]


def test_one_that_was_refused_keeps_what_it_has_waited() -> None:
    easy = an_easy()
    easy.add("old")
    easy.refuse("Room")
    easy.clock.advance(200.0)
    easy.add("urgent", priority=250)
    easy.room.on_event(NODE)
    assert easy.popped() == ["old", "urgent"]


def test_without_aging_the_order_is_kube_schedulers() -> None:
    easy = an_easy(None)
    easy.add("old", since=0.0)
    easy.clock.advance(1e6)
    easy.add("urgent", priority=1)
    assert easy.popped() == ["urgent", "old"]


Jobs = list[tuple[int, int, str, int]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500), st.sampled_from("abc"), st.integers(0, 90))))
def test_the_order_is_that_of_the_jobs_by_what_they_count_with_when_they_are_popped(jobs: Jobs) -> None:
    easy, waiting = an_easy(), dict[str, tuple[int, float, int]]()
    for i, (priority, since, kind, pause) in enumerate(jobs):
        easy.add(f"p{i}", kind=kind, since=float(since), priority=priority * 100)
        waiting[f"p{i}"] = (priority * 100, float(since), i)
        easy.clock.advance(float(pause))
    while waiting:
        now = easy.clock.now()
        first = min(waiting, key=lambda name: _key(waiting[name], now))
        assert easy.place().job.key == f"default/{first}"
        del waiting[first]
        easy.clock.advance(7.0)


def _key(job: tuple[int, float, int], now: float) -> tuple[Any, ...]:
    priority, since, number = job
    return (-AGING.urgency(priority, since, now), since, number)


def test_a_crowd_is_looked_at_again_by_kinds_not_by_jobs() -> None:
    crowd = Crowd()
    crowd.rules.aging = Aging(threshold=100_000.0, boost=1)
    crowd.refuse_all()
    crowd.clock.advance(60.0)
    assert crowd.room.on_event(LEFT) == KINDS
    ripening = crowd.room._lines.places.ripening
    assert len(ripening) == KINDS
    crowd.clock.advance(300_000.0)
    crowd.room.tick()
    assert len(ripening) == KINDS
    assert crowd.room.waiting(Place.ACTIVE).jobs == JOBS


def test_who_has_come_to_the_ceiling_is_not_looked_at_again() -> None:
    easy = an_easy()
    easy.add("old")
    ripening = easy.room._lines.places.ripening
    for gained in range(10):
        assert len(ripening) == 1, f"after {gained} thresholds"
        easy.clock.advance(60.0)
        easy.room.tick()
    assert len(ripening) == 0


# --- from when it counts --------------------------------------------------------------------------------------------


def opened(easy: Easy, name: str) -> None:
    easy.gate.shut.discard(f"default/{name}")
    easy.room.on_event(Event(Resource.STORAGE_CLASS, Action.ADD))


def test_time_behind_a_gate_is_no_waiting() -> None:
    easy = an_easy()
    easy.gate.shut.add("default/gated")
    easy.add("gated")
    easy.clock.advance(600.0)
    opened(easy, "gated")
    easy.clock.advance(59.0)
    easy.add("urgent", priority=50)
    assert easy.room.precedes("default/urgent", "default/gated")
    easy.clock.advance(1.0)
    assert easy.popped() == ["gated", "urgent"]


@pytest.mark.parametrize(
    ("complete", "first"),
    [
        pytest.param(100.0, "default/gang/llama", id="complete for a minute"),
        pytest.param(101.0, "default/urgent", id="complete for less, though its first member is old"),
    ],
)
def test_a_gang_waits_from_when_its_last_member_was_made_also_after_a_restart(complete: float, first: str) -> None:
    hall = Hall()
    hall.easy.rules.aging = AGING
    hall.clock.advance(60.0)
    hall.waits(a_member("m0"), since=0.0)
    hall.waits(a_member("m1"), since=complete)
    hall.waits(a_pod("urgent", priority=50), since=160.0)
    turn = hall.room.pop()
    assert turn is not None
    assert turn.job.key == first


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
    hall = Hall()
    hall.easy.rules.aging = AGING
    hall.waits(a_member("m0"), a_member("m1"), since=0.0)
    hall.assembly.flush()
    hall.clock.advance(10_000.0)
    now = hall.clock.now()
    hall.waits(a_pod("urgent", priority=50), since=now - 10.0)
    hall.gone(*gone)
    hall.waits(*(a_member(name, least=least, uid=f"new-{name}") for name in made), since=now)
    hall.waits(*(a_member(name, least=least) for name in ("m0", "m1") if name not in gone), since=0.0)
    hall.assembly.flush()
    assert hall.room.precedes("default/gang/llama", "default/urgent") is old
    hall.clock.advance(600.0)
    assert hall.room.precedes("default/gang/llama", "default/urgent")


@pytest.mark.parametrize("steps", [[("m0", "m1")], [("m0",), ("m1",)], [("m1",), ("m0",)]])
def test_nor_does_it_keep_the_age_of_members_that_have_left(steps: list[tuple[str, ...]]) -> None:
    hall = Hall()
    hall.easy.rules.aging = AGING
    hall.waits(a_member("m0"), a_member("m1"), since=0.0)
    hall.assembly.flush()
    hall.clock.advance(10_000.0)
    now = hall.clock.now()
    hall.waits(a_pod("web"), since=now - 1.0)
    hall.waits(a_member("m2"), a_member("m3"), since=now)
    hall.assembly.flush()
    assert hall.room.precedes("default/gang/llama", "default/web")
    for names in steps:
        hall.gone(*names)
        hall.assembly.flush()
    assert hall.room.precedes("default/web", "default/gang/llama")


def test_a_gang_whose_members_were_behind_gates_waits_from_when_they_are_open() -> None:
    hall = Hall()
    hall.easy.rules.aging = AGING
    hall.waits(a_member("m0", gates=["wait"]), a_member("m1", gates=["wait"]), since=0.0)
    hall.assembly.flush()
    hall.clock.advance(600.0)
    hall.waits(a_member("m0"), a_member("m1"), since=0.0)
    hall.assembly.flush()
    hall.clock.advance(59.0)
    hall.waits(a_pod("urgent", priority=50), since=759.0)
    assert hall.room.precedes("default/urgent", "default/gang/llama")
    hall.clock.advance(1.0)
    assert hall.room.precedes("default/gang/llama", "default/urgent")


def test_who_may_keep_room_from_whom_does_not_change_with_waiting() -> None:
    easy = an_easy()
    old, urgent = easy.add("old"), easy.add("urgent", priority=1)
    easy.clock.advance(1e6)
    first, second = easy.room.rank(urgent), easy.room.rank(old)
    assert first is not None
    assert second is not None
    assert first < second
    assert easy.room.rank("default/nobody") is None
