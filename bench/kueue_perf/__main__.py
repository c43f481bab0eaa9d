"""`python -m bench.kueue_perf FOLDER...`: how long it takes to admit all workloads of Kueue's scenarios."""

from pathlib import Path

import click

from bench.kueue_perf.play import Result, play
from bench.kueue_perf.scenario import Bounds, read_scenario
from bench.report import machine


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--part", type=click.FloatRange(0, 1, min_open=True), default=1.0, help="Of the workloads of each set.")
def main(folders: tuple[Path, ...], part: float) -> None:
    """Plays scenarios, each a folder with generator.yaml and perhaps rangespec.yaml, beside the bounds of the latter:
    they are Kueue's, of its own tests in real time, and for all workloads."""
    click.echo(machine())
    for folder in folders:
        scenario, bounds = read_scenario(folder)
        for line in lines(folder.name, play(scenario, part), bounds if part == 1.0 else None):
            click.echo(line)


def lines(name: str, result: Result, bounds: Bounds | None) -> list[str]:
    """Returns the result as text."""
    limit = "" if bounds is None else f" (Kueue at most {bounds.seconds:.0f})"
    use = "" if bounds is None else f" (Kueue at least {bounds.least_use:.0f})"
    found = [
        "",
        f"{name}: {result.workloads:,} workloads",
        f"  all ended after, s          {result.seconds:8.1f}{limit}",
        f"  last one admitted after, s  {result.admitted:8.1f}",
        f"  processor time, s           {result.cpu:8.1f}  ({result.workloads / result.cpu:.0f} workloads a second)",
        f"  use of quotas, %            {result.use:8.1f}{use}",
        f"  most of a cohort's quota, % {100 * result.most:8.1f}",
    ]
    for each, seconds in result.waits.items():
        most = (
            "" if bounds is None or each not in bounds.mean_wait else f" (Kueue at most {bounds.mean_wait[each]:.0f})"
        )
        found.append(f"  mean wait of {each}, s".ljust(30) + f"{seconds:8.1f}{most}")
    return found


if __name__ == "__main__":
    main()
