"""What a pod's status says about its scheduling: the patch that says it, or None if it says so already.

Conditions and reasons are kube-scheduler's and no others: autoscalers and controllers read them. The message is the
whole sentence, not cut as in the event. Patches are strategic merges, so that what others write stays; what they leave
out stays, too, and so `lastTransitionTime` moves only when the status does.
"""

from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.workloads import PodGroup
from kubenexus.base.timestamps import format_time
from kubenexus.client import verbs
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.client.kinds import PODS, ApiResource
from kubenexus.framework.verdict import Code

POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
GATED: Final = "SchedulingGated"
ERROR: Final = "SchedulerError"
BEHIND_GATES: Final = "Scheduling is blocked due to non-empty scheduling gates"

_REJECTED: Final = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


class Condition(msgspec.Struct, frozen=True, gc=False):
    """What is to be said, whenever it was first so."""

    type: str
    status: str
    reason: str
    message: str


def unschedulable_patch(pod: Pod, code: Code, sentence: str, now: float) -> Call | None:
    """A decision that found no node, or failed: its code and sentence."""
    return patch(pod, Condition(POD_SCHEDULED, "False", reason_of(code), sentence), PODS, now)


def reason_of(code: Code) -> str:
    """Refused, or failed."""
    return UNSCHEDULABLE if code in _REJECTED else ERROR


def gated_patch(pod: Pod, now: float) -> Call | None:
    """As the API server says it when a pod is made; for a pod that came without a condition."""
    return patch(pod, Condition(POD_SCHEDULED, "False", GATED, BEHIND_GATES), PODS, now)


def held_patch(pod: Pod, sentence: str, now: float) -> Call | None:
    """Before it may be tried: the rest of its gang is missing, say. More nodes would not help it."""
    return patch(pod, Condition(POD_SCHEDULED, "False", GATED, sentence), PODS, now)


def patch(thing: Pod | PodGroup, condition: Condition, resource: ApiResource, now: float) -> Call | None:
    """The call that makes the status of a pod, or of a group of pods, say this; None when it says so already."""
    change = change_of(thing, condition, now)
    if change is None:
        return None
    meta = thing.metadata
    # With the UID in it, the patch does not reach an object that was made again under the same name.
    body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [change]}}
    return verbs.patch(resource, meta.namespace, meta.name, body, part="status", content_type=STRATEGIC_PATCH)


def change_of(thing: Pod | PodGroup, wanted: Condition, now: float) -> dict[str, Any] | None:
    """The condition as it goes into a patch. A new generation alone is no reason to write, as in kube-scheduler."""
    old = next((each for each in thing.status.conditions if each.type == wanted.type), None)
    if old is not None and (old.status, old.reason, old.message) == (wanted.status, wanted.reason, wanted.message):
        return None
    change: dict[str, Any] = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
    }
    if thing.metadata.generation:
        change["observedGeneration"] = thing.metadata.generation
    if old is None or old.status != wanted.status:
        change["lastTransitionTime"] = format_time(now)
    return change
