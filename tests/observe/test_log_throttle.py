"""One line a minute for each key, and a bounded memory of them."""

from kubenexus.base.clock import VirtualClock
from kubenexus.observe.log_throttle import PERIOD, REMEMBERED, LogThrottle


def test_what_was_left_out_is_counted_for_each_key() -> None:
    clock = VirtualClock(0.0)
    throttle = LogThrottle(clock)
    assert [throttle.left_out(key) for key in ("a", "a", "b", "a")] == [0, None, 0, None]
    clock.advance(PERIOD)
    assert [throttle.left_out(key) for key in ("a", "b", "a")] == [2, 0, None]


def test_the_oldest_are_forgotten() -> None:
    throttle = LogThrottle(VirtualClock(0.0))
    for i in range(3 * REMEMBERED):
        assert throttle.left_out(str(i)) == 0
    assert len(throttle._lines) == REMEMBERED
    assert throttle.left_out(str(3 * REMEMBERED - 1)) is None
