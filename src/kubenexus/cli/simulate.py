"""`kubenexus simulate`: the real scheduler and the embedded cluster in virtual time."""

import contextlib
import gc
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from kubenexus.cli.interrupts import interrupts_held
from kubenexus.cli.simulate_traces import INTERRUPTED, openb, philly, recording, trace

if TYPE_CHECKING:
    from kubenexus.sim.perf.workload_run import Result, WorkloadFilter, WorkloadRun


@click.group()
def simulate() -> None:
    """Play scenarios in virtual time: waits cost nothing, and the same seed gives the same decisions."""


simulate.add_command(openb)
simulate.add_command(philly)
simulate.add_command(recording)
simulate.add_command(trace)


@simulate.command("scheduler-perf")
@click.argument("paths", nargs=-1, required=True, metavar="FILE_OR_FOLDER...", type=click.Path(path_type=Path))
@click.option("--label", "labels", multiple=True, help="Only workloads with this label; again: with any of them.")
@click.option("--case", "cases", multiple=True, help="Only this test case; may be given again.")
@click.option("--workload", "workloads", multiple=True, help="Only workloads of this name; may be given again.")
@click.option("--seed", type=int, default=0, show_default=True, help="Names, identities and every draw follow from it.")
@click.option(
    "--log", "log_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every decision here, one a line."
)
@click.option("-v", "--v", "verbosity", type=click.IntRange(0, 10), help="Also what the scheduler itself logs.")
def scheduler_perf(
    paths: tuple[Path, ...], seed: int, log_file: Path | None, verbosity: int | None, **wanted: tuple[str, ...]
) -> None:
    """Play workloads in the format of kube-scheduler's benchmark (its test/integration/scheduler_perf).

    A FOLDER stands for every performance-config.yaml in it. Each workload has a cluster of its own and ends when every
    pod that must have a node has one. Workloads that need a missing feature are not played, but listed with the reason.
    The exit code is 1 if a workload failed.
    """
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.observe import logs
    from kubenexus.sim.perf.workload_run import WorkloadFilter

    handler = logs.configure(-1 if verbosity is None else verbosity)  # errors are logged in any case
    try:
        results = _played(paths, WorkloadFilter(**wanted), seed, log_file)
    except KubeNexusError as error:
        raise click.ClickException(" ".join(str(error).split())) from None
    except OSError as error:
        raise click.ClickException(f"cannot write {log_file}: {error.strerror}") from None
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        logging.getLogger().removeHandler(handler)
    _print_results(results)
    if any(each.failed for each in results):
        raise click.exceptions.Exit(1)


def _played(paths: tuple[Path, ...], selection: "WorkloadFilter", seed: int, log_file: Path | None) -> "list[Result]":
    from kubenexus.base.clock import WallClock
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.framework.registry import load_plugins
    from kubenexus.plugins import BUILT_IN
    from kubenexus.sim.perf import files, workload_run

    trials = list(selection.chosen([case for file in files.find(paths) for case in files.read(file)]))
    if not trials:
        raise KubeNexusError("no workload has these labels and names")
    plugins, stopwatch, results = load_plugins(BUILT_IN), WallClock(), []
    with _opened(log_file) as log, _progress(trials) as bar:
        for each in trials:
            if log is not None:
                log.write(f"# {each.name}\n")
            write = None if log is None else log.write
            bar.begin(each)
            result = workload_run.run(each, plugins, seed=seed, stopwatch=stopwatch, write=write, placed=bar.placed)
            results.append(result)
            with interrupts_held():
                bar.end(result)
                gc.collect()  # a simulation has reference cycles, and the next one needs its memory
    return results


@contextlib.contextmanager
def _opened(file: Path | None) -> Iterator[TextIO | None]:
    if file is None:
        yield None
        return
    with file.open("w", encoding="utf-8") as opened:
        yield opened


# ---- output
# ------------------------------------------------------------------------------------------------------------


class _Lines:
    """Progress for a file or a pipe: one line for each finished workload."""

    def begin(self, trial: "WorkloadRun") -> None:
        """Prints nothing."""

    def placed(self, pods: int) -> None:
        """Prints nothing."""

    def end(self, result: "Result") -> None:
        from kubenexus.sim.perf import report

        click.echo(report.line(result))


class _Bar(_Lines):
    """Progress for a terminal: a bar that grows with the pods."""

    def __init__(self, update: Callable[[int, str], None]) -> None:
        self._update = update
        self._name, self._left = "", 0

    def begin(self, trial: "WorkloadRun") -> None:
        self._name, self._left = trial.name, trial.weight

    def placed(self, pods: int) -> None:
        step = min(pods, self._left - 1)
        if step > 0:
            self._left -= step
            self._update(step, self._name)

    def end(self, result: "Result") -> None:
        self._update(self._left, self._name)


@contextlib.contextmanager
def _progress(trials: "list[WorkloadRun]") -> Iterator[_Lines]:
    if not sys.stdout.isatty():
        yield _Lines()
        return
    length = sum(each.weight for each in trials)
    with click.progressbar(length=length, label="playing", item_show_func=lambda name: name) as bar:
        yield _Bar(bar.update)


def _print_results(results: "list[Result]") -> None:
    from kubenexus.sim.perf import report

    click.echo()
    if not all(each.lacking for each in results):
        click.echo("\n".join(report.table(results)) + "\n")
    for title, lines in (("not played:", report.not_played(results)), ("FAILED:", report.failures(results))):
        if lines:
            click.echo("\n".join([title, *(f"  {each}" for each in lines), ""]))
    click.echo(report.summary(results))
