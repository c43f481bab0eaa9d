"""docs/placement.md is what `make docs` writes, its weights are those that ship, and every example is on it."""

import re
from pathlib import Path

import pytest

from kubenexus.plugins import OWN_ORDER
from tests.placement.page import PLUGINS, render
from tests.placement.table import rows

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "placement.md"
PAGE = FILE.read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    assert render() == PAGE, "run `make docs`"


def test_the_page_has_the_plugins_and_weights_that_ship() -> None:
    shown = re.findall(r"^\| \[(\w+)\]\((plugins/\w+\.md)\) \| (\d*) \|", PAGE, re.MULTILINE)
    shipped = [(plugin.name, str(weight) if hasattr(plugin, "score") else "") for plugin, weight in OWN_ORDER]
    assert [(name, weight) for name, _, weight in shown] == shipped
    assert [file for _, file, _ in shown if not (ROOT / "docs" / file).exists()] == []


def test_each_winner_has_the_most_points() -> None:
    for row in rows():
        points = {kind: each for kind, each in row.points.items() if each is not None}
        assert points[row.winner] == max(points.values()), row.pod


@pytest.mark.parametrize(
    ("pod", "winner"),
    [
        ("pod of a Deployment", "CPU, empty"),
        ("pod of a Job", "CPU, half full"),
        ("model server, 1 GPU, gold", "8 H100, 3 in use"),
        ("model server, 1 GPU, silver", "8 A100, all free"),
        ("model server, 1 GPU, bronze", "4 T4, to be shared"),
        ("training, 8 GPUs, bronze", "8 A100, all free"),
    ],
)
def test_the_winners_are_those_that_the_rules_promise(pod: str, winner: str) -> None:
    assert {row.pod: row.winner for row in rows()}[pod] == winner


def test_the_page_names_every_example_and_the_line_of_each_plugin_is_used() -> None:
    examples = (ROOT / "examples" / "placement").glob("*.yaml")
    assert [file.name for file in examples if f"../examples/placement/{file.name}" not in PAGE] == []
    assert PLUGINS.keys() >= {plugin.name for plugin, _ in OWN_ORDER}
