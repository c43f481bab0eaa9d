"""Preemptions under way: pods that wait for the end of their victims."""

import msgspec

from kubenexus.state.pods import PodRecord


class PendingPreemption(msgspec.Struct):
    """A preemption: the preemptor's key, the node where it will run, and the victims by UID that still count there."""

    key: str
    node: str
    victims: set[str]


class Preemptions:
    """Preemptions by the preemptor's UID. Only the ledger writes here.

        decided ──▶ under way ──all victims gone──▶ finished ──▶ (the preemptor is tried again)
                        └──the preemptor is gone or placed, or an eviction failed──▶ ended

    This is the memory of one process. After a restart the API server tells the same: `status.nominatedNodeName` of the
    preemptor, and the condition DisruptionTarget of the victims.
    """

    def __init__(self) -> None:
        self._under_way: dict[str, PendingPreemption] = {}
        self._preemptors: dict[str, set[str]] = {}  # by the victim's UID
        self._finished: list[str] = []

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, uid: str) -> bool:
        """Returns whether the pod with this UID waits for victims."""
        return uid in self._under_way

    def node_of(self, uid: str) -> str:
        """Returns the node that a pod waits for, or ""."""
        pending = self._under_way.get(uid)
        return "" if pending is None else pending.node

    def begin(self, uid: str, key: str, node: str, victims: set[str]) -> None:
        """Enters a preemption that was decided."""
        self.end(uid)
        self._under_way[uid] = PendingPreemption(key, node, victims)
        for victim in victims:
            self._preemptors.setdefault(victim, set()).add(uid)

    def end(self, uid: str) -> bool:
        """Ends a preemption before its victims are gone. Returns whether there was one."""
        pending = self._under_way.pop(uid, None)
        for victim in () if pending is None else pending.victims:
            self._forget(victim, uid)
        return pending is not None

    def victim_gone(self, victim: PodRecord) -> None:
        """Removes a pod that no longer counts on its node. Preemptions without further victims are finished."""
        for uid in self._preemptors.pop(victim.uid, ()):
            pending = self._under_way[uid]
            pending.victims.discard(victim.uid)
            if not pending.victims:
                del self._under_way[uid]
                self._finished.append(pending.key)

    @property
    def any_finished(self) -> bool:
        return bool(self._finished)

    def take_finished(self) -> list[str]:
        """Returns the keys of pods whose victims are all gone since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def _forget(self, victim: str, uid: str) -> None:
        preemptors = self._preemptors[victim]
        preemptors.discard(uid)
        if not preemptors:
            del self._preemptors[victim]
