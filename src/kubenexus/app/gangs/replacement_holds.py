"""Holds the capacity of a lost gang member on its node for its replacement, for up to two minutes.

Pods of the same or a lower priority go elsewhere meanwhile. A hold is kept in the ledger, like a pod nominated to a
node. It is not persisted: after a restart nothing is held, and a replacement is placed like any other pod.

A hold counts against no quota, so it must not be worth more than the tenant paid for it:

- Only a member that ran, in a gang that was complete, leaves a hold.
- The hold lasts no longer than the member was on its node.
- A gang has no more holds than members that it lacks.

Every decision checks all holds, so their number is limited, by namespace and in total.
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

HOLD_SECONDS = 120.0  # seconds that a hold lasts at most
GONE_BY = 3600.0  # seconds for which an evicted member is remembered; one that ends later may leave a hold after all
MIN_STAY_SECONDS = 5.0  # seconds; holds are expired every five seconds, so one of five may last twice as long
MAX_HOLDS = 128  # holds; each adds 0.05 ms to every decision: 6 ms in all
MAX_HOLDS_OF_NAMESPACE = 32  # holds; four namespaces reach the limit together
MAX_RELEASED = 10_000  # evicted members that are remembered


class ReplacementHold(NamedTuple):
    """The capacity held for one lost member: its gang, the member as it was, and when the hold ends."""

    gang: str
    pod: Pod
    until: float


class ReplacementHolds:
    """All replacement holds. The event handlers add them, the assembler and the stale-gang evictor end them."""

    def __init__(self, ledger: Ledger, queue: SchedulingQueue, clock: Clock) -> None:
        self._ledger, self._queue, self._clock = ledger, queue, clock
        self._holds: dict[str, ReplacementHold] = {}
        self._released: dict[str, float] = {}  # UIDs of evicted members, and until when each is remembered

    def keys_of(self, gang: str) -> tuple[str, ...]:
        """Returns the keys of the ledger's records for the holds of a gang."""
        return tuple([key for key, held in self._holds.items() if held.gang == gang]) if self._holds else ()

    def hold(self, leaving: LeavingMember, lacks: int, pod: Pod, record: PodRecord) -> None:
        """Holds the capacity of a member that is gone from its node. `lacks` is how many members the gang lacks now.
        Called before another pod can take the capacity."""
        now = self._clock.now()
        stayed = now - leaving.since
        if not leaving.started or stayed < MIN_STAY_SECONDS or pod.metadata.uid in self._released:
            return
        name = hold_name(record.name)
        # Without affinity terms: those of a hundred holds would cost every decision more than the capacity is worth.
        held = msgspec.structs.replace(
            record,
            name=name,
            stage=PodStage.NOMINATED,
            device_shares=(),
            terms=(),
            volume_choices=(),
            claims=(),
            slot=-1,
        )
        others = [each for key, each in self._holds.items() if key != held.key]
        in_gang = sum(each.gang == leaving.gang for each in others)
        in_namespace = sum(each.pod.metadata.namespace == record.namespace for each in others)
        if in_gang >= lacks or in_namespace >= MAX_HOLDS_OF_NAMESPACE or len(others) >= MAX_HOLDS:
            return
        self._ledger.hold_capacity(held)
        self._holds[held.key] = ReplacementHold(leaving.gang, pod, now + min(HOLD_SECONDS, stayed))

    def release(self, gang: str, uid: str) -> None:
        """Ends all holds of a gang of which a member is evicted, because the gang is stale. No hold is made for that
        member later."""
        if len(self._released) < MAX_RELEASED:
            self._released[uid] = self._clock.now() + GONE_BY
        self.release_gang(gang)

    def release_gang(self, gang: str) -> None:
        """Ends all holds of a gang that is complete again, or gone."""
        for key in self.keys_of(gang):
            self._end(key)

    def expire(self) -> None:
        """Ends the holds whose time is over. Called every five seconds."""
        now = self._clock.now()
        for key in [key for key, held in self._holds.items() if held.until <= now]:
            self._end(key)
        for uid in [uid for uid, until in self._released.items() if until <= now]:
            del self._released[uid]

    def _end(self, key: str) -> None:
        held = self._holds.pop(key)
        self._ledger.release_capacity(key)
        self._queue.on_event(object_events.nomination_ended(held.pod))
