"""`python -m kubenexus.sim.demo.picture docs/pictures/demo.svg`: runs the demo and draws its last screen as SVG.

The picture consists of the same lines that a terminal shows, so it cannot differ from the view.
"""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from kubenexus.base.clock import WallClock
from kubenexus.sim.demo.demo_run import DemoOptions, DemoRun
from kubenexus.sim.demo.styled_text import STYLES, Line
from kubenexus.sim.demo.view import Caption, draw

WIDTH, HEIGHT = 104, 32  # characters
ACROSS, DOWN, MARGIN = 8.4, 19, 18  # of a character; around the screen
BLOCKS = {"█": 1.0, "░": 0.18}  # as rectangles, since fonts leave gaps between them


class FrameRecorder:
    """Replaces the screen and keeps the last caption."""

    def __init__(self) -> None:
        self.last = Caption((), "", 0, 0, "")

    def say(self, line: str) -> None:
        """Ignored: the captions contain the same lines."""

    def caption(self, caption: Caption) -> None:
        self.last = caption


async def last_screen(plan: DemoOptions) -> list[Line]:
    """Runs the demo and returns what a terminal shows at its end. Raises DemoFailed."""
    clock, camera = WallClock(), FrameRecorder()
    show = DemoRun(plan, lambda _: None, clock, screen=camera)
    await show.play()
    return draw(show.state, camera.last, clock.now(), WIDTH, HEIGHT, letters=False)


def svg(lines: Sequence[Line]) -> str:
    """Returns the picture. Equal lines give equal texts."""
    width, height = round(WIDTH * ACROSS + 2 * MARGIN), len(lines) * DOWN + 2 * MARGIN
    font = 'font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="14"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {font}>'
    back = f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    rows = [shape for number, line in enumerate(lines) for shape in _row(line, MARGIN + number * DOWN)]
    return "\n".join([head, back, *rows, "</svg>"]) + "\n"


def _row(line: Line, top: int) -> list[str]:
    shapes, column = [], 0
    for span in line:
        for block, run in itertools.groupby(span.text, lambda letter: letter if letter in BLOCKS else ""):
            text = "".join(run)
            left, fill = round(MARGIN + column * ACROSS, 1), STYLES[span.style][1]
            if block:
                size = f'width="{round(len(text) * ACROSS, 1)}" height="{DOWN - 6}"'
                shapes.append(f'<rect x="{left}" y="{top + 3}" {size} fill="{fill}" opacity="{BLOCKS[block]}"/>')
            elif text.strip():
                length = f'textLength="{round(len(text) * ACROSS, 1)}" xml:space="preserve"'
                shapes.append(f'<text x="{left}" y="{top + 14}" fill="{fill}" {length}>{escape(text)}</text>')
            column += len(text)
    return shapes


def main(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg(asyncio.run(last_screen(DemoOptions(port=8901)))), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
