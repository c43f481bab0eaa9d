"""Watches: the changes of a collection as encoded lines, each encoded once for all watchers of the same kind.

An object that begins to match a selector is ADDED and one that ceases to is DELETED, regardless of the change in the
store.
"""

from collections.abc import Callable
from typing import Final

from kubenexus.sim.apiserver import selecting
from kubenexus.sim.apiserver.kinds import ServedKind, names
from kubenexus.sim.apiserver.listing import Query
from kubenexus.sim.apiserver.object_store import ObjectStore, decode, encode, shown
from kubenexus.sim.apiserver.status_errors import StatusError, internal
from kubenexus.sim.apiserver.store import ADDED, DELETED, Compacted, StoreChange

Sink = Callable[[bytes], None]
Render = Callable[[bytes], bytes]  # a stored object -> the object of an event
_END: Final = "k8s.io/initial-events-end"


class Watch:
    """One watch. `open` sends the due events and then every change, until `close`.

    Nothing is buffered for a slow reader; the sink handles that and may close the watch.
    """

    def __init__(
        self, core: ObjectStore, kind: ServedKind, scope: str, query: Query, render: Render | None = None
    ) -> None:
        """`scope` is the key of the only watched object, or a prefix of keys (`namespace/`), or "".

        Raises StatusError.
        """
        self._core, self._kind, self._scope, self.query = core, kind, scope, query
        self._matches = selecting.matcher(kind, query.labels, query.fields)
        self._render = render
        self._from = _since(query)
        self._sink: Sink = lambda _: None
        self._leave: Callable[[], None] = lambda: None

    def open(self, sink: Sink) -> None:
        self._sink = sink
        store = self._core.store
        if self._snapshot_first():
            self._send_state()
        else:
            try:
                for change in store.collection(self._kind.store).since(self._from):
                    self._changed(change)
            except Compacted as error:
                sink(_line("ERROR", encode(StatusError(410, "Expired", str(error)).status())))
                return
        self._leave = store.listen(self._kind.store, self._changed)

    def close(self) -> None:
        self._leave()

    def bookmark(self, **annotations: str) -> None:
        """Sends a BOOKMARK with the current version."""
        meta: dict[str, object] = {"resourceVersion": str(self._core.store.version)}
        if annotations:
            meta["annotations"] = annotations
        self._sink(_line("BOOKMARK", names(self._kind).head + encode({"metadata": meta})[1:]))

    def _snapshot_first(self) -> bool:
        return self.query.initial or (self.query.initial is None and self._from == 0)

    def _send_state(self) -> None:
        collection = self._core.store.collection(self._kind.store)
        for key in collection.keys():  # noqa: SIM118 - not a dict
            data = collection.objects[key]
            if self._within(key) and (self._matches is None or self._matches(data)):
                self._sink(self._line(ADDED, data))
        if self.query.initial and self.query.bookmarks:
            self.bookmark(**{_END: "true"})

    def _within(self, key: str) -> bool:
        scope = self._scope
        return not scope or key == scope or (scope.endswith("/") and key.startswith(scope))

    def _changed(self, change: StoreChange) -> None:
        if change.version <= self._from or not self._within(change.key):
            return
        type, data = change.type, change.data
        if self._matches is not None:
            type, data = self._judged(change)
            if not type:
                return
        self._sink(self._cached(change, type, data))

    def _judged(self, change: StoreChange) -> tuple[str, bytes]:
        """Returns the event type and data of the change for a watch with a selector."""
        assert self._matches is not None
        was = change.before is not None and self._matches(change.before)
        is_now = change.type != DELETED and self._matches(change.data)
        if is_now:
            return change.type if was else ADDED, change.data
        if not was:
            return "", b""
        if change.type == DELETED:
            return DELETED, change.data
        return DELETED, _as_of(change)

    def _cached(self, change: StoreChange, type: str, data: bytes) -> bytes:
        if self._render is not None or data is not change.data:
            return self._line(type, data)
        mark = (self._kind, type)
        found = change.cache.get(mark)
        if found is None:
            found = change.cache[mark] = self._line(type, data)
        line: bytes = found
        return line

    def _line(self, type: str, data: bytes) -> bytes:
        if self._render is not None:
            return _line(type, self._render(data))
        return _line(type, names(self._kind).head + shown(self._kind, data)[1:])


def _line(type: str, item: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type.encode(), item)


def _as_of(change: StoreChange) -> bytes:
    """Returns the last state that the watcher saw, with the version at which it ceased to match."""
    assert change.before is not None
    item = decode(change.before)
    item["metadata"]["resourceVersion"] = str(change.version)
    return encode(item)


def _since(query: Query) -> int:
    if not query.version:
        return 0
    if not query.version.isdigit():
        why = f'strconv.ParseUint: parsing "{query.version}": invalid syntax'
        raise internal(f'resourceVersion: Invalid value: "{query.version}": {why}')
    return int(query.version)
