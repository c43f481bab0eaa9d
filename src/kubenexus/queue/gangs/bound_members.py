"""Gangs of which some members are bound: how many are missing, since when, and which members may be evicted.

Written by `queue.gangs.job_assembler`, read by `app.gangs.stale_gang_evictor`, which keeps gangs whole. What a restart
must not lose is in the API server: when members were bound, and that a gang was complete once (the condition of its
PodGroup, or the condition `GangComplete` of a few members, docs/adr/0012).
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.workloads import INITIALLY_SCHEDULED, INITIALLY_SCHEDULED_OLD, PodGroup
from kubenexus.base.timestamps import parse_timestamp

# A condition of pods: all members that their gang needs were bound.
COMPLETE: Final = "scheduling.kubenexus.io/GangComplete"
# Members of a gang with that condition, on different nodes: the loss of one must not lose the fact.
WITNESSES: Final = 3
_SCHEDULED: Final = frozenset({INITIALLY_SCHEDULED, INITIALLY_SCHEDULED_OLD})


class BoundMember(msgspec.Struct, frozen=True, gc=False):
    """A member that is bound according to the API server: since when, whether it has started, and whether it has the
    condition that its gang was complete once. `dated`: the API server says when it was bound, else `since` is when it
    was created."""

    pod: Pod
    since: float
    started: bool
    witness: bool = False
    dated: bool = False

    def was_bound_at(self, moment: float | None) -> bool:
        """Whether it had its node at that moment. False if that is not certain."""
        return moment is not None and self.dated and self.since <= moment

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def node(self) -> str:
        return self.pod.spec.node_name

    @property
    def has_controller(self) -> bool:
        """Whether a controller would create it again."""
        return any(owner.controller for owner in self.pod.metadata.owner_references)


class IncompleteGang(msgspec.Struct, frozen=True, gc=False):
    """A gang with fewer bound members than its minimum. `was_complete`: it had them all once. `noticed`: when this
    process first saw it incomplete. `patience`: seconds, None for the default. `waits`: some member waits for a node.
    """

    key: str
    title: str
    minimum: int
    bound: tuple[BoundMember, ...]
    patience: int | None = None
    was_complete: bool = False
    noticed: float = 0.0
    waits: bool = False

    def keeps(self, member: BoundMember) -> bool:
        """Whether a member stays when the gang is overdue: it runs, and the gang was complete once. It also stays if no
        member waits: then the others have finished, or no controller creates them again, and an eviction would not help
        the gang."""
        return member.started and (self.was_complete or not self.waits)

    @property
    def first_bind(self) -> float:
        return min(each.since for each in self.bound)

    def overdue_at(self, patience: float, chance: float) -> float:
        """Returns when the gang is overdue. `chance`: seconds for which the capacity of a lost member is held.

        A gang that was complete became incomplete when it was noticed, and a replacement always has that chance. A gang
        that never was complete became so with its first bind. So did one whose members with the condition are lost:
        hence a scheduler that has just started gives it the chance, too.
        """
        if self.was_complete:
            return self.noticed + max(patience, chance)
        return max(self.first_bind + patience, self.noticed + min(patience, chance))


def bound_member(pod: Pod, slim: Pod) -> BoundMember | None:
    """Returns the bound member for a pod with a node, else None; `slim` is the part of the pod that is kept."""
    if not pod.spec.node_name:
        return None
    said = {each.type: each for each in pod.status.conditions if each.status == "True"}
    scheduled = said["PodScheduled"].last_transition_time if "PodScheduled" in said else ""
    at = parse_timestamp(scheduled, 0.0)
    since = at or parse_timestamp(pod.metadata.creation_timestamp, 0.0)
    started = pod.status.phase not in ("", "Pending")
    return BoundMember(slim, since, started, COMPLETE in said, dated=at > 0.0)


def scheduled_at(group: PodGroup) -> float | None:
    """Returns when as many members of the group as it needs had a node for the first time, by its condition; None if it
    has none."""
    for each in group.status.conditions:
        if each.type in _SCHEDULED and each.status == "True":
            return parse_timestamp(each.last_transition_time, None)
    return None


def members_to_mark(bound: Iterable[BoundMember], asked: set[str], complete_at: float | None) -> list[BoundMember]:
    """Returns the members of a complete gang that need the condition. `asked`: UIDs of pods that are being patched.
    `complete_at`: when the gang was complete, by the condition of its PodGroup. Members that were bound then need no
    condition of their own."""
    says: dict[bool, list[BoundMember]] = {True: [], False: []}
    for each in bound:
        says[each.witness or each.uid in asked or each.was_bound_at(complete_at)].append(each)
    lacking = min(WITNESSES, len(says[True]) + len(says[False])) - len(says[True])
    if lacking <= 0:
        return []
    nodes, apart, beside = {each.node for each in says[True]}, list[BoundMember](), list[BoundMember]()
    for each in says[False]:
        (beside if each.node in nodes else apart).append(each)
        nodes.add(each.node)
    return [*apart, *beside][:lacking]
