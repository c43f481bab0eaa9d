"""The page of all commands, from the commands themselves."""

import inspect
from collections.abc import Iterator

import click

from docsite.tables import table
from kubenexus.cli import main

HEAD = """# Commands

`kubectl nexus COMMAND` is the same as `kubenexus COMMAND`; both are installed together. `-h` and `--help` work
everywhere. `kubenexus completion SHELL` prints completion for your shell.
"""


def page() -> str:
    parts = [HEAD, *(section(path, command) for path, command in walk(("kubenexus",), main))]
    return "\n".join(parts)


def walk(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command that does something, with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    if command.invoke_without_command:
        yield path, command
    for name in sorted(command.commands):
        if not command.commands[name].hidden:
            yield from walk((*path, name), command.commands[name])


def section(path: tuple[str, ...], command: click.Command) -> str:
    usage = " ".join([*path, *command.collect_usage_pieces(click.Context(command))])
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    parts = [f"## {' '.join(path)}", described(command), f"```text\n{usage}\n```"]
    if options:
        parts.append(table(("option", "meaning", "default"), [row(each) for each in options]))
    return "\n\n".join(part for part in parts if part) + "\n"


def described(command: click.Command) -> str:
    """The help of a command as paragraphs. What click is not to wrap (after a line with \\b) stays as it is."""
    paragraphs = inspect.cleandoc(command.help or "").replace("<", "&lt;").split("\n\n")
    return "\n\n".join(f"```text\n{each[2:]}\n```" if each.startswith("\b\n") else each for each in paragraphs)


def row(option: click.Option) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag or option.count else f" {option.make_metavar(click.Context(main))}"
    return names + value.replace("<", "&lt;"), (option.help or "").replace("<", "&lt;"), default(option)


def default(option: click.Option) -> str:
    info = option.to_info_dict()["default"]
    if option.required:
        return "required"
    if info is None or info == "" or callable(option.default) or option.count or not is_plain(info):
        return ""
    return str(info).lower() if isinstance(info, bool) else f"`{info}`"


def is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str)
