"""Where the story is shown: a screen that is redrawn, or plain lines where there is no terminal to draw on."""

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
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the other screen, without a cursor; and back
HOME, REST_OF_LINE, REST = "\x1b[H", "\x1b[K", "\x1b[J"


class DemoOutput(Protocol):
    """Whoever tells the story."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def caption(self, caption: Caption) -> None:
        """How far the story is."""


class PlainOutput:
    """Plain lines."""

    def __init__(self, out: Callable[[str], None]) -> None:
        self._out = out

    def say(self, line: str) -> None:
        self._out(line)

    def caption(self, caption: Caption) -> None:
        """Nothing: the acts are told when they have come true."""


class Screen:
    """A terminal. What was said is kept, and printed when the screen is left, below the last picture."""

    def __init__(self, out: TextIO, scene: ClusterState, clock: Clock, colour: bool) -> None:
        self._out, self._scene, self._clock, self._colour = out, scene, clock, colour
        self._said: list[str] = []
        self._caption = Caption((), "", 0, 0, "")

    def say(self, line: str) -> None:
        self._said.append(line)

    def caption(self, caption: Caption) -> None:
        self._caption = caption

    def frame(self) -> str:
        """The whole screen as it is to be now."""
        width, height = shutil.get_terminal_size()
        lines = draw(self._scene, self._caption, self._clock.now(), width, height - 1, letters=not self._colour)
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
    """Whether there is a terminal, and a large enough one."""
    if not out.isatty() or env.get("TERM", "dumb") == "dumb":
        return False
    width, height = shutil.get_terminal_size()
    return width >= NARROW and height >= LOW


@contextlib.asynccontextmanager
async def shown(
    scene: ClusterState, clock: Clock, out: Callable[[str], None], *, draws: bool
) -> AsyncIterator[DemoOutput]:
    """The screen within the `with`; the terminal is as it was afterwards, whatever happens."""
    if not draws:
        yield PlainOutput(out)
        return
    screen = Screen(sys.stdout, scene, clock, colour="NO_COLOR" not in os.environ)
    screen.enter()
    task = asyncio.create_task(screen.run())
    try:
        yield screen
    finally:
        task.cancel()
        screen.leave()
