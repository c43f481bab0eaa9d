"""Events as data (`events.k8s.io/v1`): what happened to a pod, in kube-scheduler's words, and the calls that tell it.

Pure functions; `observe.recorder` decides what is sent and when. A note never names other tenants' pods, nor labels or
taints of nodes: everybody who may read the namespace reads it.
"""

from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.meta import ApiObject
from kubenexus.base.timestamps import format_micro_time
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.client.kinds import EVENTS
from kubenexus.client.verbs import create_event, patch

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
SCHEDULED: Final = "Scheduled"
UNCLEAR: Final = "GangUnclear"
RELEASED: Final = "GangReleased"
STUCK: Final = "GangStuck"
FAILED: Final = "FailedScheduling"

NOTE_LIMIT: Final = 1024  # bytes; the API server refuses a longer note
NAME_LIMIT: Final = 253


class Reference(ApiObject):
    """An object that an event is about. Equal for two versions of it, but for the version."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """What happened, before anybody knows whether it is worth an event of its own."""

    regarding: Reference
    type: str
    reason: str
    action: str
    note: str

    @property
    def key(self) -> tuple[str, ...]:
        """Happenings with equal keys are the same thing happening again."""
        return (self.regarding.uid, self.type, self.reason, self.action, self.note)


class Series(ApiObject):
    count: int
    last_observed_time: str


class _Name(ApiObject):
    name: str
    namespace: str


class _Event(ApiObject):
    """The body. `apiVersion` and `kind` have no defaults, or they would be left out."""

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
    """Who tells: `controller` is the name of the scheduler's profile, `instance` that with the host's name."""

    controller: str
    instance: str

    @staticmethod
    def on(host: str, controller: str) -> "EventSource":
        return EventSource(controller, f"{controller}-{host}")


def scheduled(pod: Pod, node: str) -> EventRecord:
    """The bind was accepted."""
    note = f"Successfully assigned {pod.key} to {node}"
    return EventRecord(object_reference(pod), NORMAL, SCHEDULED, "Binding", truncate_note(note))


def failed_scheduling(pod: Pod, sentence: str) -> EventRecord:
    """No node, or something went wrong; `sentence` is the decision's."""
    return EventRecord(object_reference(pod), WARNING, FAILED, "Scheduling", truncate_note(sentence))


def gang_unclear(pod: Pod, text: str) -> EventRecord:
    """The pod says different things about its gang; `text` says what counts."""
    return EventRecord(object_reference(pod), WARNING, UNCLEAR, "Scheduling", truncate_note(text))


def gang_released(pod: Pod, gang: str, minimum: int) -> EventRecord:
    """A bound member has to go again, since its gang was not complete in time."""
    note = f"gang {gang} did not have its {minimum} members on nodes in time: released, to start as a whole"
    return EventRecord(object_reference(pod), WARNING, RELEASED, "Scheduling", truncate_note(note))


def gang_stuck(pod: Pod, gang: str, minimum: int) -> EventRecord:
    """As before, but nobody would make the pod again, so it is left alone."""
    note = f"gang {gang} did not have its {minimum} members on nodes in time; this one has no controller: not evicted"
    return EventRecord(object_reference(pod), WARNING, STUCK, "Scheduling", truncate_note(note))


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
    """At most 1024 bytes, as the API server wants it: the end gives way to ` ...`, and no letter is cut in two."""
    if len(note) * 4 <= NOTE_LIMIT or len(raw := note.encode()) <= NOTE_LIMIT:
        return note
    return raw[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."


def event_name(regarding: str, nanoseconds: int) -> str:
    """`web-0.17f1c5e8a3b2d400`. kube-scheduler falls back to a UUID where that is too long; we shorten the name."""
    tail = f".{nanoseconds:x}"
    return regarding[: NAME_LIMIT - len(tail)].rstrip("-.") + tail


def create_call(what: EventRecord, source: EventSource, name: str, first: float, series: Series | None = None) -> Call:
    """Tell it as an event of its own, or (after somebody deleted that) as the series it has become."""
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
    """Tell that it happened again, by the event we have."""
    namespace = what.regarding.namespace or "default"
    return patch(EVENTS, namespace, name, _Repeated(series=series), content_type=STRATEGIC_PATCH)
