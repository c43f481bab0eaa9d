"""Lines over time as SVG, one panel under the other. No library: a picture in docs/ is a few paths and words."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, TOP, GAP = 760, 130, 64, 40, 44
COLOURS = ("#1f6feb", "#d29922", "#cf222e")
STYLE = "text{font:12px sans-serif;fill:#57606a}.t{font-weight:bold;fill:#24292f}path{fill:none;stroke-width:1.5}"


class Line(NamedTuple):
    name: str
    values: list[float]


class Panel(NamedTuple):
    """Its scale begins at zero: what looks flat is flat."""

    title: str
    lines: list[Line]

    @property
    def top(self) -> float:
        return nice(max((value for line in self.lines for value in line.values if math.isfinite(value)), default=1.0))


def drawn(title: str, at: Sequence[float], panels: Sequence[Panel], marks: Sequence[float] = ()) -> str:
    """`at` are the moments of all values, in seconds; `marks` moments to be told apart."""
    span = max([*at, 1.0])
    height = TOP + len(panels) * (HEIGHT + GAP)
    parts = [f'<text class="t" x="{LEFT}" y="20">{escape(title)}</text>']
    for number, panel in enumerate(panels):
        parts += _panel(panel, at, span, TOP + number * (HEIGHT + GAP), marks)
    size = f'viewBox="0 0 {LEFT + WIDTH + 20} {height}" width="{LEFT + WIDTH + 20}" height="{height}"'
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{ground}{"".join(parts)}</svg>\n'


def nice(value: float) -> float:
    """The next round number: 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _panel(panel: Panel, at: Sequence[float], span: float, top: int, marks: Sequence[float]) -> list[str]:
    bottom, parts = top + HEIGHT, [f'<text class="t" x="{LEFT}" y="{top - 6}">{escape(panel.title)}</text>']
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * HEIGHT
        parts.append(f'<path stroke="#d0d7de" d="M{LEFT} {y:.0f}H{LEFT + WIDTH}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{share * panel.top:g}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + share * WIDTH
        parts.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{share * span:.0f} s</text>')
    dashed = 'stroke="#8c959f" stroke-dasharray="4 3"'
    parts += [f'<path {dashed} d="M{_x(mark, span):.1f} {top}V{bottom}"/>' for mark in marks]
    for number, line in enumerate(panel.lines):
        parts += _line(line, at, span, (top, panel.top), number)
    return parts


def _line(line: Line, at: Sequence[float], span: float, scale: tuple[int, float], number: int) -> list[str]:
    (top, most), colour = scale, COLOURS[number % len(COLOURS)]
    points = [
        f"{_x(when, span):.1f} {top + HEIGHT * (1 - min(value, most) / most):.1f}"
        for when, value in zip(at, line.values, strict=True)
    ]
    name = f'<text x="{LEFT + 200 + 150 * number}" y="{top - 6}" style="fill:{colour}">{escape(line.name)}</text>'
    return [f'<path stroke="{colour}" d="M{"L".join(points)}"/>', name]


def _x(when: float, span: float) -> float:
    return LEFT + WIDTH * when / span
