"""`kubenexus discover`: writes what the machine is on its own node."""

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.connection import connection_options
from kubenexus.cli.interrupts import interrupt_event
from kubenexus.cli.printing import echo_data

if TYPE_CHECKING:
    from kubenexus.client.transport import ApiClient
    from kubenexus.discovery.kubelet_config import KubeletSettings
    from kubenexus.discovery.machine import Machine
    from kubenexus.discovery.publish import Published

RETRY_SECONDS = 30.0


@click.command()
@click.option(
    "--node-name", envvar="NODE_NAME", default="", metavar="NAME", help="The node of this machine. [$NODE_NAME]"
)
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    default="/",
    show_default=True,
    help="The folder that has the machine's sys.",
)
@click.option(
    "--kubelet-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The kubelet's KubeletConfiguration: its managers and what they reserve.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be written. No cluster is needed.")
@click.option("--once", is_flag=True, help="Write once and end.")
@click.option("--remove", is_flag=True, help="Remove from the node all that was written, and end.")
@click.option(
    "--interval", default="5m", show_default=True, metavar="DURATION", help="Between two looks at the machine."
)
@click.option("--topology/--no-topology", default=True, show_default=True, help="Publish a NodeResourceTopology, too.")
@connection_options
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="Of --dry-run."
)
def discover(node_name: str, root: Path, kubelet_config: Path | None, **options: Any) -> None:
    """Write what this machine is on its own node: NUMA nodes, GPUs and what joins them, InfiniBand.

    Reads sysfs, NVIDIA's driver (NVML) where it is there, and the kubelet's configuration if you give it. Writes
    labels, annotations and a NodeResourceTopology of this node alone. What others wrote there stays as it is.

    To see what it would write, on the machine:

    kubenexus discover --dry-run
    """
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.config.durations import Duration

    try:
        seconds = Duration.of(options["interval"]).seconds
    except ValueError as error:
        raise click.UsageError(f"--interval: {error}") from None
    if seconds < 1:
        raise click.UsageError("--interval must be at least 1s")
    try:
        if options["dry_run"]:
            echo_data(
                _would_write(node_name or "NODE", root, kubelet_config, topology=options["topology"]), options["output"]
            )
            return
        if not node_name:
            raise click.UsageError("name the node of this machine: --node-name, or NODE_NAME in the environment")
        asyncio.run(_run(node_name, root, kubelet_config, seconds, options))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None


def _would_write(name: str, root: Path, kubelet_config: Path | None, *, topology: bool) -> dict[str, Any]:
    import msgspec

    from kubenexus.discovery.node_patch import node_patch
    from kubenexus.discovery.topology_object import topology_object

    kubelet, machine = _kubelet(kubelet_config), _machine(root)
    patch = node_patch(machine, kubelet)
    report = topology_object(machine, name, "", kubelet) if topology else None
    for warning in patch.warnings:
        click.echo(f"warning: {warning}", err=True)
    return {
        "machine": msgspec.to_builtins(machine),
        "node": {"metadata": {"name": name, "labels": patch.labels, "annotations": patch.annotations}},
        "nodeResourceTopology": report,
    }


def _machine(root: Path) -> "Machine":
    from kubenexus.discovery.nvml import ask_nvml
    from kubenexus.discovery.read_machine import read_machine

    return read_machine(root, ask_nvml())


def _kubelet(file: Path | None) -> "KubeletSettings":
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.discovery.kubelet_config import MAX_BYTES, UNKNOWN_KUBELET, read_kubelet_config

    if file is None:
        return UNKNOWN_KUBELET
    try:
        with file.open("rb") as opened:
            return read_kubelet_config(opened.read(MAX_BYTES + 1).decode())
    except (OSError, ValueError) as error:
        raise KubeNexusError(f"{file}: {getattr(error, 'strerror', None) or error}") from None


async def _run(name: str, root: Path, kubelet_config: Path | None, interval: float, options: dict[str, Any]) -> None:
    from kubenexus.base.clock import WallClock
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.client.client_config import ClientOptions, load_client_config
    from kubenexus.client.transport import ApiClient

    clock, ended, last = WallClock(), interrupt_event(), list[str]()
    where = ClientOptions(kubeconfig=options["kubeconfig"], context=options["context"])
    client = ApiClient(load_client_config(where, clock), clock)
    try:
        while not ended.is_set():
            wait = interval
            try:
                done = await _write(client, name, root, kubelet_config, options)
                last = _report(name, done, last)
            except KubeNexusError as error:
                if options["once"] or options["remove"]:
                    raise
                click.echo(f"{name}: {error}", err=True)
                wait = min(interval, RETRY_SECONDS)
            if options["once"] or options["remove"]:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await ended.wait()
    finally:
        await client.close()


async def _write(
    client: "ApiClient", name: str, root: Path, kubelet_config: Path | None, options: dict[str, Any]
) -> "Published":
    from kubenexus.discovery.publish import publish

    machine = None if options["remove"] else _machine(root)
    return await publish(client, name, machine, _kubelet(kubelet_config), topologies=options["topology"])


def _report(name: str, done: "Published", last: list[str]) -> list[str]:
    """Prints what was done, and what was not said the last time."""
    lines = [f"{name}: warning: {warning}" for warning in done.warnings]
    lines += [f"{name}: {key} stays as it is: discovery did not write it" for key in done.left_alone]
    lines.append(f"{name}: node {done.node}, topology: {done.topology}")
    for line in lines:
        if line not in last:
            click.echo(line, err=True)
    return lines
