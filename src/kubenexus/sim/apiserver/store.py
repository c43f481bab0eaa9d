"""The store: objects as encoded bytes, one version counter, a log of changes, and listeners.

    commit(resource, key, data)  ->  a new version, one entry in the log, passed to every listener in order

It knows nothing of HTTP, kinds or time. `data` is the object without `kind` and `apiVersion` (the kind supplies them),
with its resourceVersion inside: call `next_version()` before encoding. The log of each resource is bounded. A reader
that needs older changes gets `Compacted` and has to list again.

Single-threaded, without awaits: between `next_version` and `commit` nothing else happens.
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
    """The log does not reach back that far. `oldest` is the first version that can be followed."""

    def __init__(self, wanted: int, oldest: int) -> None:
        self.wanted, self.oldest = wanted, oldest
        super().__init__(f"too old resource version: {wanted} ({oldest})")


class StoreChange:
    """One entry of the log. `data` is the object after the change, or its last state if deleted. `before` is the state
    before.

    `cache` holds the lines for watches: each is encoded once for all watchers of the same kind.
    """

    __slots__ = ("before", "cache", "data", "key", "type", "version")

    def __init__(self, version: int, type: str, key: str, data: bytes, before: bytes | None) -> None:
        self.version, self.type, self.key, self.data, self.before = version, type, key, data, before
        self.cache: dict[Any, Any] = {}


ChangeListener = Callable[[StoreChange], None]


class Collection:
    """All objects of one resource, by `namespace/name` (or `name`), in the order of their keys."""

    def __init__(self, length: int) -> None:
        self.objects: dict[str, bytes] = {}
        self.listeners: list[ChangeListener] = []
        self.floor = 0  # the log may lack changes up to this version
        self.log: deque[StoreChange] = deque()
        self._length = length
        self._sorted: list[str] | None = []

    def keys(self) -> list[str]:
        """Returns all keys in order. The caller must not change the list."""
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
        for listener in self.listeners:
            listener(change)

    def replace(self, objects: dict[str, bytes], version: int) -> None:
        """Replaces all objects and clears the log."""
        self.objects, self._sorted, self.floor = dict(objects), None, version
        self.log.clear()

    def since(self, version: int) -> Iterator[StoreChange]:
        """Returns the changes after a version, oldest first. Raises Compacted."""
        if version < self.floor:
            raise Compacted(version, self.floor)
        return (change for change in list(self.log) if change.version > version)

    def at(self, version: int) -> dict[str, bytes]:
        """Returns the objects at a version, by undoing later changes. Raises Compacted."""
        undone: dict[str, bytes | None] = {}
        for change in self.since(version):
            undone.setdefault(change.key, change.before)
        merged = {**self.objects, **undone}
        return {key: data for key, data in merged.items() if data is not None}


class Backup(NamedTuple):
    """The content of a store at one version: objects by resource and key."""

    version: int
    objects: dict[str, dict[str, bytes]]


class Store:
    """All collections under one version counter, as in etcd."""

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
        """Returns the version of the next commit, which must be written into the object before."""
        return self.version + 1

    def commit(self, resource: str, key: str, data: bytes, *, deleted: bool = False) -> StoreChange:
        """Writes or deletes an object and calls the listeners. For a deletion `data` is the last state with the new
        version."""
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
        """Returns to a backup: its objects and its version, with an empty log.

        Watches receive nothing. The caller must close the connections; a restore of etcd, too, requires a stop of the
        API server.
        """
        self.version = backup.version
        for name in {*self._collections, *backup.objects}:
            self.collection(name).replace(backup.objects.get(name, {}), backup.version)

    def listen(self, resource: str, listener: ChangeListener) -> Callable[[], None]:
        """Calls `listener`, which must not write, with every later change of the resource. Returns a function that
        unsubscribes."""
        collection = self.collection(resource)
        # A new list each time: a listener may unsubscribe while the old list is iterated.
        collection.listeners = [*collection.listeners, listener]

        def leave() -> None:
            collection.listeners = [each for each in collection.listeners if each is not listener]

        return leave
