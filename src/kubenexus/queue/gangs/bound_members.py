"""How gangs stand whose members have nodes: which of them lack some, since when, and who could be let go.

Told by the assembly; asked by `app.gangs.stale_gang_evictor`, which keeps gangs whole. What a restart must not forget
is in the API server: when members were bound, and that a gang was complete once (the condition `GangComplete` of a few
members, docs/adr/0012).
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kubenexus.api.core import Pod
from kubenexus.base.timestamps import parse_timestamp

# A condition of pods: their gang had all the members it needs on nodes.
COMPLETE: Final = "scheduling.kubenexus.io/GangComplete"
WITNESSES: Final = 3  # members of a gang that say so, on different nodes: one that is lost must not take it along


class BoundMember(msgspec.Struct, frozen=True, gc=False):
    """A member on a node, by the API server's word: since when, whether it has begun to run, and whether it says that
    its gang was complete once."""

    pod: Pod
    since: float
    started: bool
    witness: bool = False

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def node(self) -> str:
        return self.pod.spec.node_name

    @property
    def has_controller(self) -> bool:
        """Whether a controller would make it again."""
        return any(owner.controller for owner in self.pod.metadata.owner_references)


class IncompleteGang(msgspec.Struct, frozen=True, gc=False):
    """A gang with fewer members on nodes than it needs. `was_complete`: once it had them all. `noticed` is when this
    process first saw it incomplete. `patience`: seconds, None for the usual. `waits`: some member waits for a node."""

    key: str
    title: str
    minimum: int
    bound: tuple[BoundMember, ...]
    patience: int | None = None
    was_complete: bool = False
    noticed: float = 0.0
    waits: bool = False

    def keeps(self, member: BoundMember) -> bool:
        """Whether a member stays when the gang's time is over: it runs, and the gang was complete once. It also stays
        if no member waits: then the others have finished, or no controller creates them again, and their place would
        be of no use to the gang."""
        return member.started and (self.was_complete or not self.waits)

    @property
    def first_bind(self) -> float:
        return min(each.since for each in self.bound)

    def overdue_at(self, patience: float, chance: float) -> float:
        """When its time is over. `chance`: the seconds for which the place of a lost member is held.

        A gang that was complete became incomplete when it was noticed, and its replacement has its chance whatever the
        patience is. One that never was became incomplete with its first bind; so did one that was and of which no
        member is left that says so, hence a scheduler that has just started gives it that chance, too.
        """
        if self.was_complete:
            return self.noticed + max(patience, chance)
        return max(self.first_bind + patience, self.noticed + min(patience, chance))


def bound_member(pod: Pod, slim: Pod) -> BoundMember | None:
    """What counts of a pod that has a node; `stripped_pod` is what is kept of it."""
    if not pod.spec.node_name:
        return None
    said = {each.type: each for each in pod.status.conditions if each.status == "True"}
    scheduled = said["PodScheduled"].last_transition_time if "PodScheduled" in said else ""
    since = parse_timestamp(scheduled, 0.0) or parse_timestamp(pod.metadata.creation_timestamp, 0.0)
    return BoundMember(slim, since, pod.status.phase not in ("", "Pending"), COMPLETE in said)


def new_witnesses(bound: Iterable[BoundMember], asked: set[str]) -> list[BoundMember]:
    """Who else of a complete gang is to say that it is. `asked` are the UIDs of those that were asked to."""
    says: dict[bool, list[BoundMember]] = {True: [], False: []}
    for each in bound:
        says[each.witness or each.uid in asked].append(each)
    lacking = min(WITNESSES, len(says[True]) + len(says[False])) - len(says[True])
    if lacking <= 0:
        return []
    nodes, apart, beside = {each.node for each in says[True]}, list[BoundMember](), list[BoundMember]()
    for each in says[False]:
        (beside if each.node in nodes else apart).append(each)
        nodes.add(each.node)
    return [*apart, *beside][:lacking]
