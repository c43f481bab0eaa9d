"""The hole that a lost member of a gang leaves on its node is held for its replacement for a while: whoever is no more
urgent goes elsewhere. Kept in the ledger as pods nominated to a node are.

Not written anywhere: a scheduler that starts anew holds nothing, and the replacement is placed as any other pod.
"""

from typing import NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.clock import Clock
from kubenexus.queue import changes
from kubenexus.queue.room import WaitingRoom
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodRecord, Stage

HELD = 120.0  # seconds
GONE_BY = 3600.0  # seconds; a pod that ends more slowly than that may leave a hole after all
MOST = 10_000  # holes; a cluster that loses more at once has other worries


class Hole(NamedTuple):
    gang: str
    pod: Pod
    until: float


class Holes:
    def __init__(self, ledger: Ledger, room: WaitingRoom, clock: Clock) -> None:
        self._ledger, self._room, self._clock = ledger, room, clock
        self._holes: dict[str, Hole] = {}
        self._released: dict[str, float] = {}  # UIDs of members that had to go, and for how long that is remembered

    def of(self, gang: str) -> tuple[str, ...]:
        """The keys under which the ledger has what is held for a gang."""
        return tuple([key for key, hole in self._holes.items() if hole.gang == gang]) if self._holes else ()

    def leave(self, gang: str, pod: Pod, record: PodRecord) -> None:
        """A member is gone from its node. Called before anybody else can take the room."""
        if pod.metadata.uid in self._released or len(self._holes) >= MOST:
            return
        name = f"{record.name}#left"  # no pod has such a name
        hole = msgspec.structs.replace(record, name=name, stage=Stage.NOMINATED, takes=(), picks=(), slot=-1)
        self._ledger.hold(hole)
        self._holes[hole.key] = Hole(gang, pod, self._clock.now() + HELD)

    def release(self, gang: str, uid: str) -> None:
        """This member has to go since its gang holds what it cannot use: nothing is held for the gang."""
        if len(self._released) < MOST:
            self._released[uid] = self._clock.now() + GONE_BY
        self.close(gang)

    def close(self, gang: str) -> None:
        """The gang is whole again, or gone."""
        for key in self.of(gang):
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
        self._ledger.unhold(key)
        self._room.on_event(changes.nomination_ended(hole.pod))
