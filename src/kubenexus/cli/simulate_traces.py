"""`kubenexus simulate openb|philly|trace|recording`: policies on traces of jobs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from kubenexus.cli.cluster_source import open_dump

if TYPE_CHECKING:
    from kubenexus.sim.replay.backfill_order import Estimates, Order
    from kubenexus.sim.replay.progress import Progress
    from kubenexus.sim.replay.report.fail_if import Condition
    from kubenexus.sim.replay.runs import ReplayPlan, Result
    from kubenexus.state.ledger import Ledger

FAILED = 3  # the exit code if a condition of --fail-if holds
INTERRUPTED = 130  # the exit code that shells use
MAX_SEEDS = 1000
_File = click.Path(path_type=Path)
_Options = Callable[[Callable[..., None]], Callable[..., None]]


def _shared_options(command: Callable[..., None]) -> Callable[..., None]:
    options: list[_Options] = [
        click.option("--policy", "policies", multiple=True, metavar="NAME", help="May be given again; see above."),
        click.option("--config", type=_File, help="A configuration file, whose profiles are policies, too."),
        click.option("--seeds", default="42", show_default=True, metavar="N[-N][,...]", help="One run for each."),
        click.option(
            "--order",
            "orders",
            multiple=True,
            type=click.Choice(["first-fit", "fifo", "backfill"]),
            help="Of jobs that wait: smaller ones pass (the default), none does, or those that do not delay the first "
            "one. May be given again.",
        ),
        click.option(
            "--estimates",
            metavar="right|learned|N",
            help="What jobs declare about their runtime: the truth, nothing, or between an Nth of it and N times it.",
        ),
        click.option(
            "--eta",
            "ask_every",
            type=click.IntRange(1),
            metavar="N",
            help="With --order backfill: compare the expected start of every Nth job that waits with the truth.",
        ),
        click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True),
        click.option("--against", metavar="NAME", help="A second policy, on the same arrivals: prints a comparison."),
        click.option("--html", type=_File, help="With --against: write the comparison here, as one page with charts."),
        click.option(
            "--fail-if",
            "conditions",
            multiple=True,
            metavar="CONDITION",
            help="With --against: exit code 3 if it holds, such as 'wait.p95 > 1.05x'. May be given again.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


_POLICIES = """
    A policy is `shipped` (the profile of a scheduler without configuration), `kube-scheduler`, one of the FGD paper
    (`fgd`, `bestfit`, `dotprod`, `packing`, `clustering`, `random`), or a profile of --config by its schedulerName.

    Exit code 1: something is wrong with the input; 3: a condition of --fail-if holds; 130: interrupted, what was
    finished is printed.
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
@click.option(
    "--skip", type=click.IntRange(0), default=0, metavar="N", help="Leave out so many jobs, the first to arrive."
)
@click.option("--every", type=click.IntRange(1), default=1, metavar="N", help="Of the others only each Nth.")
@click.option("--most", type=click.IntRange(1), help="Only so many jobs, the first to arrive.")
@_shared_options
def philly(jobs: Path, nodes: str, skip: int, every: int, most: int | None, **shared: Any) -> None:
    from kubenexus.sim.replay.runs import ReplayPlan
    from kubenexus.sim.replay.traces.node_option import nodes_of
    from kubenexus.sim.replay.traces.philly import read_jobs
    from kubenexus.sim.replay.traces.trace import Trace

    def plans() -> "list[ReplayPlan]":
        known = nodes_of(nodes)
        found = read_jobs(jobs, max(node.gpus for node in known) or 1)
        return [ReplayPlan(Trace(jobs.stem, known, found[skip::every][:most]), lambda each, seed: each)]

    _run(plans, **shared)


@click.command(help=f"Play a trace of your own: JSON lines with nodes and jobs (docs/simulate.md).\n{_POLICIES}")
@click.argument("file", required=False, metavar="[TRACE.jsonl]", type=_File)
@click.option(
    "--cluster",
    "dump_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start with this cluster, a file that kubectl printed (`kubenexus explain --help`). Its pods without a node "
    "arrive first.",
)
@click.option("--again", is_flag=True, help="With --cluster: all its pods arrive, in the order of their creation.")
@_shared_options
def trace(file: Path | None, dump_file: Path | None, again: bool, **shared: Any) -> None:
    if file is None and dump_file is None:
        raise click.UsageError("a TRACE.jsonl, a --cluster, or both are needed")
    if again and dump_file is None:
        raise click.UsageError("--again needs --cluster")
    _run(lambda: [_own_plan(file, dump_file, again)], **shared)


@click.command(help=f"Play the jobs of a recording of `kubenexus run --record` again.\n{_POLICIES}")
@click.argument("path", metavar="FILE|FOLDER", type=click.Path(exists=True, path_type=Path))
@_shared_options
def recording(path: Path, **shared: Any) -> None:
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.replay.runs import ReplayPlan
    from kubenexus.sim.replay.traces.recording import read_recording
    from kubenexus.sim.replay.traces.trace import Trace

    def plans() -> "list[ReplayPlan]":
        found = read_recording(path)
        jobs = found.jobs()
        if not jobs:
            raise KubeNexusError(f"{path}: no decisions")
        return [ReplayPlan(Trace(path.stem, (), jobs), lambda each, seed: each, found.ledger)]

    _run(plans, **shared)


def _own_plan(file: Path | None, dump_file: Path | None, again: bool) -> "ReplayPlan":
    from msgspec.structs import replace

    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.replay.dump_jobs import dump_jobs, remove_jobs
    from kubenexus.sim.replay.runs import ReplayPlan
    from kubenexus.sim.replay.traces.json_lines import read_lines
    from kubenexus.sim.replay.traces.trace import Trace

    nodes, jobs = read_lines(file) if file is not None else ((), ())
    if dump_file is not None:
        known = dump_jobs(open_dump(dump_file).pods.values(), again=again)
        later = float(len(known))
        jobs = (*known, *(replace(job, at=job.at + later) for job in jobs))
    if not jobs or (dump_file is None and not nodes):
        raise KubeNexusError(f"{dump_file or file}: no {'jobs' if not jobs else 'nodes'}")
    if dump_file is None:
        return ReplayPlan(Trace(file.stem if file else "", nodes, jobs), lambda each, seed: each)
    if nodes:
        raise KubeNexusError(f"{file}: has nodes, and so has --cluster")

    def start() -> "Ledger":
        return remove_jobs(open_dump(dump_file, quiet=True).ledger, known)

    return ReplayPlan(Trace(dump_file.stem, (), jobs), lambda each, seed: each, start)


class _SharedOptions(NamedTuple):
    """The options that all traces share."""

    policies: tuple[str, ...]
    config: Path | None
    seeds: str
    output: str
    against: str | None
    html: Path | None
    conditions: tuple[str, ...]
    orders: tuple[str, ...]
    estimates: str | None
    ask_every: int | None


def _run(plans: "Callable[[], list[ReplayPlan]]", **options: Any) -> None:
    """Runs all policies with all seeds. Prints each line of JSON as soon as it is known, and tables at the end."""
    from kubenexus.base.errors import KubeNexusError

    wanted, results = _SharedOptions(**options), list[Any]()
    policies = _policies(wanted)
    try:
        conditions = _conditions(wanted)
        _collect(results, plans, policies, wanted)
        interrupted = any(not each.complete for each in results)
    except KubeNexusError as error:
        raise click.ClickException(" ".join(str(error).split())) from None
    except KeyboardInterrupt:
        interrupted = True
    if wanted.output == "table" and results:
        from kubenexus.sim.replay.report.tables import tables

        click.echo("\n".join(tables(results)))
    if interrupted:
        click.echo("interrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    if wanted.against is not None:
        _compare(results, policies, conditions, wanted)


def _policies(wanted: _SharedOptions) -> tuple[str, ...]:
    policies = wanted.policies or ("shipped",)
    if wanted.against is None:
        if wanted.html is not None or wanted.conditions:
            raise click.UsageError("--html and --fail-if need --against")
        return tuple(dict.fromkeys(policies))
    if len(policies) > 1 or policies[0] == wanted.against:
        raise click.UsageError("--against compares one --policy with another one")
    return policies[0], wanted.against


def _conditions(wanted: _SharedOptions) -> "list[Condition]":
    from kubenexus.sim.replay.report.fail_if import parse_condition

    return [parse_condition(text) for text in wanted.conditions]


def _compare(
    results: "list[Result]", policies: tuple[str, ...], conditions: "list[Condition]", wanted: _SharedOptions
) -> None:
    """Prints the comparison, writes the page and checks the conditions."""
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.replay.report.compare import comparison_table, figures
    from kubenexus.sim.replay.report.page import comparison_page

    own, other = policies
    found = figures(results, own, other)
    if wanted.output == "table":
        click.echo("\n" + "\n".join(comparison_table(found, own, other)))
    try:
        if wanted.html is not None:
            wanted.html.write_text(comparison_page(results, found, own, other), encoding="utf-8")
        failed = [reason for reason in (condition.check(found) for condition in conditions) if reason]
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write {wanted.html}: {error.strerror}") from None
    for reason in failed:
        click.echo(f"FAILED: {reason}", err=True)
    if failed:
        raise click.exceptions.Exit(FAILED)


def _collect(
    results: "list[Result]",
    plans: "Callable[[], list[ReplayPlan]]",
    policies: tuple[str, ...],
    wanted: _SharedOptions,
) -> None:
    import msgspec

    from kubenexus.sim.replay.runs import run_all

    seeds, orders, estimates = _seeds(wanted.seeds), _orders(wanted), _estimates(wanted)
    with _progress() as progress:
        for result in run_all(
            plans(),
            policies,
            seeds,
            config=wanted.config,
            orders=orders,
            estimates=estimates,
            ask_every=wanted.ask_every or 0,
            progress=progress,
        ):
            results.append(result)
            if wanted.output == "json":
                click.echo(msgspec.json.encode(result.as_json()))


def _orders(wanted: _SharedOptions) -> "tuple[Order, ...]":
    from kubenexus.sim.replay.backfill_order import FIRST_FIT

    orders = cast("tuple[Order, ...]", tuple(dict.fromkeys(wanted.orders)) or (FIRST_FIT,))
    if wanted.ask_every and "backfill" not in orders:
        raise click.UsageError("--eta needs --order backfill: expected starts follow from its rules")
    if wanted.against is not None and orders != (FIRST_FIT,):
        raise click.UsageError("--against compares policies in the order first-fit; give --order without it")
    return orders


def _estimates(wanted: _SharedOptions) -> "Estimates | None":
    """Returns what jobs declare; the truth with backfill."""
    from kubenexus.sim.replay.backfill_order import Estimates

    text = wanted.estimates or ("right" if "backfill" in wanted.orders else "")
    if not text:
        return None
    if text in ("right", "learned"):
        return Estimates(float(text == "right"))
    if not text.isascii() or not text.isdecimal() or not 2 <= int(text[:6]) <= 1000:
        raise click.BadParameter(f"{text!r} is not right, learned or a number from 2 to 1000", param_hint="--estimates")
    return Estimates(float(text))


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
