"""`kubenexus agents`: simulated nodes on any cluster, until interrupted."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubenexus.api.core import Taint
    from kubenexus.base.clock import Clock
    from kubenexus.client.transport import ApiClient
    from kubenexus.sim.kubelets.agents import AgentSettings
    from kubenexus.sim.kubelets.node_calls import NodeTemplate
    from kubenexus.sim.kubelets.node_topologies import NodeTopologies

GPU = "nvidia.com/gpu"
POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
SCOPES = ("container", "pod")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@click.command()
@click.option("--nodes", type=click.IntRange(0), default=0, help="Register so many nodes first.")
@click.option("--prefix", default="agent-", show_default=True, help="What their names begin with; a number follows.")
@click.option("--cpu", default="32", show_default=True)
@click.option("--memory", default="128Gi", show_default=True)
@click.option("--pods", default="110", show_default=True, help="How many pods a node takes.")
@click.option("--gpu", type=click.IntRange(0), default=0, help=f"GPUs of each node ({GPU}).")
@click.option("--resource", multiple=True, metavar="NAME=AMOUNT", help="A further resource of each node.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="A label of each node.")
@click.option("--taint", multiple=True, metavar="KEY=VALUE:EFFECT", help="A taint of each node.")
@click.option("--zone", multiple=True, help="Zones, given to the nodes by turns.")
@click.option("--numa-nodes", type=click.IntRange(1, 8), help="NUMA nodes of each node: pods are admitted by them.")
@click.option("--topology-policy", type=click.Choice(POLICIES), default="single-numa-node", show_default=True)
@click.option("--topology-scope", type=click.Choice(SCOPES), default="container", show_default=True)
@click.option("--publish-seconds", type=float, default=10.0, show_default=True, help="Between reports of NUMA nodes.")
@click.option("--all-nodes", is_flag=True, help="Keep every node of the cluster. Never where there are kubelets.")
@click.option("--run-seconds", type=float, help="Pods that do not say how long they run succeed after so long.")
@click.option("--start-seconds", type=float, default=0.0, help="From bound to running.")
@click.option("--stop-seconds", type=float, help="From deleted to gone, if less than the grace period.")
@click.option("--renew-seconds", type=float, default=20.0, show_default=True, help="Between heartbeats; 0: none.")
@click.option("--kubeconfig", default="", help="As with kubectl.")
@click.option("--context", default="", help="A context of the kubeconfig.")
def agents(nodes: int, kubeconfig: str, context: str, **options: Any) -> None:
    """Play the part of kubelets: keep nodes ready, run the pods that are bound to them, finish their deletion.

    For tests and demonstrations. A pod runs until it is deleted, or for as long as its annotation
    sim.kubenexus.io/run-seconds says. Nodes stay when the command ends, and nothing renews their leases then.
    """
    from kubenexus.base.errors import KubeNexusError

    template, settings, topologies = _template(options), _settings(options), _topologies(options)
    try:
        asyncio.run(_run(kubeconfig, context, template, nodes, settings, topologies))
    except KubeNexusError as error:
        raise click.ClickException(str(error)) from None


async def _run(
    kubeconfig: str,
    context: str,
    template: "NodeTemplate",
    count: int,
    settings: "AgentSettings",
    topologies: "NodeTopologies | None",
) -> None:
    from kubenexus.base.clock import WallClock
    from kubenexus.client.client_config import ClientOptions, load_client_config
    from kubenexus.client.transport import ApiClient

    clock = WallClock()
    client = ApiClient(load_client_config(ClientOptions(kubeconfig=kubeconfig, context=context), clock), clock)
    work = asyncio.ensure_future(_serve(client, clock, template, count, settings, topologies))
    for ending in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(ending, work.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await work
    finally:
        await client.close()


async def _serve(
    client: "ApiClient",
    clock: "Clock",
    template: "NodeTemplate",
    count: int,
    settings: "AgentSettings",
    topologies: "NodeTopologies | None",
) -> None:
    from kubenexus.sim.kubelets.agent_runner import AgentRunner
    from kubenexus.sim.kubelets.agents import Agents

    agents = Agents(settings, topologies=topologies)
    live = AgentRunner(client, agents, clock, rng=random.Random(), report=lambda line: click.echo(line, err=True))
    await live.register(template.nodes(count, clock.now()))
    click.echo(f"{count} {'node' if count == 1 else 'nodes'} registered at {client.access.source}; agents at work")
    await live.run()


def _template(options: Mapping[str, Any]) -> "NodeTemplate":
    from kubenexus.sim.kubelets.node_calls import NodeTemplate

    usual = {name: options[name] for name in ("cpu", "memory", "pods")}
    gpu = {GPU: str(options["gpu"])} if options["gpu"] else {}
    return NodeTemplate(
        prefix=options["prefix"],
        capacity=usual | gpu | _pairs("--resource", options["resource"]),
        labels=_pairs("--label", options["label"]),
        taints=[_taint(text) for text in options["taint"]],
        zones=options["zone"],
    )


def _settings(options: Mapping[str, Any]) -> "AgentSettings":
    from kubenexus.sim.kubelets.agents import AgentSettings

    return AgentSettings(
        all_nodes=options["all_nodes"],
        run=options["run_seconds"],
        start=options["start_seconds"],
        stop=options["stop_seconds"],
        renew=options["renew_seconds"],
    )


def _topologies(options: Mapping[str, Any]) -> "NodeTopologies | None":
    from kubenexus.api.numa.machine import Kubelet
    from kubenexus.sim.kubelets.node_topologies import NodeTopologies, NumaSettings

    if not options["numa_nodes"]:
        return None
    pod_scope = options["topology_scope"] == "pod"
    kubelet = Kubelet(options["topology_policy"], pod_scope, static_cpus=True, static_memory=True)
    return NodeTopologies(
        NumaSettings(zones=options["numa_nodes"], kubelet=kubelet, publish=options["publish_seconds"])
    )


def _pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Parses options of the form `key=value`."""
    for text in texts:
        if text.find("=") < 1:
            raise click.UsageError(f"{option} must be KEY=VALUE, not {text!r}")
    return dict(text.split("=", 1) for text in texts)


def _taint(text: str) -> "Taint":
    """Parses a taint as kubectl writes it: `key=value:Effect` or `key:Effect`."""
    from kubenexus.api.core import Taint

    mark, colon, effect = text.rpartition(":")
    key, _, value = mark.partition("=")
    if not colon or not key or effect not in EFFECTS:
        raise click.UsageError(
            f"--taint must be KEY=VALUE:EFFECT or KEY:EFFECT with {' or '.join(EFFECTS)}, not {text!r}"
        )
    return Taint(key=key, value=value, effect=effect)
