"""Time that never goes backwards, and time that moves only when told."""

import time

import pytest

from kubenexus.base.clock import Clock, VirtualClock, WallClock


def test_the_wall_clock_tells_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    clock: Clock = WallClock()
    monkeypatch.setattr(time, "monotonic", lambda: 9.5)
    assert clock.now() == 1_002.5


def test_the_wall_clock_does_not_follow_when_somebody_sets_the_machine_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = WallClock()
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert clock.now() >= before


def test_virtual_time_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(5.0)
    assert clock.now() == clock.now() == 5.0
    assert clock.advance(2.5) == 7.5
    assert clock.advance_to(10.0) == clock.now() == 10.0


def test_virtual_time_never_goes_backwards() -> None:
    clock = VirtualClock(5.0)
    assert clock.advance_to(1.0) == 5.0
    assert clock.advance(-1.0) == 5.0
