"""Nodes that come and go, fall silent and change their labels, one after the other, while pods are placed on them."""

import asyncio
from collections.abc import Awaitable, Callable

from bench.soak import objects
from bench.soak.churn import insist
from kubenexus.client import kinds
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.client.transport import ApiClient
from kubenexus.client.verbs import create, patch

EVERY = 0.5  # seconds
AWAY = 3.0


class Flaps:
    """`count` says how many there were."""

    def __init__(self, client: ApiClient, nodes: int) -> None:
        self._client, self._nodes = client, nodes
        self._acts: tuple[Callable[[str], Awaitable[None]], ...] = (
            self._gone, self._silent, self._relabelled, self._cordoned,
        )  # fmt: skip
        self.count = 0

    async def furnish(self) -> None:
        """All nodes, as they are at the beginning."""
        for start in range(0, self._nodes, 50):
            names = [f"n{number}" for number in range(start, min(start + 50, self._nodes))]
            await asyncio.gather(*(self._made(name) for name in names))

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await asyncio.sleep(EVERY)
                act = self._acts[self.count % len(self._acts)]
                tasks.create_task(self._play(act, f"n{self.count * 7 % self._nodes}"))
                self.count += 1

    async def _play(self, act: Callable[[str], Awaitable[None]], name: str) -> None:
        await act(name)

    async def _gone(self, name: str) -> None:
        """Deleted; and some seconds later another of the same name registers."""
        await self._send(Call("DELETE", kinds.NODES.at(name=name)))
        await asyncio.sleep(AWAY)
        await self._made(name)

    async def _silent(self, name: str) -> None:
        for ready, taints in (("False", [objects.NOT_READY]), ("True", None)):
            condition = {"type": "Ready", "status": ready}
            await self._patch(name, {"status": {"conditions": [condition]}}, "status")
            await self._patch(name, {"spec": {"taints": taints}})
            await asyncio.sleep(AWAY)

    async def _relabelled(self, name: str) -> None:
        """With a value that no node ever had."""
        await self._patch(name, {"metadata": {"labels": {"rack": f"r{self.count}"}}})

    async def _cordoned(self, name: str) -> None:
        await self._patch(name, {"spec": {"unschedulable": True}})
        await asyncio.sleep(AWAY)
        await self._patch(name, {"spec": {"unschedulable": None}})

    async def _made(self, name: str) -> None:
        """Without the taint that a real server gives to new nodes."""
        await self._send(create(kinds.NODES, objects.node(name)))
        await self._patch(name, {"spec": {"taints": None}})

    async def _patch(self, name: str, body: dict[str, object], part: str = "") -> None:
        kind = STRATEGIC_PATCH if part else "application/merge-patch+json"
        await self._send(patch(kinds.NODES, "", name, body, part=part, content_type=kind))

    async def _send(self, call: Call) -> None:
        await insist(lambda: self._client.send(call, timeout=60))
