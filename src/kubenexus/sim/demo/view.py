"""The live view: nodes as bars, waiting pods, the last decisions, and the progress. Pure: from cluster state to lines.

KubeNexus   20 nodes   39 pods running   1 waiting             act 7 of 7   0:31
cpu-0    ███████░░░░░░░ 8.1/16 cpu       h100-0-0 ██████████████ 8/8 gpu
...
"""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from kubenexus.api.core import Node, Pod
from kubenexus.sim.demo.cluster_state import ClusterState, amount, app_of, measure, refusal
from kubenexus.sim.demo.demo_nodes import GPU
from kubenexus.sim.demo.styled_text import Line, Span, cut, padded

NARROW, LOW = 60, 16  # a smaller terminal gets plain lines
NAME, BAR = 9, 14
CELL, ROOMY = 40, 46  # width of a node: the minimum, and the one that fits the word `cordoned`
INDENT = "   "  # of a result's further lines
APPS = ("shop", "logs", "batch", "db", "train")  # later apps share the last colour


class Caption(NamedTuple):
    """The progress: the lines of finished steps, and the current step."""

    told: Sequence[str]
    now: str
    act: int
    acts: int
    join: str


def draw(state: ClusterState, caption: Caption, now: float, width: int, height: int, *, letters: bool) -> list[Line]:
    """Returns lines within that width and height. `letters` draws bars with the letters of apps, for terminals without
    colours."""
    head = [_head(state, caption, now, width), _legend(letters), []]
    tail: list[Line] = [[Span(line.strip(), "dim")] for line in caption.join.splitlines()]
    story = _story(caption, width)
    queue = _queue(state)
    capacity = height - len(head) - len(tail) - len(queue) - 2
    nodes = _nodes(state, width, max(min(capacity - 5, len(state.nodes)), 2), letters)
    capacity -= len(nodes)
    told = story[-max(min(len(story), capacity - 2), 1) :]
    decisions = _decisions(state, max(capacity - len(told), 0))
    lines = [*head, *nodes, [], *queue, *decisions, [], *told, *tail]
    return [cut(line, width) for line in lines[:height]]


def _head(state: ClusterState, caption: Caption, now: float, width: int) -> Line:
    waiting = len(state.waiting())
    said = f"   {len(state.nodes)} nodes   {state.running()} pods running   {waiting} waiting"
    minutes, seconds = divmod(int(now - state.began), 60)
    right = f"act {caption.act} of {caption.acts}   {minutes}:{seconds:02}"
    left = padded([Span("KubeNexus", "bold"), Span(said)], width - len(right))
    return [*left, Span(right, "dim")]


def _legend(letters: bool) -> Line:
    marks = [Span(f"{app[0] if letters else '█'} {app}   ", style_of(app)) for app in APPS]
    return [*marks, Span("░ free", "dim")]


def style_of(app: str) -> str:
    return f"app{APPS.index(app) if app in APPS else len(APPS)}"


# ---- nodes -----------------------------------------------------------------------------------------------------------


def _nodes(state: ClusterState, width: int, rows: int, letters: bool) -> list[Line]:
    """Arranges the nodes in columns; if not all fit, the last cell counts the rest."""
    columns = max(width // CELL, 1)
    names = sorted(state.nodes, key=_in_order)
    rows = min(rows, -(-len(names) // columns))
    shown = names[: rows * columns]
    word = " cordoned" if width // columns >= ROOMY else " off"
    cells = [_node(state.nodes[name], state.on(name), word, letters) for name in shown]
    if len(shown) < len(names):
        cells[-1] = [Span(f"... and {len(names) - len(shown) + 1} more nodes", "dim")]
    return [[span for cell in cells[row::rows] for span in padded(cell, width // columns)] for row in range(rows)]


def _in_order(name: str) -> tuple[bool, str, int]:
    """Sorts ordinary nodes first, and 2 before 10."""
    stem, _, number = name.rpartition("-")
    return not name.startswith("cpu-"), stem, int(number) if number.isdigit() else 0


def _node(node: Node, pods: Sequence[Pod], cordoned: str, letters: bool) -> Line:
    resource, size = measure(node)
    used = amount(pods, resource)
    unit, each = ("gpu", 1) if resource == GPU else ("cpu", 1000)
    numbers = f" {used / each:g}/{size // each} {unit}"
    mark = [Span(cordoned, "bad")] if node.spec.unschedulable else []
    return [Span(f"{node.metadata.name:<{NAME}}"), *_bar(pods, resource, size, letters), Span(numbers), *mark]


def _bar(pods: Sequence[Pod], resource: str, size: int, letters: bool) -> Line:
    """Draws one segment for each app, of at least one cell if it uses anything."""
    spans, taken = [], 0
    for app in sorted({app_of(pod) for pod in pods}):
        share = amount([pod for pod in pods if app_of(pod) == app], resource)
        cells = min(max(round(BAR * share / max(size, 1)), 1 if share else 0), BAR - taken)
        taken += cells
        spans.append(Span((app[:1] or "?") * cells if letters else "█" * cells, style_of(app)))
    return [*spans, Span("░" * (BAR - taken), "dim")]


# ---- the rest --------------------------------------------------------------------------------------------------------


def _queue(state: ClusterState) -> list[Line]:
    waiting = state.waiting()
    names = ", ".join(pod.metadata.name for pod in waiting[:4]) + (", ..." if len(waiting) > 4 else "")
    lines: list[Line] = [[Span("waiting   ", "bold"), Span(names or "nobody", "" if names else "dim")]]
    why = next((refusal(pod) for pod in waiting if refusal(pod)), "")
    return [*lines, [Span(f"          {why}", "bad")]] if why else lines


def _decisions(state: ClusterState, most: int) -> list[Line]:
    lines: list[Line] = []
    for number, each in enumerate(reversed(list(state.decisions)[-most:] if most else [])):
        where = Span(f" -> {each.node}", "good") if each.node else Span(" waits", "bad")
        lines.append([Span("decided   " if not number else " " * 10, "bold"), Span(each.pod), where])
    return lines


def _story(caption: Caption, width: int) -> list[Line]:
    """Returns one line for each step. After a step, its whole result is shown, on several lines if it is long."""
    told: list[Line] = [[Span(line, "dim")] for line in caption.told]
    if caption.now:
        return [*told, [Span(f"> {caption.now}", "bold")]]
    result = textwrap.wrap(caption.told[-1], width, subsequent_indent=INDENT) if caption.told else []
    return [*told[:-1], *([Span(line)] for line in result)]
