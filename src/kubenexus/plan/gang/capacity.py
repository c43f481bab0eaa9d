"""Whether a gang could ever be placed on the nodes there are, were nothing else running. And what those wait for that
were refused as a whole: the names stand beside those of plugins in a diagnosis."""

from typing import Any, Final, NamedTuple

import numpy as np

from kubenexus.framework.events import Action, Resource, Wake
from kubenexus.plan.gang.axes import Axis
from kubenexus.plan.gang.crews import PLENTY, Crew, asked_by, offered
from kubenexus.plan.gang.limits import LIMITS
from kubenexus.plan.gang.packings import Jointly
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.resources import PODS
from kubenexus.state.view import Nodes

TOO_LARGE: Final = "GangTooLarge"
TOPOLOGY: Final = "GangTopology"
_BETTER_NODES: Final = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
WAKES: Final = {
    TOO_LARGE: (Wake(Resource.NODE, _BETTER_NODES), Wake(Resource.TARGET_POD, Action.UPDATE)),
    TOPOLOGY: (Wake(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),),
    LIMITS: (Wake(Resource.TARGET_POD, Action.UPDATE), Wake(Resource.UNSCHEDULED_POD, Action.DELETE)),  # of its own
}


class Prospect(NamedTuple):
    """`never`: even empty nodes would hold fewer than the minimum. `endless`: they would hold enough, but not beside
    the pods that never end by themselves (`state.pods.endless`), so that waiting is in vain."""

    never: bool = False
    endless: bool = False


def prospect(crews: list[Crew], minimum: int, outermost: Axis, columns: NodeColumns) -> Prospect:
    """Only what is sure is said: crews are counted as if each had the nodes to itself."""
    rooms, sizes = [if_empty(crew, columns) for crew in crews], [crew.size for crew in crews]
    if _fewer(rooms, sizes, outermost, minimum):
        return Prospect(never=True)
    resources = columns.resources
    if not resources.endless[PODS, : columns.size].any():
        return Prospect()
    for crew, room in zip(crews, rooms, strict=True):
        _beside_endless(crew, room, columns)
    return Prospect(endless=_fewer(rooms, sizes, outermost, minimum))


def _fewer(rooms: list[Any], sizes: list[int], outermost: Axis, minimum: int) -> bool:
    return int(Jointly(rooms, sizes).holds(outermost).max(initial=0)) < minimum


def _beside_endless(crew: Crew, room: Any, columns: NodeColumns) -> None:
    """Lowers what each empty row would take to what it takes beside those of its pods that never end."""
    view = Nodes(columns)
    for name, amount in asked_by(crew, columns).items():
        left = offered(name, view) - view.endless(name)
        np.minimum(room, np.maximum(left, 0) // amount, out=room)


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
