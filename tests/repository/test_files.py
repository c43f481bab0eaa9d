"""Rules for every file of the repository: docstrings, no machine paths, tidy line ends, API paths in one place."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Made by tools and never committed: hidden folders other than ours, and these.
MADE_HERE = {"build", "dist", "__pycache__"}
GIT = ".git"  # a file in a linked worktree
MODULES = sorted((ROOT / "src").rglob("*.py"))
MAX_LINES = 400

# Written in two parts, so that this file does not find itself.
REGISTRIES = re.compile("|".join(["py" + r"pi\.", "python" + "hosted", "proxy" + r"\.golang", "npm" + "js"]))
MACHINES = re.compile(r"(?<![\w.<>*-])/(?:root|home/\w+|Users/\w+|work|mnt|opt/wheels)/" + r"[\w.]")
# A clone has nothing beside it. A link of a page in docs/ leads up once, into the repository.
BESIDE = re.compile(r"\.\./" + r"shared\b|\bparents\[\d\]\.parent\b|\bROOT\.parent\b")


def texts() -> Iterator[tuple[str, str]]:
    """Every text file of the repository, by its path in it."""
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT)
        folders = set(inside.parts[:-1]) - {".ci"}
        if (
            not path.is_file()
            or inside.name == GIT
            or folders & MADE_HERE
            or any(folder.startswith(".") for folder in folders)
        ):
            continue
        try:
            yield str(inside), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_every_module_begins_with_a_docstring_that_gives_the_reason_for_it() -> None:
    without = [
        str(module.relative_to(ROOT / "src"))
        for module in MODULES
        if not module.read_text(encoding="utf-8").startswith('"""')
    ]
    assert without == []


def test_no_module_has_more_than_400_lines() -> None:
    """A longer one has two ideas: give the second one a module of its own."""
    lengths = {str(path.relative_to(ROOT / "src")): path.read_text(encoding="utf-8").count("\n") for path in MODULES}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_file_names_a_machine_a_registry_or_a_folder_beside_the_repository() -> None:
    found = [
        f"{path}: {match.group()}"
        for path, text in texts()
        for pattern in (MACHINES, REGISTRIES, BESIDE)
        for match in pattern.finditer(text)
    ]
    assert found == []


def test_the_patterns_above_still_find_something() -> None:
    assert MACHINES.search("see /" + "home/me/x")
    assert REGISTRIES.search("https://py" + "pi.org/simple")
    assert BESIDE.search("/".join(["..", "sha" + "red", "data"]))
    assert not MACHINES.search("docs/" + "work/x and " + "/var/" + "run/secrets and ./" + "root/x")


def test_every_file_ends_with_one_newline_and_has_no_blanks_at_line_ends() -> None:
    untidy = [
        path
        for path, text in texts()
        if text and path != "LICENSE" and (not text.endswith("\n") or re.search(r"[ \t]+$", text, re.MULTILINE))
    ]
    assert untidy == []


def test_a_path_of_the_api_is_spelled_in_one_place() -> None:
    """The simulated server and the tests' tools know paths from the other side."""
    others = [path for path in MODULES if not {"sim", "testing"} & set(path.parts)]
    spelled = [str(path.relative_to(ROOT / "src")) for path in others if re.search(r"[\"']/apis?/", path.read_text())]
    # Our own API, and the API server's.
    assert spelled == ["kubenexus/app/http/api/paths.py", "kubenexus/client/kinds.py"]
