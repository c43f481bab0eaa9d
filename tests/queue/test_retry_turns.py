"""Jobs that are refused again and again do not take the turns of others: newcomers, and those refused less often."""

import itertools

import pytest

from kubenexus.framework.aging import Aging
from kubenexus.queue.backoff_policy import BackoffPolicy
from kubenexus.queue.queued_job import SchedulingAttempt
from tests.queue.queue_fixture import LEFT, NODE, QueueFixture

KINDS = 2_000
DECISION = 0.01  # seconds, a hundred a second: twenty times less than it takes to try all kinds once a second

AGING = pytest.mark.parametrize("aging", [None, Aging()], ids=["kube-scheduler's order", "waiting makes urgent"])


class Siege:
    """So many kinds that are always refused, woken once a second. `tried` is when each job had its turns."""

    def __init__(self, aging: Aging | None, kinds: int = KINDS) -> None:
        self.fixture = QueueFixture(BackoffPolicy())
        self.fixture.profile.aging = aging
        self.tried: dict[str, list[float]] = {}
        self.hopeless = [self.fixture.add(f"never-{i}") for i in range(kinds)]
        while self.fixture.queue.has_ready:
            self.decide(self.fixture.pop())

    def decide(self, attempt: SchedulingAttempt) -> None:
        self.fixture.clock.advance(DECISION)
        self.tried.setdefault(attempt.job.key, []).append(self.fixture.clock.now())
        if attempt.job.key.startswith("default/fits"):
            self.fixture.place(attempt)
        else:
            self.fixture.refuse("Ports", attempt=attempt)

    def last(self, seconds: int) -> None:
        for _ in range(seconds):
            self.fixture.queue.on_event(LEFT)
            end = self.fixture.clock.now() + 1.0
            while self.fixture.clock.now() < end:
                self.fixture.queue.tick()
                attempt = self.fixture.queue.pop()
                if attempt is None:
                    self.fixture.clock.advance(DECISION)
                else:
                    self.decide(attempt)


@AGING
def test_newcomers_have_their_turn_within_a_second_whatever_was_refused_before(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(100)
    for i in range(10):
        made = siege.fixture.clock.now()
        key = siege.fixture.add(f"fits-{i}")
        siege.last(5)
        assert key in siege.tried
        assert siege.tried[key][0] - made <= 4 * DECISION


@AGING
def test_one_that_was_refused_once_is_tried_again_among_thousands_that_are_older(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(30)
    key = siege.fixture.add("once")
    siege.last(100)
    times = siege.tried[key]
    assert len(times) > 1
    assert times[1] - times[0] <= 3 * KINDS * DECISION


@AGING
def test_each_of_those_that_are_refused_is_tried_in_bounded_time(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(130)
    for key in siege.hopeless:
        times = [*siege.tried[key], siege.fixture.clock.now()]
        assert max(b - a for a, b in itertools.pairwise(times)) <= 3 * KINDS * DECISION


def test_old_ones_are_tried_although_newcomers_never_end() -> None:
    siege = Siege(None, kinds=20)
    siege.fixture.clock.advance(60.0)
    siege.fixture.queue.on_event(LEFT)
    before = {key: len(times) for key, times in siege.tried.items()}
    for i in range(3 * 20):
        siege.fixture.add(f"fits-{i}")
        siege.decide(siege.fixture.pop())
    assert all(len(siege.tried[key]) > before[key] for key in siege.hopeless)


def test_a_newcomer_with_less_priority_does_not_take_a_turn_of_one_that_was_refused() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name, priority=5)
        fixture.refuse("Room")
    fixture.add("low", priority=4)
    fixture.clock.advance(60.0)
    fixture.queue.on_event(NODE)
    assert [fixture.refuse("Room").job.key for _ in range(4)] == [f"default/{name}" for name in ("a", "b", "c", "low")]


def test_a_newcomer_goes_after_one_retry_in_vain_and_before_the_next() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name)
        fixture.refuse("Room")
    for name in ("new", "newer"):
        fixture.add(name)
    fixture.clock.advance(60.0)
    fixture.queue.on_event(NODE)
    tried = [fixture.refuse("Room").job.key.partition("/")[2] for _ in range(5)]
    assert tried == ["a", "new", "b", "newer", "c"]


def test_while_retries_succeed_the_order_is_the_only_rule() -> None:
    fixture = QueueFixture()
    for name in ("a", "b", "c"):
        fixture.add(name)
        fixture.refuse("Room")
    fixture.add("new")
    fixture.clock.advance(60.0)
    fixture.queue.on_event(NODE)
    assert fixture.popped() == ["a", "b", "c", "new"]
