"""Jobs that are refused again and again do not take the turns of others: newcomers, and those refused less often."""

import itertools

import pytest

from kubenexus.framework.aging import Aging
from kubenexus.queue.entry import Turn
from kubenexus.queue.policy import Policy
from tests.queue.easy import LEFT, NODE, Easy

KINDS = 2_000
DECISION = 0.01  # seconds, a hundred a second: twenty times less than it takes to try all kinds once a second

AGING = pytest.mark.parametrize("aging", [None, Aging()], ids=["kube-scheduler's order", "waiting makes urgent"])


class Siege:
    """So many kinds that are always refused, woken once a second. `tried` is when each job had its turns."""

    def __init__(self, aging: Aging | None, kinds: int = KINDS) -> None:
        self.easy = Easy(Policy())
        self.easy.rules.aging = aging
        self.tried: dict[str, list[float]] = {}
        self.hopeless = [self.easy.add(f"never-{i}") for i in range(kinds)]
        while self.easy.room.ready:
            self.decide(self.easy.pop())

    def decide(self, turn: Turn) -> None:
        self.easy.clock.advance(DECISION)
        self.tried.setdefault(turn.job.key, []).append(self.easy.clock.now())
        if turn.job.key.startswith("default/fits"):
            self.easy.place(turn)
        else:
            self.easy.refuse("Ports", turn=turn)

    def last(self, seconds: int) -> None:
        for _ in range(seconds):
            self.easy.room.on_event(LEFT)
            end = self.easy.clock.now() + 1.0
            while self.easy.clock.now() < end:
                self.easy.room.tick()
                turn = self.easy.room.pop()
                if turn is None:
                    self.easy.clock.advance(DECISION)
                else:
                    self.decide(turn)


@AGING
def test_newcomers_have_their_turn_within_a_second_whatever_was_refused_before(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(100)
    for i in range(10):
        made = siege.easy.clock.now()
        key = siege.easy.add(f"fits-{i}")
        siege.last(5)
        assert key in siege.tried
        assert siege.tried[key][0] - made <= 4 * DECISION


@AGING
def test_one_that_was_refused_once_is_tried_again_among_thousands_that_are_older(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(30)
    key = siege.easy.add("once")
    siege.last(100)
    times = siege.tried[key]
    assert len(times) > 1
    assert times[1] - times[0] <= 3 * KINDS * DECISION


@AGING
def test_each_of_those_that_are_refused_is_tried_in_bounded_time(aging: Aging | None) -> None:
    siege = Siege(aging)
    siege.last(130)
    for key in siege.hopeless:
        times = [*siege.tried[key], siege.easy.clock.now()]
        assert max(b - a for a, b in itertools.pairwise(times)) <= 3 * KINDS * DECISION


def test_old_ones_are_tried_although_newcomers_never_end() -> None:
    siege = Siege(None, kinds=20)
    siege.easy.clock.advance(60.0)
    siege.easy.room.on_event(LEFT)
    before = {key: len(times) for key, times in siege.tried.items()}
    for i in range(3 * 20):
        siege.easy.add(f"fits-{i}")
        siege.decide(siege.easy.pop())
    assert all(len(siege.tried[key]) > before[key] for key in siege.hopeless)


def test_a_newcomer_with_less_priority_does_not_take_a_turn_of_one_that_was_refused() -> None:
    easy = Easy()
    for name in ("a", "b", "c"):
        easy.add(name, priority=5)
        easy.refuse("Room")
    easy.add("low", priority=4)
    easy.clock.advance(60.0)
    easy.room.on_event(NODE)
    assert [easy.refuse("Room").job.key for _ in range(4)] == [f"default/{name}" for name in ("a", "b", "c", "low")]


def test_a_newcomer_goes_after_one_retry_in_vain_and_before_the_next() -> None:
    easy = Easy()
    for name in ("a", "b", "c"):
        easy.add(name)
        easy.refuse("Room")
    for name in ("new", "newer"):
        easy.add(name)
    easy.clock.advance(60.0)
    easy.room.on_event(NODE)
    tried = [easy.refuse("Room").job.key.partition("/")[2] for _ in range(5)]
    assert tried == ["a", "new", "b", "newer", "c"]


def test_while_retries_succeed_the_order_is_the_only_rule() -> None:
    easy = Easy()
    for name in ("a", "b", "c"):
        easy.add(name)
        easy.refuse("Room")
    easy.add("new")
    easy.clock.advance(60.0)
    easy.room.on_event(NODE)
    assert easy.popped() == ["a", "b", "c", "new"]
