"""The scheduling condition of Kubernetes' own PodGroup.

As in kube-scheduler the condition is true once the group was scheduled; until then it has the reason why not. Once true
it stays true, regardless of what happens to the pods later. The message is that of the members.
"""

from typing import Final

from kubenexus.api.workloads import INITIALLY_SCHEDULED, INITIALLY_SCHEDULED_OLD, PodGroup
from kubenexus.client.kinds import POD_GROUPS_OLD, ApiResource
from kubenexus.framework.verdict import Code
from kubenexus.observe.conditions import Condition, reason_of

SCHEDULED: Final = "Scheduled"
MESSAGE_LIMIT: Final = 32768  # characters; the API server rejects a longer message


def unschedulable_condition(code: Code, sentence: str, form: ApiResource) -> Condition:
    """The group was tried and fewer members than it needs have a node. `form` is the API version that the server
    has."""
    return Condition(_type(form), "False", reason_of(code), sentence[:MESSAGE_LIMIT])


def scheduled_condition(form: ApiResource) -> Condition:
    """As many members as the group needs have a node."""
    return Condition(_type(form), "True", SCHEDULED, "")


def was_scheduled(group: PodGroup, form: ApiResource) -> bool:
    """Whether the group's condition is true already, so that no further write is needed."""
    return any(each.type == _type(form) and each.status == "True" for each in group.status.conditions)


def _type(form: ApiResource) -> str:
    return INITIALLY_SCHEDULED_OLD if form == POD_GROUPS_OLD else INITIALLY_SCHEDULED
