"""A whole scheduler over a server of three lines: what happens is said by the test, time moves when it says so."""

import asyncio
import functools
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from hypothesis import strategies as st

from kubenexus.api.core import Node, Pod
from kubenexus.app.scheduler import Scheduler, SchedulerOptions
from kubenexus.base.clock import VirtualClock
from kubenexus.config import Configuration, load
from kubenexus.framework.profile import Factory
from kubenexus.framework.registry import load_plugins
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.virtual.loop import run
from kubenexus.state.pods import PodStage
from tests.async_helpers import HANGS, yield_to_loop
from tests.bind.server import AWAY, BUSY, FORBIDDEN, LOST, SILENT, Guard, PodServer
from tests.sim.virtual.virtual_time import elapse

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: packing}]
"""

Step = tuple[str, Any]  # what happens, and to whom or what
ANYWHERE: tuple[st.SearchStrategy[Step], ...] = (
    st.tuples(st.just("burst"), st.just(None)),
    st.tuples(st.just("work"), st.just(None)),
    st.tuples(st.just("echo"), st.just(None)),
    st.tuples(st.just("later"), st.sampled_from([1.0, 31.0])),
    st.tuples(st.just("fault"), st.sampled_from([None, None, AWAY, BUSY, FORBIDDEN, LOST, SILENT])),
)


SETTINGS = SchedulerOptions(host="here")
PLUGINS = load_plugins(BUILT_IN)  # looks through all installed packages


@functools.cache
def _configuration(text: str) -> Configuration:
    """With our plugins alone: what most tests load, 5 ms each."""
    return load(text, PLUGINS)


class SchedulerFixture:
    """Made inside a running loop; see `scheduler_test`."""

    def __init__(
        self, config: str = CONFIG, more: Mapping[str, Factory] | None = None, settings: SchedulerOptions = SETTINGS
    ) -> None:
        """`more` are plugins besides ours."""
        self.server, self.clock, self.guard = PodServer(), VirtualClock(1_000_000.0), Guard()
        plugins = {**PLUGINS, **(more or {})}
        self.scheduler = Scheduler(
            load(config, plugins) if more else _configuration(config),
            plugins,
            self.server,
            self.clock,
            random.Random(1),
            guard=self.guard,
            options=settings,
        )
        self.scheduler.dispatcher.rest = 0.0
        self.scheduler.dispatcher._sleep = lambda seconds: asyncio.sleep(0)
        self.ledger, self.queue, self.handlers = self.scheduler.ledger, self.scheduler.queue, self.scheduler.handlers

    def nodes(self, *nodes: Node) -> None:
        for node in nodes:
            self.handlers.on_node_update(node)

    def pods(self, *pods: Pod) -> None:
        """Made at the server, and seen by the watch."""
        for pod in pods:
            self.server.pods[pod.key] = pod
            self.handlers.on_pod_update(pod)

    def things(self, *things: Any) -> None:
        """Volumes, claims and what belongs to them."""
        for thing in things:
            self.handlers.objects.on_update(type(thing).__name__, thing)

    def echo(self) -> None:
        """The watch tells all that the server has."""
        for pod in self.server.pods.values():
            self.handlers.on_pod_update(pod)

    def listed(self) -> None:
        """The watch begins anew with a list: what there is, and what is no longer."""
        gone = self.handlers.pod_keys() - set(self.server.pods)
        self.echo()
        for key in gone:
            self.handlers.on_pod_delete(key)

    def delete(self, key: str) -> None:
        self.server.pods.pop(key, None)
        self.handlers.on_pod_delete(key)

    async def work(self, waiting: int = 0) -> int:
        """Until nothing more can be done now, and only so many wait for their volumes. Returns how many decisions
        that took."""
        before = self.scheduler.loop.decisions
        for _ in range(1000):
            self.scheduler.loop.run_burst()
            if self.scheduler.loop.idle and self.scheduler.dispatcher.open_count <= waiting:
                return self.scheduler.loop.decisions - before
            await asyncio.sleep(0)
        raise AssertionError("it never comes to rest")

    async def notes(self, seconds: float = 0.0) -> None:
        """Write what is to be written about pods and their groups, and for so long what was refused."""
        room = self.scheduler.dispatcher.wait_for_quiet
        scheduler = self.scheduler
        status_patcher = (
            scheduler.status_patcher,
            scheduler.pod_group_reporter.status_patcher,
            scheduler.completion_markers.status_patcher,
        )
        tasks = [asyncio.ensure_future(each.run(room)) for each in status_patcher]
        await yield_to_loop()
        if seconds:
            await elapse(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def calm_down(self) -> None:
        """Time for whatever is tried again, and for binds that nobody confirmed to be looked after."""
        for _ in range(5):
            await self.work()
            self.listed()
            self.clock.advance(400)
            await self.scheduler.bind_verifier.step()

    async def step(self, what: str, which: Any) -> bool:
        """What may happen in any town at any time (`ANYWHERE`); False if it is none of that."""
        match what:
            case "burst":
                self.scheduler.loop.run_burst()
                await asyncio.sleep(0)
            case "work":
                await self.work()
            case "echo":
                self.listed()
            case "later":
                self.clock.advance(which)
                await self.scheduler.bind_verifier.step()
            case "fault":
                self.server.script.append(which)
            case _:
                return False
        return True

    def bound(self) -> dict[str, str]:
        """Pods on nodes, by the server."""
        return {pod.metadata.name: pod.spec.node_name for pod in self.server.pods.values() if pod.spec.node_name}

    def where(self) -> dict[str, str]:
        """Pods on nodes, by the ledger."""
        return {record.name: record.node for record in self.ledger.pods.values()}

    def stage(self, name: str) -> PodStage:
        return self.ledger.pods[f"default/{name}"].stage

    def told(self) -> list[str]:
        """The events that wait to be sent."""
        lines = self.scheduler.recorder._queue._lines.values()
        series_by_key = [series for calls in lines for series in calls.waiting.values()]
        return [f"{series.what.reason} {series.what.regarding.name}: {series.what.note}" for series in series_by_key]


class SchedulerMachine(Protocol):
    """Steps that may come in any order, and what holds after all of them."""

    async def step(self, what: str, which: Any) -> None: ...

    async def calm_down(self) -> None:
        """All is well from here on."""

    def check(self) -> None: ...


def play(story: Callable[[], SchedulerMachine], steps: Iterable[Step]) -> None:
    async def life() -> None:
        chaos = story()
        for what, which in steps:
            await chaos.step(what, which)
        await chaos.calm_down()
        chaos.check()

    run(life())


def scheduler_test(life: Callable[[SchedulerFixture], Coroutine[Any, Any, None]], config: str = CONFIG) -> None:
    """In virtual time: whoever waits for something that never comes is found out at once."""
    run(_lived(life, config))


def in_real_town(life: Callable[[SchedulerFixture], Coroutine[Any, Any, None]]) -> None:
    """With sockets and threads."""

    async def limited() -> None:
        async with asyncio.timeout(HANGS):
            await _lived(life)

    asyncio.run(limited())


async def _lived(life: Callable[[SchedulerFixture], Coroutine[Any, Any, None]], config: str = CONFIG) -> None:
    await life(SchedulerFixture(config))


def ended(pod: Pod, phase: str = "Failed") -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase))
