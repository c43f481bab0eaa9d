"""The output of the demo: a redrawn screen on a terminal, plain lines elsewhere."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol, TextIO

from kubenexus.base.clock import Clock
from kubenexus.sim.demo.cluster_state import ClusterState
from kubenexus.sim.demo.styled_text import coloured, plain
from kubenexus.sim.demo.view import LOW, NARROW, Caption, draw

FRAME = 0.1  # seconds
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the alternate screen without a cursor; and back
HOME, REST_OF_LINE, REST = "\x1b[H", "\x1b[K", "\x1b[J"


class DemoOutput(Protocol):
    """Shows the progress of the demo."""

    def say(self, line: str) -> None:
        """Prints a line that stays."""

    def caption(self, caption: Caption) -> None:
        """Shows the progress."""


class PlainOutput:
    """Plain lines."""

    def __init__(self, out: Callable[[str], None]) -> None:
        self._out = out

    def say(self, line: str) -> None:
        self._out(line)

    def caption(self, caption: Caption) -> None:
        """Prints nothing: each step is printed when it is complete."""


class Screen:
    """A terminal. Lines are kept and printed when the screen is left, below the last picture."""

    def __init__(self, out: TextIO, state: ClusterState, clock: Clock, colour: bool) -> None:
        self._out, self._state, self._clock, self._colour = out, state, clock, colour
        self._said: list[str] = []
        self._caption = Caption((), "", 0, 0, "")

    def say(self, line: str) -> None:
        self._said.append(line)

    def caption(self, caption: Caption) -> None:
        self._caption = caption

    def frame(self) -> str:
        """Returns the whole screen for now."""
        width, height = shutil.get_terminal_size()
        lines = draw(self._state, self._caption, self._clock.now(), width, height - 1, letters=not self._colour)
        style = coloured if self._colour else plain
        return HOME + "".join(f"{style(line)}{REST_OF_LINE}\n" for line in lines) + REST

    async def run(self) -> None:
        while True:
            self._write(self.frame())
            await asyncio.sleep(FRAME)

    def enter(self) -> None:
        self._write(ENTER)

    def leave(self) -> None:
        self._write(LEAVE + "".join(f"{line}\n" for line in self._said))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def can_draw(out: TextIO, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the output is a terminal that is large enough."""
    if not out.isatty() or env.get("TERM", "dumb") == "dumb":
        return False
    width, height = shutil.get_terminal_size()
    return width >= NARROW and height >= LOW


@contextlib.asynccontextmanager
async def shown(
    state: ClusterState, clock: Clock, out: Callable[[str], None], *, draws: bool
) -> AsyncIterator[DemoOutput]:
    """Yields the output within the `with`. The terminal is restored afterwards, also after an error."""
    if not draws:
        yield PlainOutput(out)
        return
    screen = Screen(sys.stdout, state, clock, colour="NO_COLOR" not in os.environ)
    screen.enter()
    task = asyncio.create_task(screen.run())
    try:
        yield screen
    finally:
        task.cancel()
        screen.leave()
