"""The page of deliberate differences: every row names tests that exist. Tests without a better place are here."""

import ast
import functools
import re
from pathlib import Path

import pytest

from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import run
from tests.config.builders import problems

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "differences.md"
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
TEST = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)")


@functools.cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_difference_names_tests_that_exist(row: str) -> None:
    named = TEST.findall(row.split("|")[-2])
    assert named, "a difference without a test is a mistake"
    assert [name for name, path in named if name not in functions_of(ROOT / path)] == []


def test_the_table_has_as_many_cells_in_each_row_as_in_its_head() -> None:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {6}
    assert len(ROWS) >= 16


@pytest.mark.parametrize("best", [0, 149, 299])
def test_the_best_of_many_nodes_is_found_wherever_it_stands(best: int) -> None:
    """From a hundred nodes on, kube-scheduler would look for enough that fit, and take the best of these."""
    nodes = [a_node(f"n{i}", labels={"disk": "ssd"} if i == best else {}) for i in range(300)]
    wishes = [a_pod(f"p{i}", prefers={"disk In ssd": 100}) for i in range(5)]
    assert run(nodes, wishes).placements == {f"p{i}": f"n{best}" for i in range(5)}


def test_extenders_are_an_error_with_its_path() -> None:
    (problem,) = problems("extenders: [{urlPrefix: 'http://127.0.0.1', filterVerb: filter}]")
    assert problem.startswith("extenders: Forbidden: extenders are not supported")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        pytest.param(
            "plugins: {score: {enabled: [{name: NodeAffinity, weight: -3}]}}",
            "profiles[0].plugins.score.enabled[0].weight: Invalid value: -3: must be greater than or equal to 0",
            id="a weight below zero",
        ),
        pytest.param(
            "pluginConfig: [{name: NodeAfinity}]",
            'profiles[0].pluginConfig[0].name: Invalid value: "NodeAfinity": plugin does not exist; '
            'did you mean "NodeAffinity"?',
            id="arguments for an unknown plugin",
        ),
    ],
)
def test_negative_weights_and_unknown_names_are_errors_with_their_paths(said: str, problem: str) -> None:
    assert problems(f"profiles: [{{{said}}}]") == [problem]
