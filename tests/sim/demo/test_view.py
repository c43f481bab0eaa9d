"""The live view: what it shows of a cluster state, that it keeps to its terminal, and the picture made of it."""

import io
import xml.etree.ElementTree as ET

import pytest

from kubenexus.base.clock import VirtualClock
from kubenexus.sim.demo.cluster_state import ClusterState, ObservedPlacement
from kubenexus.sim.demo.picture import svg
from kubenexus.sim.demo.screen import Screen, can_draw
from kubenexus.sim.demo.styled_text import Span, coloured, cut, plain
from kubenexus.sim.demo.view import Caption, draw
from kubenexus.testing.builders import a_node, a_pod

TOLD = tuple(f"{number}. Something: it came true" for number in range(1, 4))
CAPTION = Caption(TOLD, "4. A node is drained", 4, 7, "kubectl --server=http://127.0.0.1:1 get pods")


def a_scene(nodes: int = 4) -> ClusterState:
    state = ClusterState(VirtualClock(100.0))
    for number in range(nodes):
        state.nodes[f"cpu-{number}"] = a_node(f"cpu-{number}", cpu=16, cordoned=number == 2)
    state.nodes["h100-0-0"] = a_node("h100-0-0", cpu=128, gpu=8)
    pods = [
        a_pod("shop-1", cpu=4, labels={"app": "shop"}, node="cpu-0"),
        a_pod("batch-1", cpu=8, labels={"app": "batch"}, node="cpu-0"),
        a_pod("train-0", cpu=1, gpu=8, labels={"app": "train"}, node="h100-0-0"),
        a_pod("late", cpu=1, labels={"app": "late"}),
    ]
    state.pods = {f"default/{pod.metadata.name}": pod for pod in pods}
    state.decisions.extend([ObservedPlacement("shop-1", "cpu-0"), ObservedPlacement("late", "", "no room")])
    return state


def text(state: ClusterState, width: int = 100, height: int = 30, *, letters: bool = True) -> list[str]:
    return [plain(line).rstrip() for line in draw(state, CAPTION, 175.0, width, height, letters=letters)]


def row(lines: list[str], name: str) -> str:
    return next(line[line.index(name) :] for line in lines if f"{name} " in line)


def test_a_bar_shows_who_takes_how_much() -> None:
    lines = text(a_scene())
    assert row(lines, "cpu-0").startswith("cpu-0    bbbbbbbssss░░░ 12/16 cpu")
    assert row(lines, "cpu-1").startswith("cpu-1    ░░░░░░░░░░░░░░ 0/16 cpu")
    assert row(lines, "h100-0-0").startswith("h100-0-0 tttttttttttttt 8/8 gpu")


def test_a_cordoned_node_is_marked() -> None:
    assert "cordoned" in row(text(a_scene()), "cpu-2")
    assert " off" in row(text(a_scene(), width=80), "cpu-2")


def test_the_queue_the_decisions_and_the_story_are_there() -> None:
    lines = text(a_scene())
    assert lines[0].startswith("KubeNexus   5 nodes   0 pods running   1 waiting")
    assert lines[0].endswith("act 4 of 7   1:15")
    assert "waiting   late" in lines
    assert "decided   late waits" in lines
    assert "          shop-1 -> cpu-0" in lines
    assert lines[-2:] == ["> 4. A node is drained", CAPTION.join]


def test_the_result_of_a_step_is_shown_whole_until_the_next_step() -> None:
    result = "4. A node is drained: " + "and another pod left " * 7 + "in the end"
    done = CAPTION._replace(told=(*TOLD, result), now="")
    lines = [plain(line) for line in draw(a_scene(), done, 175.0, 100, 30, letters=True)]
    last = lines[lines.index(TOLD[-1]) + 1 : -1]
    assert len(last) == 2
    assert " ".join(line.strip() for line in last) == result
    then = [plain(line) for line in draw(a_scene(), done._replace(now="5. Next"), 175.0, 100, 30, letters=True)]
    assert then[-3:-1] == [f"{result[:99]}…", "> 5. Next"]


@pytest.mark.parametrize("caption", [CAPTION, CAPTION._replace(told=("1. " + "word " * 99,), now="")])
@pytest.mark.parametrize("width", [60, 80, 100, 133, 200])
@pytest.mark.parametrize("height", [15, 23, 50])
@pytest.mark.parametrize("nodes", [1, 12, 300])
def test_it_is_never_larger_than_its_terminal(caption: Caption, width: int, height: int, nodes: int) -> None:
    lines = draw(a_scene(nodes), caption, 175.0, width, height, letters=False)
    assert len(lines) <= height
    assert max(len(plain(line)) for line in lines) <= width
    assert plain(lines[-1]) == CAPTION.join[:width]


def test_nodes_that_find_no_place_are_counted() -> None:
    lines = "\n".join(text(a_scene(300), height=24))
    assert "more nodes" in lines


def test_colours_only_where_they_are_wanted() -> None:
    out = io.StringIO()
    for colour in (True, False):
        screen = Screen(out, a_scene(), VirtualClock(175.0), colour=colour)
        screen.caption(CAPTION)
        assert ("\x1b[36m" in screen.frame()) is colour
        assert ("█" in screen.frame()) is colour


def test_what_was_said_stays_when_the_screen_is_left() -> None:
    out = io.StringIO()
    screen = Screen(out, a_scene(), VirtualClock(), colour=False)
    screen.enter()
    screen.say("1. It came true")
    assert "came true" not in out.getvalue()
    screen.leave()
    assert out.getvalue().endswith("\x1b[?25h\x1b[?1049l1. It came true\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("columns", "lines", "term", "draws"),
    [
        pytest.param("80", "24", "xterm", True, id="a terminal"),
        pytest.param("59", "24", "xterm", False, id="too narrow"),
        pytest.param("80", "15", "xterm", False, id="too low"),
        pytest.param("80", "24", "dumb", False, id="dumb"),
    ],
)
def test_who_gets_a_screen(monkeypatch: pytest.MonkeyPatch, columns: str, lines: str, term: str, draws: bool) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", lines)
    assert can_draw(Terminal(), {"TERM": term}) is draws
    assert not can_draw(io.StringIO(), {"TERM": term})


def test_a_line_is_cut_with_its_styles() -> None:
    line = [Span("abc", "bold"), Span("defg")]
    assert [plain(cut(line, width)) for width in (0, 3, 5, 7, 9)] == ["", "abc", "abcd…", "abcdefg", "abcdefg"]
    assert coloured(cut(line, 4)) == "\x1b[1mabc\x1b[0m…"


def test_the_picture_is_made_of_the_same_lines() -> None:
    lines = draw(a_scene(), CAPTION, 175.0, 100, 30, letters=False)
    drawn = svg(lines)
    assert drawn == svg(lines)
    words = "".join(ET.fromstring(drawn).itertext())
    for wanted in ("cpu-0", "12/16 cpu", "4. A node is drained", "shop-1 -> cpu-0"):
        assert "".join(wanted.split()) in "".join(words.split())
