"""How commands print: JSON and YAML of any struct, and lines whose labels are bold on a terminal."""

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_LABEL = re.compile(r"([A-Z][A-Z ]{2,17}?)(?=  +\S)")  # `WHY      `, `STARTS AT ONCE IF  `


def output_option(plain: str) -> Callable[[Command], Command]:
    """Returns the option `-o` of all commands that print data; `plain` is the form without it."""
    forms = click.Choice([plain, "wide", "json", "yaml"])
    return click.option("-o", "--output", type=forms, default=plain, show_default=True)


def echo_data(data: Any, form: str) -> None:
    """Prints a struct or plain data as `json` or `yaml`."""
    import msgspec

    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(data)).decode())
        return
    import yaml

    click.echo(yaml.safe_dump(msgspec.to_builtins(data), sort_keys=False, allow_unicode=True), nl=False)


def echo_lines(text: str) -> None:
    """Prints text. On a terminal the label at the start of a line is bold, unless NO_COLOR is set; click removes styles
    from what goes elsewhere."""
    if not os.environ.get("NO_COLOR"):
        text = "".join(_styled(line) for line in text.splitlines(keepends=True))
    click.echo(text, nl=False)


def _styled(line: str) -> str:
    label = _LABEL.match(line)
    return line if label is None else click.style(label[0], bold=True) + line[label.end() :]
