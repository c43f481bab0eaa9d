"""The benches of the queue do what they claim to measure."""

import pytest

from bench.queue import CASES


@pytest.mark.parametrize("name", CASES, ids="/".join)
def test_a_round_takes_some_time_and_can_be_repeated(name: tuple[str, str]) -> None:
    make = CASES[name][1]
    round_ = make(3, 40)
    assert min(round_(), round_()) > 0
