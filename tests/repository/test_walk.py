"""The walk and the glossary in docs/architecture.md name functions and classes that exist; the walk is short."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kubenexus"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` : `([\w.]+)` \|", re.MULTILINE)


def rows(title: str) -> list[tuple[int, str, str]]:
    part = PAGE.partition(f"### {title}\n")[2].partition("\n#")[0]
    return [(int(number), path, function) for number, path, function in ROW.findall(part)]


POD, GANG = rows("One pod, from watch bytes to bind and back"), rows("What a gang adds")


@functools.cache
def functions(path: Path) -> set[str]:
    found, tree = set(), ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
            found |= {f"{node.name}.{each.name}" for each in methods}
    return found


@pytest.mark.parametrize(("path", "function"), sorted({(path, function) for _, path, function in [*POD, *GANG]}))
def test_each_step_of_the_walk_is_a_function_that_exists(path: str, function: str) -> None:
    assert function in functions(SOURCE / path)


def test_the_steps_are_numbered_and_a_pod_takes_fewer_than_75() -> None:
    assert [number for number, _, _ in POD] == [*range(1, len(POD) + 1)]
    assert [number for number, _, _ in GANG] == [*range(1, len(GANG) + 1)]
    assert 50 < len(POD) < 75
    assert len(GANG) > 30


GLOSSARY = PAGE.partition("## Glossary\n")[2]
LOCATIONS = sorted({name for row in GLOSSARY.splitlines() for name in re.findall(r"`([a-z]\w*(?:\.\w+)+)`", row)})


def definition(name: str) -> tuple[Path, list[str]]:
    """The module, or the package, that a dotted name begins with, and the names that follow."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = SOURCE.joinpath(*parts[:length])
        if path.with_suffix(".py").is_file() or path.is_dir():
            return path, parts[length:]
    raise AssertionError(f"no module: {name}")


@pytest.mark.parametrize("name", LOCATIONS)
def test_each_word_of_the_glossary_is_where_the_page_says(name: str) -> None:
    path, names = definition(name)
    if names:
        source = path.with_suffix(".py").read_text(encoding="utf-8")
        missing = [each for each in names if not re.search(rf"\b{each}\b", source)]
        assert missing == []


def test_each_package_with_state_or_decisions_has_words_in_the_glossary() -> None:
    for package in ["state.claims", "state.numa", "state.queues", "state.runtimes", "plan.eta", "plan.backfill"]:
        assert any(name.startswith(package + ".") for name in LOCATIONS), package
    for package in ["app.kueue", "app.provisioning", "app.recording", "webhook", "discovery", "web", "explain"]:
        assert any(name.startswith(package + ".") for name in LOCATIONS), package
