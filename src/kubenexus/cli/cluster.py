"""`kubenexus cluster`: a cluster in the box."""

import asyncio
import contextlib
import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubenexus.sim.apiserver.serving import Door


@click.group()
def cluster() -> None:
    """An API server in memory: for demonstrations, for tests, for trying things."""


@cluster.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond the loopback only with --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8901, show_default=True, help="0: any that is free.")
@click.option("--token", default="", help="What clients have to show. With it the port speaks HTTPS.")
@click.option("--tls-cert-file", default="", help="For HTTPS; without it a certificate is made for this start.")
@click.option("--tls-private-key-file", default="", help="Its key.")
@click.option("--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig here.")
@click.option("--seed", type=int, help="The same names and identities every time.")
def serve(kubeconfig_out: Path | None, seed: int | None, **said: Any) -> None:
    """Serve an empty cluster until interrupted; what was in it is gone then.

    kubectl works against it, and so do schedulers and controllers that speak JSON. Nothing runs in it by itself:
    start `kubenexus agents` for nodes and `kubenexus run` for a scheduler.
    """
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.apiserver.serving import Door

    files = (said["tls_cert_file"], said["tls_private_key_file"])
    door = Door(said["host"], said["port"], said["token"], *files)
    try:
        with asyncio.Runner(loop_factory=_loops()) as runner:
            runner.run(_serve(door, kubeconfig_out, random.Random(seed)))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None


async def _serve(door: "Door", kubeconfig: Path | None, rng: random.Random) -> None:
    from kubenexus.base.clock import WallClock
    from kubenexus.sim.apiserver.serving import serve as open_door
    from kubenexus.sim.apiserver.serving import write_kubeconfig

    ended = _interrupts()  # before anybody can know that we are here
    served = await open_door(door, WallClock(), rng)
    try:
        if kubeconfig is not None:
            write_kubeconfig(served, kubeconfig)
        click.echo(f"serving an empty cluster at {served.address}; Ctrl-C ends it")
        how = f"--kubeconfig={kubeconfig}" if kubeconfig is not None else f"--server={served.address}"
        click.echo(f"  kubectl {how} get nodes")
        await ended.wait()
    finally:
        await served.close()


def _interrupts() -> asyncio.Event:
    """Set when somebody wants us to end. The second time we end at once."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        ended.set()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, end)
    return ended


def _loops() -> "type[asyncio.AbstractEventLoop] | None":
    """uvloop where it is installed."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.Loop
    return None
