"""Waiting for pods as scheduler_perf does: until they have a node, or were tried, and not for ever."""

import asyncio
import math

from kubenexus.sim.virtual.pod_tracker import Test, TrackedPod
from kubenexus.sim.virtual.simulation import Simulation

PATIENCE = 600.0  # virtual seconds for what has to be scheduled, or tried
LOOK = 1.0  # virtual seconds between two looks at what is waited for


class Waits:
    """What came of all waits of a play: how many pods had to get a node, how many did, and of one that did not, why."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self.wanted = self.got = 0
        self.problem = ""

    async def until_placed(self, keys: list[str]) -> None:
        left = await self._until(keys, _placed)
        self.wanted += len(keys)
        self.got += len(keys) - len(left)
        self._complain(left, "has no node")

    async def until_tried(self, keys: list[str]) -> None:
        self._complain(await self._until(keys, _attempted), "has not been tried")

    async def _until(self, keys: list[str], test: Test) -> list[str]:
        """It looks now and then once a second, so that what goes on beside it has time. Returns who is left."""
        began = self._world.seconds
        left = await self._world.roll.until(keys, test, PATIENCE)
        passed = self._world.seconds - began
        if passed:
            await asyncio.sleep(math.ceil(passed / LOOK) * LOOK - passed)
        return left

    def _complain(self, left: list[str], what: str) -> None:
        if left:
            entry = self._world.roll.pods.get(left[0])
            why = entry.why if entry is not None else ""
            told = f": {why}" if why else ""
            self.problem = f"after {PATIENCE:g} s {left[0]} {what} ({len(left)} such pods){told}"


def _placed(entry: TrackedPod) -> bool:
    return entry.placed


def _attempted(entry: TrackedPod) -> bool:
    return entry.attempted
