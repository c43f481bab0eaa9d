"""Builds the patches that write scheduling conditions into the status of pods and pod groups.

Types and reasons are kube-scheduler's and no others: autoscalers and controllers read them. The message is the whole
sentence; only events truncate it. Patches are strategic merges, so conditions of other writers stay. A field that a
patch leaves out stays, too: `lastTransitionTime` is sent only when the condition's status changes.
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
    """The type, status, reason and message of a condition, without its times."""

    type: str
    status: str
    reason: str
    message: str


def unschedulable_patch(pod: Pod, code: Code, sentence: str, now: float) -> Call | None:
    """Returns the patch for a decision that found no node or failed, or None if the pod's status has that condition
    already."""
    return patch(pod, Condition(POD_SCHEDULED, "False", reason_of(code), sentence), PODS, now)


def reason_of(code: Code) -> str:
    """Returns the reason of the condition: `Unschedulable` if the decision refused the pod, `SchedulerError` if
    deciding failed."""
    return UNSCHEDULABLE if code in _REJECTED else ERROR


def gated_patch(pod: Pod, now: float) -> Call | None:
    """Returns the patch for a pod with scheduling gates. The API server sets this condition at creation; this is for a
    pod without it."""
    return patch(pod, Condition(POD_SCHEDULED, "False", GATED, BEHIND_GATES), PODS, now)


def held_patch(pod: Pod, sentence: str, now: float) -> Call | None:
    """Returns the patch for a pod that may not be tried yet, for instance because members of its gang are missing.

    The reason is `SchedulingGated`, not `Unschedulable`: more nodes would not help, and autoscalers must not add them.
    """
    return patch(pod, Condition(POD_SCHEDULED, "False", GATED, sentence), PODS, now)


def patch(thing: Pod | PodGroup, condition: Condition, resource: ApiResource, now: float) -> Call | None:
    """Returns the call that writes `condition` into the status of a pod or a pod group, or None if it is there
    already."""
    change = change_of(thing, condition, now)
    if change is None:
        return None
    meta = thing.metadata
    # The UID makes the server reject the patch for an object that was recreated under the same name.
    body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [change]}}
    return verbs.patch(resource, meta.namespace, meta.name, body, part="status", content_type=STRATEGIC_PATCH)


def change_of(thing: Pod | PodGroup, wanted: Condition, now: float) -> dict[str, Any] | None:
    """Returns the condition as it goes into a patch, or None if status, reason and message are unchanged.

    A new generation alone causes no write, as in kube-scheduler.
    """
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
