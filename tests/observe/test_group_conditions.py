"""The condition of a PodGroup, as kube-scheduler writes it."""

from typing import Any

import msgspec

from kubenexus.api.core import PodCondition
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.workloads import PodGroup, PodGroupStatus
from kubenexus.client.calls import STRATEGIC_PATCH
from kubenexus.client.kinds import POD_GROUPS
from kubenexus.framework.verdict import Code
from kubenexus.observe import conditions, group_conditions
from kubenexus.observe.conditions import Condition

TYPE = "PodGroupInitiallyScheduled"
WHY = "5 of at least 8 members fit in rack r12"


def a_group(*conditions: PodCondition) -> PodGroup:
    meta = ObjectMeta(name="llama", namespace="ml", uid="u1", generation=2)
    return PodGroup(metadata=meta, status=PodGroupStatus(conditions=list(conditions)))


def said(status: str, message: str = WHY) -> PodCondition:
    return PodCondition(type=TYPE, status=status, reason="Unschedulable", message=message)


def patched(group: PodGroup, condition: Condition) -> Any:
    call = conditions.patch(group, condition, POD_GROUPS, 0.0)
    assert call is not None
    assert (call.method, call.content_type) == ("PATCH", STRATEGIC_PATCH)
    assert call.path == "/apis/scheduling.k8s.io/v1beta1/namespaces/ml/podgroups/llama/status"
    body = msgspec.json.decode(call.body)
    assert body["metadata"] == {"uid": "u1"}
    return body["status"]["conditions"]


def test_a_refusal() -> None:
    refused = group_conditions.unschedulable_condition(Code.UNSCHEDULABLE, WHY, POD_GROUPS)
    assert patched(a_group(), refused) == [
        {
            "type": TYPE,
            "status": "False",
            "reason": "Unschedulable",
            "message": WHY,
            "observedGeneration": 2,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ]


def test_a_failure_is_the_schedulers() -> None:
    assert group_conditions.unschedulable_condition(Code.ERROR, "boom", POD_GROUPS).reason == "SchedulerError"


def test_what_is_said_already_is_not_said_again() -> None:
    refused = group_conditions.unschedulable_condition(Code.UNSCHEDULABLE, WHY, POD_GROUPS)
    assert conditions.patch(a_group(said("False")), refused, POD_GROUPS, 0.0) is None


def test_another_reason_is_no_transition() -> None:
    (condition,) = patched(
        a_group(said("False", "less")), group_conditions.unschedulable_condition(Code.UNSCHEDULABLE, WHY, POD_GROUPS)
    )
    assert "lastTransitionTime" not in condition


def test_it_is_settled_once_it_was_scheduled() -> None:
    (condition,) = patched(a_group(said("False")), group_conditions.scheduled_condition(POD_GROUPS))
    assert (condition["status"], condition["reason"]) == ("True", "Scheduled")
    assert condition["lastTransitionTime"]
    assert group_conditions.was_scheduled(a_group(said("True")), POD_GROUPS)
    assert not group_conditions.was_scheduled(a_group(said("False")), POD_GROUPS)


def test_a_message_is_no_longer_than_the_server_takes() -> None:
    assert len(group_conditions.unschedulable_condition(Code.UNSCHEDULABLE, "x" * 40000, POD_GROUPS).message) == 32768
