"""What a PodGroup of Kubernetes' own says about its scheduling.

As kube-scheduler has it: whether the group was ever scheduled, and while it was not, why. Once that is true it stays
so, whatever becomes of its pods. The message is that of the members.
"""

from typing import Final

from kubenexus.api.workloads import PodGroup
from kubenexus.client.kinds import POD_GROUPS_OLD, ApiResource
from kubenexus.framework.verdict import Code
from kubenexus.observe.conditions import Condition, reason_of

SCHEDULED: Final = "Scheduled"
MESSAGE_LIMIT: Final = 32768  # characters; the API server refuses a longer message

_TYPE: Final = "PodGroupInitiallyScheduled"
_TYPE_OF_OLD: Final = "PodGroupScheduled"  # up to Kubernetes 1.36


def unschedulable_condition(code: Code, sentence: str, form: ApiResource) -> Condition:
    """The group was tried, and not enough of its members have a node. `form` is the one that the server knows."""
    return Condition(_type(form), "False", reason_of(code), sentence[:MESSAGE_LIMIT])


def scheduled_condition(form: ApiResource) -> Condition:
    """As many members as it needs have a node."""
    return Condition(_type(form), "True", SCHEDULED, "")


def was_scheduled(group: PodGroup, form: ApiResource) -> bool:
    """Whether the group was scheduled once, so that there is nothing more to say."""
    return any(each.type == _type(form) and each.status == "True" for each in group.status.conditions)


def _type(form: ApiResource) -> str:
    return _TYPE_OF_OLD if form == POD_GROUPS_OLD else _TYPE
