"""`make openb`: the policies of the FGD paper on openb, beside the published results.

OPENB is a folder with the trace's files (clusterdata, cluster-trace-gpu-v2023) and, in `expected_results`, the
published `analysis_allo_discrete.csv`. Arrivals are drawn with another generator than theirs, so means are compared.
"""

import csv
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

import click
import msgspec

from kubenexus.base.errors import KubeNexusError
from kubenexus.sim.replay.report.tables import aligned
from kubenexus.sim.replay.runs import ReplayPlan, run_all
from kubenexus.sim.replay.traces import openb
from kubenexus.sim.replay.traces.trace import Trace

# Policies with their names in the published results, and the points by which the means may differ.
PUBLISHED = {
    "fgd": ("06-FGD", 0.5),
    "bestfit": ("05-BestFit", 0.5),
    "dotprod": ("02-DotProd", 0.5),
    "random": ("01-Random", 0.5),
    "packing": ("04-GpuPacking", 1.5),
    "clustering": ("03-GpuClustering", 1.5),
}
EXPECTED = Path("expected_results") / "analysis_allo_discrete.csv"
AT = 100  # percent of arrived requests


class Run(NamedTuple):
    """One run, with the file of its pods."""

    file: Path
    policy: str
    seed: int


class Figure(NamedTuple):
    """Allocated GPUs in percent at 100 % of arrived requests, one for each seed: ours and the published ones."""

    trace: str
    policy: str
    ours: list[float]
    published: list[float]

    @property
    def difference(self) -> float | None:
        return mean(self.ours) - mean(self.published) if self.published else None

    @property
    def is_off(self) -> bool:
        off = self.difference
        return off is not None and self.policy in PUBLISHED and abs(off) > PUBLISHED[self.policy][1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--policy", "policies", multiple=True, help="Only these; without, all of the paper.")
@click.option("--trace", "traces", multiple=True, help="Only these; without, all of the folder.")
@click.option("--seeds", default=3, show_default=True, help="How many, from 42 on.")
@click.option("--processes", default=2, show_default=True, help="Runs at a time.")
@click.option("--output", default="build/openb.jsonl", type=click.Path(path_type=Path), show_default=True)
def main(
    folder: Path, policies: tuple[str, ...], traces: tuple[str, ...], seeds: int, processes: int, output: Path
) -> None:
    """Print our figures beside the published ones. Exit code 1: one differs by more than it may."""
    try:
        files = openb.pod_files([folder], traces)
        published = read_published(folder / EXPECTED)
        runs = [Run(file, policy, 42 + i) for file in files for policy in policies or PUBLISHED for i in range(seeds)]
        lines = []
        with ProcessPoolExecutor(processes) as pool:
            for line in pool.map(play, runs):
                lines.append(line)
                click.echo(f"{line['trace']} {line['policy']} {line['seed']}: {at_100(line):.2f}", err=True)
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    figures = list(compare(lines, published))
    click.echo("\n".join(table(figures)))
    if any(figure.is_off for figure in figures):
        raise click.exceptions.Exit(1)


def play(run: Run) -> dict[str, object]:
    """Returns the line of one run."""
    nodes = openb.read_nodes(run.file.parent / openb.NODES_FILE)
    plan = ReplayPlan(Trace(openb.trace_name(run.file), nodes, openb.read_pods(run.file)), openb.inflated)
    (result,) = run_all([plan], [run.policy], [run.seed])
    return result.as_json()


def read_published(path: Path) -> dict[tuple[str, str], list[float]]:
    """Returns the published figures by trace and policy; none if the folder has no such file."""
    found: dict[tuple[str, str], list[float]] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                key = (row["workload"].removeprefix(openb.PREFIX), row["sc_policy"])
                found.setdefault(key, []).append(float(row[str(AT)]))
    return found


def compare(lines: Sequence[dict[str, object]], published: dict[tuple[str, str], list[float]]) -> Iterator[Figure]:
    """Yields a figure for each trace and policy."""
    ours: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        ours.setdefault((str(line["trace"]), str(line["policy"])), []).append(at_100(line))
    for (trace, policy), figures in ours.items():
        name = PUBLISHED.get(policy, ("",))[0]
        yield Figure(trace, policy, figures, published.get((trace, name), []))


def at_100(line: dict[str, object]) -> float:
    figures = line["allocated_at"]
    return float(figures[str(AT)]) if isinstance(figures, dict) else 0.0


def table(figures: Sequence[Figure]) -> list[str]:
    """Returns the figures as lines."""
    rows: list[tuple[str, ...]] = [("trace", "policy", "seeds", "ours", "published", "difference", "may be", "")]
    for each in figures:
        difference, known = each.difference, PUBLISHED.get(each.policy)
        rows.append(
            (
                each.trace,
                each.policy,
                str(len(each.ours)),
                _spread(each.ours),
                _spread(each.published),
                "-" if difference is None else f"{difference:+.2f}",
                "-" if known is None or difference is None else f"{known[1]:.1f}",
                "OFF" if each.is_off else "",
            )
        )
    return [*aligned(rows), "", f"GPUs allocated in percent when requests for {AT} % have arrived"]


def _spread(numbers: Sequence[float]) -> str:
    if not numbers:
        return "-"
    return f"{mean(numbers):.2f}" + (f"±{stdev(numbers):.2f}" if len(numbers) > 1 else "")


if __name__ == "__main__":
    main()
