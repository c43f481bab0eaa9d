"""How often a busy process may copy itself to answer questions."""

import pytest

from kubenexus.app.http.api.copy_pacing import CopyPacing
from kubenexus.base.clock import VirtualClock


@pytest.mark.parametrize(
    ("fork", "faults", "pause"),
    [
        pytest.param(0.003, 0, 0.25, id="a loop that writes nothing may be copied four times a second"),
        pytest.param(0.003, 10_000, 1.575, id="25 seconds of loop for each second that copies cost"),
        pytest.param(0.003, 90_000, 3.0, id="no longer than three seconds"),
    ],
)
def test_the_next_copy_is_as_late_as_the_last_one_was_dear(fork: float, faults: int, pause: float) -> None:
    clock, written = VirtualClock(100.0), [500]
    pacing = CopyPacing(clock, lambda: written[0])
    assert pacing.pause() == 0.0
    pacing.began(fork)
    written[0] += faults
    assert pacing.pause() == pytest.approx(pause)
    clock.advance(pause)
    assert pacing.pause() == pytest.approx(0.0)
