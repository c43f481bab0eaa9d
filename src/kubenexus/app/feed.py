"""The feed: what the watches say goes to the ledger and to the waiting room, and to nobody else.

One handler for each kind; `app.hearing` makes them the receivers of reflectors. Everything here is told what is there
now, whatever was told before: a lost event, a repeated one or a pod made again under its old name are no special case.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kubenexus.api.codec import Unreadable
from kubenexus.api.core import Node, Pod
from kubenexus.api.gangs.claim import UNSAID, Nearness
from kubenexus.app.known import Known, sharing, slim_node
from kubenexus.base.errors import Malformed
from kubenexus.base.moments import moment
from kubenexus.framework.events import Action, Event, Resource
from kubenexus.observe import logs
from kubenexus.queue import changes
from kubenexus.queue.assembly import Assembly
from kubenexus.queue.roll import Leaving
from kubenexus.queue.room import WaitingRoom
from kubenexus.state.intake import GROUPS, KINDS, key_of
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import Holding, PodRecord, Stage, finished

# Kinds that some refused pod may wait for, and how events name them.
EVENTS = {
    "StorageClass": Resource.STORAGE_CLASS,
    "CSIDriver": Resource.CSI_DRIVER,
    "CSINode": Resource.CSI_NODE,
    "CSIStorageCapacity": Resource.CSI_STORAGE_CAPACITY,
    "PersistentVolume": Resource.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": Resource.PERSISTENT_VOLUME_CLAIM,
    "VolumeAttachment": Resource.VOLUME_ATTACHMENT,
    "DeviceClass": Resource.DEVICE_CLASS,
}
REMEMBERED = 1024  # objects whose problem was logged

Left = Callable[[Pod], None]
Lost = Callable[[Leaving, int, Pod, PodRecord], None]
Heard = Callable[[str, Any], None]

log = logs.get("feed")


def _nobody(*_: Any) -> None:
    """Nobody wants to know."""


class Feed:
    """`profiles` are the names of the schedulers that we are. Pods reach the waiting room as jobs, by the `assembly`.

    `left` hears of pods that are gone; `vanished` of bound ones that ended before they ran; `lost` of members that left
    others of their gang on their nodes, with how many it lacks now; `heard` of all other kinds, after the ledger.
    """

    def __init__(
        self,
        ledger: Ledger,
        room: WaitingRoom,
        profiles: Iterable[str],
        usual: Callable[[Pod], Nearness] = lambda pod: UNSAID,
    ) -> None:
        self.ledger, self.room, self.known = ledger, room, Known()
        self.profiles = frozenset(profiles)
        self.assembly = Assembly(room, ledger.groups, ledger.pods, usual, self.profiles)
        self.left: Left = _nobody
        self.vanished: Left = _nobody
        self.lost: Lost = _nobody
        self.heard: Heard = _nobody
        self._unread: dict[str, str] = {}  # pods that cannot be read, and why
        self._looked_up: set[str] = set()  # pods that were read one by one while a list is under way
        self._leaving: dict[str, Leaving] = {}  # bound members of complete gangs that are being deleted
        self._complained: dict[str, str] = {}
        self.unusable: Counter[str] = Counter()  # complaints by kind

    # --- pods -----------------------------------------------------------------------------------------------------

    def pod_keys(self) -> set[str]:
        return {*self.known.pods, *self._unread}

    def pod_seen(self, pod: Pod) -> None:
        key = pod.key
        old = self.known.pods.get(key)
        if finished(pod) or (old is not None and old.metadata.uid != pod.metadata.uid):
            self.pod_gone(key)
            old = None
        if finished(pod):
            return
        before = self.ledger.held_by(key)
        try:
            self.ledger.pod_seen(pod)
        except Malformed as problem:
            self._quarantine(key, str(problem))
            self._tell_freed(key, old, before)
            return
        self._unread.pop(key, None)
        slim = self.known.pods[key] = self.known.slim(pod)
        self._tell_freed(key, old, before)
        if pod.spec.node_name:
            self._bound(old, pod, slim)
        else:
            self._waits(old, sharing(pod, slim))

    def pod_listed(self, pod: Pod) -> None:
        """A pod of a list. One that was bound and has no node here lost it in a restore of the API server's store, and
        waits again; unless the bind is younger than the list."""
        record = self.ledger.pods.get(pod.key)
        bound = record is not None and record.stage is Stage.BOUND and record.uid == pod.metadata.uid
        if bound and not pod.spec.node_name and pod.key not in self._looked_up:
            self.pod_gone(pod.key)
        self.pod_seen(pod)

    def pod_looked_up(self, pod: Pod) -> None:
        """A pod that was read by itself while a list is under way, and may be younger than the list."""
        self._looked_up.add(pod.key)
        self.pod_seen(pod)

    def pod_gone(self, key: str, last: Pod | None = None) -> None:
        """Deleted, or ended. `last` is its last state, if the watch told."""
        old, record, before = self.known.pods.pop(key, None), self.ledger.pods.get(key), self.ledger.held_by(key)
        leaving = self._leaving.pop(key, None)
        self._unread.pop(key, None)
        self.assembly.gone(key)
        self.ledger.pod_gone(key)
        if leaving is not None and old is not None and record is not None and self.assembly.stands(leaving.gang):
            self.lost(leaving, self.assembly.lacks(leaving.gang), old, record)
            self.assembly.changed(leaving.gang)
        self._tell_freed(key, old, before)
        if old is None:
            return
        ended = last or old
        if old.spec.node_name and old.status.phase in ("", "Pending") and not ended.metadata.deletion_timestamp:
            self.vanished(old)
        self.left(old)

    def pod_unreadable(self, bad: Unreadable) -> None:
        key = f"{bad.namespace}/{bad.name}"
        if not bad.identified:
            self.complain(bad.subject, str(bad.error))
            return
        if bad.ended:
            self.pod_gone(key)
            return
        old, before = self.known.pods.get(key), self.ledger.held_by(key)
        self.ledger.pod_unreadable(key, bad.node)
        self._quarantine(key, str(bad.error))
        self._tell_freed(key, old, before)

    def _quarantine(self, key: str, problem: str) -> None:
        self.assembly.gone(key)
        self.known.pods.pop(key, None)
        self._unread[key] = problem
        self.complain(f"Pod {key}", problem)

    def _tell_freed(self, key: str, old: Pod | None, before: Holding) -> None:
        """An event for all that a pod no longer keeps from others. `old` is the pod as it was known."""
        after = self.ledger.held_by(key)
        if after == before:
            return
        if before.node and before.node != after.node:
            self.room.on_event(changes.EVERYTHING if old is None else changes.pod_forgotten(old, before.node))
        spoken = before.nominated
        if spoken is not None and spoken != after.nominated and spoken.node != after.node and old is not None:
            self.room.on_event(changes.nomination_ended(old))
        if before.fenced and not self.ledger.fenced(before.fenced) and before.fenced in self.known.nodes:
            node, delegated = self.known.nodes[before.fenced], self.ledger.nodes.delegated
            self.room.on_event(changes.node_added(node, delegated))  # it takes pods again, as a new one does

    def _bound(self, old: Pod | None, pod: Pod, slim: Pod) -> None:
        if pod.metadata.deletion_timestamp:
            if leaving := self.assembly.leaving(pod.key):
                self._leaving[pod.key] = leaving
            self.assembly.gone(pod.key)
        else:
            self._leaving.pop(pod.key, None)  # only a restored store takes a deletion back
            self.assembly.placed(pod, slim, since(pod))
        if old is None or not old.spec.node_name:
            self.room.on_event(changes.pod_bound(slim))
        elif old != slim:
            for event in changes.pod_changed(old, slim):
                self.room.on_event(event)

    def _waits(self, old: Pod | None, pod: Pod) -> None:
        key = pod.key
        if pod.metadata.deletion_timestamp:
            self.assembly.gone(key)
        elif pod.spec.scheduler_name not in self.profiles:
            self.assembly.foreign(self.known.pods[key], pod, since(pod))
        elif key in self.assembly or key not in self.ledger.pods:  # else it is bound, and this news is old
            self.assembly.waits(pod, since(pod))

    # --- nodes ----------------------------------------------------------------------------------------------------

    def node_keys(self) -> set[str]:
        return set(self.known.nodes)

    def node_seen(self, node: Node) -> None:
        name = node.metadata.name
        try:
            self.ledger.node_seen(node)
        except Malformed as problem:
            self.complain(f"Node {name}", str(problem))
            return
        slim, old, delegated = slim_node(node), self.known.nodes.get(name), self.ledger.nodes.delegated
        self.known.nodes[name] = slim
        if old is None:
            self.room.on_event(changes.node_added(slim, delegated))
            return
        for event in changes.node_changed(old, slim, delegated):
            self.room.on_event(event)

    def node_gone(self, name: str) -> None:
        old = self.known.nodes.pop(name, None)
        self.ledger.node_gone(name)
        if old is not None:
            self.room.on_event(changes.node_gone(old))

    # --- all other kinds ------------------------------------------------------------------------------------------

    def keys(self, kind: str) -> set[str]:
        return {*self.known.of(kind), *self.ledger.groups.unreadable_keys(kind)}

    def unreadable(self, kind: str, bad: Unreadable) -> None:
        """An object that is no pod and cannot be read: what was known of it stays. Pods that name it say why they
        wait."""
        self.complain(bad.subject, str(bad.error))
        key = f"{bad.namespace}/{bad.name}"
        if kind in GROUPS and bad.identified and self.ledger.groups.unreadable(kind, key, bad.error):
            self.assembly.group_changed(kind, key)

    def seen(self, kind: str, thing: Any) -> None:
        key, known, selected = key_of(thing), self.known.of(kind), self.ledger.nodes.pods.carrier_version
        try:
            KINDS[kind].seen(self.ledger, thing)
        except Malformed as problem:
            self.complain(f"{kind} {key}", str(problem))
            return
        resource, fresh = EVENTS.get(kind), key not in known
        if kind == "Namespace" and (not fresh or self.ledger.nodes.pods.has_met(key)):
            self._tell_reread(selected)
        old, known[key] = known.get(key), None if resource is None else thing
        if kind in GROUPS:
            self.assembly.group_changed(kind, key)
        self.heard(kind, thing)
        if resource is not None and (fresh or old != thing):
            self.room.on_event(Event(resource, Action.ADD if fresh else Action.UPDATE, old, thing))

    def gone(self, kind: str, key: str) -> None:
        known = self.known.of(kind)
        if key not in known:
            if kind in GROUPS:  # one that could never be read
                self.ledger.groups.gone(kind, key)
                self.assembly.group_changed(kind, key)
            return
        old, resource, selected = known.pop(key), EVENTS.get(kind), self.ledger.nodes.pods.carrier_version
        KINDS[kind].gone(self.ledger, key)
        if kind == "Namespace":
            self._tell_reread(selected)
        if kind in GROUPS:
            self.assembly.group_changed(kind, key)
        if resource is not None:
            self.heard(kind, old)
            self.room.on_event(Event(resource, Action.DELETE, old=old))

    def _tell_reread(self, selected: int) -> None:
        """An event if a namespace has other labels: terms may mean its pods now, or no longer."""
        if selected != self.ledger.nodes.pods.carrier_version:
            self.room.on_event(changes.EVERYTHING)

    # --- kinds that cannot be listed ------------------------------------------------------------------------------

    def unlisted(self, kind: str) -> None:
        """Which objects of a kind there are is not known, or no longer. Gangs that name one say so."""
        if kind in GROUPS and self.ledger.groups.unlisted(kind):
            self.assembly.kind_changed(kind)

    def listed(self, kind: str) -> None:
        """All objects of a kind have been seen."""
        if kind == "Pod":
            self._looked_up.clear()
        if kind in GROUPS and self.ledger.groups.listed(kind):
            self.assembly.kind_changed(kind)

    def complain(self, subject: str, problem: str) -> None:
        """One bad object: said once, and again when something else is wrong with it."""
        if self._complained.get(subject) == problem:
            return
        if len(self._complained) >= REMEMBERED:
            self._complained.clear()
        self._complained[subject] = problem
        self.unusable[subject.partition(" ")[0]] += 1
        log.error("Cannot use an object", err=problem, object=subject)


def since(pod: Pod) -> float | None:
    """When it was made, by the API server's clock."""
    return moment(pod.metadata.creation_timestamp, None)
