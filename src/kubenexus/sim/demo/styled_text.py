"""Lines of styled text and their rendering on a terminal. The picture in the docs uses the same lines."""

from collections.abc import Sequence
from typing import NamedTuple

# The code of a style on a terminal, and its colour in the picture.
STYLES = {
    "": ("", "#d0d7de"),
    "bold": ("1", "#ffffff"),
    "dim": ("2", "#7d8590"),
    "bad": ("31", "#ff7b72"),
    "good": ("32", "#56d364"),
    "app0": ("36", "#39c5cf"),
    "app1": ("34", "#6cb6ff"),
    "app2": ("33", "#e3b341"),
    "app3": ("32", "#56d364"),
    "app4": ("35", "#d2a8ff"),
    "app5": ("31", "#ff7b72"),
}


class Span(NamedTuple):
    text: str
    style: str = ""


Line = Sequence[Span]


def plain(line: Line) -> str:
    return "".join(span.text for span in line)


def coloured(line: Line) -> str:
    """Renders a line with ANSI colours."""
    return "".join(_ansi(span) for span in line)


def _ansi(span: Span) -> str:
    code = STYLES[span.style][0]
    return f"\x1b[{code}m{span.text}\x1b[0m" if code else span.text


def cut(line: Line, width: int) -> Line:
    """Shortens a line to that width."""
    kept, left = [], width
    for span in line:
        text = span.text if len(span.text) <= left else span.text[: max(left - 1, 0)] + "…" * (left > 0)
        if text:
            kept.append(Span(text, span.style))
        left -= len(text)
        if left <= 0:
            break
    return kept


def padded(line: Line, width: int) -> Line:
    short = cut(line, width)
    return [*short, Span(" " * (width - len(plain(short))))]
