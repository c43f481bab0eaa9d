"""Delivers events as the loop does: bytes go through the codec to the ledger, and the outcome to the reference
ledger."""

from collections.abc import Callable
from typing import Any

from kubenexus.api.codec import Unreadable, decode_list, read_object
from kubenexus.api.core import Node, Pod
from kubenexus.api.devices.resource_claim import DeviceClass
from kubenexus.base.errors import Malformed
from kubenexus.state.ledger import Ledger
from kubenexus.testing.fuzz import message_invariants
from kubenexus.testing.fuzz.guard import ExceptionGuard
from kubenexus.testing.fuzz.reference_ledger import ReferenceLedger
from kubenexus.testing.fuzz.stream import FuzzEvent, Kind


class EventDelivery:
    """`last` is the key of the last accepted pod; `way_of` has the mutation of each pod."""

    def __init__(self, guard: ExceptionGuard, ledger: Ledger, reference: ReferenceLedger) -> None:
        self._guard = guard
        self._ledger = ledger
        self._reference = reference
        self.last = ""
        self.way_of: dict[str, str] = {}

    def hear(self, heard: FuzzEvent) -> None:
        if heard.count:
            return self._page(heard)
        found = self._guard.guarded("codec", lambda: read_object(heard.raw, heard.kind))
        if isinstance(found, Unreadable):
            known = message_invariants.identity(heard.raw)
            self._guard.broken("a refusal", message_invariants.refusal(heard.kind.__name__, found.error, known))
            self._guard.broken("a lost pod", message_invariants.saved(found, known) if heard.kind is Pod else "")
            self._lost(found, deleted=heard.deleted)
        elif found is not None and heard.deleted:
            self.gone(heard.kind, found.key if isinstance(found, Pod) else found.metadata.name)
            self._guard.tally.outcome(heard.way, "deleted")
        elif found is not None:
            self._told(found)
        return None

    def gone(self, kind: Kind, key: str) -> None:
        """Delivers that an object was deleted, or that a pod finished."""
        if kind is Pod:
            self._guard.guarded("ledger", lambda: self._ledger.remove_pod(key))
            self._reference.gone(key)
        elif kind is Node:
            self._guard.guarded("ledger", lambda: self._ledger.remove_node(key))
            self._reference.nodes.pop(key, None)
        else:
            self._guard.guarded("ledger", lambda: self._ledger.remove_device_class(key))
            self._reference.classes.pop(key, None)

    def _page(self, heard: FuzzEvent) -> None:
        page = self._guard.guarded("codec", lambda: decode_list(heard.raw, heard.kind))
        if page is None:
            return
        if len(page.items) + len(page.unreadable) != heard.count:
            wrong = f"objects were lost: {heard.count}, but {len(page.items)} + {len(page.unreadable)} came out"
            self._guard.broken("a page", wrong)
        for found in page.items:
            self._told(found)
        for lost in page.unreadable:
            self._lost(lost, deleted=False)

    def _told(self, found: Pod | Node | DeviceClass) -> None:
        """Applies a decoded object to the ledger, which may still reject amounts that it cannot count."""
        try:
            answer = self._guard.guarded("ledger", lambda: (self._tell(found),), passing=Malformed)
        except Malformed as error:
            known = message_invariants.Identity(found.metadata.namespace, found.metadata.name)
            self._guard.broken("a refusal", message_invariants.refusal(type(found).__name__, error, known))
            self._refuse(error, blocked=isinstance(found, Pod) and bool(found.spec.node_name))
            if isinstance(found, Pod):
                self._reference.refused(found)
            return
        if answer is not None:
            self._guard.tally.outcome(self._guard.event.way, "accepted")
            self._believe(found)

    def _tell(self, found: Pod | Node | DeviceClass) -> object:
        ledger = self._ledger
        tell: dict[type, Callable[[Any], object]] = {
            Pod: ledger.upsert_pod,
            Node: ledger.upsert_node,
            DeviceClass: ledger.upsert_device_class,
        }
        return tell[type(found)](found)

    def _believe(self, found: Pod | Node | DeviceClass) -> None:
        if isinstance(found, Pod):
            self._reference.seen(found)
            self.last = found.key
            self.way_of[found.key] = self._guard.event.way
        elif isinstance(found, Node):
            self._reference.nodes[found.metadata.name] = found
        else:
            self._reference.classes[found.metadata.name] = found

    def _lost(self, found: Unreadable, *, deleted: bool) -> None:
        """Handles an object that could not be decoded: its readable parts decide whether a node must be blocked."""
        pod, key = found.kind == "Pod", f"{found.namespace}/{found.name}" if found.kind == "Pod" else found.name
        stopped = deleted or found.phase in message_invariants.STOPPED
        if stopped and found.name and (deleted or pod):
            self.gone(self._guard.event.kind, key)
        elif pod:
            self._guard.guarded("ledger", lambda: self._ledger.block_unreadable_pod(key, found.node))
            self._reference.unreadable(key, found.node)
        self._refuse(found.error, blocked=pod and bool(found.node) and not stopped)

    def _refuse(self, error: Malformed, *, blocked: bool) -> None:
        event, tally = self._guard.event, self._guard.tally
        tally.outcome(event.way, "quarantined, its node fenced" if blocked else "refused")
        tally.refusal(event.kind.__name__, error.field, error.problem)
