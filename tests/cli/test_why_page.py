"""The situations of docs/why.md: each command prints what the page shows."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubenexus.cli import main

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```console\n\$ kubenexus (.*?)\n(.*?)```", (ROOT / "docs" / "why.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_of_the_page_prints_what_it_shows(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(main, shlex.split(command))
    pattern = "".join(".*" if line == "..." else re.escape(line) + "\n" for line in shown.splitlines())
    assert result.exit_code == (0 if command.startswith("gangs") else 2)
    assert re.fullmatch(pattern, result.output, re.DOTALL), result.output


def test_the_page_has_five_situations() -> None:
    assert sum(command.startswith(("why", "whatif")) for command, _ in BLOCKS) == 5
