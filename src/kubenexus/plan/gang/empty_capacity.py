"""Whether a gang would fit on the nodes if they were empty.

Also the events that help gangs which were refused as a whole. TOO_LARGE, TOPOLOGY and GANG_LIMITS take the place of
plugin names in a diagnosis.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.cycle.plugin_columns import FilterColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.object_names import named_reasons
from kubenexus.framework.verdict import Code
from kubenexus.plan.gang.gang_limits import GANG_LIMITS
from kubenexus.plan.gang.member_classes import (
    UNLIMITED,
    MemberClass,
    allocatable_rows,
    measures_nothing,
    member_amounts,
)
from kubenexus.plan.gang.packing import CombinedCapacity
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import PODS
from kubenexus.state.topology import TopologyDomains
from kubenexus.state.view import Nodes

TOO_LARGE: Final = "GangTooLarge"
TOPOLOGY: Final = "GangTopology"
_BETTER_NODES: Final = (
    ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
)
EVENTS_TO_REGISTER: Final = {
    TOO_LARGE: (
        ClusterEventWithHint(EventResource.NODE, _BETTER_NODES),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    ),
    TOPOLOGY: (ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),),
    GANG_LIMITS: (
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
        ClusterEventWithHint(EventResource.UNSCHEDULED_POD, ActionType.DELETE),
    ),  # of a member
}


class EmptyCapacity(NamedTuple):
    """What waiting can bring. `never`: even empty nodes hold fewer members than the minimum.

    `endless`: empty nodes hold enough, but not beside the pods that never end by themselves (`state.pods.endless`).
    """

    never: bool = False
    endless: bool = False


def empty_capacity(
    member_classes: list[MemberClass], minimum: int, outermost: TopologyDomains, columns: NodeColumns
) -> EmptyCapacity:
    """Returns only what is certain: each class is counted as if it had the nodes to itself."""
    capacities, sizes = (
        [capacity_if_empty(member_class, columns) for member_class in member_classes],
        [member_class.size for member_class in member_classes],
    )
    if _fewer(capacities, sizes, outermost, minimum):
        return EmptyCapacity(never=True)
    resources = columns.resources
    if not resources.endless[PODS, : columns.size].any():
        return EmptyCapacity()
    for member_class, capacity in zip(member_classes, capacities, strict=True):
        _beside_endless(member_class, capacity, columns)
    return EmptyCapacity(endless=_fewer(capacities, sizes, outermost, minimum))


def _fewer(capacities: list[Any], sizes: list[int], outermost: TopologyDomains, minimum: int) -> bool:
    return int(CombinedCapacity(capacities, sizes).capacity(outermost).max(initial=0)) < minimum


def _beside_endless(member_class: MemberClass, capacity: Any, columns: NodeColumns) -> None:
    """Lowers the capacity of each empty row to that beside its pods that never end."""
    view = Nodes(columns)
    for name, amount in member_amounts(member_class, columns).items():
        left = allocatable_rows(name, view) - view.endless(name)
        np.minimum(capacity, np.maximum(left, 0) // amount, out=capacity)


def capacity_if_empty(member_class: MemberClass, columns: NodeColumns) -> Any:
    """Returns how many members of the class each row could take if it were empty."""
    view, table = Nodes(columns), member_class.classified.table
    capacity: Any = np.where(columns.alive[: columns.size], 1 if table.pod.ports else UNLIMITED, 0)
    for name, amount in member_amounts(member_class, columns).items():
        np.minimum(capacity, allocatable_rows(name, view) // amount, out=capacity)
    for column in table.filters:
        if column.bits is not None and not column.traits.stamped:
            lasting = lasting_refusals(column) if column.traits.usage else column.bits
            capacity[lasting != 0] = 0
    return capacity


def lasting_reasons(member_class: MemberClass, columns: NodeColumns) -> dict[str, int]:
    """Returns why nodes do not take members even if they are empty, besides amounts of resources, with the number of
    nodes. Each node counts for the first plugin that refuses it."""
    table, left, counts = member_class.classified.table, columns.alive[: columns.size].copy(), dict[str, int]()
    for column in table.filters:
        if column.bits is None or column.traits.stamped or not measures_nothing(column.plugin, table.pod):
            continue
        bits = lasting_refusals(column) if column.traits.usage else column.bits
        bits = np.where(left, bits, 0)
        for i, reason in enumerate(named_reasons(tuple(column.reasons.reasons), member_class.classified.pod)):
            number = int(np.count_nonzero(bits & np.asarray(1 << i, bits.dtype)))
            if number:
                counts[reason.text] = counts.get(reason.text, 0) + number
        left &= bits == 0
    return counts


def lasting_refusals(column: FilterColumn) -> Any:
    """Returns the reasons of each row that do not go away with its pods, of a plugin that also has others.

    UNRESOLVABLE means that no eviction helps. It does not say so of plugins that look beyond a row: a pod elsewhere may
    help an affinity.
    """
    if column.bits is None or column.traits.stamped:
        return np.zeros(1, np.uint8)
    reasons = enumerate(column.reasons.reasons)
    mask = sum(1 << i for i, reason in reasons if reason.code is Code.UNRESOLVABLE)
    return column.bits & np.asarray(mask, column.bits.dtype)
