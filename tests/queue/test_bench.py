"""The benches of the queue do what they claim to measure."""

import pytest

from bench import fair_queues
from bench.queue import CASES


@pytest.mark.parametrize("name", CASES, ids="/".join)
def test_a_round_takes_some_time_and_can_be_repeated(name: tuple[str, str]) -> None:
    make = CASES[name][1]
    round_ = make(3, 40)
    assert min(round_(), round_()) > 0


@pytest.mark.parametrize("name", fair_queues.CASES, ids="/".join)
def test_queues_and_what_they_are_compared_with_can_be_repeated(name: tuple[str, str]) -> None:
    own, plain = fair_queues.CASES[name](200)
    assert min(own(), plain(), own(), plain()) > 0
