"""`python -m bench.live`: prints a line for each run, then the tables; what was measured before an interrupt, too."""

import asyncio
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from bench.live import report
from bench.live.cases import CASES, Case
from bench.live.contestants import CONTESTANTS, NULL, as_installed
from bench.live.idle import idle
from bench.live.runs import MODES, NotBound, Run
from bench.live.stage import Stage, staged
from bench.live.targets import judge
from bench.report import machine

Step = tuple[Case, str, str, int]


class Names(click.ParamType[tuple[str, ...]]):
    """Some of these, with commas between them."""

    name = "names"

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        chosen = value if isinstance(value, tuple) else tuple(str(value).split(","))
        unknown = [name for name in chosen if name not in self._known]
        if unknown:
            self.fail(f"{unknown[0]!r} is not one of {', '.join(self._known)}", param, ctx)
        return chosen


def programme(cases: tuple[str, ...], modes: tuple[str, ...], whos: tuple[str, ...], pairs: int) -> Iterator[Step]:
    """All runs in order: of a pair one after the other, and each time another of them is the first. The null binder
    evicts no pods and allocates no devices."""
    for case in cases:
        for mode in modes:
            for pair in range(pairs):
                able = [who for who in whos if who != NULL or not (CASES[case].victims or CASES[case].devices)]
                turn = pair % max(1, len(able))
                yield from ((CASES[case], mode, who, pair) for who in (*able[turn:], *able[:turn]))


async def measure(steps: list[Step], nodes: int, pods: int, runs: list[Run]) -> None:
    """Adds to `runs`, so that an interrupt leaves what there is. Gangs and devices have control planes of their own."""
    for (gangs, devices), some in itertools.groupby(steps, lambda step: (step[0].gangs is not None, step[0].devices)):
        async with staged(gangs=gangs) as stage:
            await stage.furnish(nodes)
            if devices:
                await stage.devices(devices)
            await perform(stage, list(some), pods, runs)


async def perform(stage: Stage, steps: list[Step], pods: int, runs: list[Run]) -> None:
    """On one stage, one after the other. Who leaves pods unbound is named, and the next has a go."""
    click.echo(f"{len(steps)} runs to come{' with ' + ', '.join(stage.gates) if stage.gates else ''}")
    for case, mode, who, pair in steps:
        count = case.whole(pods or (case.drain if mode == "drain" else case.burst))
        try:
            runs.append(await MODES[mode](stage, case, who, count, pair))
        except NotBound as problem:
            click.echo(f"{case.name:<18} {mode} {pair + 1}  {problem}")
            continue
        click.echo(report.line(runs[-1]))


async def rest(whos: tuple[str, ...], nodes: int, seconds: float) -> None:
    async with staged() as stage:
        await stage.furnish(nodes)
        for who in whos:
            click.echo(await idle(stage, who, seconds))


@click.command()
@click.option("--nodes", default=5_000, show_default=True)
@click.option("--pods", default=0, help="In each run, instead of each case's own number.")
@click.option("--pairs", default=3, show_default=True)
@click.option("--cases", type=Names(tuple(CASES)), default=",".join(CASES), show_default=True)
@click.option("--modes", type=Names(tuple(MODES)), default=",".join(MODES), show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), default=Path("build/live.json"), show_default=True)
@click.option("--markdown", is_flag=True, help="The tables for docs/benchmarks.md, instead of marks.")
@click.option("--idle", "seconds", default=0.0, help="Only how much a scheduler uses that has nothing to do.")
@click.argument("schedulers", nargs=-1, type=click.Choice(list(CONTESTANTS)))
def main(schedulers: tuple[str, ...], nodes: int, seconds: float, **wanted: Any) -> None:
    """SCHEDULERS side by side on one real control plane; all, if none is named."""
    whos = schedulers or tuple(CONTESTANTS)
    as_installed()
    if seconds:
        asyncio.run(rest(whos, nodes, seconds))
    else:
        compare(whos, nodes, **wanted)


def compare(
    whos: tuple[str, ...],
    nodes: int,
    *,
    pods: int,
    pairs: int,
    cases: tuple[str, ...],
    modes: tuple[str, ...],
    file: Path,
    markdown: bool,
) -> None:
    click.echo(machine())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an interrupt, too
    runs: list[Run] = []
    try:
        asyncio.run(measure(list(programme(cases, modes, whos, pairs)), nodes, pods, runs))
    except KeyboardInterrupt:
        click.echo("interrupted; so far:")
    finally:
        tell(runs, file, markdown)


def tell(runs: list[Run], file: Path, markdown: bool) -> None:
    judgements = list(judge(runs))
    click.echo(report.tables(runs, judgements))
    if not markdown:
        click.echo(report.verdicts(judgements))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode({"machine": machine(), "runs": runs}), indent=1) + b"\n")


if __name__ == "__main__":
    main()
