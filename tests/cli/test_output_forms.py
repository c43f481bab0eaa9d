"""Every command that prints data has the forms that kubectl users expect, and no colour without a terminal."""

import json
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from kubenexus.cli import main
from kubenexus.cli.completion import plugin_candidates

DUMP = str(Path(__file__).parents[2] / "examples" / "why" / "cluster.json")
FORMS = ["wide", "json", "yaml"]
COMMANDS = [
    ["decisions"],
    ["devices"],
    ["doctor"],
    ["explain"],
    ["gangs"],
    ["whatif"],
    ["why"],
    *(["top", each] for each in ("jobs", "namespaces", "nodes", "queues", "tenants")),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_knows_the_forms_and_they_are_completed(words: list[str]) -> None:
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    (option,) = [each for each in command.params if each.name == "output"]
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices)[1:] == FORMS
    offered = plugin_candidates([*words, "-o", ""])
    assert all(f"{form}\n" in offered for form in FORMS)


@pytest.mark.parametrize(
    "words",
    [
        ["devices"],
        ["gangs", "-A"],
        ["why", "ml/gang/llama"],
        ["whatif"],
        *(["top", each] for each in ("jobs", "namespaces", "nodes", "queues", "tenants")),
    ],
    ids=" ".join,
)
def test_json_and_yaml_have_the_same_content_and_text_has_no_colour(words: list[str]) -> None:
    def printed(form: str) -> str:
        result = CliRunner().invoke(main, [*words, "--cluster", DUMP, "-o", form])
        assert result.exit_code in (0, 2), result.output
        return result.stdout

    assert json.loads(printed("json")) == yaml.safe_load(printed("yaml"))
    assert "\x1b" not in printed("wide")
