"""The manual page comes from the registry, and the one in the repository is fresh."""

from pathlib import Path

from click.testing import CliRunner

from kubenexus import __version__
from kubenexus.api import keys
from kubenexus.api.keys import render
from kubenexus.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "keys.md"


def test_the_page_in_the_repository_is_what_the_registry_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == render.render_markdown(keys.SECTIONS), "run `make docs`"


def test_the_page_names_every_spelling_once_per_entry() -> None:
    text = render.render_markdown(keys.SECTIONS)
    for section in keys.SECTIONS:
        for entry in section.entries:
            for spelling in entry.spellings:
                assert f"`{spelling.key}`" in text


def test_a_table_row_has_as_many_cells_as_its_head() -> None:
    rows = [line for line in render.render_markdown(keys.SECTIONS).splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {7}


def test_the_command_prints_the_page() -> None:
    printed = CliRunner().invoke(main, ["keys", "--markdown"])
    assert (printed.exit_code, printed.output) == (0, render.render_markdown(keys.SECTIONS))


def test_without_an_option_it_prints_lines_to_search() -> None:
    printed = CliRunner().invoke(main, ["keys"])
    assert printed.exit_code == 0
    assert "    also pod-group.scheduling.sigs.k8s.io/name\n" in printed.output
    assert "`" not in printed.output


def test_the_command_tells_its_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"kubenexus, version {__version__}\n"
