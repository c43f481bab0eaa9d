"""The show: server and agents in this process, the scheduler in its own, the acts one after the other."""

import asyncio
import contextlib
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from kubenexus.base.clock import WallClock
from kubenexus.base.errors import KubeNexusError
from kubenexus.client.access import Wish, find_access
from kubenexus.client.transport import Client
from kubenexus.sim.agents import Agents, Settings
from kubenexus.sim.apiserver.serving import Door, serve, write_kubeconfig
from kubenexus.sim.demo import world
from kubenexus.sim.demo.acts import STORY
from kubenexus.sim.demo.stage import NotTrue, Stage
from kubenexus.sim.live import Live

Say = Callable[[str], None]


class StoryFailed(KubeNexusError):
    """One act did not come true."""


async def play(say: Say, *, nodes: int, seed: int, patience: float, keep: bool, scheduler: bool = True) -> None:
    """The whole story; raises StoryFailed. With `keep` the cluster stays until cancelled. Whatever was started ends."""
    clock, rng = WallClock(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kubenexus-demo-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        served = await serve(Door("127.0.0.1", 0), clock, rng)
        write_kubeconfig(served, kubeconfig)
        client = Client(find_access(Wish(kubeconfig=str(kubeconfig)), clock), clock)
        try:
            async with _agents(client, clock, rng, nodes), _scheduler(kubeconfig, scheduler):
                say(f"A cluster of {nodes + world.GPU_NODES} nodes at {served.address}; from another terminal:")
                say(f"  kubectl --server={served.address} get pods -o wide\n")
                await _acts(say, Stage(client, clock, patience))
                if keep:
                    say("\nThe cluster stays; Ctrl-C ends it.")
                    await asyncio.Event().wait()
        finally:
            await client.close()
            await served.close()


async def _acts(say: Say, stage: Stage) -> None:
    for number, act in enumerate(STORY, 1):
        try:
            shown = await act.play(stage)
        except NotTrue as why:
            raise StoryFailed(f"act {number}, {act.title!r}, did not come true: {why}") from None
        say(f"{number}. {act.title}: {shown}")
    waits = sorted(stage.bound[name] - stage.created[name] for name in stage.bound)
    middle, last = waits[len(waits) // 2], waits[-1]
    say(f"\n{len(waits)} pods got a node: half of them within {1000 * middle:.0f} ms, all within {last:.2f} s")


@contextlib.asynccontextmanager
async def _agents(client: Client, clock: WallClock, rng: random.Random, nodes: int) -> AsyncIterator[None]:
    live = Live(client, Agents(Settings(renew=0)), clock, rng=rng)
    await live.register(world.nodes(nodes, clock.now()))
    task = asyncio.create_task(live.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def _scheduler(kubeconfig: Path, wanted: bool) -> AsyncIterator[None]:
    if not wanted:
        yield
        return
    command = [sys.executable, "-m", "kubenexus", "run", f"--kubeconfig={kubeconfig}"]
    quiet = ["--leader-elect=false", "--secure-port=0"]
    with (kubeconfig.parent / "scheduler.log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(*command, *quiet, stdout=log, stderr=log)
        try:
            yield
        finally:
            if child.returncode is None:
                child.terminate()
            await child.wait()
