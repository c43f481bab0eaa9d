"""The store: objects as encoded bytes, one counter of versions, a log of changes, and who listens.

    commit(resource, key, data)  ->  a new version, one entry in the log, told to every listener in order

It knows nothing of HTTP, of kinds or of time. `data` is the object without `kind` and `apiVersion` (these are the
kind's, not the object's), with its resourceVersion inside: take `next_version()` before encoding. The log of each
resource is bounded; whoever asks for changes older than it reaches is told `Compacted` and has to list anew.

One thread, no awaits: between `next_version` and `commit` nothing else happens.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kubenexus.base.errors import KubeNexusError

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
LOG_LENGTH: Final = 10_000


class Compacted(KubeNexusError):
    """The log no longer reaches back that far. `oldest` is the first version that can be followed."""

    def __init__(self, wanted: int, oldest: int) -> None:
        self.wanted, self.oldest = wanted, oldest
        super().__init__(f"too old resource version: {wanted} ({oldest})")


class StoreChange:
    """One entry of the log. `data` is the object after it (before it, where it was deleted), `before` what there was.

    `cache` is for whoever serves watches: what is made of a change is made once for all who want it.
    """

    __slots__ = ("before", "cache", "data", "key", "type", "version")

    def __init__(self, version: int, type: str, key: str, data: bytes, before: bytes | None) -> None:
        self.version, self.type, self.key, self.data, self.before = version, type, key, data, before
        self.cache: dict[Any, Any] = {}


Hear = Callable[[StoreChange], None]


class Collection:
    """All objects of one resource, by `namespace/name` (or `name`), in the order of their keys."""

    def __init__(self, length: int) -> None:
        self.objects: dict[str, bytes] = {}
        self.listeners: list[Hear] = []
        self.floor = 0  # changes up to this version may be lacking in the log
        self.log: deque[StoreChange] = deque()
        self._length = length
        self._sorted: list[str] | None = []

    def keys(self) -> list[str]:
        """All keys in order. The list must not be changed."""
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        return self._sorted

    def apply(self, change: StoreChange) -> None:
        if change.type == DELETED:
            del self.objects[change.key]
        else:
            self.objects[change.key] = change.data
        if change.type != MODIFIED:
            self._sorted = None
        self.log.append(change)
        if len(self.log) > self._length:
            self.floor = self.log.popleft().version
        for hear in self.listeners:
            hear(change)

    def replace(self, objects: dict[str, bytes], version: int) -> None:
        """Other objects, without a log of how they came to be."""
        self.objects, self._sorted, self.floor = dict(objects), None, version
        self.log.clear()

    def since(self, version: int) -> Iterator[StoreChange]:
        """The changes after a version, oldest first. Raises Compacted."""
        if version < self.floor:
            raise Compacted(version, self.floor)
        return (change for change in list(self.log) if change.version > version)

    def at(self, version: int) -> dict[str, bytes]:
        """The objects as they were at a version, by undoing what came after. Raises Compacted."""
        undone: dict[str, bytes | None] = {}
        for change in self.since(version):
            undone.setdefault(change.key, change.before)
        merged = {**self.objects, **undone}
        return {key: data for key, data in merged.items() if data is not None}


class Backup(NamedTuple):
    """What a store held at one version: objects by resource and key."""

    version: int
    objects: dict[str, dict[str, bytes]]


class Store:
    """All collections under one counter, as etcd has it."""

    def __init__(self, log_length: int = LOG_LENGTH) -> None:
        self.version = 1
        self._length = log_length
        self._collections: dict[str, Collection] = {}

    def collection(self, resource: str) -> Collection:
        found = self._collections.get(resource)
        if found is None:
            found = self._collections[resource] = Collection(self._length)
        return found

    def get(self, resource: str, key: str) -> bytes | None:
        return self.collection(resource).objects.get(key)

    def next_version(self) -> int:
        """The version that the next commit will have: it has to be written into the object before."""
        return self.version + 1

    def commit(self, resource: str, key: str, data: bytes, *, deleted: bool = False) -> StoreChange:
        """Writes or deletes, and tells everybody. For a deletion `data` is the last state with the new version."""
        collection = self.collection(resource)
        before = collection.objects.get(key)
        self.version += 1
        type = DELETED if deleted else ADDED if before is None else MODIFIED
        change = StoreChange(self.version, type, key, data, before)
        collection.apply(change)
        return change

    def backup(self) -> Backup:
        return Backup(self.version, {name: dict(each.objects) for name, each in self._collections.items()})

    def restore(self, backup: Backup) -> None:
        """Goes back to a backup: its objects, its version, and no log of what was before. Nothing is sent to watches:
        close the connections, as a restore of etcd does, which needs the API server to stop."""
        self.version = backup.version
        for name in {*self._collections, *backup.objects}:
            self.collection(name).replace(backup.objects.get(name, {}), backup.version)

    def listen(self, resource: str, hear: Hear) -> Callable[[], None]:
        """From now on every change of the resource is told to `hear`, which must not write. Returns how to end it."""
        collection = self.collection(resource)
        # A new list each time: a listener may leave while the old one is walked.
        collection.listeners = [*collection.listeners, hear]

        def leave() -> None:
            collection.listeners = [each for each in collection.listeners if each is not hear]

        return leave
