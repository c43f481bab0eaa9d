"""The patch of a pod's status: kube-scheduler's words, and nothing when nothing changed."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Pod, PodCondition, PodStatus
from kubenexus.client.calls import STRATEGIC_PATCH, Call
from kubenexus.framework.verdict import Code
from kubenexus.observe import conditions
from kubenexus.testing.builders import a_pod

NOW = 1_794_792_257.9  # 2026-11-16
SENTENCE = "0/5 nodes are available: 5 Insufficient cpu."


def web(*said: PodCondition, nominated: str = "", generation: int = 3) -> Pod:
    pod = a_pod("web-0", namespace="shop", uid="u-1")
    meta = msgspec.structs.replace(pod.metadata, generation=generation)
    status = PodStatus(conditions=list(said), nominated_node_name=nominated)
    return msgspec.structs.replace(pod, metadata=meta, status=status)


def scheduled_false(reason: str = "Unschedulable", message: str = SENTENCE, **more: Any) -> PodCondition:
    return PodCondition(type="PodScheduled", status="False", reason=reason, message=message, **more)


def status(call: Call | None) -> Any:
    assert call is not None
    return msgspec.json.decode(call.body)["status"]


def test_the_whole_patch() -> None:
    call = conditions.unschedulable_patch(web(), Code.UNSCHEDULABLE, SENTENCE, NOW)
    assert call is not None
    assert str(call) == "PATCH /api/v1/namespaces/shop/pods/web-0/status"
    assert call.content_type == STRATEGIC_PATCH
    assert msgspec.json.decode(call.body) == {
        "metadata": {"uid": "u-1"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": SENTENCE,
                    "observedGeneration": 3,
                    "lastTransitionTime": "2026-11-16T01:24:17Z",
                }
            ],
        },
    }


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(web(scheduled_false()), id="the same sentence"),
        pytest.param(web(scheduled_false(observed_generation=2)), id="a new generation alone"),
        pytest.param(web(scheduled_false(), nominated="n1"), id="a nomination that is to stay"),
    ],
)
def test_nothing_is_written_when_nothing_changed(pod: Pod) -> None:
    assert conditions.unschedulable_patch(pod, Code.UNSCHEDULABLE, SENTENCE, NOW) is None


def test_the_time_of_the_transition_moves_only_with_the_status() -> None:
    said = scheduled_false(message="0/4 nodes are available: 4 Insufficient cpu.")
    (change,) = status(conditions.unschedulable_patch(web(said), Code.UNSCHEDULABLE, SENTENCE, NOW))["conditions"]
    assert "lastTransitionTime" not in change
    was_true = PodCondition(type="PodScheduled", status="True")
    (change,) = status(conditions.unschedulable_patch(web(was_true), Code.UNSCHEDULABLE, SENTENCE, NOW))["conditions"]
    assert change["lastTransitionTime"] == "2026-11-16T01:24:17Z"


def test_other_conditions_are_not_looked_at() -> None:
    other = PodCondition(type="Ready", status="False", reason="Unschedulable", message=SENTENCE)
    assert conditions.unschedulable_patch(web(other), Code.UNSCHEDULABLE, SENTENCE, NOW) is not None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (Code.UNSCHEDULABLE, "Unschedulable"),
        (Code.UNRESOLVABLE, "Unschedulable"),
        (Code.PENDING, "Unschedulable"),
        (Code.ERROR, "SchedulerError"),
    ],
)
def test_the_reason_follows_from_the_code(code: Code, reason: str) -> None:
    (change,) = status(conditions.unschedulable_patch(web(), code, "x", NOW))["conditions"]
    assert change["reason"] == reason


def test_the_message_is_not_cut() -> None:
    (change,) = status(conditions.unschedulable_patch(web(), Code.ERROR, "x" * 5000, NOW))["conditions"]
    assert change["message"] == "x" * 5000


def test_a_gated_pod_says_what_the_api_server_says() -> None:
    (change,) = status(conditions.gated_patch(web(generation=0), NOW))["conditions"]
    assert change == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastTransitionTime": "2026-11-16T01:24:17Z",
    }
    assert conditions.gated_patch(web(scheduled_false("SchedulingGated", change["message"])), NOW) is None
