"""The hole that a lost member of a gang leaves on its node is held for its replacement for a while: pods that are no
more urgent go elsewhere. Kept in the ledger as pods nominated to a node are.

A hole costs its tenant no quota, so it is never worth more than what was paid for it: only a member that ran in a gang
that was complete leaves one, for no longer than the member was on its node, and a gang has no more of them than members
that it lacks. Every decision looks at all holes: that is what the limits by namespace and for all are for.

Not written anywhere: a scheduler that has just started holds nothing, and the replacement is placed as any other pod.
"""

from typing import NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.job_key import hold_name
from kubenexus.base.clock import Clock
from kubenexus.queue import object_events
from kubenexus.queue.gangs.gang_registry import LeavingMember
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, PodStage

HOLD_SECONDS = 120.0  # seconds
GONE_BY = 3600.0  # seconds; a pod that ends more slowly than that may leave a hole after all
SHORTEST = 5.0  # seconds; holes end every five seconds, and one that lasts twice as long as it should is enough
MOST = 128  # holes; each adds 0.05 ms to every decision: 6 ms in all
MOST_OF_NAMESPACE = 32  # holes; four tenants have to pay for the most there can be
MOST_RELEASED = 10_000  # members that had to go, and that are remembered


class ReplacementHold(NamedTuple):
    gang: str
    pod: Pod
    until: float


class ReplacementHolds:
    def __init__(self, ledger: Ledger, queue: SchedulingQueue, clock: Clock) -> None:
        self._ledger, self._queue, self._clock = ledger, queue, clock
        self._holes: dict[str, ReplacementHold] = {}
        self._released: dict[str, float] = {}  # UIDs of members that had to go, and for how long that is remembered

    def keys_of(self, gang: str) -> tuple[str, ...]:
        """The keys under which the ledger has what is held for a gang."""
        return tuple([key for key, hole in self._holes.items() if hole.gang == gang]) if self._holes else ()

    def hold(self, leaving: LeavingMember, lacks: int, pod: Pod, record: PodRecord) -> None:
        """A member is gone from its node, and its gang lacks so many now. Called before any other pod can take the
        room."""
        now = self._clock.now()
        stayed = now - leaving.since
        if not leaving.started or stayed < SHORTEST or pod.metadata.uid in self._released:
            return
        name = hold_name(record.name)
        # Without terms: to lay those of a hundred holes would cost every decision more than the room is worth.
        hole = msgspec.structs.replace(
            record, name=name, stage=PodStage.NOMINATED, device_shares=(), terms=(), volume_choices=(), slot=-1
        )
        others = [each for key, each in self._holes.items() if key != hole.key]
        of_gang = sum(each.gang == leaving.gang for each in others)
        of_namespace = sum(each.pod.metadata.namespace == record.namespace for each in others)
        if of_gang >= lacks or of_namespace >= MOST_OF_NAMESPACE or len(others) >= MOST:
            return
        self._ledger.hold_capacity(hole)
        self._holes[hole.key] = ReplacementHold(leaving.gang, pod, now + min(HOLD_SECONDS, stayed))

    def release(self, gang: str, uid: str) -> None:
        """This member has to go since its gang holds what it cannot use: nothing is held for the gang."""
        if len(self._released) < MOST_RELEASED:
            self._released[uid] = self._clock.now() + GONE_BY
        self.release_gang(gang)

    def release_gang(self, gang: str) -> None:
        """The gang is whole again, or gone."""
        for key in self.keys_of(gang):
            self._end(key)

    def expire(self) -> None:
        """End what has been held long enough."""
        now = self._clock.now()
        for key in [key for key, hole in self._holes.items() if hole.until <= now]:
            self._end(key)
        for uid in [uid for uid, until in self._released.items() if until <= now]:
            del self._released[uid]

    def _end(self, key: str) -> None:
        hole = self._holes.pop(key)
        self._ledger.release_capacity(key)
        self._queue.on_event(object_events.nomination_ended(hole.pod))
