"""How fast a scheduler empties a full queue of a real cluster, and what it costs: ours or kube-scheduler.

    python -m bench.live --nodes 1000 --pods 5000 kubenexus kube-scheduler
    python -m bench.live --nodes 100 --idle 30 kubenexus

Starts a control plane of its own for each (`make controlplane` first). Nodes are objects without machines. The clock
runs from the start of the scheduler's process to the last bind, so starting and listing is part of it; `first` is the
time until the first bind.
"""

import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from kubenexus.api.meta import Object, ObjectMeta
from kubenexus.base.clock import WallClock
from kubenexus.client import kinds
from kubenexus.client.access import Wish, find_access
from kubenexus.client.changes import Change
from kubenexus.client.limits import Limiter
from kubenexus.client.topics import Topic, Trouble
from kubenexus.client.transport import Client
from kubenexus.client.verbs import create, patch
from kubenexus.client.watch import Reflector
from kubenexus.testing.controlplane import ControlPlane, Program
from kubenexus.testing.controlplane.plane import free_ports
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
    """As it would run in a cluster: with its secure port, and as fast as it can."""
    config = plane.folder / "measured.yaml"
    config.write_text(FAST % plane.kubeconfig())
    ours = [sys.executable, "-m", "kubenexus", "run"]
    command = ours if which == "kubenexus" else [str(build.assets() / which)]
    serve = ["--bind-address=127.0.0.1", f"--secure-port={free_ports(1)[0]}"]
    return plane.family.start([*command, f"--config={config}", *serve], which)


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


class _Spec(Object):
    node_name: str = ""


class Seen(Object):
    """As little of a pod as there can be: whoever measures should not be in the way."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


class Counting:
    """A receiver that counts pods with a node, and notes when the first and the last of them came."""

    def __init__(self, pods: int) -> None:
        self._pods, self._bound = pods, set[str]()
        self.first = self.last = 0.0
        self.done = asyncio.Event()

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def troubled(self, trouble: Trouble) -> None: ...

    def listed(self, items: list[Any], unreadable: tuple[Any, ...]) -> None:
        for item in items:
            self._count(item)

    def changed(self, changes: list[Change]) -> None:
        for change in changes:
            self._count(change.object)

    def _count(self, pod: Seen) -> None:
        if pod.spec.node_name:
            self._bound.add(pod.metadata.name)
            self.last = CLOCK.now()
            self.first = self.first or self.last
        if len(self._bound) == self._pods:
            self.done.set()


async def emptied(client: Client, which: str, plane: ControlPlane, pods: int) -> None:
    counting = Counting(pods)
    reflector = Reflector(client, Topic(kinds.PODS, Seen), counting, clock=CLOCK, rng=random.Random(0))
    watching = asyncio.ensure_future(reflector.run())
    while not reflector.watching:
        await asyncio.sleep(0.1)
    began = CLOCK.now()
    program = started(which, plane)
    try:
        async with asyncio.timeout(600):
            await counting.done.wait()
    except TimeoutError:
        raise SystemExit(f"{which}: not all pods are bound\n{program.tail()}") from None
    watching.cancel()
    took, first = counting.last - began, counting.first - began
    rate, flowing = pods / took, pods / max(took - first, 0.1)
    speed = f"{rate:.0f} pods/s; first after {first:.1f} s, then {flowing:.0f} pods/s"
    used = f"{cpu_of(program.pid):.1f} CPU s, {memory_of(program.pid):.0f} MB"
    click.echo(f"{which}: {pods} pods in {took:.1f} s ({speed}), {used}")
    await asyncio.sleep(5)
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
