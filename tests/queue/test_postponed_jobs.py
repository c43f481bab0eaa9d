"""Jobs that took too long to decide: tried after all others, and not before their time."""

import pytest

from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.postponed_jobs import MAX_POSTPONE, PostponedJobs
from kubenexus.queue.queued_job import QueueState
from tests.queue.queue_fixture import NODE, QueueFixture, a_gang


def tried(fixture: QueueFixture) -> list[str]:
    """The jobs that may be tried now, in order; all of them placed. A room that only looks ready is asked once."""
    found = []
    while fixture.queue.has_ready and (attempt := fixture.queue.pop()) is not None:
        found.append(fixture.place(attempt).job.key.partition("/")[2])
    return found


def test_a_job_that_is_known_to_be_slow_is_tried_after_its_pause() -> None:
    fixture = QueueFixture()
    fixture.queue.postpone("default/slow", 160.0)
    fixture.add("slow", priority=1000)
    fixture.add("plain")
    assert tried(fixture) == ["plain"], "however urgent the other is"
    assert fixture.queue.state("default/slow") is QueueState.BACKOFF
    assert fixture.queue.next_due() == 160.0
    fixture.clock.advance_to(160.0)
    assert tried(fixture) == ["slow"]


def test_a_standby_knows_the_job_before_it_learns_that_it_is_slow() -> None:
    fixture = QueueFixture()
    slow = fixture.add("slow")
    fixture.queue.postpone(slow, 160.0)
    assert fixture.queue.pop() is None
    assert not fixture.queue.has_ready
    fixture.clock.advance_to(160.0)
    assert tried(fixture) == ["slow"]


def test_a_slow_job_is_not_tried_early_when_nothing_else_is_to_do() -> None:
    fixture = QueueFixture(BackoffPolicy(pop_from_backoff=True))
    fixture.queue.postpone(fixture.add("slow"), 160.0)
    assert tried(fixture) == []
    fixture.clock.advance_to(159.0)
    assert tried(fixture) == []
    fixture.clock.advance_to(161.0)
    assert tried(fixture) == ["slow"]


def test_when_its_pause_is_over_others_still_go_first_for_a_while() -> None:
    fixture = QueueFixture()
    fixture.queue.postpone(fixture.add("slow", priority=1000), 160.0)
    fixture.clock.advance_to(160.0)
    for name in ("a", "b"):
        fixture.add(name)
    assert [fixture.place().job.key, fixture.place().job.key] == ["default/a", "default/b"]
    fixture.clock.advance(1.0)
    assert tried(fixture) == ["slow"]


def test_a_stream_of_others_does_not_keep_it_waiting_for_ever() -> None:
    fixture = QueueFixture()
    fixture.queue.postpone(fixture.add("slow", priority=1000), 160.0)
    placed = []
    for i in range(int(MAX_POSTPONE) + 100):
        fixture.add(f"p{i}")
        placed.append(fixture.place().job.key)
        fixture.clock.advance(1.0)
    assert placed.count("default/slow") == 1


def test_those_like_it_wait_with_it_and_a_newcomer_does_not_have_them_tried() -> None:
    fixture = QueueFixture()
    keys = [fixture.add(f"twin{i}", "twin") for i in range(3)]
    fixture.queue.postpone(keys[1], 160.0)
    assert tried(fixture) == []
    fixture.add("twin3", "twin")
    assert tried(fixture) == []
    fixture.clock.advance_to(160.0)
    assert tried(fixture) == ["twin0", "twin1", "twin2", "twin3"]


@pytest.mark.parametrize("known", ["before it comes", "while it waits", "after it was refused"])
def test_those_like_it_in_other_namespaces_do_not_wait_with_it(known: str) -> None:
    """One tenant cannot postpone the pods of another by a slow pod that is equal to them."""
    fixture = QueueFixture()
    if known == "before it comes":
        fixture.queue.postpone("default/slow", 160.0)
    slow = fixture.add("slow", "twin")
    fixture.add("slow2", "twin")
    for i in range(3):
        fixture.add(f"other{i}", "twin", namespace="other")
    if known == "while it waits":
        fixture.queue.postpone(slow, 160.0)
    if known == "after it was refused":
        fixture.refuse("Room")
        fixture.queue.postpone(slow, 160.0)
        fixture.clock.advance(5.0)
        fixture.queue.on_event(NODE)
    assert tried(fixture) == ["other0", "other1", "other2"]
    assert fixture.queue.pending(QueueState.BACKOFF).jobs == 2
    fixture.add("other3", "twin", namespace="other")
    fixture.add("slow3", "twin")
    assert tried(fixture) == ["other3"], "newcomers, too"
    fixture.clock.advance_to(160.0)
    assert tried(fixture) == ["slow", "slow2", "slow3"]


def test_one_turn_for_all_that_are_late_together() -> None:
    """They are tried as one, not each by itself, after their pause."""
    fixture = QueueFixture()
    keys = [fixture.add(f"slow{i}", "twin") for i in range(20)]
    fixture.add("other", "twin", namespace="other")
    fixture.queue.postpone(keys[3], 160.0)
    assert tried(fixture) == ["other"]
    fixture.clock.advance_to(160.0)
    fixture.refuse("Room")
    assert fixture.queue.pop() is None
    assert fixture.queue.pending(QueueState.UNSCHEDULABLE).jobs == 20


@pytest.mark.parametrize("how", ["event", "activate", "flush", "update", "failed"])
def test_no_way_back_leads_past_the_pause(how: str) -> None:
    fixture = QueueFixture()
    slow = fixture.add("slow")
    attempt = fixture.pop()
    fixture.queue.postpone(slow, 1000.0)
    if how == "failed":
        fixture.queue.bind_failed(attempt)
    else:
        fixture.refuse("Room", attempt=attempt)
    match how:
        case "event":
            fixture.queue.on_event(NODE)
        case "activate":
            fixture.queue.activate(slow)
        case "flush":
            fixture.clock.advance(400.0)
        case "update":
            fixture.queue.add(attempt.job)
            fixture.queue.on_event(NODE)
    assert tried(fixture) == []
    fixture.clock.advance_to(1000.0)
    fixture.queue.on_event(NODE)
    assert tried(fixture) == ["slow"]


def test_a_job_that_was_decided_in_time_is_one_like_all_others_again() -> None:
    fixture = QueueFixture()
    slow = fixture.add("slow", priority=1)
    fixture.queue.postpone(slow, 160.0)
    fixture.clock.advance_to(160.0)
    attempt = fixture.pop()
    fixture.queue.in_time(slow)
    fixture.refuse("Room", attempt=attempt)
    fixture.add("plain")
    fixture.clock.advance(5.0)
    fixture.queue.on_event(NODE)
    assert tried(fixture) == ["slow", "plain"]


def test_a_gang_waits_as_a_whole() -> None:
    fixture = QueueFixture()
    fixture.queue.postpone("default/gang", 160.0)
    fixture.queue.add(a_gang("gang", 3))
    fixture.add("plain")
    assert tried(fixture) == ["plain"]
    assert fixture.queue.pending(QueueState.BACKOFF) == (1, 3)
    fixture.clock.advance_to(160.0)
    assert tried(fixture) == ["gang"]


def test_what_is_long_over_is_forgotten() -> None:
    postponed = PostponedJobs()
    for i in range(10_000):
        postponed.add(f"default/p{i}", now := float(i), now)
    assert len(postponed) <= MAX_POSTPONE + 1
