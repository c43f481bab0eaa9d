"""`kubenexus config`: checks a configuration with the scheduler's own code and messages, before a scheduler loads
it."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kubenexus.config import Configuration
    from kubenexus.framework.profile import Factory, Profile


@click.group()
def config() -> None:
    """Check a KubeSchedulerConfiguration, or print the default one."""


@config.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
def validate(file: str) -> None:
    """Print every problem of FILE (- for standard input), or what it means."""
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config import InvalidConfiguration, load
    from kubenexus.config.parse_yaml import MAX_BYTES

    source = sys.stdin.buffer.read(MAX_BYTES + 1) if file == "-" else Path(file)
    try:
        loaded = load(source, _plugins())
    except InvalidConfiguration as error:
        for problem in error.problems:
            click.echo(str(problem))
        click.echo(_counted(len(error.problems), "problem"), err=True)
        raise SystemExit(1) from None
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    for line in _summary(loaded):
        click.echo(line)


@config.command()
def defaults() -> None:
    """Print the default configuration, as YAML."""
    from kubenexus.config import defaults as usual
    from kubenexus.config import to_yaml

    click.echo(to_yaml(usual(_plugins()).document), nl=False)


def _plugins() -> "Mapping[str, Factory]":
    # Imported here to keep NumPy out of `kubenexus --version`.
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plugins import BUILT_IN

    return load_plugins(BUILT_IN)


def _summary(loaded: "Configuration") -> Iterator[str]:
    yield "valid"
    for profile in loaded.profiles:
        yield f"profile {profile.name}: {_counted(len(profile.plugins), 'plugin')}; {_ties(profile)}"
    yield from (f"note: {note}" for note in loaded.notes)


def _ties(profile: "Profile") -> str:
    seed = f", seed {profile.seed}" if profile.seed else ""
    return f"ties {profile.tie_break.value}{seed}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
