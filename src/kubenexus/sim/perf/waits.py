"""Waits for pods as scheduler_perf does: until they have a node or were tried, with a timeout."""

import asyncio
import math

from kubenexus.sim.virtual.pod_tracker import Test, TrackedPod
from kubenexus.sim.virtual.simulation import Simulation

PATIENCE = 600.0  # virtual seconds for pods to be scheduled, or tried
LOOK = 1.0  # virtual seconds between two checks


class Waits:
    """The outcome of all waits of a run: how many pods had to get a node, how many did, and why one did not."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
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
        """Checks once a second, as scheduler_perf does, so that background operations proceed. Returns the remaining
        keys."""
        began = self._simulation.seconds
        left = await self._simulation.tracker.until(keys, test, PATIENCE)
        passed = self._simulation.seconds - began
        if passed:
            await asyncio.sleep(math.ceil(passed / LOOK) * LOOK - passed)
        return left

    def _complain(self, left: list[str], what: str) -> None:
        if left:
            entry = self._simulation.tracker.pods.get(left[0])
            why = entry.why if entry is not None else ""
            told = f": {why}" if why else ""
            self.problem = f"after {PATIENCE:g} s {left[0]} {what} ({len(left)} such pods){told}"


def _placed(entry: TrackedPod) -> bool:
    return entry.placed


def _attempted(entry: TrackedPod) -> bool:
    return entry.attempted
