"""ChartLine charts as SVG, for a page without scripts."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 28, 34
_TICKS = 4
COLOURS = ("#0b6bcb", "#c2410c")
DASHES = ("", "6 4")  # lines differ without colours, too


class ChartLine(NamedTuple):
    """A named line: its points from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(title: str, lines: Sequence[ChartLine], x_unit: str, y_unit: str) -> str:
    """Returns the chart of some lines over one axis."""
    xs = [x for line in lines for x, _ in line.points] or [0.0]
    ys = [y for line in lines for _, y in line.points] or [0.0]
    x_end, y_end = max(xs) or 1.0, _rounded_up(max(ys))
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f'<text x="{_LEFT}" y="16" class="title">{escape(title)}</text>',
        *_axes(x_end, y_end, x_unit, y_unit),
    ]
    for i, line in enumerate(lines):
        path = " ".join(f"{_x(x, x_end):.1f},{_y(y, y_end):.1f}" for x, y in line.points)
        style = f'stroke="{COLOURS[i % 2]}" stroke-dasharray="{DASHES[i % 2]}"'
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="2" {style}/>')
    return "\n".join([*parts, "</svg>"])


def legend(names: Sequence[str]) -> str:
    """Returns the names of the lines with their strokes."""
    shown = [
        f'<svg viewBox="0 0 30 10" width="30" height="10"><line x1="0" y1="5" x2="30" y2="5" stroke-width="3" '
        f'stroke="{COLOURS[i % 2]}" stroke-dasharray="{DASHES[i % 2]}"/></svg> {escape(name)}'
        for i, name in enumerate(names)
    ]
    return f'<p class="legend">{" &nbsp; ".join(shown)}</p>'


def _axes(x_end: float, y_end: float, x_unit: str, y_unit: str) -> list[str]:
    parts = []
    for tick in range(_TICKS + 1):
        y, x = _y(y_end * tick / _TICKS, y_end), _x(x_end * tick / _TICKS, x_end)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" class="y">{y_end * tick / _TICKS:g}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 18}" class="x">{x_end * tick / _TICKS:.4g}</text>')
    parts.append(f'<text x="{(WIDTH + _LEFT) // 2}" y="{HEIGHT - 3}" class="x">{escape(x_unit)}</text>')
    parts.append(f'<text x="{WIDTH - _RIGHT}" y="16" class="y">{escape(y_unit)}</text>')
    return parts


def _x(x: float, end: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * x / end


def _y(y: float, end: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * y / end


def _rounded_up(most: float) -> float:
    """Returns the end of an axis: 1, 2, 4 or 8 times a power of ten, or 100 for percentages close to it."""
    if 50 < most <= 100:
        return 100.0
    end = 1.0
    while end < most:
        for factor in (2, 2, 2, 1.25):
            if end < most:
                end *= factor
    return end
