"""`python -m bench.peers`: prints a line for each run, then the table; what was measured before an interrupt, too."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import click
import msgspec

from bench.live.contestants import as_installed
from bench.peers import report
from bench.peers.peer import Peer
from bench.peers.running import Ended, Result, run
from bench.peers.schedulers import PEERS
from bench.report import machine
from kubenexus.base.errors import KubeNexusError
from tests.e2e.controlplane import build
from tests.e2e.controlplane.build import CannotBuild

PLAIN, RACKS = "gangs", "gangs-rack"
LONGEST_REASON = 300
LONGEST_LOG = 3_000


def built(names: tuple[str, ...], problems: list[str]) -> list[Peer]:
    """The schedulers that can be built here. Adds a line to `problems` for each of the others."""
    ready = []
    for name in names:
        peer = PEERS[name]()
        try:
            peer.build()
            ready.append(peer)
        except CannotBuild as problem:
            problems.append(f"{name}: cannot be built: {str(problem)[:LONGEST_REASON]}")
            click.echo(problems[-1])
    return ready


def programme(peers: list[Peer], gangs: int, rack_gangs: int) -> tuple[list[tuple[Peer, str, int]], list[str]]:
    """All runs in order, and a line for each scheduler that cannot bind a gang to a rack."""
    plain = [(peer, PLAIN, gangs) for peer in peers] if gangs else []
    racks = [(peer, RACKS, rack_gangs) for peer in peers if peer.racks] if rack_gangs else []
    without = [f"{peer.name}: has no gangs within a rack" for peer in peers if rack_gangs and not peer.racks]
    return plain + racks, without


async def measure(
    steps: list[tuple[Peer, str, int]], nodes: int, patience: float, results: list[Result], problems: list[str]
) -> None:
    """Adds to `results` and `problems`, so that an interrupt leaves what there is."""
    for peer, case, count in steps:
        try:
            results.append(await run(peer, case, nodes, count, patience))
            click.echo(report.line(results[-1]))
        except (Ended, KubeNexusError, AssertionError) as problem:
            problems.append(f"{peer.name}: {case} failed: {str(problem).splitlines()[0][:LONGEST_REASON]}")
            click.echo(f"{case:<11} {peer.name:<18} failed: {str(problem)[:LONGEST_LOG]}")


@click.command()
@click.option("--nodes", default=1_000, show_default=True, help="A hundred of them share a rack.")
@click.option("--gangs", default=100, show_default=True, help="Gangs of 8; 0 for none.")
@click.option("--rack-gangs", default=60, show_default=True, help="Gangs of 4, each within one rack; 0 for none.")
@click.option("--patience", default=240.0, show_default=True, help="Seconds after which a run ends as it is.")
@click.option("--json", "file", type=click.Path(path_type=Path), default=Path("build/peers.json"), show_default=True)
@click.option("--build-only", is_flag=True, help="Only build what is missing.")
@click.argument("schedulers", nargs=-1, type=click.Choice(list(PEERS)))
def main(schedulers: tuple[str, ...], *, file: Path, build_only: bool, **sizes: Any) -> None:
    """SCHEDULERS side by side, each on a real control plane of its own; all, if none is named."""
    if absent := build.missing(build.assets()):
        raise click.ClickException(f"{build.assets()} lacks {', '.join(absent)}; run `make controlplane` first")
    as_installed()
    results: list[Result] = []
    problems: list[str] = []
    peers = built(schedulers or tuple(PEERS), problems)
    steps, without = programme(peers, sizes["gangs"], sizes["rack_gangs"])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an interrupt, too
    try:
        if not build_only:
            click.echo(f"{machine()}; {sizes['nodes']} nodes, {len(steps)} runs to come")
            asyncio.run(measure(steps, sizes["nodes"], sizes["patience"], results, problems))
    except KeyboardInterrupt:
        click.echo("interrupted; so far:")
    finally:
        tell(results, problems + without, file)


def tell(results: list[Result], problems: list[str], file: Path) -> None:
    for text in (report.table(results), *problems):
        click.echo(text)
    if results:
        file.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": machine(), "results": results, "problems": problems}
        file.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


if __name__ == "__main__":
    main()
