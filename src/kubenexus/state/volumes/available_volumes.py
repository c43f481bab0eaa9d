"""Available volumes by storage class, and assumed claims: those for which a decision chose a volume.

A decision chooses an existing volume for a claim, or a new volume for the claim on a certain node. From then on no
other claim gets the volume, and other pods with the claim treat it as bound. The assumption ends with the pods it was
made for, or when the API server reports something else.
"""

from collections.abc import Mapping

import msgspec

from kubenexus.state.volumes.records import CapacityRecord, ClaimRecord, VolumeRecord
from kubenexus.state.volumes.volume_pool import StorageClassPool


class AssumedClaim(msgspec.Struct, gc=False):
    """A claim's chosen volume, or if that is "", a new volume for `node`. `holders` is the number of pods that rely on
    it."""

    volume: str
    node: str
    holders: int = 1


class AvailableVolumes:
    """The pools of available volumes by storage class, and the assumed claims. Only `VolumeStore` writes here."""

    def __init__(self, volumes: Mapping[str, VolumeRecord]) -> None:
        self._volumes = volumes
        self._shelves: dict[str, StorageClassPool] = {}
        self._shelved: dict[str, VolumeRecord] = {}
        self._referring: dict[str, set[str]] = {}
        self._promises: dict[str, AssumedClaim] = {}
        self._promised: dict[str, str] = {}

    def pool(self, class_name: str) -> StorageClassPool:
        """Returns the pool of a storage class, and creates it if there is none."""
        shelf = self._shelves.get(class_name)
        if shelf is None:
            shelf = self._shelves[class_name] = StorageClassPool()
        return shelf

    def preferred(self, claim: ClaimRecord) -> list[VolumeRecord]:
        """Returns the volumes meant for this claim, by an assumption or by their claimRef. Of the other volumes the
        claim may only take those that are meant for no claim."""
        promise = self._promises.get(claim.key)
        names = [promise.volume] if promise is not None and promise.volume else []
        names += sorted(self._referring.get(claim.key, ()))
        found = [self._volumes[name] for name in dict.fromkeys(names) if name in self._volumes]
        return [each for each in found if each.is_for(claim) or (promise and each.name == promise.volume)]

    def selected_node(self, claim: ClaimRecord) -> str | None:
        """Returns the node for which a volume is being provisioned for this claim, or None."""
        promise = self._promises.get(claim.key)
        return promise.node if claim.selected is None and promise and not promise.volume else claim.selected

    # --- objects from the API server ------------------------------------------------------------------------------

    def volume_changed(self, name: str, old: VolumeRecord | None, new: VolumeRecord | None) -> None:
        """Called after the volume was added to `volumes`, replaced or removed there."""
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
        """Drops the assumption for a claim if the claim has another volume, or its selected node is written on it."""
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
        """Called after a change of a storage class; None: of a CSI driver, which may concern every class."""
        for shelf in self._shelves.values() if class_name is None else [self.pool(class_name)]:
            shelf.touch(None)

    # --- assumed claims -------------------------------------------------------------------------------------------

    def promise(self, claim: str, volume: str, node: str) -> None:
        """Assumes a volume for a claim, or a new one for `node` if `volume` is "". A further pod with the same choice
        becomes another holder."""
        known = self._promises.get(claim)
        # Else another claim got the volume while the pod's node was away.
        if known is None and volume not in self._promised:
            self._promises[claim] = AssumedClaim(volume, node)
            if volume:
                self._promised[volume] = claim
                self._settle(volume)
        elif known is not None and (known.volume, known.node) == (volume, node):
            known.holders += 1

    def release(self, claim: str, volume: str, node: str) -> None:
        """Removes a holder of an assumption, and drops the assumption with the last one."""
        known = self._promises.get(claim)
        if known is not None and (known.volume, known.node) == (volume, node):
            known.holders -= 1
            if not known.holders:
                self.drop(claim)

    def drop(self, claim: str) -> None:
        """Drops the assumption for a claim. Its volume is available again."""
        promise = self._promises.pop(claim)
        if promise.volume:
            del self._promised[promise.volume]
            self._settle(promise.volume)

    # --- internal -------------------------------------------------------------------------------------------------

    def _settle(self, name: str) -> None:
        """Adds a volume to its class's pool, or removes it there, according to its current record."""
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
