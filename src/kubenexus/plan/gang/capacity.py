"""Whether a gang could ever be placed on the nodes there are, were nothing else running. And what those wait for that
were refused as a whole: the names stand beside those of plugins in a diagnosis."""

from typing import Any, Final

import numpy as np

from kubenexus.framework.events import Action, Resource, Wake
from kubenexus.plan.gang.axes import Axis
from kubenexus.plan.gang.crews import PLENTY, Crew, asked_by, offered
from kubenexus.plan.gang.packings import Jointly
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes

TOO_LARGE: Final = "GangTooLarge"
TOPOLOGY: Final = "GangTopology"
_BETTER_NODES: Final = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
WAKES: Final = {
    TOO_LARGE: (Wake(Resource.NODE, _BETTER_NODES), Wake(Resource.TARGET_POD, Action.UPDATE)),
    TOPOLOGY: (Wake(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),),
}


def too_large(crews: list[Crew], minimum: int, outermost: Axis, columns: NodeColumns) -> bool:
    """Whether even empty nodes would hold fewer than the minimum. Only what is sure is said: crews are counted as if
    each had the nodes to itself."""
    rooms = [if_empty(crew, columns) for crew in crews]
    holds = Jointly(rooms, [crew.size for crew in crews]).holds(outermost)
    return int(holds.max(initial=0)) < minimum


def if_empty(crew: Crew, columns: NodeColumns) -> Any:
    """How many of the class each row could take if it were empty."""
    view, table = Nodes(columns), crew.member.table
    room: Any = np.where(columns.alive[: columns.size], 1 if table.pod.ports else PLENTY, 0)
    for name, amount in asked_by(crew, columns).items():
        np.minimum(room, offered(name, view) // amount, out=room)
    for column in table.filters:
        if column.bits is not None and not column.traits.usage and not column.traits.stamped:
            room[column.bits != 0] = 0
    return room
