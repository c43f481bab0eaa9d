"""The commands and links of the documents work: each command is a make target, each link leads to a file or heading."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubenexus.framework import registry

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
# As a command at the start of a line or within backquotes, not the verb in a sentence.
COMMAND = re.compile(r"(?:^|`|run )make ((?:[a-z0-9-]+ ?)+)", re.MULTILINE)
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    *(ROOT / "deploy").rglob("*.md"),
]
# To a file, to a heading, or to a heading of a file; not to another site.
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")


def headings(page: Path) -> set[str]:
    """The fragments by which links name the headings of a page: small letters, hyphens for blanks, no punctuation."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_every_command_in_a_document_is_a_make_target(document: str) -> None:
    commands = COMMAND.findall((ROOT / document).read_text(encoding="utf-8"))
    assert commands, "the pattern of this test no longer finds anything"
    assert {target for command in commands for target in command.split()} <= TARGETS


@pytest.mark.parametrize("variable", ["ORACLE", "SCHEDULER_PERF", "OPENB"])
def test_what_a_command_reads_is_in_the_repository(variable: str) -> None:
    (folder,) = re.findall(rf"^{variable} +\?= (\S+)$", MAKEFILE, re.MULTILINE)
    assert (ROOT / folder).is_dir()
    assert (ROOT / folder).resolve().is_relative_to(ROOT.resolve())


def test_the_first_commands_of_the_readme_are_two() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)[0]
    assert re.findall(r"^make (\S+)", first, re.MULTILINE) == ["demo", "test"]


def test_every_make_target_is_explained_and_phony() -> None:
    phony = set(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0].split())
    explained = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))
    assert explained == TARGETS == phony


@pytest.mark.parametrize("document", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [(document.parent / path if path else document, part) for path, part in LINK.findall(text)]
    assert [str(path) for path, _ in links if not path.exists()] == []
    assert [f"{path}#{part}" for path, part in links if part and part not in headings(path)] == []


def test_the_module_is_the_command() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "kubenexus", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert printed.stdout.startswith("Usage: kubenexus ")


def test_the_rule_in_the_readme_keeps_the_contract() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    ((name, rule),) = re.findall(r'^(\w+) = "my_rules:(\w+)"$', readme, re.MULTILINE)
    names: dict[str, object] = {}
    exec(code, names)
    registry.check_plugin(name, names[rule])
