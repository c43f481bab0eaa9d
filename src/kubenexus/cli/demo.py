"""`kubenexus demo`: a demonstration that needs nothing but Python."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.interrupts import AT_ONCE, interrupt_event, loop_factory

if TYPE_CHECKING:
    from kubenexus.sim.demo.demo_run import DemoOptions


@click.command()
@click.option(
    "--nodes", type=click.IntRange(min=4), default=12, show_default=True, help="Ordinary nodes, besides GPUs."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same names and identities every time.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="2: twice as fast. Without it at a human's pace on a terminal, and without any pause elsewhere.",
)
@click.option("--patience", type=float, default=30.0, show_default=True, help="Seconds until an act has failed.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the API server; 0: any that is free.")
@click.option("--plain", is_flag=True, help="Lines instead of a screen, on a terminal, too.")
@click.option("--web/--no-web", default=None, help="Serve the web page. Default: on a terminal, or with --keep.")
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards, until Ctrl-C.")
@click.option(
    "--scheduler",
    type=click.Choice(["kubenexus", "kube", "none"]),
    default="kubenexus",
    show_default=True,
    help="Who places the pods. kube: kube-scheduler, for comparison, where one is at hand.",
)
def demo(keep: bool, web: bool | None, **options: Any) -> None:
    """An embedded cluster, the real scheduler, and a story in acts.

    Everything ends with the command. If an act fails, the output names it, and the exit code is 1.
    """
    from kubenexus.base.errors import KubeNexusError

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            plan = _plan(**options)
            code = runner.run(_play(plan, keep, plan.draws or keep if web is None else web))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None
    sys.exit(code)


async def _play(plan: "DemoOptions", keep: bool, web: bool) -> int:
    from kubenexus.sim.demo.demo_run import DemoRun
    from kubenexus.sim.demo.screen import LEAVE

    ended = interrupt_event(LEAVE if plan.draws else "")
    show = DemoRun(plan, click.echo, page=_page if web else None)
    story = asyncio.ensure_future(show.play(ended if keep else None))
    stop = asyncio.ensure_future(ended.wait())
    await asyncio.wait({story, stop}, return_when=asyncio.FIRST_COMPLETED)
    if not story.done() and not show.told:
        story.cancel()
        await asyncio.gather(story, return_exceptions=True)
        click.echo("interrupted: the cluster is gone", err=True)
        return AT_ONCE
    stop.cancel()
    await story
    return 0


@contextlib.asynccontextmanager
async def _page(kubeconfig: Path, scheduler: str) -> AsyncIterator[str]:
    """Serves the page about the demo's cluster."""
    from kubenexus.cli.cluster_source import ClusterSource
    from kubenexus.cli.scheduler_api import SchedulerApi
    from kubenexus.cli.web import served

    source = ClusterSource(None, str(kubeconfig))
    async with served(source, SchedulerApi(scheduler, "", str(kubeconfig))) as address:
        yield address


def _plan(speed: float | None, plain: bool, **options: Any) -> "DemoOptions":
    from kubenexus.sim.demo.demo_run import DemoOptions
    from kubenexus.sim.demo.screen import can_draw

    draws = not plain and can_draw(sys.stdout)
    pace = 1 / speed if speed else float(draws)
    return DemoOptions(**options, pace=pace, draws=draws)
