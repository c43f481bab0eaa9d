"""Time that never goes backwards, and time that moves only when told."""

import itertools
import time
from types import SimpleNamespace

import pytest

from kubenexus.base.clock import SINCE_BOOT, Clock, VirtualClock, WallClock, counter


class Machine:
    """A machine whose clocks are set by the test: the one on the wall, and the one that counts from boot."""

    def __init__(self, wall: float = 1_000.0) -> None:
        self.boot, self.wall = 7.0, wall
        self.clock = WallClock(lambda: self.boot, lambda: self.wall)

    def passes(self, seconds: float) -> None:
        self.boot += seconds
        self.wall += seconds

    def followed(self, seconds: int) -> list[float]:
        """What the clock says each second, while it follows the machine's."""
        said = []
        for _ in range(seconds):
            self.clock.follow()
            self.passes(1.0)
            said.append(self.clock.now())
        return said


def test_the_wall_clock_tells_the_time() -> None:
    machine = Machine()
    clock: Clock = machine.clock
    machine.boot = 9.5
    assert clock.now() == 1_002.5


def test_the_wall_clock_does_not_follow_when_somebody_sets_the_machine_back() -> None:
    machine = Machine()
    before = machine.clock.now()
    machine.wall = 0.0
    assert machine.clock.now() >= before


def test_the_time_that_a_machine_was_suspended_counts() -> None:
    """CLOCK_MONOTONIC stands still meanwhile, CLOCK_BOOTTIME does not."""
    read = {7: 100.0}
    clocks = SimpleNamespace(CLOCK_BOOTTIME=7, clock_gettime=read.__getitem__, monotonic=lambda: 50.0)
    clock = WallClock(counter(clocks), lambda: 1_000.0)
    read[7] += 3_600.0
    assert clock.now() == 4_600.0


def test_a_system_without_that_clock_has_the_next_best() -> None:
    assert counter(SimpleNamespace(monotonic=lambda: 8.0))() == 8.0


def test_the_clock_of_a_process_is_that_one_where_there_is_one() -> None:
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert time.clock_gettime(time.CLOCK_BOOTTIME) <= SINCE_BOOT() <= time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize(
    ("error", "seconds", "fastest", "slowest"),
    [
        pytest.param(3_600.0, 3_600, 2.0, 1.0, id="an hour behind is worked off in an hour of double speed"),
        pytest.param(-3_600.0, 7_200, 1.0, 0.5, id="an hour ahead is worked off in two hours of half the speed"),
        pytest.param(2.5, 3, 2.0, 1.0, id="what is left of a second is worked off to the end and no further"),
        pytest.param(0.9, 0, 1.0, 1.0, id="less than a second is left alone"),
    ],
)
def test_a_clock_that_was_wrong_at_the_start_comes_right_without_a_jump(
    error: float, seconds: int, fastest: float, slowest: float
) -> None:
    machine = Machine()
    machine.wall += error
    said = [machine.clock.now(), *machine.followed(seconds + 10)]
    steps = [later - earlier for earlier, later in itertools.pairwise(said)]
    assert [max(steps), min(steps)] == pytest.approx([fastest, slowest])
    left = machine.wall - said[-1]
    assert left == pytest.approx(error if seconds == 0 else 0.0, abs=1.0)
    assert steps[-1] == pytest.approx(1.0), "and from there on a second is a second"


def test_a_clock_that_is_not_asked_to_follow_for_a_while_does_not_overshoot() -> None:
    machine = Machine()
    machine.wall += 10.0
    machine.clock.follow()
    machine.passes(500.0)
    assert machine.clock.now() == machine.wall


def test_virtual_time_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(5.0)
    assert clock.now() == clock.now() == 5.0
    assert clock.advance(2.5) == 7.5
    assert clock.advance_to(10.0) == clock.now() == 10.0


def test_virtual_time_never_goes_backwards() -> None:
    clock = VirtualClock(5.0)
    assert clock.advance_to(1.0) == 5.0
    assert clock.advance(-1.0) == 5.0
