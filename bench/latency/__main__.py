"""`python -m bench.latency`: prints how soon pods and gangs are bound, and writes every single wait to a file."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from bench.latency import report
from bench.latency.idle_machine import look_at_machine
from bench.latency.run import Latency, NotBound, Plan, measure
from bench.live.report import verdicts
from bench.report import machine


@click.command()
@click.option("--nodes", type=click.IntRange(1), default=1_000, show_default=True)
@click.option("--pods", type=click.IntRange(0), default=2_000, show_default=True, help="Single ones, by the clock.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), default=20.0, show_default=True, help="A second.")
@click.option("--gangs", type=click.IntRange(1), default=60, show_default=True, help="One after the other.")
@click.option("--size", type=click.IntRange(2), default=8, show_default=True, help="Pods of each.")
@click.option("--every", default=2.0, show_default=True, help="Seconds between two of them.")
@click.option("--large", type=click.IntRange(2), default=50, show_default=True, help="Pods of a large gang.")
@click.option("--rush", type=click.IntRange(1), default=100, show_default=True, help="Gangs at once, at the end.")
@click.option("--numa", type=click.IntRange(0, 8), default=0, help="NUMA nodes of each node; single pods are aligned.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=Path("build/latency.json"), show_default=True)
def main(file: Path, **plan: Any) -> None:
    """How soon a pod is bound once it was created, and a gang once its last pod was."""
    click.echo(machine())
    click.echo(look_at_machine().sentence())
    problem = ""
    with tempfile.TemporaryDirectory(prefix="kubenexus-latency-") as folder:
        try:
            tell(asyncio.run(measure(Path(folder), Plan(**plan))), file)
        except* NotBound as problems:
            problem = str(problems.exceptions[0])
    if problem:
        raise click.ClickException(problem)


def tell(found: Latency, file: Path) -> None:
    click.echo(report.table(found))
    click.echo(report.on_time(found))
    click.echo(verdicts(report.judge(found)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode({"machine": machine(), "found": found}) + b"\n")


if __name__ == "__main__":
    main()
