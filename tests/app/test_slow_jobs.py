"""Jobs that took too long to decide are tried last, by this process and by the next."""

import logging
from typing import Any

import msgspec
import pytest

from kubenexus.app.election.loop_activity import LoopActivity
from kubenexus.app.election.slow_jobs import (
    FIRST_REST,
    MAX_JOBS,
    MAX_REST,
    REMEMBERED_FOR,
    SLOW_DECISION,
    UNDER_WAY,
    SlowJob,
    SlowJobs,
    decode_annotation,
    encode_annotation,
)
from kubenexus.app.scheduler import SchedulerOptions
from kubenexus.app.scheduling_loop import LoopOptions
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.queue.queued_job import QueueState
from kubenexus.sim.virtual.loop import run
from kubenexus.testing.builders import a_node, a_pod
from tests.api.gangs.builders import a_member
from tests.app.scheduler_fixture import SchedulerFixture, scheduler_test

NOW = 1_794_792_257.0
WEB = '{"job":"shop/web-0","at":"2026-11-16T01:24:17.000000Z","count":1}'


def inherited(text: str = "") -> SlowJobs:
    jobs = SlowJobs()
    jobs.inherit(text, NOW)
    return jobs


# --- the list ---------------------------------------------------------------------------------------------------------


def test_the_list_stands_on_the_lease_as_json_and_comes_back() -> None:
    jobs = inherited()
    assert jobs.decided("shop/web-0", NOW - 3.0, NOW) == NOW + 60.0
    text = jobs.annotation(None, NOW)
    assert text == f"[{WEB}]"
    assert inherited(text).entries == (SlowJob("shop/web-0", NOW, 1),)


def test_each_slow_decision_doubles_the_rest_up_to_an_hour() -> None:
    jobs, now, rests = inherited(), NOW, []
    for _ in range(20):
        until = jobs.decided("shop/web-0", now - 3.0, now)
        assert until is not None
        rests.append(until - now)
        now = until
    assert rests[:8] == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0]
    assert max(rests) == MAX_REST


def test_a_job_that_is_decided_in_time_is_forgotten_and_no_other() -> None:
    jobs = inherited()
    for job in ("a/slow", "b/slow"):
        jobs.decided(job, NOW, NOW + 3.0)
    assert jobs.decided("a/slow", NOW + 70.0, NOW + 70.0 + SLOW_DECISION) is None
    assert [each.job for each in jobs.entries] == ["b/slow"]


def test_an_hour_after_its_rest_a_job_is_forgotten() -> None:
    jobs = inherited()
    jobs.decided("a/slow", NOW - 3.0, NOW)
    kept = NOW + FIRST_REST + REMEMBERED_FOR
    text = jobs.annotation(None, kept - 1.0)
    assert text is not None
    assert "a/slow" in text
    assert jobs.annotation(None, kept) == ""
    assert decode_annotation(text, kept - 1.0)
    assert decode_annotation(text, kept) == ()


def test_only_the_latest_are_kept() -> None:
    jobs = inherited()
    for i in range(100):
        jobs.decided(f"a/p{i}", NOW + i, NOW + i + 3.0)
    assert [each.job for each in jobs.entries] == [f"a/p{i}" for i in range(100 - MAX_JOBS, 100)]


@pytest.mark.parametrize(
    ("seconds", "named"),
    [pytest.param(UNDER_WAY, False, id="a second at most"), pytest.param(UNDER_WAY + 0.1, True, id="longer")],
)
def test_a_decision_under_way_is_named_before_it_ends(seconds: float, named: bool) -> None:
    activity = LoopActivity()
    activity.slow_jobs.inherit("", NOW)
    activity.deciding = ("shop/web-0", NOW - seconds)
    assert activity.note(NOW) == (f"[{WEB}]" if named else "")
    assert activity.note(NOW) == (f"[{WEB}]" if named else ""), "once, however often it is written"
    activity.deciding = None
    activity.slow_jobs.decided("shop/web-0", NOW - seconds, NOW)
    assert activity.note(NOW) == "", "it ended in time"


def test_nothing_is_written_before_it_was_read() -> None:
    assert SlowJobs().annotation(("shop/web-0", NOW), NOW + 100.0) is None


GARBAGE = [
    pytest.param("x", id="no JSON"),
    pytest.param("{}", id="no list"),
    pytest.param("[1]", id="a list of numbers"),
    pytest.param('[{"job":"a/b"}]', id="no time"),
    pytest.param('[{"job":"","at":"2026-11-16T01:24:17Z"}]', id="no job"),
    pytest.param('[{"job":"a/b","at":"soon"}]', id="a time that is none"),
    pytest.param('[{"job":"a/b","at":"2026-11-16T01:24:17"}]', id="a time without a zone"),
    pytest.param('[{"job":"a/b","at":"2026-11-16T01:24:17Z","count":0}]', id="no count"),
    pytest.param('[{"job":"a/b","at":"2026-11-16T01:24:17Z","count":1e99}]', id="an endless count"),
    pytest.param('[{"job":"' + "x" * 900 + '","at":"2026-11-16T01:24:17Z"}]', id="an endless key"),
    pytest.param("[" * 20_000, id="a well of brackets"),
    pytest.param("[" + ",".join([WEB] * 1_000) + "]", id="far too long"),
    pytest.param('[{"job":"\ud800","at":"2026-11-16T01:24:17Z"}]', id="half a character"),
]


@pytest.mark.parametrize("text", GARBAGE)
def test_a_list_that_cannot_be_read_is_ignored_with_a_line(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert decode_annotation(text, NOW) == ()
    assert [record.getMessage() for record in caplog.records] == ["Ignored the list of slow jobs on the lease"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param(
            {"job": "a/b", "at": "2999-01-01T00:00:00Z"}, SlowJob("a/b", NOW), id="a time to come is taken for now"
        ),
        pytest.param(
            {"job": "a/b", "at": "2026-11-16T01:24:17Z", "count": 10**9},
            SlowJob("a/b", NOW, 16),
            id="a count that is too large rests for an hour",
        ),
        pytest.param({"job": "a/b", "at": "1970-01-01T00:00:00Z"}, None, id="long ago is forgotten"),
        pytest.param(
            {"job": "ns/gang/x", "at": "2026-11-16T01:24:17Z", "more": [1]},
            SlowJob("ns/gang/x", NOW),
            id="a gang's key, and a field of a later version",
        ),
    ],
)
def test_what_a_list_may_say(entry: dict[str, Any], expected: SlowJob | None) -> None:
    found = decode_annotation(msgspec.json.encode([entry]).decode(), NOW)
    assert found == (() if expected is None else (expected,))
    assert all(each.until <= NOW + MAX_REST for each in found)


def test_the_same_job_twice_counts_once_and_the_later_one() -> None:
    twice = f'[{WEB},{{"job":"shop/web-0","at":"2026-11-16T01:24:16Z","count":9}}]'
    assert decode_annotation(twice, NOW) == (SlowJob("shop/web-0", NOW, 1),)


# --- the loop ---------------------------------------------------------------------------------------------------------


def slow(fixture: SchedulerFixture, name: str, seconds: float) -> list[str]:
    """Decisions about this job take that long. Returns the jobs that are tried, as they are."""
    planner, tried = fixture.scheduler.planners["default-scheduler"], list[str]()
    decide = planner.decide

    def slowly(job: Job, *rest: Any, **named: Any) -> Decision:
        tried.append(job.key)
        assert fixture.scheduler.loop.activity.deciding == (job.key, fixture.clock.now())
        if name in job.key:
            fixture.clock.advance(seconds)
        return decide(job, *rest, **named)

    planner.decide = slowly  # type: ignore[method-assign]
    return tried


def test_time_in_which_the_process_did_not_run_is_not_held_against_a_job() -> None:
    """It was stopped, throttled or migrated: the clock went on, the thread's CPU time did not."""

    async def life() -> None:
        fixture = SchedulerFixture(settings=SchedulerOptions(loop=LoopOptions(spent=lambda: 0.0)))
        fixture.nodes(a_node("n", cpu=8))
        slow(fixture, "paused", SLOW_DECISION + 60.0)
        fixture.pods(*(a_pod(name) for name in ("paused", "p1", "p2")))
        await fixture.work()
        assert set(fixture.where()) == {"paused", "p1", "p2"}
        assert fixture.scheduler.loop.activity.slow_jobs.entries == ()

    run(life())


def test_a_job_whose_decision_took_too_long_is_tried_after_all_others() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=2))
        tried = slow(fixture, "monster", 5.0)
        fixture.pods(a_pod("monster", cpu=100, priority=1000), a_pod("small", cpu=1))
        await fixture.work()
        assert tried == ["default/monster", "default/small"]
        assert fixture.scheduler.loop.activity.deciding is None
        assert [each.job for each in fixture.scheduler.loop.activity.slow_jobs.entries] == ["default/monster"]
        for i in range(50):  # something happens all the time that would help it
            fixture.clock.advance(1.0)
            fixture.nodes(a_node(f"n{i}", cpu=200))
            await fixture.work()
        assert len(tried) == 2
        fixture.clock.advance(15.0)
        await fixture.work()
        assert tried[2:] == ["default/monster"]

    scheduler_test(life)


def test_a_burst_ends_with_a_decision_that_took_too_long() -> None:
    """Else thousands of them would be one step of the loop, and it would show no life."""

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=50))
        tried = slow(fixture, "p", 0.2)
        fixture.pods(*(a_pod(f"p{i}", cpu=1) for i in range(3)))
        fixture.scheduler.loop.run_burst()
        assert len(tried) == 1
        await fixture.work()
        assert len(tried) == 3

    scheduler_test(life)


def test_a_decision_that_fails_after_a_long_time_counts_as_well() -> None:
    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=50))
        fixture.pods(a_pod("bad", cpu=1))

        def failing(*_: Any, **__: Any) -> Decision:
            fixture.clock.advance(5.0)
            raise RuntimeError("a mistake")

        fixture.scheduler.planners["default-scheduler"].decide = failing  # type: ignore[method-assign]
        await fixture.work()
        assert fixture.scheduler.loop.activity.deciding is None
        fixture.clock.advance(50.0)
        assert await fixture.work() == 0
        fixture.clock.advance(10.0)
        assert await fixture.work() == 1

    scheduler_test(life)


def test_the_next_leader_tries_it_last_and_forgets_it_once_it_is_quick() -> None:
    noted = encode_annotation((SlowJob("default/monster", 999_990.0),), 1_000_000.0)

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n", cpu=200))
        tried = slow(fixture, "nothing", 0.0)
        fixture.pods(a_pod("monster", cpu=100, priority=1000))  # a standby knows it already
        memory = fixture.scheduler.loop.activity.slow_jobs
        fixture.scheduler.postpone(memory.inherit(noted, fixture.clock.now()))
        fixture.pods(a_pod("small", cpu=1))
        await fixture.work()
        assert tried == ["default/small"]
        assert fixture.queue.state("default/monster") is QueueState.BACKOFF
        fixture.clock.advance_to(1_000_050.0)
        await fixture.work()
        assert tried == ["default/small", "default/monster"]
        assert memory.entries == ()
        assert memory.annotation(None, fixture.clock.now()) == ""
        assert not fixture.queue.any_late

    scheduler_test(life)


def test_a_gang_is_known_by_its_own_key() -> None:
    members = [a_member(f"g-{i}", "g", 2) for i in range(2)]

    async def life(fixture: SchedulerFixture) -> None:
        fixture.nodes(a_node("n"))
        tried = slow(fixture, "/g", 5.0)
        fixture.pods(*members)
        await fixture.work()
        (entry,) = fixture.scheduler.loop.activity.slow_jobs.entries
        assert [entry.job] == tried
        assert entry.job.count("/") == 2

    scheduler_test(life)
