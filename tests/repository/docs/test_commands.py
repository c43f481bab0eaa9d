"""Every command that a page shows exists: each option and argument is parsed as the program would, each file is there.

What needs a cluster is run by tests/e2e/test_start_page.py and by the tests that docs/testing.md names. This test finds
what no longer exists, in milliseconds and for all of them.
"""

import itertools
import re
from collections.abc import Callable

import click
import pytest

from kubenexus.cli import main
from tests.repository.docs.blocks import ROOT, Command, commands, simple_commands

ALL = list(commands())
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"^([A-Z_]+)\s*\??=|\$\(([A-Z_]+)\)", MAKEFILE, re.MULTILINE))
# A file that an earlier command of the page writes, or that the reader has.
WRITTEN = re.compile(r"^(dump|my-|before|after|plan|job|config|tls|/tmp/|/var/|~/|\$|build/|[A-Z])")


class NoSuchCommand(Exception):
    pass


def resolve(words: tuple[str, ...]) -> None:
    """Parses the words after `kubenexus` as it would. Raises click's error or NoSuchCommand."""
    command: click.Command = main
    rest = list(words)
    context = click.Context(command, info_name="kubenexus")
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.commands.get(rest[0])
        if found is None:
            raise NoSuchCommand(rest[0])
        command, rest = found, rest[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    if (
        isinstance(command, click.Group)
        and not command.invoke_without_command
        and rest not in (["--help"], ["--version"])
    ):
        raise NoSuchCommand(f"{command.name} needs a command")
    given, left, _ = command.make_parser(context).parse_args(rest)
    if left and not isinstance(command, click.Group):
        raise NoSuchCommand(f"arguments that {command.name} does not take: {left}")
    for each in command.params:
        value = given.get(each.name)
        if isinstance(each, click.Option) and isinstance(each.type, click.Choice) and isinstance(value, str):
            each.type.convert(value, each, context)


def kubenexus(words: tuple[str, ...]) -> None:
    resolve(words[1:])


def kubectl(words: tuple[str, ...]) -> None:
    """Ours are parsed; of all others the files have to be there."""
    if words[1:2] == ("nexus",):
        resolve(words[2:])
        return
    assert words[1].startswith("-") or words[1] in KUBECTL, words
    files(words)


def helm(words: tuple[str, ...]) -> None:
    assert words[1] in {"install", "upgrade", "uninstall", "template", "rollback", "history"}, words
    for word in words[2:]:
        if word.startswith("deploy/"):
            assert (ROOT / word).is_dir(), word


def make(words: tuple[str, ...]) -> None:
    for word in words[1:]:
        name, is_assignment, _ = word.partition("=")
        if is_assignment:
            assert name in {each for pair in VARIABLES for each in pair}, word
        elif word != "-n":
            assert word in TARGETS, word


def files(words: tuple[str, ...]) -> None:
    """Files that are named after -f, or that look like ones of the repository."""
    named = [after for before, after in itertools.pairwise(words) if before in ("-f", "--filename")]
    named += [word.split("=", 1)[1] for word in words if word.startswith(("-f=", "--filename=", "--from-file="))]
    for name in named:
        assert name == "-" or WRITTEN.match(name) or (ROOT / name).exists(), name


def python(words: tuple[str, ...]) -> None:
    """`python -m NAME` is a module that exists."""
    if words[1:2] != ("-m",) or words[2] in ("venv", "pip", "pytest"):
        return
    path = ROOT.joinpath(*words[2].split("."))
    ours = ROOT / "src" / path.relative_to(ROOT)
    assert any(each.with_suffix(".py").exists() or (each / "__main__.py").exists() for each in (path, ours)), words[2]


def anything(words: tuple[str, ...]) -> None:
    files(words)


VERBS = """apply annotate auth cluster-info config cordon create debug delete describe drain edit events exec explain
    get label logs patch port-forward proxy replace rollout run scale taint top uncordon version wait"""
KUBECTL = set(VERBS.split())
PROGRAMS: dict[str, Callable[[tuple[str, ...]], None]] = {
    "kubenexus": kubenexus,
    "kubectl": kubectl,
    "helm": helm,
    "make": make,
    "python": python,
    "python3": python,
    "docker": anything,
    "pip": anything,
    "git": anything,
    "curl": anything,
    "export": anything,
    "sleep": anything,
    "pytest": anything,
    "cp": anything,
    "jq": anything,
    "source": anything,
    "kill": anything,
    "ssh": anything,
    "wait": anything,
    "echo": anything,
}


def program(command: Command) -> str:
    return command.words[0].rsplit("/", 1)[-1]


def test_pages_have_hundreds_of_commands() -> None:
    assert len(ALL) > 150
    assert {"docs/running.md", "README.md", "docs/start.md", "docs/why.md"} <= {each.block.page for each in ALL}


@pytest.mark.parametrize("command", ALL, ids=lambda each: each.title)
def test_a_documented_command_exists(command: Command) -> None:
    known = PROGRAMS.get(program(command))
    if known is None:
        assert (ROOT / command.words[0]).is_file(), f"{command.words[0]}: neither known here nor a file"
        return
    known(command.words)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("make demo # see it", [("make", "demo")], id="a comment ends a command"),
        pytest.param("A=1 kubenexus run &", [("kubenexus", "run")], id="variables come before it"),
        pytest.param("a --x 'b c' | d > e && f", [("a", "--x", "b c"), ("d",), ("f",)], id="pipes and redirections"),
    ],
)
def test_a_line_is_split_as_a_shell_would(line: str, found: list[tuple[str, ...]]) -> None:
    assert list(simple_commands(line)) == found


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("nodes",), id="a command that is none"),
        pytest.param(("run", "--no-such-option"), id="an option that is none"),
        pytest.param(("config",), id="a group alone"),
        pytest.param(("agents", "--topology-policy", "strict"), id="a choice that is none"),
        pytest.param(("doctor", "a", "b"), id="arguments that are not taken"),
    ],
)
def test_what_does_not_exist_is_found(words: tuple[str, ...]) -> None:
    with pytest.raises((NoSuchCommand, click.ClickException)):
        resolve(words)
