"""How a replay reports its progress."""

from collections.abc import Callable

Progress = Callable[[int], None]  # called with the number of jobs that are done since the last call
STEP = 100  # jobs between two calls
