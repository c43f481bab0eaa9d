"""`kubenexus simulate openb|philly|trace`: policies on traces of jobs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubenexus.sim.replay.runs import Progress, ReplayPlan, Result

INTERRUPTED = 130  # the exit code that shells use
MAX_SEEDS = 1000
_File = click.Path(path_type=Path)
_Options = Callable[[Callable[..., None]], Callable[..., None]]


def _shared_options(command: Callable[..., None]) -> Callable[..., None]:
    options: list[_Options] = [
        click.option("--policy", "policies", multiple=True, metavar="NAME", help="May be given again; see above."),
        click.option("--config", type=_File, help="A configuration file, whose profiles are policies, too."),
        click.option("--seeds", default="42", show_default=True, metavar="N[-N][,...]", help="One run for each."),
        click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True),
    ]
    for option in reversed(options):
        command = option(command)
    return command


_POLICIES = """
    A policy is `shipped` (the profile of a scheduler without configuration), `kube-scheduler`, one of the FGD paper
    (`fgd`, `bestfit`, `dotprod`, `packing`, `clustering`, `random`), or a profile of --config by its schedulerName.

    Exit code 1: something is wrong with the input; 130: interrupted, what was finished is printed.
    """


@click.command(help=f"Fill a cluster with pods of openb, Alibaba's GPU trace, as the FGD paper does.\n{_POLICIES}")
@click.argument("pods", nargs=-1, required=True, metavar="PODS.csv|FOLDER...", type=_File)
@click.option("--nodes", type=_File, help="The nodes; without, openb_node_list_gpu_node.csv beside the pods.")
@click.option("--trace", "names", multiple=True, help="Of a FOLDER, only this trace (`default`); may be given again.")
@click.option("--departures", is_flag=True, help="Pods also end: lifetimes of the trace, at --load.")
@click.option(
    "--load",
    type=click.FloatRange(0.01, 10),
    default=1.0,
    show_default=True,
    help="With --departures: GPUs asked for over those there are.",
)
@_shared_options
def openb(
    pods: tuple[Path, ...],
    nodes: Path | None,
    names: tuple[str, ...],
    departures: bool,
    load: float,
    **shared: Any,
) -> None:
    from kubenexus.sim.replay.lifetimes import with_lifetimes
    from kubenexus.sim.replay.runs import ReplayPlan
    from kubenexus.sim.replay.traces import openb as reader
    from kubenexus.sim.replay.traces.trace import Trace

    def plans() -> "list[ReplayPlan]":
        found = []
        for file in reader.pod_files(pods, names):
            known = reader.read_nodes(nodes or file.parent / reader.NODES_FILE)
            trace = Trace(reader.trace_name(file), known, reader.read_pods(file))
            arrivals = (lambda each, seed: with_lifetimes(each, seed, load)) if departures else reader.inflated
            found.append(ReplayPlan(trace, arrivals))
        return found

    _run(plans, **shared)


@click.command(help=f"Play jobs of Philly, Microsoft's trace, with their arrivals and durations.\n{_POLICIES}")
@click.argument("jobs", metavar="JOBS.csv", type=_File)
@click.option("--nodes", default="56x8", show_default=True, metavar="NxG|FILE", help="N nodes with G GPUs, or a CSV.")
@click.option("--most", type=click.IntRange(1), help="Only so many jobs, the first to arrive.")
@_shared_options
def philly(jobs: Path, nodes: str, most: int | None, **shared: Any) -> None:
    from kubenexus.sim.replay.runs import ReplayPlan
    from kubenexus.sim.replay.traces.node_option import nodes_of
    from kubenexus.sim.replay.traces.philly import read_jobs
    from kubenexus.sim.replay.traces.trace import Trace

    def plans() -> "list[ReplayPlan]":
        known = nodes_of(nodes)
        found = read_jobs(jobs, max(node.gpus for node in known) or 1)
        return [ReplayPlan(Trace(jobs.stem, known, found[:most]), lambda each, seed: each)]

    _run(plans, **shared)


@click.command(help=f"Play a trace of your own: JSON lines with nodes and jobs (docs/simulate.md).\n{_POLICIES}")
@click.argument("file", metavar="TRACE.jsonl", type=_File)
@_shared_options
def trace(file: Path, **shared: Any) -> None:
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.replay.runs import ReplayPlan
    from kubenexus.sim.replay.traces.json_lines import read_lines
    from kubenexus.sim.replay.traces.trace import Trace

    def plans() -> "list[ReplayPlan]":
        nodes, jobs = read_lines(file)
        for what, found in (("nodes", nodes), ("jobs", jobs)):
            if not found:
                raise KubeNexusError(f"{file}: no {what}")
        return [ReplayPlan(Trace(file.stem, nodes, jobs), lambda each, seed: each)]

    _run(plans, **shared)


def _run(
    plans: "Callable[[], list[ReplayPlan]]", policies: tuple[str, ...], config: Path | None, seeds: str, output: str
) -> None:
    """Runs all policies with all seeds. Prints each line of JSON as soon as it is known, and tables at the end."""
    from kubenexus.base.errors import KubeNexusError

    results: list[Result] = []
    try:
        _collect(results, plans, policies or ("shipped",), config, _seeds(seeds), output)
    except KubeNexusError as error:
        raise click.ClickException(" ".join(str(error).split())) from None
    except KeyboardInterrupt:
        interrupted = True
    else:
        interrupted = any(not each.complete for each in results)
    if output == "table" and results:
        from kubenexus.sim.replay.tables import tables

        click.echo("\n".join(tables(results)))
    if interrupted:
        click.echo("interrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED)


def _collect(
    results: "list[Result]",
    plans: "Callable[[], list[ReplayPlan]]",
    policies: tuple[str, ...],
    config: Path | None,
    seeds: list[int],
    output: str,
) -> None:
    import msgspec

    from kubenexus.sim.replay.runs import run_all

    with _progress() as progress:
        for result in run_all(plans(), policies, seeds, config=config, progress=progress):
            results.append(result)
            if output == "json":
                click.echo(msgspec.json.encode(result.as_json()))


def _seeds(text: str) -> list[int]:
    """Returns the seeds of `42-47,50`."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            raise click.BadParameter(f"{text!r} is not a list like 42-47,50", param_hint="--seeds")
        found.extend(range(int(first), min(int(last or first), int(first) + MAX_SEEDS) + 1))
    if not found or len(found) > MAX_SEEDS:
        raise click.BadParameter(f"{text!r} has no seeds, or more than {MAX_SEEDS}", param_hint="--seeds")
    return found


@contextmanager
def _progress() -> "Iterator[Callable[[str, int], Progress]]":
    """Yields what reports progress: a bar for each run on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda name, jobs: lambda done: None
        return
    bars: list[Any] = []

    def begin(name: str, jobs: int) -> "Progress":
        while bars:
            bars.pop().render_finish()
        bar = click.progressbar(length=jobs, label=name, file=sys.stderr)
        bars.append(bar)
        return bar.update

    try:
        yield begin
    finally:
        while bars:
            bars.pop().render_finish()
