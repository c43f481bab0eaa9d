"""Runs agents against an API server: two watches, one queue of work items, a bounded number of concurrent calls."""

import asyncio
import contextlib
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from kubenexus.api.codec import Unreadable
from kubenexus.base.clock import Clock
from kubenexus.base.errors import KubeNexusError
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_events import DELETED, WatchEvent
from kubenexus.client.watch_protocols import WatchClient, WatchProblem, WatchTarget
from kubenexus.sim.delaying_queue import WorkItem
from kubenexus.sim.kubelets.agents import Agents, is_final_error
from kubenexus.sim.kubelets.types import Node, Pod

NODES = WatchTarget(kinds.NODES, Node)
# Bound and not ended: for this selector a pod that ends is reported as deleted.
PODS = WatchTarget(kinds.PODS, Pod, fields="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
CONCURRENCY = 32
MAX_WAIT = 60.0  # seconds; then the clock is read again, which may differ from the loop's

Report = Callable[[str], None]


class AgentRunner:
    """Runs agents until cancelled. Failed calls and watches are retried."""

    def __init__(
        self,
        client: WatchClient,
        agents: Agents,
        clock: Clock,
        *,
        rng: random.Random,
        concurrency: int = CONCURRENCY,
        report: Report = lambda _: None,
    ) -> None:
        self.agents = agents
        self._client = client
        self._clock = clock
        self._concurrency = concurrency
        self._queue: asyncio.Queue[WorkItem] = asyncio.Queue(2 * concurrency)
        self._wake = asyncio.Event()
        self._asleep_until = 0.0
        self._report = report
        self._told: set[tuple[str, int]] = set()
        self._reflectors = [
            Reflector(client, NODES, _ReceivedObjects(agents.node_names, self._node, report), clock=clock, rng=rng),
            Reflector(client, PODS, _ReceivedObjects(agents.pod_uids, self._pod, report), clock=clock, rng=rng),
        ]

    async def register(self, calls: Iterable[Call]) -> None:
        """Creates nodes concurrently; existing ones stay unchanged. Raises any other error."""
        waiting = iter(calls)
        await asyncio.gather(*(self._register(waiting) for _ in range(self._concurrency)))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())
            for _ in range(self._concurrency):
                group.create_task(self._work())
            while True:
                await self._hand_out()

    async def _register(self, waiting: Iterable[Call]) -> None:
        for call in waiting:
            try:
                await self._client.send(call, timeout=30.0)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise

    async def _hand_out(self) -> None:
        """Passes due items to the workers, then waits for the next one. `_nudge` ends the wait if an earlier item
        appears."""
        for item in self.agents.work_queue.due(self._clock.now(), self._concurrency):
            await self._queue.put(item)
        due = self.agents.work_queue.next_due()
        self._asleep_until = math.inf if due is None else due
        wait = self._asleep_until - self._clock.now()
        if wait > 0:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(wait, MAX_WAIT)):
                    await self._wake.wait()

    def _nudge(self) -> None:
        due = self.agents.work_queue.next_due()
        if due is not None and due < self._asleep_until:
            self._wake.set()

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
            error = await self._do(item)
            self.agents.finished(item, self._clock.now(), error)
            self._nudge()

    async def _do(self, item: WorkItem) -> KubeNexusError | None:
        call = self.agents.call(item, self._clock.now())
        if call is None:
            return None
        try:
            await self._client.send(call)
        except KubeNexusError as error:
            self._complain(item, error)
            return error
        return None

    def _complain(self, item: WorkItem, error: KubeNexusError) -> None:
        """Reports each kind of error once, because a thousand nodes have the same one."""
        trouble = (item.what, error.code if isinstance(error, ApiError) else 0)
        if not is_final_error(error) and trouble not in self._told:
            self._told.add(trouble)
            self._report(f"{item.what} {item.whom}: {error}")

    def _node(self, name: str, node: Node | None) -> None:
        if node is None:
            self.agents.node_gone(name)
        else:
            self.agents.node_seen(node, self._clock.now())
        self._nudge()

    def _pod(self, uid: str, pod: Pod | None) -> None:
        if pod is None:
            self.agents.pod_gone(uid)
        else:
            self.agents.pod_seen(pod, self._clock.now())
        self._nudge()


class _ReceivedObjects:
    """Turns a watch into calls `tell(key, object)`, with None for a deleted object."""

    def __init__(self, known: Iterable[str], tell: Callable[[str, Any], None], report: Report) -> None:
        self._known = known
        self._tell = tell
        self._report = report
        self._listed: set[str] = set()

    def list_started(self) -> None:
        self._listed.clear()

    def list_page(self, items: list[Node | Pod], unreadable: tuple[Unreadable, ...]) -> None:
        for item in items:
            self._listed.add(_key(item))
            self._tell(_key(item), item)

    def list_finished(self) -> None:
        for key in set(self._known) - self._listed:
            self._tell(key, None)

    def events(self, changes: list[WatchEvent]) -> None:
        for event in changes:
            if not isinstance(event.object, Unreadable):
                key = _key(event.object)
                self._tell(key, None if event.type == DELETED else event.object)

    def problem_changed(self, trouble: WatchProblem) -> None:
        self._report(f"{trouble.resource}: {trouble.text or 'all is well again'}")


def _key(item: Node | Pod) -> str:
    """Returns the uid of a pod, since a recreated pod is another one, or the name of a node, which identifies the
    machine."""
    return item.metadata.uid if isinstance(item, Pod) else item.metadata.name
