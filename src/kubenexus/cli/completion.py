"""`kubenexus completion`: scripts with which shells complete commands and options."""

from collections.abc import Sequence

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_VARIABLE = "_KUBENEXUS_COMPLETE"
_NO_FILES = 4  # of the directives that kubectl understands: offer no file names beside these


@click.command()
@click.argument("shell", type=click.Choice(sorted(_SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes `kubenexus` in a shell.

    source <(kubenexus completion bash)

    `kubectl nexus` is completed by kubectl itself, with kubectl_complete-nexus, which is installed beside it.
    """
    root = context.find_root().command
    click.echo(_SHELLS[shell](root, {}, "kubenexus", _VARIABLE).source())


def plugin_candidates(arguments: Sequence[str]) -> str:
    """Returns what kubectl expects of a plugin's completion: a candidate in each line, and a directive. The last
    argument is the word that is being typed."""
    from kubenexus.cli import main

    typed = arguments[-1] if arguments else ""
    found = ShellComplete(main, {}, "kubectl nexus", _VARIABLE).get_completions(list(arguments[:-1]), typed)
    lines = [f"{each.value}\t{each.help}" if each.help else str(each.value) for each in found]
    return "\n".join([*lines, f":{_NO_FILES}"]) + "\n"
