"""The available volumes and free capacity of a storage class, by the nodes that can reach them.

A lookup returns the smallest volume that fits a node. Entries are sorted, and listed under a label that every node in
reach has. So a lookup for a node examines only what the node may reach.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from kubenexus.state.volumes.records import CapacityRecord, Size, VolumeRecord
from kubenexus.state.volumes.volume_topology import Label, VolumeTopology, is_admitted

Thing = TypeVar("Thing")
Rank = tuple[Any, ...]
_REMEMBERED = 4096


class RankedByTopology(Generic[Thing]):
    """Entries in the order of their ranks, by reach. `keys` are the labels on which reach depends."""

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()
        self._things: dict[Rank, tuple[Thing, VolumeTopology | None, bool]] = {}
        self._certain: Counter[str] = Counter()
        self._under: dict[Label | None, list[Rank]] = {}

    def __len__(self) -> int:
        return len(self._things)

    def put(self, rank: Rank, thing: Thing, reach: VolumeTopology | None) -> None:
        self._things[rank] = (thing, reach, reach is None or reach.simple)
        self._count(reach, +1)
        for label in _labels(reach):
            insort(self._under.setdefault(label, []), rank)

    def take(self, rank: Rank) -> None:
        _, reach, _ = self._things.pop(rank)
        self._count(reach, -1)
        for label in _labels(reach):
            ranks = self._under[label]
            del ranks[bisect_left(ranks, rank)]
            if not ranks:
                del self._under[label]

    def _count(self, reach: VolumeTopology | None, delta: int) -> None:
        for key in reach.keys if reach is not None else ():
            self.keys[key] += delta
            if not self.keys[key]:
                del self.keys[key]
        for label in _labels(reach):
            if label is not None:
                self._certain[label[0]] += delta
                if not self._certain[label[0]]:
                    del self._certain[label[0]]

    def first(self, labels: Mapping[str, str], start: Rank, fits: Callable[[Thing], bool]) -> Thing | None:
        """Returns the first entry from `start` on that fits and that a node with these labels reaches, or None."""
        best: Rank | None = None
        for label in (None, *((key, labels[key]) for key in self._certain if key in labels)):
            ranks = self._under.get(label, [])
            for i in range(bisect_left(ranks, start), len(ranks)):
                if best is not None and ranks[i] >= best:
                    break
                thing, reach, simple = self._things[ranks[i]]
                if fits(thing) and (simple or is_admitted(reach, labels)):
                    best = ranks[i]
                    break
        return None if best is None else self._things[best][0]


class StorageClassPool:
    """The pool of one storage class. `version` grows with every change; `since` returns which nodes the last ones
    concern."""

    def __init__(self) -> None:
        self.volumes: RankedByTopology[VolumeRecord] = RankedByTopology()
        self.capacities: RankedByTopology[CapacityRecord] = RankedByTopology()
        self.version = 0
        self._log: list[VolumeTopology | None] = []

    @property
    def keys(self) -> set[str]:
        return {*self.volumes.keys, *self.capacities.keys}

    def put_volume(self, volume: VolumeRecord) -> None:
        self.volumes.put((volume.size, volume.name), volume, volume.reach)
        self.touch(volume.reach)

    def take_volume(self, volume: VolumeRecord) -> None:
        self.volumes.take((volume.size, volume.name))
        self.touch(volume.reach)

    def put_capacity(self, capacity: CapacityRecord) -> None:
        self.capacities.put((capacity.key,), capacity, capacity.reach)
        self.touch(capacity.reach)

    def take_capacity(self, capacity: CapacityRecord) -> None:
        self.capacities.take((capacity.key,))
        self.touch(capacity.reach)

    def touch(self, reach: VolumeTopology | None) -> None:
        """Records a change for the nodes within this reach; None: for all nodes."""
        if len(self._log) >= 2 * _REMEMBERED:
            del self._log[:_REMEMBERED]
        self._log.append(reach)
        self.version += 1

    def since(self, version: int) -> list[VolumeTopology | None] | None:
        """Returns the reaches of the changes since a version, or None if the log does not reach that far back."""
        late = self.version - version
        return None if late > len(self._log) else self._log[len(self._log) - late :]

    def smallest(self, labels: Mapping[str, str], size: Size, fits: Callable[[VolumeRecord], bool]) -> Any:
        """Returns the smallest available volume of at least this size that fits, for a node with these labels, or
        None."""
        return self.volumes.first(labels, (size, ""), fits)

    def capacity(self, labels: Mapping[str, str], units: int) -> CapacityRecord | None:
        """Returns a capacity from which a node with these labels could get a new volume of so many bytes, or None."""
        return self.capacities.first(labels, (), lambda capacity: capacity.largest >= units)


def _labels(reach: VolumeTopology | None) -> set[Label | None]:
    return {None} if reach is None else reach.certain
