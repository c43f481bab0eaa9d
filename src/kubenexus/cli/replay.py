"""`kubenexus replay`: repeats the decisions that `kubenexus run --record` recorded."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubenexus.cli.printing import echo_data, echo_lines

if TYPE_CHECKING:
    from kubenexus.config import Configuration
    from kubenexus.explain.replay_recording import ReplayResult


@click.command()
@click.argument("recording", type=click.Path(exists=True, path_type=Path))
@click.option("--until", default="", metavar="TIMESTAMP", help="Stop before the first decision after it.")
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Decide with this configuration instead of the recorded one.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def replay(recording: Path, until: str, policy: Path | None, output: str) -> None:
    """Repeat every decision of RECORDING, a file or the folder of `kubenexus run --record`.

    Each decision is made again on the recorded state and compared byte for byte. The first that differs is shown. A
    file that was cut, by a crash for instance, is read up to its last whole entry. Each file of a folder can be
    replayed alone.

    Exit code 0: all are the same; 2: some differ; 1: something is wrong with the input.
    """
    from kubenexus.app.configured_parts import make_ledger, make_planner
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.args import GANGS
    from kubenexus.config.gang_settings import gang_settings
    from kubenexus.explain.replay_recording import entries_of, read_header, recording_files
    from kubenexus.explain.replay_recording import replay as repeat
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plugins import BUILT_IN

    try:
        files = recording_files(recording)
        header = read_header(files[0])
        plugins = load_plugins(BUILT_IN)
        configuration = _configuration(header.configuration, header.scheduler_name, policy)
        planners = {
            each.name: make_planner(
                each, plugins, gang_settings(configuration.args[each.name].get(GANGS, {}), each.name), configuration
            )
            for each in configuration.profiles
        }
        result = repeat(entries_of(files), make_ledger(configuration), planners, _moment(until))
    except KubeNexusError as error:
        raise click.ClickException(" ".join(str(error).split())) from None
    if header.anonymised:
        click.echo("note: names are hashed here; what names decide, such as ties, may come out otherwise", err=True)
    if output == "text":
        echo_lines(_text(result))
    else:
        echo_data(result, output)
    raise SystemExit(2 if result.differing else 0)


def _configuration(text: str, scheduler_name: str, policy: Path | None) -> "Configuration":
    """Returns the recorded configuration, or the one of the file."""
    from kubenexus.app.flags import Flags, apply_flags
    from kubenexus.config import defaults, load
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plugins import BUILT_IN

    plugins = load_plugins(BUILT_IN)
    if policy is not None:
        return load(policy, plugins)
    found = load(text, plugins) if text else defaults(plugins)
    return apply_flags(found, Flags(scheduler_name=scheduler_name))


def _moment(text: str) -> float | None:
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.base.timestamps import parse_timestamp

    found = parse_timestamp(text, None) if text else None
    if text and found is None:
        raise KubeNexusError(f"--until: expected a timestamp such as 2026-11-17T03:00:00Z, not {text!r}")
    return found


def _text(result: "ReplayResult") -> str:
    from kubenexus.base.timestamps import format_time

    lines = [f"DECISIONS  {result.decisions}, of which {result.differing} differ"]
    if result.decisions:
        lines.append(f"FROM       {format_time(result.began_at)}")
        lines.append(f"TO         {format_time(result.ended_at)}")
    if result.first is not None:
        first = result.first
        lines += ["", f"FIRST      decision {first.number}, job {first.job}, {format_time(first.now)}"]
        lines.append(f"RECORDED   {first.recorded.full_sentence()}")
        lines.append(f"REPLAYED   {first.replayed.full_sentence()}")
    return "\n".join(lines) + "\n"
