"""From reflectors to the feed: lists and changes as objects that are there, or gone. After a list, whatever was known
and not in it is gone."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kubenexus.api.codec import Unreadable, unreadable
from kubenexus.api.core import Pod
from kubenexus.app.feed import Feed
from kubenexus.base.errors import Malformed
from kubenexus.client import kinds
from kubenexus.client.changes import DELETED, Change
from kubenexus.client.kinds import LIVE, Resource
from kubenexus.client.topics import Topic, Trouble
from kubenexus.observe import logs
from kubenexus.state.intake import KINDS, key_of, named

# Whoever waits as one, in whichever form it is told.
GROUPS = (kinds.POD_GROUPS, kinds.WORKLOADS, kinds.COSCHEDULING_POD_GROUPS, kinds.VOLCANO_POD_GROUPS)

# Pods last: what a pod refers to is better known before it.
WATCHED = (
    kinds.NODES,
    kinds.NAMESPACES,
    kinds.STORAGE_CLASSES,
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.VOLUME_ATTACHMENTS,
    kinds.DEVICE_CLASSES,
    kinds.SERVICES,
    kinds.REPLICATION_CONTROLLERS,
    kinds.REPLICA_SETS,
    kinds.STATEFUL_SETS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.PRIORITY_CLASSES,
    *GROUPS,
    kinds.PODS,
)

# Pods are placed without them: an older cluster does not serve them, or its roles do not name them. Where one cannot be
# listed, only pods that name such an object wait for it. No decision stands on budgets and priority classes.
OPTIONAL = frozenset({kinds.DEVICE_CLASSES, kinds.POD_DISRUPTION_BUDGETS, kinds.PRIORITY_CLASSES, *GROUPS})

# Other forms of a kind, for servers that do not know the newest.
OLDER: dict[Resource, tuple[Resource, ...]] = {
    kinds.POD_GROUPS: (kinds.POD_GROUPS_ALPHA, kinds.POD_GROUPS_OLD),
    kinds.WORKLOADS: (kinds.WORKLOADS_ALPHA, kinds.WORKLOADS_OLD, kinds.WORKLOADS_OLDEST),
}

log = logs.get("watch")


def topic(resource: Resource) -> Topic:
    """How a kind is watched: of pods, only those that have not ended; of pod groups, the form the server knows."""
    kind = KINDS[named(resource.kind, resource.group)].type
    return Topic(resource, kind, LIVE if resource is kinds.PODS else "", OLDER.get(resource, ()))


class Hearing:
    """A `Receiver` for one kind. `woken` is called after each batch: there may be something to do."""

    def __init__(self, feed: Feed, resource: Resource, woken: Callable[[], None] = lambda: None) -> None:
        self._feed, self._kind, self._woken = feed, named(resource.kind, resource.group), woken
        self._seen, self._gone, self._keys = _handlers(feed, self._kind)
        self._in_list = feed.pod_listed if self._kind == "Pod" else self._seen
        self._listed: set[str] = set()

    def begin(self) -> None:
        self._listed = set()

    def listed(self, items: list[Any], unreadable: tuple[Unreadable, ...]) -> None:
        for item in items:
            self._listed.add(key_of(item))
            self._take(item, self._in_list)
        for bad in unreadable:
            self._bad(bad)

    def end(self) -> None:
        for key in set(self._keys()) - self._listed:
            self._drop(key)
        self._listed = set()
        self._feed.listed(self._kind)
        self._flush()

    def unlisted(self) -> None:
        """The kind has yet to be listed, or cannot be listed now."""
        self._feed.unlisted(self._kind)
        self._flush()

    def changed(self, changes: list[Change]) -> None:
        for change in changes:
            thing = change.object
            if isinstance(thing, Unreadable):
                if change.type == DELETED:
                    self._drop(_key(thing))
                else:
                    self._bad(thing)
            elif change.type != DELETED:
                self._take(thing, self._seen)
            else:
                self._drop(key_of(thing), thing)
        self._flush()

    def troubled(self, trouble: Trouble) -> None:
        if not trouble.text:
            log.info("Watch is well again", resource=str(trouble.resource))
            self._feed.listed(self._kind)
            self._flush()
        elif trouble.code == 404:
            log.info("Kind is not served here; looking for it again later", resource=str(trouble.resource))
        else:
            log.error("Watch failed; trying again", err=trouble.text, resource=str(trouble.resource))
        if trouble.serious and trouble.code != 404:
            self.unlisted()

    # No handler below may raise: the task that runs a watch ends with it, and the process with the task.

    def _take(self, thing: Any, seen: Callable[[Any], None]) -> None:
        """An object that brings its handler down is set aside as one that cannot be read: the watch goes on."""
        try:
            seen(thing)
        except Exception as error:
            self._bad(unreadable(thing, Malformed(f"{type(error).__name__}: {error}")))

    def _bad(self, bad: Unreadable) -> None:
        """What was known of it stays, but for a pod: that may take room, and how much is unknown."""
        self._listed.add(_key(bad))
        try:
            if self._kind == "Pod":
                self._feed.pod_unreadable(bad)
            else:
                self._feed.unreadable(self._kind, bad)
        except Exception as error:
            log.error("Failed to set an object aside; going on", error, object=bad.subject)  # noqa: PLE1205 - our own log

    def _drop(self, key: str, last: Any = None) -> None:
        """An object is gone; `last` is its last state, if the watch sent it."""
        try:
            if isinstance(last, Pod):
                self._feed.pod_gone(key, last)
            else:
                self._gone(key)
        except Exception as error:
            log.error("Failed to remove an object; going on", error, object=f"{self._kind} {key}")  # noqa: PLE1205 - our own log

    def _flush(self) -> None:
        """Bring changed gangs into the queue and wake the loop."""
        self._feed.assembly.flush()
        self._woken()


def _handlers(
    feed: Feed, kind: str
) -> tuple[Callable[[Any], None], Callable[[str], None], Callable[[], Iterable[str]]]:
    if kind == "Pod":
        return feed.pod_seen, feed.pod_gone, feed.pod_keys
    if kind == "Node":
        return feed.node_seen, feed.node_gone, feed.node_keys
    return partial(feed.seen, kind), partial(feed.gone, kind), partial(feed.keys, kind)


def _key(bad: Unreadable) -> str:
    return f"{bad.namespace}/{bad.name}" if bad.namespace else bad.name
