"""The roll of gangs: who says that it belongs to which, which object each gang names, and which of them have changed.

Kept by the assembly, which asks here before it brings anything into the waiting room. Knows of no jobs.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GangDeclaration
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.queue.gangs.gang_jobs import GangMember

MOST_KINDS: Final = 16  # of warnings about one gang: there are about ten, each for a few pairs of labels
KIND_LENGTH: Final = 200  # characters of a warning that tell its kind: two names of labels have less
MOST_NUMBERS: Final = 5  # in a sentence

Named = tuple[str, str, str]  # an object: its kind, its namespace and its name


class LeavingMember(NamedTuple):
    """A member that is told to go: whether it had begun to run, and since when it was on its node."""

    gang: str
    started: bool
    since: float


class GangState:
    """One gang: its members, and the objects that they named. `entries` are the jobs that the waiting room has of it,
    `told` the kinds of warnings that were given.

    `bound` counts members on nodes by the API server's word, `minimum` is how many it needs (0: not known yet).
    `was_complete` until the last of them is gone; `noticed` is when it was first seen incomplete since then; `asked`
    are the UIDs of members that were asked to say that it was complete.
    """

    __slots__ = (
        "asked",
        "bound",
        "entries",
        "members",
        "minimum",
        "names",
        "noticed",
        "told",
        "was_complete",
    )

    def __init__(self) -> None:
        self.members: dict[str, GangMember] = {}
        self.entries: dict[str, None] = {}
        self.names: set[Named] = set()
        self.told: set[str] = set()
        self.asked: set[str] = set()
        self.bound = self.minimum = 0
        self.was_complete = False
        self.noticed: float | None = None

    def count(self, old: GangMember | None, new: GangMember | None) -> None:
        """A member came, changed or left. A gang with no member left on a node is a new one."""
        self.bound += _on_node(new) - _on_node(old)
        if new is not None and new.bound is not None and new.bound.witness:
            self.was_complete = True
        self.settle(self.minimum)

    def settle(self, minimum: int) -> None:
        """It needs so many."""
        self.minimum = minimum
        if not self.bound:
            self.was_complete, self.noticed = False, None
            self.asked.clear()
        elif 0 < minimum <= self.bound:
            self.was_complete, self.noticed = True, None

    def in_order(self) -> dict[str, GangMember]:
        """The most urgent first, then the oldest. Most of them stand in order since the last time."""
        self.members = dict(sorted(self.members.items(), key=_order))
        return self.members

    def claims(self) -> list[GangDeclaration]:
        """What its members say, each saying once."""
        return list({id(each.claim): each.claim for each in self.members.values()}.values())

    def new_warnings(self, claims: Iterable[GangDeclaration]) -> list[str]:
        """What is odd about these and was not told yet: each kind of warning once, whatever values it names, and so
        many kinds. Members write the values, and could make as many texts as they like."""
        numbers = {claim.minimum for claim in claims}
        differ = _different(numbers) if len(numbers) > 1 else []
        fresh = []
        for text in (*differ, *(text for claim in claims for text in claim.warnings)):
            kind = text.partition(": ")[0].partition(" (")[0][:KIND_LENGTH]
            if len(self.told) < MOST_KINDS and kind not in self.told:
                self.told.add(kind)
                fresh.append(text)
        return fresh


def _different(numbers: set[int]) -> list[str]:
    """A sentence about minimums, with the least and the largest of them if they are many."""
    shown = [str(number) for number in sorted(numbers)]
    text, more = ", ".join(shown), len(shown) - MOST_NUMBERS
    if more > 0:
        text = f"{', '.join(shown[: MOST_NUMBERS - 1])} and {more} more up to {shown[-1]}"
    return [f"members ask for different minimums ({text}); the largest counts"]


class GangRegistry:
    """`members` by pod, `gangs` by gang; `changed` are the gangs that are another one now, `grown` those that have so
    many members more, also out of gates, and `edited` those of which so many members were changed otherwise."""

    def __init__(self) -> None:
        self.members: dict[str, GangMember] = {}
        self.gangs: dict[str, GangState] = {}
        self.changed: dict[str, None] = {}
        self.grown: dict[str, int] = {}
        self.edited: dict[str, int] = {}
        self._named: dict[Named, dict[str, None]] = {}  # gangs by the object that they name

    def declaration(self, pod: Pod) -> GangDeclaration | None:
        """What the pod says of its gang; not read again while it says the same. Raises Malformed.

        Of a member that has a node only a slim pod is kept, without annotations, so it is read again: else one whose
        annotations were taken away would seem unchanged. That is rare enough to cost little, and `add_member` has it
        share its former claim if that is equal, so no gang is formed anew for it. What the spec names cannot change
        while the UID stays the same.
        """
        known = self.members.get(pod.key)
        if known is None:
            return declared_gang(pod)
        before, now = known.pod, pod.metadata
        same = before.metadata.labels == now.labels and before.metadata.annotations == now.annotations
        return known.claim if same and not known.node and before.metadata.uid == now.uid else declared_gang(pod)

    def add_member(self, member: GangMember) -> None:
        """New to its gang, or another than it was. Not to be called for one that is in another gang."""
        key, gang = member.pod.key, member.claim.key
        old, gang_state = self.members.get(key), self.gangs.get(gang)
        if gang_state is None:
            gang_state = self.gangs[gang] = GangState()
        sibling = old or next(iter(gang_state.members.values()), None)
        if sibling is not None and sibling.claim == member.claim:
            member = msgspec.structs.replace(member, claim=sibling.claim)  # ten thousand share one
        gang_state.members[key] = self.members[key] = member
        gang_state.count(old, member)
        ref = member.claim.ref
        if ref is not None:
            gang_state.names.add(named := (ref.kind, ref.namespace, ref.name))
            self._named.setdefault(named, {})[gang] = None
        if old is None:
            self.grown[gang] = self.grown.get(gang, 0) + 1
        elif _urgent(old, member):
            self.changed[gang] = None
        elif _matters(old, member):
            opened = old.pod.spec.scheduling_gates and not member.pod.spec.scheduling_gates
            kept = self.grown if opened else self.edited  # a gate opens once, and edits must not use up its credit
            kept[gang] = kept.get(gang, 0) + 1

    def remove_member(self, key: str) -> None:
        member = self.members.pop(key, None)
        if member is None:
            return
        gang_state = self.gangs[member.claim.key]
        del gang_state.members[key]
        gang_state.count(member, None)
        gang_state.entries.pop(key, None)  # of a pod by itself, which whoever called us takes out of the room
        self.changed[member.claim.key] = None

    def remove_gang(self, gang: str) -> None:
        """The last member is gone, and nothing is left to remember: who takes the name starts afresh."""
        for named in self.gangs.pop(gang).names:
            del self._named[named][gang]
            if not self._named[named]:
                del self._named[named]

    def group_changed(self, kind: str, key: str) -> None:
        """A PodGroup or a Workload was made, changed or deleted."""
        namespace, _, name = key.partition("/")
        self.changed.update(self._named.get((kind, namespace, name), {}))

    def kind_changed(self, kind: str) -> None:
        """Objects of a kind can no longer be listed, or can be again."""
        for named, gangs in self._named.items():
            if named[0] == kind:
                self.changed.update(gangs)

    def mark_changed(self, gang: str) -> None:
        """Something else about a gang has changed, if there is one."""
        if gang in self.gangs:
            self.changed[gang] = None

    def leaving(self, key: str) -> LeavingMember | None:
        """A pod that has a node and is told to go, if others of its gang have one, too, and the gang was complete: any
        pod may name a node and a gang, and what never was complete has lost nothing."""
        member = self.members.get(key)
        if member is None or member.bound is None or not member.ours:
            return None
        gang_state = self.gangs[member.claim.key]
        if not gang_state.was_complete or gang_state.bound < 2:
            return None
        return LeavingMember(member.claim.key, member.bound.started, member.bound.since)

    def marker_failed(self, pod: Pod) -> None:
        """The member could not be marked with the completeness of its gang: it, or another one, may be chosen again."""
        member = self.members.get(pod.key)
        if member is not None:
            self.gangs[member.claim.key].asked.discard(pod.metadata.uid)

    def latest(self, pod: Pod) -> Pod:
        """The pod as it was last seen: a job keeps it as it was when something about it mattered."""
        member = self.members.get(pod.key)
        return pod if member is None or member.pod.metadata.uid != pod.metadata.uid else member.pod


def _on_node(member: GangMember | None) -> bool:
    return member is not None and member.bound is not None


def _order(named: tuple[str, GangMember]) -> tuple[int, float, str]:
    return named[1].order


def _urgent(old: GangMember, new: GangMember) -> bool:
    """Whether a member was lost, has got a node, or has begun to run: what users cannot do at will."""
    if old.node != new.node or old.pod.metadata.uid != new.pod.metadata.uid:
        return True
    return old.bound is not None and new.bound is not None and old.bound.started != new.bound.started


def _matters(old: GangMember, new: GangMember) -> bool:
    """Whether the gang is another one now. What is written about a pod that waits (by us, a thousand times) is not, nor
    what is written about one that runs, but for its gang."""
    if old.claim is not new.claim:
        return True
    if old.bound is not None and new.bound is not None:
        return False
    before, after = old.pod.metadata, new.pod.metadata
    same = before.labels == after.labels and before.annotations == after.annotations and old.pod.spec == new.pod.spec
    return not same or _silent(old.pod.status) != _silent(new.pod.status)


def _silent(status: Any) -> Any:
    return msgspec.structs.replace(status, conditions=[])
