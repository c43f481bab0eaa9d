"""`kubenexus cluster`: an embedded cluster, served over HTTP."""

import asyncio
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubenexus.cli.interrupts import interrupt_event, loop_factory

if TYPE_CHECKING:
    from kubenexus.base.clock import Clock
    from kubenexus.sim.apiserver.serving import ServingOptions
    from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec


@click.group()
def cluster() -> None:
    """A cluster in memory: for demonstrations, for tests, for trying things."""


@cluster.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond the loopback only with --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8901, show_default=True, help="0: any that is free.")
@click.option("--token", default="", help="What clients have to show. With it the port speaks HTTPS.")
@click.option("--tls-cert-file", default="", help="For HTTPS; without it a certificate is made for this start.")
@click.option("--tls-private-key-file", default="", help="Its key.")
@click.option("--kubeconfig-out", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig here.")
@click.option("--controllers/--no-controllers", default=True, show_default=True, help="Deployments become pods, ...")
@click.option("--nodes", type=click.IntRange(0), default=0, help="So many nodes, with agents that run their pods.")
@click.option(
    "--feature-gates",
    default="",
    metavar="GATE=true,...",
    help="GenericWorkload, DRAWorkloadResourceClaims; as with kube-apiserver.",
)
@click.option(
    "--runtime-config",
    default="",
    metavar="VERSION=BOOL,...",
    help="resource.k8s.io/v1 and v1beta2; as with kube-apiserver.",
)
@click.option("--seed", type=int, help="The same names and identities every time.")
def serve(kubeconfig_out: Path | None, seed: int | None, **given: Any) -> None:
    """Serve a cluster until interrupted; what was in it is gone then.

    kubectl works against it, and so do schedulers and controllers that speak JSON. Deployments, ReplicaSets,
    StatefulSets, DaemonSets and Jobs make their pods. Nothing schedules them: start `kubenexus run`. With --nodes it
    has nodes of its own (32 CPUs, 128 GiB); `kubenexus agents` makes others.
    """
    from kubenexus.base.errors import KubeNexusError
    from kubenexus.sim.apiserver.serving import ServingOptions

    files = (given["tls_cert_file"], given["tls_private_key_file"])
    gates = tuple(gate for gate, on in _switches("--feature-gates", given["feature_gates"]).items() if on)
    versions = _switches("--runtime-config", given["runtime_config"])
    options = ServingOptions(given["host"], given["port"], given["token"], *files, gates, versions)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(options, kubeconfig_out, random.Random(seed), given["nodes"], given["controllers"]))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None


def _switches(option: str, text: str) -> dict[str, bool]:
    """Reads `NAME=true,OTHER=false`. Raises click.BadParameter."""
    found: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if value not in ("true", "false"):
            raise click.BadParameter(f"{option}: {part!r} is not NAME=true or NAME=false")
        found[name] = value == "true"
    return found


async def _serve(
    options: "ServingOptions", kubeconfig: Path | None, rng: random.Random, nodes: int, controllers: bool
) -> None:
    from kubenexus.base.clock import WallClock
    from kubenexus.sim.apiserver.serving import write_kubeconfig
    from kubenexus.sim.embedded_cluster import open_embedded_cluster

    ended, clock = interrupt_event(), WallClock()  # before the address is printed: a reader may send a signal at once
    wanted = _wanted(nodes, controllers, clock)
    async with open_embedded_cluster(options, clock, rng, wanted, lambda line: click.echo(line, err=True)) as embedded:
        if kubeconfig is not None:
            write_kubeconfig(embedded.served, kubeconfig)
        what = f"a cluster of {nodes} nodes" if nodes else "an empty cluster"
        click.echo(f"serving {what} at {embedded.served.address}; Ctrl-C ends it")
        how = f"--kubeconfig={kubeconfig}" if kubeconfig is not None else f"--server={embedded.served.address}"
        click.echo(f"  kubectl {how} get nodes")
        await ended.wait()


def _wanted(nodes: int, controllers: bool, clock: "Clock") -> "EmbeddedClusterSpec":
    from kubenexus.sim.embedded_cluster import EmbeddedClusterSpec
    from kubenexus.sim.kubelets.agents import AgentSettings
    from kubenexus.sim.kubelets.node_calls import NodeTemplate

    if not nodes:
        return EmbeddedClusterSpec(controllers=controllers)
    return EmbeddedClusterSpec(NodeTemplate(prefix="node-").nodes(nodes, clock.now()), AgentSettings(), controllers)
