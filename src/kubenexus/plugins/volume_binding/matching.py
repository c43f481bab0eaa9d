"""Matches a pod's unbound claims with volumes on a node: for each the smallest existing one that fits, or a new one.

Upstream does this for every node. Here it is done once for all nodes that are equal to volumes: reach depends on a
node's labels alone.
"""

import math
from collections.abc import Collection, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from kubenexus.api.selectors import Selector
from kubenexus.state.volumes.pod_volumes import VolumeChoice
from kubenexus.state.volumes.records import ClaimRecord, Size, VolumeRecord
from kubenexus.state.volumes.store import VolumeStore
from kubenexus.state.volumes.volume_topology import is_admitted

NO_PROVISIONER = "kubernetes.io/no-provisioner"
FOUND, NO_VOLUME, NO_SPACE = range(3)

# Points (0 to 100) for each percentage of a class's storage that would be in use.
Line = Sequence[int]


class UnboundClaim(msgspec.Struct, frozen=True, array_like=True):
    """An unbound claim that waits for its pod: the parts that results depend on. `selected` is the node for which a
    volume is being provisioned already, `meant` the volume that is reserved for this claim."""

    position: int
    class_name: str
    spec_class: str
    size: Size
    sized: bool
    units: int
    modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    selector: Selector | None
    selected: str | None
    meant: str = ""

    def fits(self, volume: VolumeRecord) -> bool:
        """Returns whether an available volume of the right class could be bound to it."""
        return (
            self.may_be(volume)
            and volume.modes.issuperset(self.modes)
            and (self.selector is None or self.selector.matches(volume.labels))
        )

    def may_be(self, volume: VolumeRecord) -> bool:
        """Returns whether a volume satisfies what even a volume reserved for the claim must satisfy."""
        return (
            volume.size >= self.size
            and volume.volume_mode == self.volume_mode
            and volume.attributes_class == self.attributes_class
            and not volume.deleting
        )


class ClaimOutcome(NamedTuple):
    """The outcome on a node: NO_VOLUME or NO_SPACE, or the volume of each claim and the score."""

    refused: int
    picks: tuple[VolumeChoice, ...] = ()
    score: int = 0


def unbound_claim(position: int, claim: ClaimRecord, store: VolumeStore) -> UnboundClaim:
    asked = UnboundClaim(
        position=position,
        class_name=claim.class_name,
        spec_class=claim.spec_class,
        size=claim.size or (0, 0),
        sized=claim.size is not None,
        units=claim.units,
        modes=claim.modes,
        volume_mode=claim.volume_mode,
        attributes_class=claim.attributes_class,
        selector=claim.selector,
        selected=store.stock.selected_node(claim),
    )
    meant = [v.name for v in store.stock.preferred(claim) if v.class_name == claim.class_name and asked.may_be(v)]
    return msgspec.structs.replace(asked, meant=meant[0]) if meant else asked


class ClaimMatcher:
    """Matches the claims of one pod class."""

    def __init__(self, claims: Sequence[UnboundClaim], line: Line) -> None:
        self._selected = [claim for claim in claims if claim.selected is not None]
        self._unselected = sorted((claim for claim in claims if claim.selected is None), key=lambda c: c.size)
        self._line = line

    def keys(self, store: VolumeStore) -> set[str]:
        """Returns the labels on which the reach of the volumes reserved for these claims depends. Those of all other
        volumes are in their pools."""
        meant = [store.volumes.get(claim.meant) for claim in self._unselected]
        return {key for volume in meant if volume is not None and volume.reach for key in volume.reach.keys}

    def outcome(self, labels: Mapping[str, str], store: VolumeStore, taken: Set[str] = frozenset()) -> ClaimOutcome:
        """Returns the outcome on a node with these labels; volumes in `taken` are not available."""
        given: dict[str, tuple[UnboundClaim, VolumeRecord]] = {}
        to_make = list(self._selected)
        for claim in self._unselected:
            volume = _best(claim, labels, store, given.keys() | taken if taken else given)
            if volume is None:
                to_make.append(claim)
            else:
                given[volume.name] = (claim, volume)
        made: list[tuple[UnboundClaim, int | None]] = []
        for claim in to_make:
            refused, capacity = _provision(claim, labels, store)
            if refused:
                return ClaimOutcome(refused)
            made.append((claim, capacity))
        picks = [VolumeChoice(claim.position, name) for name, (claim, _) in given.items()]
        picks += [VolumeChoice(claim.position, "") for claim, _ in made]
        return ClaimOutcome(FOUND, tuple(picks), self._score(list(given.values()), made))

    def capacity(self, labels: Mapping[str, str], store: VolumeStore, most: int) -> int:
        """Returns how many pods with such claims a node could take, one after the other; `most` if nothing limits them.
        New volumes do not limit: their possible number is unknown."""
        taken: set[str] = set()
        for capacity in range(most):
            outcome = self.outcome(labels, store, taken)
            picked = {pick.volume for pick in outcome.picks} - {""}
            if outcome.refused or not picked:
                return capacity if outcome.refused else most
            taken |= picked
        return most

    def _score(
        self, given: list[tuple[UnboundClaim, VolumeRecord]], made: list[tuple[UnboundClaim, int | None]]
    ) -> int:
        """Returns how tightly the volumes fit, or how empty the storage stays, averaged over the classes. New volumes
        count only if no existing one is used, and if the capacity is known."""
        asked: dict[str, int] = {}
        has: dict[str, int] = {}
        for claim, volume in given:
            asked[volume.spec_class] = asked.get(volume.spec_class, 0) + claim.units
            has[volume.spec_class] = has.get(volume.spec_class, 0) + volume.units
        for claim, capacity in made if not given else ():
            if capacity is not None:
                asked[claim.spec_class] = asked.get(claim.spec_class, 0) + claim.units
                has[claim.spec_class] = capacity
        points = [self._line[_used(asked[name], has[name])] for name in asked]
        return math.floor(sum(points) / len(points) + 0.5) if points else 0


def _used(asked: int, has: int) -> int:
    return 100 if has == 0 or asked > has else asked * 100 // has


def _best(
    claim: UnboundClaim, labels: Mapping[str, str], store: VolumeStore, taken: Collection[str]
) -> VolumeRecord | None:
    """Returns the volume reserved for the claim, or None if the node cannot reach it; without one, the smallest that
    fits."""
    meant = store.volumes.get(claim.meant) if claim.meant not in taken else None
    if meant is not None:
        return meant if is_admitted(meant.reach, labels) else None
    shelf = store.stock.pool(claim.class_name)
    found: VolumeRecord | None = shelf.smallest(labels, claim.size, lambda v: v.name not in taken and claim.fits(v))
    return found


def _provision(claim: UnboundClaim, labels: Mapping[str, str], store: VolumeStore) -> tuple[int, int | None]:
    """Returns whether a volume can be provisioned for a claim, and the capacity if that is known."""
    storage_class = store.classes.get(claim.class_name)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return NO_VOLUME, None
    if not is_admitted(storage_class.reach, labels):
        return NO_VOLUME, None
    driver = store.csi_drivers.get(storage_class.provisioner)
    if not claim.sized or driver is None or not driver.storage_capacity:
        return FOUND, None  # the remaining capacity is not tracked
    capacity = store.stock.pool(claim.class_name).capacity(labels, claim.units)
    return (NO_SPACE, None) if capacity is None else (FOUND, capacity.capacity)
