"""How fast a scheduler empties a full queue of a real cluster, and what it costs: ours or kube-scheduler.

    python -m bench.live --nodes 1000 --pods 5000 kubenexus kube-scheduler
    python -m bench.live --nodes 100 --idle 30 kubenexus

Starts a control plane of its own for each (`make controlplane` first). Nodes are objects without machines. The clock
runs from the start of the scheduler's process to the last bind, so starting and listing is part of it; `first` is the
time until the first bind.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from kubenexus.api.codec import decode_list
from kubenexus.api.core import Pod
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.access import Wish, find_access
from kubenexus.client.limits import Limiter
from kubenexus.client.transport import Client
from kubenexus.client.verbs import create, listing, patch
from kubenexus.testing.controlplane import ControlPlane, Program
from tests.e2e.controlplane import build

CLOCK = WallClock()
TICKS = os.sysconf("SC_CLK_TCK")
FAST = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "%s", qps: 5000, burst: 5000}
profiles: [{schedulerName: measured}]
"""


def cpu_of(pid: int) -> float:
    """Seconds of processor time, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pid: int) -> float:
    """Resident, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def started(which: str, plane: ControlPlane) -> Program:
    config = plane.folder / "measured.yaml"
    config.write_text(FAST % plane.kubeconfig())
    if which == "kubenexus":
        command = [sys.executable, "-m", "kubenexus", "run", f"--config={config}", "--secure-port=0"]
        return plane.family.start(command, which)
    assets = build.assets()
    return plane.family.start([str(assets / which), f"--config={config}", "--secure-port=0"], which)


def a_node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{int(name[1:]) % 3}"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def a_pod(name: str) -> dict[str, Any]:
    asked = {"requests": {"cpu": "100m", "memory": "256Mi"}}
    spec = {"schedulerName": "measured", "containers": [{"name": "main", "image": "app:1", "resources": asked}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "measured"}},
        "spec": spec,
    }


async def furnish(client: Client, nodes: int, pods: int) -> None:
    """Nodes without the taint of freshness, and pods that wait."""

    async def node(name: str) -> None:
        await client.send(create(kinds.NODES, a_node(name)), timeout=60)
        await client.send(patch(kinds.NODES, "", name, {"spec": {"taints": None}}), timeout=60)

    async def pod(name: str) -> None:
        await client.send(create(kinds.PODS, a_pod(name), "default"), timeout=60)

    await in_lots([node(f"n{i}") for i in range(nodes)])
    await in_lots([pod(f"p{i}") for i in range(pods)])


async def in_lots(calls: list[Any]) -> None:
    for start in range(0, len(calls), 200):
        await asyncio.gather(*calls[start : start + 200])


async def unbound(client: Client) -> AsyncIterator[int]:
    """How many pods still have no node, a few times a second."""
    while True:
        page = decode_list(await client.send(listing(kinds.PODS, fields="spec.nodeName="), timeout=60), Pod)
        yield len(page.items)
        await asyncio.sleep(0.1)


async def emptied(client: Client, which: str, plane: ControlPlane, pods: int) -> None:
    began = CLOCK.now()
    program = started(which, plane)
    first = 0.0
    async for left in unbound(client):
        took = CLOCK.now() - began
        first = first or (took if left < pods else 0.0)
        if not left:
            break
        if took > 600:
            raise SystemExit(f"{which}: {left} pods are still waiting\n{program.tail()}")
    rate, flowing = pods / took, pods / max(took - first, 0.1)
    speed = f"{rate:.0f} pods/s; first after {first:.1f} s, then {flowing:.0f} pods/s"
    used = f"{cpu_of(program.pid):.1f} CPU s, {memory_of(program.pid):.0f} MB"
    click.echo(f"{which}: {pods} pods in {took:.1f} s ({speed}), {used}")
    await asyncio.sleep(3)
    click.echo(f"{which}: {cpu_of(program.pid):.1f} CPU s when all events are told")
    program.stop()


async def idle(which: str, plane: ControlPlane, seconds: float) -> None:
    program = started(which, plane)
    await asyncio.sleep(10)
    before = cpu_of(program.pid)
    await asyncio.sleep(seconds)
    used = (cpu_of(program.pid) - before) / seconds
    click.echo(f"{which}, idle: {memory_of(program.pid):.0f} MB, {used:.4f} of a core")
    program.stop()


async def measure(which: str, nodes: int, pods: int, seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(build.assets(), Path(folder)) as plane,
    ):
        access = find_access(Wish(kubeconfig=str(plane.kubeconfig())), CLOCK)
        client = Client(access, CLOCK, limiter=Limiter(CLOCK, qps=-1))
        await furnish(client, nodes, pods)
        if pods:
            await emptied(client, which, plane, pods)
        if seconds:
            await idle(which, plane, seconds)
        await client.close()


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--pods", default=0)
@click.option("--idle", "seconds", default=0.0, help="Measure an idle scheduler for so many seconds.")
@click.argument("schedulers", nargs=-1, type=click.Choice(["kubenexus", "kube-scheduler"]))
def main(nodes: int, pods: int, seconds: float, schedulers: tuple[str, ...]) -> None:
    for which in schedulers:
        asyncio.run(measure(which, nodes, pods, seconds))


if __name__ == "__main__":
    main()
