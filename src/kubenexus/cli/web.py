"""`kubenexus web`: the cluster in a browser."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubenexus.cli.cluster_source import ClusterSource, cluster_options, open_dump
from kubenexus.cli.interrupts import interrupt_event, loop_factory
from kubenexus.cli.profiles import load_configuration, profile_of
from kubenexus.cli.scheduler_api import SchedulerApi, scheduler_options

if TYPE_CHECKING:
    from kubenexus.config import Configuration
    from kubenexus.web.local_server import Routes
    from kubenexus.web.page_routes import PageSettings

_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="On 127.0.0.1; 0: any that is free.")
@click.option("--report", "reports", multiple=True, type=_file, help="A comparison that the simulator wrote, to show.")
@scheduler_options
@cluster_options
@click.option("--config", "config_file", type=_file, help="The scheduler's configuration. Defaults without.")
def web(
    source: ClusterSource, scheduler: SchedulerApi, port: int, reports: tuple[Path, ...], config_file: Path | None
) -> None:
    """Show the cluster in a browser: its map, what waits and why, gangs, decisions, and what-ifs.

    Prints an address for your browser on this machine. The address contains a token: without it no other user and no
    web site gets an answer. The page only reads.

    Asks the scheduler (--scheduler), with the rights of your kubeconfig. Without it, reads the live cluster with your
    kubeconfig, or (--cluster) a file that kubectl printed; then there are no decisions to follow.
    """
    from kubenexus.base.errors import KubeNexusError

    try:
        configuration = load_configuration(config_file)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(source, scheduler, port, reports, configuration))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None


async def _serve(
    source: ClusterSource,
    scheduler: SchedulerApi,
    port: int,
    reports: tuple[Path, ...],
    configuration: "Configuration | None",
) -> None:
    ended = interrupt_event()
    async with served(source, scheduler, port, reports, configuration) as address:
        click.echo(f"Open {address}")
        click.echo("Ctrl-C ends it.")
        await ended.wait()


@contextlib.asynccontextmanager
async def served(
    source: ClusterSource,
    scheduler: SchedulerApi,
    port: int = 0,
    reports: tuple[Path, ...] = (),
    configuration: "Configuration | None" = None,
) -> AsyncIterator[str]:
    """Serves the page within the `with`. Returns its address. Raises KubeNexusError."""
    from kubenexus.web.local_server import LocalServer

    async with contextlib.AsyncExitStack() as stack:
        api, settings = await _api(stack, source, scheduler, configuration)
        server = LocalServer(api, settings, reports)
        stack.push_async_callback(server.stop)
        yield await server.start(port)


async def _api(
    stack: contextlib.AsyncExitStack,
    source: ClusterSource,
    scheduler: SchedulerApi,
    configuration: "Configuration | None",
) -> "tuple[Routes, PageSettings]":
    """Returns what answers questions: a scheduler, a file, or the API server."""
    from kubenexus.base.clock import WallClock
    from kubenexus.client.client_config import ClientOptions, load_client_config
    from kubenexus.client.transport import ApiClient
    from kubenexus.config.tenant_settings import own_tier_profiles
    from kubenexus.explain.dump_answers import DumpAnswers
    from kubenexus.explain.live_cluster import read_cluster
    from kubenexus.web.cluster_routes import ClusterRoutes
    from kubenexus.web.forwarding import ForwardingRoutes
    from kubenexus.web.page_routes import PageSettings

    clock, answers = WallClock(), DumpAnswers(lambda pod: profile_of(pod, configuration))
    own_tier = own_tier_profiles({} if configuration is None else configuration.args)
    if source.file is not None:
        routes = ClusterRoutes(open_dump(source.file, own_tier), answers, clock)
        stack.push_async_callback(routes.close)
        return routes, PageSettings("file", source.file.name)
    found = load_client_config(ClientOptions(kubeconfig=source.kubeconfig, context=source.context), clock)
    client = ApiClient(scheduler.config(found) if scheduler.url else found, clock)
    stack.push_async_callback(client.close)
    namespace = found.namespace or "default"
    if scheduler.url:
        return ForwardingRoutes(client), PageSettings("scheduler", scheduler.url, namespace)
    dump = await read_cluster(client, own_tier)
    routes = ClusterRoutes(dump, answers, clock, lambda: read_cluster(client, own_tier))
    stack.push_async_callback(routes.close)
    return routes, PageSettings("cluster", found.address.authority, namespace)
