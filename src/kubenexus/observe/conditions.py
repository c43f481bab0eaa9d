"""What a pod's status says about its scheduling: the patch that says it, or None if it says so already.

Conditions and reasons are kube-scheduler's and no others: autoscalers and controllers read them. The message is the
whole sentence, not cut as in the event. Patches are strategic merges, so that what others write stays; what they leave
out stays, too, and so `lastTransitionTime` moves only when the status does.
"""

from typing import Any, Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.workloads import PodGroup
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.framework.verdict import Code
from kubenexus.observe.times import seconds_text

POD_SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"
UNSCHEDULABLE: Final = "Unschedulable"
GATED: Final = "SchedulingGated"
ERROR: Final = "SchedulerError"
PREEMPTION: Final = "PreemptionByScheduler"
BEHIND_GATES: Final = "Scheduling is blocked due to non-empty scheduling gates"

_REJECTED: Final = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


class Condition(msgspec.Struct, frozen=True, gc=False):
    """What is to be said, whenever it was first so."""

    type: str
    status: str
    reason: str
    message: str


def refused(pod: Pod, code: Code, sentence: str, now: float, nominated: str | None = None) -> Call | None:
    """`PodScheduled=False`. Called for each member of a job that was not placed, with the decision's code and sentence.

    `nominated` is the node that is being cleared for the pod; "" takes an old nomination back, None leaves it.
    """
    return patch(pod, Condition(POD_SCHEDULED, "False", reason_of(code), sentence), now, nominated)


def reason_of(code: Code) -> str:
    """Refused, or failed."""
    return UNSCHEDULABLE if code in _REJECTED else ERROR


def gated(pod: Pod, now: float) -> Call | None:
    """As the API server says it when a pod is made; for a pod that came without a condition."""
    return patch(pod, Condition(POD_SCHEDULED, "False", GATED, BEHIND_GATES), now)


def held(pod: Pod, sentence: str, now: float) -> Call | None:
    """Before it may be tried: the rest of its gang is missing, say. More nodes would not help it."""
    return patch(pod, Condition(POD_SCHEDULED, "False", GATED, sentence), now)


def disrupted(victim: Pod, scheduler: str, now: float, *, kind: str = "pod") -> Call | None:
    """Before a victim is deleted. `kind` is what it goes for: `pod` or `podgroup`."""
    message = f"{scheduler}: preempting to accommodate a higher priority {kind}"
    return patch(victim, Condition(DISRUPTION_TARGET, "True", PREEMPTION, message), now)


def nominate(pod: Pod, node: str) -> Call | None:
    """Only the nomination, set or (with "") taken back."""
    return patch(pod, None, 0.0, node)


def patch(pod: Pod, condition: Condition | None, now: float, nominated: str | None = None) -> Call | None:
    """The call that makes the status say this; None when it says so already."""
    status: dict[str, Any] = {}
    changed = None if condition is None else change_of(pod, condition, now)
    if changed is not None:
        status["conditions"] = [changed]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None  # null removes it
    if not status:
        return None
    # With the UID in it, the patch does not reach a pod that was made again under the same name.
    body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/status"
    return Call("PATCH", path, msgspec.json.encode(body), STRATEGIC_PATCH)


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
        change["lastTransitionTime"] = seconds_text(now)
    return change
