"""A whole scheduler with the shipped profile in virtual time on many nodes, with the duration of each turn of its loop.

Every callback of the event loop is timed: a batch of watch events, a burst of decisions, a step of an API writer. The
time is CPU time of this thread, which does not depend on the load of the machine.
"""

import asyncio
import contextlib
import gc
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kubenexus.app.scheduler import Scheduler, SchedulerOptions
from kubenexus.app.watch.informers import InformerHandler, watch_target
from kubenexus.base import gc_tuning
from kubenexus.base.errors import KubeNexusError
from kubenexus.client import kinds
from kubenexus.client.calls import Call, Unreachable
from kubenexus.client.kinds import ApiResource
from kubenexus.client.watch_events import ADDED, DELETED, MODIFIED, decode_watch_lines, portions, split_batch
from kubenexus.config import load
from kubenexus.config.v1 import SCHEDULER
from kubenexus.plugins import BUILT_IN
from kubenexus.sim.virtual.loop import LoopClock, VirtualLoop
from kubenexus.testing.large.objects import claim, node
from kubenexus.testing.large.pods import Json, plain

NODES = 5_000
RESIDENTS = 0.2  # pods a node
PAGE = 250
LINES = 256  # of a watch that a reflector reads at once
CLAIMS = 500
_CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{schedulerName: {SCHEDULER}}}]
"""
_encode = msgspec.json.encode


class Item(NamedTuple):
    """An object and its kind."""

    resource: ApiResource
    thing: Json


class LongestTurn(NamedTuple):
    """The longest turn of a step, and the growth of the process during it."""

    step: str
    seconds: float
    megabytes: float


class AcceptingServer:
    """Accepts every call, and records which pods were bound where."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}

    async def send(self, call: Call, *, timeout: float = 10.0) -> bytes:
        if call.path.endswith("/binding"):
            body = msgspec.json.decode(call.body)
            self.bound[body["metadata"]["name"]] = body["target"]["name"]
        return b"{}"

    async def stream(self, path: str, *, timeout: float = 30.0) -> Any:
        raise Unreachable("nothing is watched here")


class _Timed:
    """The longest callback of the loop so far."""

    def __init__(self) -> None:
        self.longest = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        plain_run: Callable[[asyncio.Handle], None] = asyncio.Handle._run
        clock, timed = time.thread_time, self

        def run(handle: asyncio.Handle) -> None:
            start = clock()
            plain_run(handle)
            timed.longest = max(timed.longest, clock() - start)

        asyncio.Handle._run = run  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            asyncio.Handle._run = plain_run  # type: ignore[method-assign,assignment]


class LargeCluster:
    """Created inside a virtual loop; see `run_on_large_cluster`."""

    def __init__(self, timed: _Timed) -> None:
        self.server, self._timed = AcceptingServer(), timed
        clock = LoopClock(asyncio.get_running_loop())
        configuration = load(_CONFIG, BUILT_IN)
        self.scheduler = Scheduler(
            configuration, BUILT_IN, self.server, clock, random.Random(1), options=SchedulerOptions(host="here")
        )
        self._informer: dict[ApiResource, InformerHandler] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, nodes: int) -> None:
        """Delivers nodes, volumes and pods as from lists, and starts the scheduler."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self.scheduler.schedule())]
        hear = self._hearer(kinds.NODES)
        for first in range(0, nodes, PAGE):
            hear.events(_read(kinds.NODES, ADDED, *(node(i) for i in range(first, min(first + PAGE, nodes)))))
        for made, volume in map(claim, range(CLAIMS)):
            self._hearer(kinds.PERSISTENT_VOLUMES).events(_read(kinds.PERSISTENT_VOLUMES, ADDED, volume))
            self._hearer(kinds.PERSISTENT_VOLUME_CLAIMS).events(_read(kinds.PERSISTENT_VOLUME_CLAIMS, ADDED, made))
        residents = [plain(f"resident-{i}", f"node-{i}") for i in range(int(nodes * RESIDENTS))]
        for first in range(0, len(residents), PAGE):
            self._hearer(kinds.PODS).events(_read(kinds.PODS, ADDED, *residents[first : first + PAGE]))
        await self._settle()
        gc_tuning.freeze_after_list()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- events -----------------------------------------------------------------------------------------------------

    async def seen(self, step: str, thing: Json, resource: ApiResource = kinds.PODS, what: str = ADDED) -> LongestTurn:
        """Delivers one object as a line of a watch, and waits for the consequences."""
        line = _line(what, thing)
        return await self._step(step, lambda: self._hear(resource, line))

    async def all_seen(self, step: str, items: Sequence[Item], what: str = ADDED) -> LongestTurn:
        """Delivers many objects as lines of watches, in the portions of a reflector, and waits for the
        consequences."""
        lines = [
            (resource, [_line(what, item.thing) for item in some])
            for resource, some in itertools.groupby(items, key=lambda item: item.resource)
        ]
        loop, delivered = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        turn = await self._step(step, lambda: delivered.append(loop.create_task(self._hear_all(lines))))
        await asyncio.gather(*delivered)
        return turn

    async def gone(self, step: str, thing: Json, resource: ApiResource = kinds.PODS) -> LongestTurn:
        return await self.seen(step, thing, resource, DELETED)

    async def changed(self, step: str, thing: Json, resource: ApiResource = kinds.PODS) -> LongestTurn:
        return await self.seen(step, thing, resource, MODIFIED)

    async def passes(self, step: str, seconds: float) -> LongestTurn:
        """Lets time pass: backoffs end, and refused pods are tried again."""
        return await self._step(step, None, seconds)

    def node_of(self, name: str) -> str:
        """Returns the node that a pod was bound to, or ""."""
        return self.server.bound.get(name, "")

    def refused_by(self, name: str) -> tuple[str, ...]:
        """Returns the plugins that refused a pod."""
        decision = self.scheduler.queue.last_decision(f"default/{name}")
        return () if decision is None else decision.diagnosis.refused_by

    def said_of(self, name: str) -> str:
        """Returns why a pod waits, or ""."""
        decision = self.scheduler.queue.last_decision(f"default/{name}")
        return "" if decision is None else decision.sentence()

    async def _step(self, step: str, act: Callable[[], None] | None, seconds: float = 2.0) -> LongestTurn:
        await asyncio.sleep(0)  # the turn that created the object belongs to the test
        self._timed.longest, before = 0.0, _clear_peak()
        if act is not None:
            asyncio.get_running_loop().call_soon(act)
        await self._settle(seconds)
        return LongestTurn(step, self._timed.longest, max(_peak() - before, 0) / 1e6)

    def _hear(self, resource: ApiResource, line: bytes) -> None:
        batch = decode_watch_lines([line], watch_target(resource).type)
        self._hearer(resource).events(batch.changes)

    async def _hear_all(self, watches: list[tuple[ApiResource, list[bytes]]]) -> None:
        for resource, some in watches:
            target = watch_target(resource)
            batches = (some[first : first + LINES] for first in range(0, len(some), LINES))
            for portion in (each for lines in batches for each in portions(lines, [*map(len, lines)])):
                for part in split_batch(decode_watch_lines(portion, target.type), target.work):
                    self._hearer(resource).events(part.changes)
                    await asyncio.sleep(0)

    def _hearer(self, resource: ApiResource) -> InformerHandler:
        if resource not in self._informer:
            self._informer[resource] = InformerHandler(self.scheduler.handlers, resource, self.scheduler.wakeup)
        return self._informer[resource]

    async def _settle(self, seconds: float = 2.0) -> None:
        await asyncio.sleep(seconds)
        failed = [task for task in self._tasks if task.done()]
        if failed:
            raise KubeNexusError(f"the scheduler ended: {failed[0]}")


def run_on_large_cluster(play: Callable[[LargeCluster], Awaitable[None]], nodes: int = NODES) -> None:
    """Runs a scenario on a cluster of its own, in virtual time."""
    timed = _Timed()

    async def played() -> None:
        cluster = LargeCluster(timed)
        await cluster.open(nodes)
        with timed.running():
            await play(cluster)
        await cluster.close()

    thresholds = gc.get_threshold()
    gc_tuning.freeze_after_import()  # as `kubenexus run` does
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(played())
    finally:
        gc.set_threshold(*thresholds)


def _read(resource: ApiResource, what: str, *things: Json) -> list[Any]:
    return decode_watch_lines([_line(what, thing) for thing in things], watch_target(resource).type).changes


def _line(what: str, thing: Json) -> bytes:
    return _encode({"type": what, "object": thing})


_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _clear_peak() -> int:
    """Returns the size of the process in bytes, and resets its peak where the system supports that."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5", encoding="ascii")
    return _field("VmRSS:")


def _peak() -> int:
    return _field("VmHWM:")


def _field(name: str) -> int:
    """Returns a field of this process's memory status; 0 where the system does not provide it."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name)), 0)
