"""One measurement from beginning to end: a server, a scheduler, nodes, pods by the clock, and gangs one by one, large,
and all at once."""

import asyncio
import contextlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from bench.latency.load import Load, Wait
from bench.latency.numa import NumaNodes, cpus_of
from bench.soak.flaps import Flaps
from bench.soak.objects import node
from bench.soak.programs import embedded, scheduler
from bench.soak.run import beside, connected
from kubenexus.testing.controlplane import ManagedProcess

PATIENCE = 120.0  # seconds for any one part
LARGE_ONES = 5
APPS = 20  # whose replicas the single pods are

Found = TypeVar("Found")


class Plan(NamedTuple):
    """Single `pods`, `rate` of them a second; then `gangs` of `size` pods, one every so many seconds; then some of
    `large` pods, one after the other; then a `rush` of so many gangs of `size`. With `numa` the nodes report so many
    NUMA nodes, and the single pods have CPUs for themselves."""

    nodes: int
    pods: int
    rate: float
    gangs: int
    size: int
    every: float
    large: int
    rush: int
    numa: int = 0


class Latency(msgspec.Struct, frozen=True):
    """What came of it."""

    plan: Plan
    pods: list[Wait]
    steady: list[Wait]
    large: list[Wait]
    rush: list[Wait]


class NotBound(Exception):
    """Pods were left without nodes; the message has the end of the scheduler's log."""


async def measure(folder: Path, plan: Plan) -> Latency:
    """Everything is started here and ends here. The first gang is bound before the clock runs: the scheduler is up."""
    with embedded(folder) as server:
        async with connected(server) as client:
            await Flaps(client, plan.nodes).furnish()
            numa = NumaNodes(client, plan.nodes, plan.numa, node("n0")["status"]["allocatable"]) if plan.numa else None
            if numa is not None:
                await numa.furnish()
            ours, load = scheduler(server).program, Load(client, numa)
            async with beside(load.run()), beside(numa.run()) if numa else contextlib.nullcontext():
                await _within(load.gang("first", plan.size), ours)
                pods = await _within(by_the_clock(load, plan), ours, plan.pods / plan.rate)
                steady = await _within(one_by_one(load, plan), ours, plan.gangs * plan.every)
                large = [await _within(load.gang(f"large-{n}", plan.large), ours) for n in range(LARGE_ONES)]
                rush = await _within(all_at_once(load, plan), ours)
            return Latency(plan, pods, steady, large, rush)


async def by_the_clock(load: Load, plan: Plan) -> list[Wait]:
    """Each at its own moment since the first, whether those before are bound or not: a load that waits for the
    scheduler would hide its pauses."""
    loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[Wait]]()
    begin = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(plan.pods):
            await asyncio.sleep(begin + number / plan.rate - loop.time())
            cpus = cpus_of(number) if plan.numa else 0
            tasks.append(group.create_task(load.pod(f"single-{number}", f"app-{number % APPS}", cpus)))
    return [task.result() for task in tasks]


async def one_by_one(load: Load, plan: Plan) -> list[Wait]:
    """By the clock, whether the one before is bound or not."""
    tasks = []
    async with asyncio.TaskGroup() as group:
        for number in range(plan.gangs):
            tasks.append(group.create_task(load.gang(f"steady-{number}", plan.size)))
            await asyncio.sleep(plan.every)
    return [task.result() for task in tasks]


async def all_at_once(load: Load, plan: Plan) -> list[Wait]:
    return list(await asyncio.gather(*(load.gang(f"rush-{number}", plan.size) for number in range(plan.rush))))


async def _within(doing: Coroutine[Any, Any, Found], ours: ManagedProcess, more: float = 0.0) -> Found:
    try:
        async with asyncio.timeout(PATIENCE + more):
            return await doing
    except TimeoutError:
        raise NotBound(f"pods are not bound after {PATIENCE + more:.0f} s\n{ours.tail()}") from None
