"""The built-in background controllers of a cluster: registration of custom kinds, garbage collection by owner, and
emptying of terminating namespaces.

Nothing runs while a request is served: changes are queued, and `run` processes them.
"""

from collections import deque

from kubenexus.sim.apiserver import deleting, verbs
from kubenexus.sim.apiserver.deleting import DeleteOptions
from kubenexus.sim.apiserver.kinds import ServedKind
from kubenexus.sim.apiserver.object_store import NAMESPACES, ObjectStore, decode
from kubenexus.sim.apiserver.rules.definitions import kinds_of
from kubenexus.sim.apiserver.status_errors import Json, StatusError
from kubenexus.sim.apiserver.store import DELETED, StoreChange
from kubenexus.sim.apiserver.verbs import Target, WriteOptions

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


class BackgroundControllers:
    def __init__(self, core: ObjectStore, *, active: bool) -> None:
        self._core = core
        self._active = active
        self._ended: deque[str] = deque()  # uids of deleted owners whose dependents must be deleted
        self._waiting: deque[tuple[ServedKind, str]] = deque()  # objects that wait for one of our finalizers
        self._held: dict[tuple[ServedKind, str], None] = {}  # owners whose dependents are not gone yet
        self._namespaces: set[str] = set()
        self._listening: set[str] = set()
        self._owned: dict[str, dict[tuple[str, str], ServedKind]] = {}  # by the owner's uid, then by store and key
        core.store.listen(_DEFINITIONS, self._definition)
        if active:
            core.store.listen(NAMESPACES, self._namespace)
            for kind in core.registry.all():
                self._listen(kind)

    @property
    def idle(self) -> bool:
        return not (self._ended or self._waiting or self._namespaces)

    def run(self) -> None:
        """Processes the queued changes until none is left. Cheap when nothing changed."""
        while self._ended:
            self._drop_dependents(self._ended.popleft())
        while self._waiting:
            self._finish(*self._waiting.popleft())
        for name in list(self._namespaces):
            self._empty(name)

    # ---- queueing changes --------------------------------------------------------------------------------------------

    def _listen(self, kind: ServedKind) -> None:
        if kind.store not in self._listening:
            self._listening.add(kind.store)
            self._core.store.listen(kind.store, lambda change: self._changed(kind, change))

    def _changed(self, kind: ServedKind, change: StoreChange) -> None:
        self._note_owners(kind, change)
        if change.type == DELETED:
            self._waiting.extend(self._held)
            self._held.clear()
            self._ended.append(decode(change.data)["metadata"]["uid"])
        elif b'"deletionTimestamp"' in change.data and (
            b'"orphan"' in change.data or b'"foregroundDeletion"' in change.data
        ):
            self._waiting.append((kind, change.key))
        namespace = change.key.partition("/")[0]
        if change.type == DELETED and kind.namespaced and self._is_ending(namespace):
            self._namespaces.add(namespace)

    def _note_owners(self, kind: ServedKind, change: StoreChange) -> None:
        """Maintains the index from owner to dependents, so that a deletion does not scan all objects."""
        for uid in _owners(change.before):
            owned = self._owned.get(uid, {})
            owned.pop((kind.store, change.key), None)
            if not owned:
                self._owned.pop(uid, None)
        for uid in _owners(change.data) if change.type != DELETED else ():
            self._owned.setdefault(uid, {})[kind.store, change.key] = kind

    def _namespace(self, change: StoreChange) -> None:
        if change.type == DELETED:
            self._namespaces.discard(change.key)
        elif b'"deletionTimestamp"' in change.data:
            self._namespaces.add(change.key)

    def _is_ending(self, namespace: str) -> bool:
        return b'"deletionTimestamp"' in (self._core.store.get(NAMESPACES, namespace) or b"")

    def _definition(self, change: StoreChange) -> None:
        for kind in kinds_of(decode(change.before)) if change.before else ():
            self._core.registry.remove(kind)
            if change.type == DELETED:
                self._drop(kind)
        if change.type != DELETED:
            for kind in kinds_of(decode(change.data)):
                self._core.registry.add(kind)
                if self._active:
                    self._listen(kind)

    def _drop(self, kind: ServedKind) -> None:
        """Removes all objects of a kind whose definition was deleted. Watchers receive a DELETED event for each."""
        for key, data in list(self._core.store.collection(kind.store).objects.items()):
            self._core.remove(kind, key, decode(data))

    # ---- processing --------------------------------------------------------------------------------------------------

    def _dependents(self, uid: str) -> list[tuple[ServedKind, str, Json]]:
        owned = self._owned.get(uid, {})
        found = [(kind, key, self._core.store.get(store, key)) for (store, key), kind in owned.items()]
        return [(kind, key, decode(data)) for kind, key, data in found if data is not None]

    def _drop_dependents(self, uid: str) -> None:
        for kind, key, item in self._dependents(uid):
            others = [each for each in item["metadata"]["ownerReferences"] if each["uid"] != uid]
            if any(self._lives(each, item) for each in others):
                self._disown(kind, key, uid)
            else:
                self._delete(kind, key)

    def _lives(self, owner: Json, item: Json) -> bool:
        kind = self._core.registry.of_object(owner["apiVersion"], owner["kind"])
        if kind is None:
            return False
        data = self._core.store.get(kind.store, kind.key(item["metadata"].get("namespace", ""), owner["name"]))
        return data is not None and decode(data)["metadata"]["uid"] == owner["uid"]

    def _finish(self, kind: ServedKind, key: str) -> None:
        """Handles an owner that waits for a finalizer: orphans its dependents, or deletes them first."""
        data = self._core.store.get(kind.store, key)
        if data is None:
            return
        head = decode(data)["metadata"]
        finalizers = head.get("finalizers") or []
        dependents = self._dependents(head["uid"])
        if _ORPHAN in finalizers:
            for each, where, _ in dependents:
                self._disown(each, where, head["uid"])
            self._strip(kind, key, _ORPHAN)
        elif _FOREGROUND in finalizers:
            for each, where, item in dependents:  # recursively: the last dependents are deleted first
                own = self._dependents(item["metadata"]["uid"])
                self._delete(each, where, "Foreground" if own else "Background")
            if self._dependents(head["uid"]):
                self._held[kind, key] = None
            else:
                self._strip(kind, key, _FOREGROUND)

    def _empty(self, name: str) -> None:
        """Deletes what is in a terminating namespace, and the namespace itself when nothing is left."""
        left = 0
        for kind in self._core.registry.all():
            if kind.namespaced and kind.group != "events.k8s.io" and "delete" in kind.verbs:
                keys = [key for key in self._core.store.collection(kind.store).objects if key.startswith(f"{name}/")]
                for key in keys:
                    self._delete(kind, key)
                left += sum(1 for key in keys if self._core.store.get(kind.store, key) is not None)
        self._namespaces.discard(name)
        if not left:
            namespaces = self._core.registry.find("v1", "namespaces")
            assert namespaces is not None
            if self._core.store.get(NAMESPACES, name) is not None:
                deleting.finalize(self._core, Target(namespaces, "", name), [])

    # ---- writing -----------------------------------------------------------------------------------------------------

    def _delete(self, kind: ServedKind, key: str, policy: str = "Background") -> None:
        namespace, _, name = key.rpartition("/")
        try:
            deleting.delete(self._core, Target(kind, namespace, name), DeleteOptions(propagationPolicy=policy))
        except StatusError:
            return  # the object is gone or may not be deleted

    def _disown(self, kind: ServedKind, key: str, uid: str) -> None:
        def change(item: Json) -> Json:
            owners = [each for each in item["metadata"].get("ownerReferences") or () if each["uid"] != uid]
            item["metadata"].pop("ownerReferences", None)
            if owners:
                item["metadata"]["ownerReferences"] = owners
            return item

        self._update(kind, key, change)

    def _strip(self, kind: ServedKind, key: str, finalizer: str) -> None:
        def change(item: Json) -> Json:
            left = [each for each in item["metadata"].get("finalizers") or () if each != finalizer]
            item["metadata"]["finalizers"] = left
            if not left:
                del item["metadata"]["finalizers"]
            return item

        self._update(kind, key, change)

    def _update(self, kind: ServedKind, key: str, change: verbs.Change) -> None:
        namespace, _, name = key.rpartition("/")
        try:
            verbs.update(self._core, Target(kind, namespace, name), change, WriteOptions())
        except StatusError:
            return


def _owners(data: bytes | None) -> list[str]:
    """Returns the uids of an object's owners."""
    if data is None or b'"ownerReferences"' not in data:
        return []
    return [str(each.get("uid", "")) for each in decode(data)["metadata"].get("ownerReferences") or ()]
