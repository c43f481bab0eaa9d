"""Events as data (`events.k8s.io/v1`), with kube-scheduler's reasons and texts, and the calls that write them.

Pure functions; `observe.recorder` decides what is sent and when. A note never names pods of other tenants, nor labels
or taints of nodes: every reader of the namespace can read it.
"""

from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.meta import ApiObject
from kubenexus.base.timestamps import format_micro_time
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.client.kinds import EVENTS
from kubenexus.client.verbs import create_event, patch
from kubenexus.state.pods import PodRecord

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
SCHEDULED: Final = "Scheduled"
UNCLEAR: Final = "GangUnclear"
DEVICES_UNCLEAR: Final = "DevicesUnclear"
PLACEMENT_UNCLEAR: Final = "PlacementUnclear"
RELEASED: Final = "GangReleased"
STUCK: Final = "GangStuck"
FAILED: Final = "FailedScheduling"
REJECTED: Final = "Rejected"
PREEMPTED: Final = "Preempted"

NOTE_LIMIT: Final = 1024  # bytes; the API server rejects a longer note
NAME_LIMIT: Final = 253


class Reference(ApiObject):
    """The object that an event is about. Two versions of an object differ only in `resource_version`."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """What happened to an object, before the recorder decides whether it becomes a new event or a repetition."""

    regarding: Reference
    type: str
    reason: str
    action: str
    note: str

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies repetitions: two records with equal keys belong to one event series."""
        return (self.regarding.uid, self.type, self.reason, self.action, self.note)


class Series(ApiObject):
    count: int
    last_observed_time: str


class _Name(ApiObject):
    name: str
    namespace: str


class _Event(ApiObject):
    """The body of a new event. `apiVersion` and `kind` have no defaults: fields that equal their default are not
    encoded."""

    api_version: str
    kind: str
    metadata: _Name
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: Reference
    note: str
    type: str
    series: Series | None = None


class _Repeated(ApiObject):
    series: Series


class EventSource(msgspec.Struct, frozen=True, gc=False):
    """The reporter of an event: `controller` is the name of the profile, `instance` adds the name of the host."""

    controller: str
    instance: str

    @staticmethod
    def on(host: str, controller: str) -> "EventSource":
        return EventSource(controller, f"{controller}-{host}")


def scheduled(pod: Pod, node: str) -> EventRecord:
    """The API server accepted the binding."""
    note = f"Successfully assigned {pod.key} to {node}"
    return EventRecord(object_reference(pod), NORMAL, SCHEDULED, "Binding", truncate_note(note))


def failed_scheduling(pod: Pod, sentence: str) -> EventRecord:
    """The pod was refused or the attempt failed; `sentence` is that of the decision."""
    return EventRecord(object_reference(pod), WARNING, FAILED, "Scheduling", truncate_note(sentence))


def rejected(pod: Pod, sentence: str) -> EventRecord:
    """The pod is not tried, since a limit of its queue or namespace is reached; `sentence` has limit and usage."""
    return EventRecord(object_reference(pod), WARNING, REJECTED, "Scheduling", truncate_note(sentence))


def gang_unclear(pod: Pod, text: str) -> EventRecord:
    """The pod's declarations of its gang contradict each other; `text` names the ones that count."""
    return EventRecord(object_reference(pod), WARNING, UNCLEAR, "Scheduling", truncate_note(text))


def key_unclear(pod: Pod, reason: str, text: str) -> EventRecord:
    """A value of the pod cannot be read: about the devices that it needs (`DEVICES_UNCLEAR`), or about its
    placement (`PLACEMENT_UNCLEAR`). `text` names the key and the value."""
    return EventRecord(object_reference(pod), WARNING, reason, "Scheduling", truncate_note(text))


def gang_released(pod: Pod, gang: str, minimum: int) -> EventRecord:
    """A bound member is evicted because its gang was not complete in time."""
    note = f"gang {gang} did not have its {minimum} members on nodes in time: released, to start as a whole"
    return EventRecord(object_reference(pod), WARNING, RELEASED, "Scheduling", truncate_note(note))


def gang_stuck(pod: Pod, gang: str, minimum: int) -> EventRecord:
    """A bound member of an incomplete gang is not evicted: it has no controller that would recreate it."""
    note = f"gang {gang} did not have its {minimum} members on nodes in time; this one has no controller: not evicted"
    return EventRecord(object_reference(pod), WARNING, STUCK, "Scheduling", truncate_note(note))


def preempted(victim: PodRecord, preemptor: str, node: str) -> EventRecord:
    """A pod is deleted for one of higher priority. The event names only the UID of that one."""
    regarding = Reference(kind="Pod", namespace=victim.namespace, name=victim.name, uid=victim.uid, api_version="v1")
    note = f"Preempted by pod {preemptor} on node {node}"
    return EventRecord(regarding, NORMAL, PREEMPTED, "Preempting", truncate_note(note))


def object_reference(pod: Pod) -> Reference:
    meta = pod.metadata
    return Reference(
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        api_version="v1",
        resource_version=meta.resource_version,
    )


def truncate_note(note: str) -> str:
    """Returns the note cut to 1024 bytes, the limit of the API server. A cut note ends in ` ...`, at a character
    boundary."""
    if len(note) * 4 <= NOTE_LIMIT or len(raw := note.encode()) <= NOTE_LIMIT:
        return note
    return raw[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."


def event_name(regarding: str, nanoseconds: int) -> str:
    """Returns a name such as `web-0.17f1c5e8a3b2d400`. Where that is too long, kube-scheduler uses a UUID; we shorten
    the pod's name."""
    tail = f".{nanoseconds:x}"
    return regarding[: NAME_LIMIT - len(tail)].rstrip("-.") + tail


def create_call(what: EventRecord, source: EventSource, name: str, first: float, series: Series | None = None) -> Call:
    """Returns the call that creates the event. `series` is set if an event was deleted after it had repetitions."""
    namespace = what.regarding.namespace or "default"
    body = _Event(
        api_version=EVENTS.api_version,
        kind=EVENTS.kind,
        metadata=_Name(name=name, namespace=namespace),
        event_time=format_micro_time(first),
        reporting_controller=source.controller,
        reporting_instance=source.instance,
        action=what.action,
        reason=what.reason,
        regarding=what.regarding,
        note=what.note,
        type=what.type,
        series=series,
    )
    return create_event(namespace, body)


def repeat_call(what: EventRecord, name: str, series: Series) -> Call:
    """Returns the call that writes the new count into the existing event."""
    namespace = what.regarding.namespace or "default"
    return patch(EVENTS, namespace, name, _Repeated(series=series), content_type=STRATEGIC_PATCH)
