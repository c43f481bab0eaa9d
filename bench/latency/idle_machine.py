"""What the machine does alone, before a measurement: a wait in milliseconds means little where a sleep ends as late.

Host and neighbours of a virtual machine decide how late a timer runs and how fast Python is. Both are measured right
before the load, so that two runs can be compared.
"""

import threading
import time
from typing import NamedTuple

SLEEP = 0.005  # seconds
SLEEPS = 200
LOOP = 1_000_000


class IdleMachine(NamedTuple):
    """Milliseconds by which sleeps end late, and for a loop of a million additions."""

    late_p50: float
    late_p99: float
    loop: float

    def sentence(self) -> str:
        late = f"p50 {self.late_p50:.2f} ms, p99 {self.late_p99:.2f} ms"
        return f"before the load: a sleep of 5 ms ends late by {late}; a million additions take {self.loop:.0f} ms"


def look_at_machine(sleeps: int = SLEEPS, loop: int = LOOP) -> IdleMachine:
    late = sorted(_late() for _ in range(sleeps))
    began, total = time.perf_counter(), 0
    for number in range(loop):
        total += number
    return IdleMachine(late[sleeps // 2], late[sleeps * 99 // 100], 1000 * (time.perf_counter() - began))


def _late() -> float:
    began = time.perf_counter()
    threading.Event().wait(SLEEP)
    return 1000 * (time.perf_counter() - began - SLEEP)
