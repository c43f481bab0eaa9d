"""The life of pods, in a hurry: created, bound by the scheduler, completed and deleted, so many alive at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from bench.soak import objects
from bench.soak.lookout import Lookout, Seen
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Call, Uncertain, Unreachable
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, delete, patch_pod_status

NAMESPACE = "default"
WORKERS = 16
HUGE_EVERY = 100  # pods: one that fits nowhere comes along
HUGE_LIVES = 10.0  # seconds


async def insist(send: Callable[[], Awaitable[Any]]) -> None:
    """Until it is done: a server that is busy, or a call without an answer, is no reason to stop a soak. What is gone
    or there already is as good as done."""
    while True:
        try:
            await send()
            return
        except ApiError as error:
            if error.code in (404, 409):
                return
            if error.code != 429 and error.code < 500:
                raise
        except (Unreachable, Uncertain):
            pass
        await asyncio.sleep(0.2)


class Churn:
    """`alive` pods at most at a time, `job` of them alike. `done` counts those whose life is over."""

    def __init__(self, client: ApiClient, alive: int, job: int) -> None:
        self._client, self._job = client, job
        self._room = asyncio.Semaphore(alive)
        self._bound: asyncio.Queue[Seen] = asyncio.Queue()
        self._ending: set[str] = set()
        self._next = self._last = 0
        self._whole = asyncio.Event()
        self.done = 0

    async def run(self) -> None:
        """Until cancelled: whatever `turn_over` asks for is done here."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Lookout(self._see).run(self._client))
            for _ in range(WORKERS):
                tasks.create_task(self._finish())

    async def turn_over(self, pods: int) -> None:
        """So many more, from the first create to the last delete."""
        self._whole.clear()
        self._last = self._next + pods
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(self._make(tasks))
        await self._whole.wait()

    async def _make(self, tasks: asyncio.TaskGroup) -> None:
        while self._next < self._last:
            number, self._next = self._next, self._next + 1
            await self._room.acquire()
            await self._send(create(kinds.PODS, objects.pod(number, self._job), NAMESPACE))
            if number % HUGE_EVERY == 0:
                tasks.create_task(self._in_vain(number))

    async def _in_vain(self, number: int) -> None:
        huge = objects.too_large(number)
        await self._send(create(kinds.PODS, huge, NAMESPACE))
        await asyncio.sleep(HUGE_LIVES)
        await self._send(Call("DELETE", kinds.PODS.at(NAMESPACE, huge["metadata"]["name"])))

    async def _finish(self) -> None:
        while True:
            meta = (await self._bound.get()).metadata
            await self._send(patch_pod_status(NAMESPACE, meta.name, meta.uid, {"phase": "Succeeded"}))
            await self._send(delete(kinds.PODS, NAMESPACE, meta.name, meta.uid, grace_seconds=0))
            self._ending.discard(meta.uid)
            self._room.release()
            self.done += 1
            if self.done == self._last:
                self._whole.set()

    def _send(self, call: Call) -> Coroutine[Any, Any, None]:
        return insist(lambda: self._client.send(call, timeout=60))

    def _see(self, pod: Seen) -> None:
        if pod.spec.node_name and pod.metadata.uid not in self._ending:
            self._ending.add(pod.metadata.uid)
            self._bound.put_nowait(pod)
