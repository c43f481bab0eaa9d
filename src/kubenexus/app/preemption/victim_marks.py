"""Writes into evicted pods that a scheduler preempts them, instead of the Eviction API's own reason."""

import asyncio
from typing import Final

from kubenexus.app.preemption.eviction_calls import EvictionCalls
from kubenexus.client.fair_slots import FairSlots
from kubenexus.observe import logs
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord

WRITERS: Final = 4
MOMENT: Final = 0.5  # seconds: a pod without a grace period is shown as terminating just before it is gone

log = logs.get("preemption")


class VictimMarks:
    """Marks victims a moment after the watch shows them terminating. A pod without a grace period is gone by then, so
    that nothing is written in vain: that would be one call in four of a preemption."""

    def __init__(self, calls: EvictionCalls, ledger: Ledger) -> None:
        self._calls, self._ledger = calls, ledger
        self._unseen: dict[str, tuple[PodRecord, str]] = {}  # by UID, with the profile: not yet terminating
        self._slots = FairSlots(WRITERS)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Returns whether no call is under way."""
        return not self._tasks

    def evicted(self, victim: PodRecord, profile: str) -> None:
        """Records that the API server has accepted the eviction of a victim."""
        self._unseen[victim.uid] = victim, profile

    def write(self) -> None:
        """Starts the calls for victims that terminate by now. Called when the watch may have shown something."""
        for uid, (victim, profile) in list(self._unseen.items()):
            record = self._record(victim)
            if record is not None and not record.terminating:
                continue
            del self._unseen[uid]
            if record is not None:
                task = asyncio.get_running_loop().create_task(self._write(victim, profile))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _record(self, victim: PodRecord) -> PodRecord | None:
        record = self._ledger.pods.get(victim.key)
        return record if record is not None and record.uid == victim.uid else None

    async def _write(self, victim: PodRecord, profile: str) -> None:
        """Writes why the victim ends, if it still exists. It ends all the same if that fails."""
        await asyncio.sleep(MOMENT)
        if self._record(victim) is None:
            return
        slot = await self._slots.acquire(victim.namespace)
        try:
            if self._record(victim) is not None:
                await self._calls.mark(victim, profile)
        except Exception as problem:
            log.error("Cannot write why a pod is preempted", problem, victim=victim.key)  # noqa: PLE1205 - our own log
        finally:
            self._slots.release(slot)
