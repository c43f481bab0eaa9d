"""Operations that run in the background until a workload ends: churn, and paced deletions."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from kubenexus.client.kinds import PODS
from kubenexus.sim.perf.object_creation import CreateRejected, ObjectCreator
from kubenexus.sim.perf.ops import Churn
from kubenexus.sim.perf.template_cache import Item
from kubenexus.sim.virtual.simulation import Simulation

_INTERVAL = 500  # milliseconds, the default of a churn


class BackgroundOps:
    """Background tasks. `close` cancels them, and raises the error of a failed one."""

    def __init__(self, simulation: Simulation, make: ObjectCreator) -> None:
        self._simulation, self._make = simulation, make
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, doing: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(doing))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def delete(self, keys: list[str], per_second: int) -> None:
        """Deletes pods, `per_second` of them each second, or all at once if 0."""
        for key in sorted(keys):
            if per_second:
                await asyncio.sleep(1 / per_second)
            namespace, _, name = key.partition("/")
            self._make.delete(self._pods, name, namespace)

    async def churn(self, op: Churn, items: list[Item], namespace: str) -> None:
        """Creates one object of each template at every tick; `recreate` deletes it when its index comes up again."""
        names: list[list[str]] = [[""] * max(op.number, 1) for _ in items]
        count = 0
        while op.mode == "recreate" or not op.number or count < op.number:
            await asyncio.sleep((op.interval_milliseconds or _INTERVAL) / 1000)
            for item, made in zip(items, names, strict=True):
                turn = count % len(made)
                made[turn] = self._turned(item, namespace, made[turn], again=op.mode == "recreate")
            count += 1

    def _turned(self, item: Item, namespace: str, name: str, *, again: bool) -> str:
        if again and name:
            self._make.delete(self._make.kind(item), name, namespace)
            return ""
        with contextlib.suppress(CreateRejected):  # the name is taken: tried at a later tick
            return self._make.create(item, namespace)
        return ""

    @property
    def _pods(self) -> Any:
        found = self._simulation.server.core.registry.find(PODS.api_version, PODS.plural)
        assert found is not None
        return found
