"""Which volumes are still to be had, and what was promised to claims whose binding is not seen yet.

A decision promises: this volume to that claim, or: a new volume for that claim, made for that node. From then on
nobody else gets the volume, and other pods that use the claim go by the promise, as if the API server had said it.
The promise ends with the pods that it was made for, or when the API server says otherwise.
"""

from collections.abc import Mapping

import msgspec

from kubenexus.state.volumes.records import CapacityRecord, ClaimRecord, VolumeRecord
from kubenexus.state.volumes.volume_pool import StorageClassPool


class AssumedClaim(msgspec.Struct, gc=False):
    """To a claim: a volume, or if that is "", a new one for the node. `holders` pods stand on it."""

    volume: str
    node: str
    holders: int = 1


class AvailableVolumes:
    def __init__(self, volumes: Mapping[str, VolumeRecord]) -> None:
        self._volumes = volumes
        self._shelves: dict[str, StorageClassPool] = {}
        self._shelved: dict[str, VolumeRecord] = {}
        self._referring: dict[str, set[str]] = {}
        self._promises: dict[str, AssumedClaim] = {}
        self._promised: dict[str, str] = {}

    def pool(self, class_name: str) -> StorageClassPool:
        shelf = self._shelves.get(class_name)
        if shelf is None:
            shelf = self._shelves[class_name] = StorageClassPool()
        return shelf

    def preferred(self, claim: ClaimRecord) -> list[VolumeRecord]:
        """Volumes that are meant for this claim, by a promise or by their own word; of others it must not take any of
        those that are meant for somebody else."""
        promise = self._promises.get(claim.key)
        names = [promise.volume] if promise is not None and promise.volume else []
        names += sorted(self._referring.get(claim.key, ()))
        found = [self._volumes[name] for name in dict.fromkeys(names) if name in self._volumes]
        return [each for each in found if each.is_for(claim) or (promise and each.name == promise.volume)]

    def selected_node(self, claim: ClaimRecord) -> str | None:
        """The node for which a volume is being made for this claim."""
        promise = self._promises.get(claim.key)
        return promise.node if claim.selected is None and promise and not promise.volume else claim.selected

    # --- what the API server says ---------------------------------------------------------------------------------

    def volume_changed(self, name: str, old: VolumeRecord | None, new: VolumeRecord | None) -> None:
        """After the volume was put among the others, or taken away."""
        for volume, referring in ((old, False), (new, True)):
            if volume is not None and volume.claim:
                self._refer(volume, referring)
        if new is not None and new.claim and name in self._promised:
            self.drop(self._promised[name])
        if old is not None and new is not None and old.shape != new.shape:
            for class_name in {old.class_name, new.class_name}:
                self.pool(class_name).touch(None)
        self._settle(name)

    def claim_changed(self, claim: ClaimRecord) -> None:
        """A claim that was given another volume than promised, or whose node is now written on it."""
        promise = self._promises.get(claim.key)
        if promise is None:
            return
        if claim.volume not in ("", promise.volume) or (not promise.volume and claim.selected is not None):
            self.drop(claim.key)

    def capacity_changed(self, old: CapacityRecord | None, new: CapacityRecord | None) -> None:
        if old is not None:
            self.pool(old.class_name).take_capacity(old)
        if new is not None:
            self.pool(new.class_name).put_capacity(new)

    def rules_changed(self, class_name: str | None = None) -> None:
        """A storage class says something else now; or a driver, and with it perhaps every class."""
        for shelf in self._shelves.values() if class_name is None else [self.pool(class_name)]:
            shelf.touch(None)

    # --- what we promise ------------------------------------------------------------------------------------------

    def promise(self, claim: str, volume: str, node: str) -> None:
        known = self._promises.get(claim)
        if known is None and volume not in self._promised:  # else somebody got it while the pod's node was away
            self._promises[claim] = AssumedClaim(volume, node)
            if volume:
                self._promised[volume] = claim
                self._settle(volume)
        elif known is not None and (known.volume, known.node) == (volume, node):
            known.holders += 1

    def release(self, claim: str, volume: str, node: str) -> None:
        known = self._promises.get(claim)
        if known is not None and (known.volume, known.node) == (volume, node):
            known.holders -= 1
            if not known.holders:
                self.drop(claim)

    def drop(self, claim: str) -> None:
        promise = self._promises.pop(claim)
        if promise.volume:
            del self._promised[promise.volume]
            self._settle(promise.volume)

    # --- how it is kept -------------------------------------------------------------------------------------------

    def _settle(self, name: str) -> None:
        """Put a volume on the shelf, or take it off, according to what is known of it now."""
        volume, shelved = self._volumes.get(name), self._shelved.get(name)
        free = volume is not None and volume.free and name not in self._promised
        if shelved is not None and (not free or shelved != volume):
            self.pool(shelved.class_name).take_volume(self._shelved.pop(name))
        if volume is not None and free and name not in self._shelved:
            self.pool(volume.class_name).put_volume(volume)
            self._shelved[name] = volume

    def _refer(self, volume: VolumeRecord, referring: bool) -> None:
        names = self._referring.setdefault(volume.claim, set())
        if referring:
            names.add(volume.name)
        else:
            names.discard(volume.name)
        if not names:
            del self._referring[volume.claim]
