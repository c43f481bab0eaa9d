"""Jobs that took too long to decide: tried after all others, and not before their time."""

import pytest

from kubenexus.queue.entry import Place
from kubenexus.queue.late import PATIENCE, LateJobs
from kubenexus.queue.policy import Policy
from tests.queue.easy import NODE, Easy, a_gang


def tried(easy: Easy) -> list[str]:
    """The jobs that may be tried now, in order; all of them placed. A room that only looks ready is asked once."""
    found = []
    while easy.room.ready and (turn := easy.room.pop()) is not None:
        found.append(easy.place(turn).job.key.partition("/")[2])
    return found


def test_a_job_that_is_known_to_be_slow_is_tried_after_its_pause() -> None:
    easy = Easy()
    easy.room.postpone("default/slow", 160.0)
    easy.add("slow", priority=1000)
    easy.add("plain")
    assert tried(easy) == ["plain"], "however urgent the other is"
    assert easy.room.place("default/slow") is Place.BACKOFF
    assert easy.room.next_time() == 160.0
    easy.clock.advance_to(160.0)
    assert tried(easy) == ["slow"]


def test_a_standby_knows_the_job_before_it_learns_that_it_is_slow() -> None:
    easy = Easy()
    slow = easy.add("slow")
    easy.room.postpone(slow, 160.0)
    assert easy.room.pop() is None
    assert not easy.room.ready
    easy.clock.advance_to(160.0)
    assert tried(easy) == ["slow"]


def test_a_slow_job_is_not_tried_early_when_nothing_else_is_to_do() -> None:
    easy = Easy(Policy(eager=True))
    easy.room.postpone(easy.add("slow"), 160.0)
    assert tried(easy) == []
    easy.clock.advance_to(159.0)
    assert tried(easy) == []
    easy.clock.advance_to(161.0)
    assert tried(easy) == ["slow"]


def test_when_its_pause_is_over_others_still_go_first_for_a_while() -> None:
    easy = Easy()
    easy.room.postpone(easy.add("slow", priority=1000), 160.0)
    easy.clock.advance_to(160.0)
    for name in ("a", "b"):
        easy.add(name)
    assert [easy.place().job.key, easy.place().job.key] == ["default/a", "default/b"]
    easy.clock.advance(1.0)
    assert tried(easy) == ["slow"]


def test_a_stream_of_others_does_not_keep_it_waiting_for_ever() -> None:
    easy = Easy()
    easy.room.postpone(easy.add("slow", priority=1000), 160.0)
    placed = []
    for i in range(int(PATIENCE) + 100):
        easy.add(f"p{i}")
        placed.append(easy.place().job.key)
        easy.clock.advance(1.0)
    assert placed.count("default/slow") == 1


def test_those_like_it_wait_with_it_and_a_newcomer_does_not_have_them_tried() -> None:
    easy = Easy()
    keys = [easy.add(f"twin{i}", "twin") for i in range(3)]
    easy.room.postpone(keys[1], 160.0)
    assert tried(easy) == []
    easy.add("twin3", "twin")
    assert tried(easy) == []
    easy.clock.advance_to(160.0)
    assert tried(easy) == ["twin0", "twin1", "twin2", "twin3"]


@pytest.mark.parametrize("known", ["before it comes", "while it waits", "after it was refused"])
def test_those_like_it_in_other_namespaces_do_not_wait_with_it(known: str) -> None:
    """One tenant cannot postpone the pods of another by a slow pod that is equal to them."""
    easy = Easy()
    if known == "before it comes":
        easy.room.postpone("default/slow", 160.0)
    slow = easy.add("slow", "twin")
    easy.add("slow2", "twin")
    for i in range(3):
        easy.add(f"other{i}", "twin", namespace="other")
    if known == "while it waits":
        easy.room.postpone(slow, 160.0)
    if known == "after it was refused":
        easy.refuse("Room")
        easy.room.postpone(slow, 160.0)
        easy.clock.advance(5.0)
        easy.room.on_event(NODE)
    assert tried(easy) == ["other0", "other1", "other2"]
    assert easy.room.waiting(Place.BACKOFF).jobs == 2
    easy.add("other3", "twin", namespace="other")
    easy.add("slow3", "twin")
    assert tried(easy) == ["other3"], "newcomers, too"
    easy.clock.advance_to(160.0)
    assert tried(easy) == ["slow", "slow2", "slow3"]


def test_one_turn_for_all_that_are_late_together() -> None:
    """They are tried as one, not each by itself, after their pause."""
    easy = Easy()
    keys = [easy.add(f"slow{i}", "twin") for i in range(20)]
    easy.add("other", "twin", namespace="other")
    easy.room.postpone(keys[3], 160.0)
    assert tried(easy) == ["other"]
    easy.clock.advance_to(160.0)
    easy.refuse("Room")
    assert easy.room.pop() is None
    assert easy.room.waiting(Place.UNSCHEDULABLE).jobs == 20


@pytest.mark.parametrize("how", ["event", "activate", "flush", "update", "failed"])
def test_no_way_back_leads_past_the_pause(how: str) -> None:
    easy = Easy()
    slow = easy.add("slow")
    turn = easy.pop()
    easy.room.postpone(slow, 1000.0)
    if how == "failed":
        easy.room.failed(turn)
    else:
        easy.refuse("Room", turn=turn)
    match how:
        case "event":
            easy.room.on_event(NODE)
        case "activate":
            easy.room.activate(slow)
        case "flush":
            easy.clock.advance(400.0)
        case "update":
            easy.room.add(turn.job)
            easy.room.on_event(NODE)
    assert tried(easy) == []
    easy.clock.advance_to(1000.0)
    easy.room.on_event(NODE)
    assert tried(easy) == ["slow"]


def test_a_job_that_was_decided_in_time_is_one_like_all_others_again() -> None:
    easy = Easy()
    slow = easy.add("slow", priority=1)
    easy.room.postpone(slow, 160.0)
    easy.clock.advance_to(160.0)
    turn = easy.pop()
    easy.room.in_time(slow)
    easy.refuse("Room", turn=turn)
    easy.add("plain")
    easy.clock.advance(5.0)
    easy.room.on_event(NODE)
    assert tried(easy) == ["slow", "plain"]


def test_a_gang_waits_as_a_whole() -> None:
    easy = Easy()
    easy.room.postpone("default/gang", 160.0)
    easy.room.add(a_gang("gang", 3))
    easy.add("plain")
    assert tried(easy) == ["plain"]
    assert easy.room.waiting(Place.BACKOFF) == (1, 3)
    easy.clock.advance_to(160.0)
    assert tried(easy) == ["gang"]


def test_what_is_long_over_is_forgotten() -> None:
    late = LateJobs()
    for i in range(10_000):
        late.add(f"default/p{i}", now := float(i), now)
    assert len(late) <= PATIENCE + 1
