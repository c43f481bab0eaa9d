"""The registry of gangs: their members, the objects that they name, and which gangs have changed.

Written and read by `queue.gangs.job_assembler`, which builds jobs from it. Knows no jobs.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GangDeclaration
from kubenexus.api.gangs.resolver import declared_gang
from kubenexus.queue.gangs.changed_gangs import ChangedGangs, Named
from kubenexus.queue.gangs.gang_jobs import GangMember

MAX_KINDS: Final = 16  # of warnings about one gang: there are about ten, each for a few pairs of labels
KIND_LENGTH: Final = 200  # characters of a warning that identify its kind: two label keys are shorter
MAX_NUMBERS: Final = 5  # in a sentence


class LeavingMember(NamedTuple):
    """A terminating member: whether it had started, and since when it was bound."""

    gang: str
    started: bool
    since: float


class GangState:
    """One gang: its members, and the objects that they named.

    entries            the keys of its jobs in the queue
    reported_warnings  the kinds of warnings that were reported
    bound              how many members are bound according to the API server
    minimum            how many it needs (0: not known yet)
    was_complete       so many were bound once, and some still are
    noticed            when it was first seen incomplete since then
    asked              UIDs of members that get the condition `GangComplete`
    marked             see `changed_gangs`
    trivial            each of its members was a job of its own when it was last built
    """

    __slots__ = (
        "asked",
        "bound",
        "entries",
        "marked",
        "members",
        "minimum",
        "names",
        "noticed",
        "reported_warnings",
        "trivial",
        "was_complete",
    )

    def __init__(self, marked: int = 0) -> None:
        self.members: dict[str, GangMember] = {}
        self.entries: dict[str, None] = {}
        self.names: set[Named] = set()
        self.reported_warnings: set[str] = set()
        self.asked: set[str] = set()
        self.bound = self.minimum = 0
        self.was_complete = self.trivial = False
        self.marked = marked
        self.noticed: float | None = None

    @property
    def size(self) -> int:
        return len(self.members)

    def count(self, old: GangMember | None, new: GangMember | None) -> None:
        """Counts a member that came, changed or left. A gang without a bound member starts from the beginning."""
        self.bound += _on_node(new) - _on_node(old)
        if new is not None and new.bound is not None and new.bound.witness:
            self.was_complete = True
        self.settle(self.minimum)

    def settle(self, minimum: int) -> None:
        """Sets the minimum, and whether the gang is or was complete."""
        self.minimum = minimum
        if not self.bound:
            self.was_complete, self.noticed = False, None
            self.asked.clear()
        elif 0 < minimum <= self.bound:
            self.was_complete, self.noticed = True, None

    def in_order(self) -> dict[str, GangMember]:
        """Sorts the members by priority, then by age. Most are in order since the last call."""
        self.members = dict(sorted(self.members.items(), key=_order))
        return self.members

    def claims(self) -> list[GangDeclaration]:
        """Returns the different declarations of its members."""
        return list({id(each.claim): each.claim for each in self.members.values()}.values())

    def new_warnings(self, claims: Iterable[GangDeclaration]) -> list[str]:
        """Returns warnings about these declarations that were not reported yet: each kind once, and a bounded number of
        kinds. Tenants write the values in a warning, and could make any number of texts."""
        numbers = {claim.minimum for claim in claims}
        differ = _different(numbers) if len(numbers) > 1 else []
        fresh = []
        for text in (*differ, *(text for claim in claims for text in claim.warnings)):
            kind = text.partition(": ")[0].partition(" (")[0][:KIND_LENGTH]
            if len(self.reported_warnings) < MAX_KINDS and kind not in self.reported_warnings:
                self.reported_warnings.add(kind)
                fresh.append(text)
        return fresh


def _different(numbers: set[int]) -> list[str]:
    """Returns a warning about different minimums, with the least and the largest of them if they are many."""
    shown = [str(number) for number in sorted(numbers)]
    text, more = ", ".join(shown), len(shown) - MAX_NUMBERS
    if more > 0:
        text = f"{', '.join(shown[: MAX_NUMBERS - 1])} and {more} more up to {shown[-1]}"
    return [f"members ask for different minimums ({text}); the largest counts"]


class GangRegistry:
    """All gangs. `members` by pod key, `gangs` by gang key. `changed` has those that have to be built again."""

    def __init__(self) -> None:
        self.members: dict[str, GangMember] = {}
        self.gangs: dict[str, GangState] = {}
        self.changed = ChangedGangs(self.gangs)

    def declaration(self, pod: Pod) -> GangDeclaration | None:
        """Returns the gang declaration of the pod; parsed again if labels or annotations changed. Raises Malformed.

        Of a bound member only a slim pod is kept, without annotations, so its declaration is parsed each time: else
        removed annotations would not be seen. That is rare. `add_member` then shares the former declaration if it is
        equal, so the gang is not built again. The spec cannot change while the UID stays the same.
        """
        known = self.members.get(pod.key)
        if known is None:
            return declared_gang(pod)
        before, now = known.pod, pod.metadata
        same = before.metadata.labels == now.labels and before.metadata.annotations == now.annotations
        return known.claim if same and not known.node and before.metadata.uid == now.uid else declared_gang(pod)

    def add_member(self, member: GangMember) -> None:
        """Adds a member, or replaces it. The caller removes it from another gang first."""
        key, gang = member.pod.key, member.claim.key
        old, gang_state = self.members.get(key), self.gangs.get(gang)
        if gang_state is None:
            gang_state = self.gangs[gang] = GangState(self.changed.number)
        sibling = old or next(iter(gang_state.members.values()), None)
        if sibling is not None and sibling.claim == member.claim:
            member = msgspec.structs.replace(member, claim=sibling.claim)  # ten thousand members share one
        gang_state.members[key] = self.members[key] = member
        gang_state.count(old, member)
        ref = member.claim.ref
        if ref is not None:
            self.changed.name(gang, (ref.kind, ref.namespace, ref.name))
        if old is None:
            self.changed.add(self.changed.grown, gang)
        elif _urgent(old, member):
            self.changed.add(self.changed.urgent, gang)
        elif _matters(old, member):
            opened = old.pod.spec.scheduling_gates and not member.pod.spec.scheduling_gates
            # A gate opens once, and edits must not use up that credit.
            self.changed.add(self.changed.grown if opened else self.changed.edited, gang)

    def remove_member(self, key: str) -> None:
        member = self.members.pop(key, None)
        if member is None:
            return
        gang_state = self.gangs[member.claim.key]
        del gang_state.members[key]
        gang_state.count(member, None)
        gang_state.entries.pop(key, None)  # of a trivial gang's pod; the caller removes the job from the queue
        self.changed.add(self.changed.urgent, member.claim.key)

    def remove_gang(self, gang: str) -> None:
        """Drops a gang without members. A later gang of the same name starts from the beginning."""
        self.changed.remove(gang)
        del self.gangs[gang]

    def mark_changed(self, gang: str) -> None:
        """Marks a gang as changed, if it exists."""
        if gang in self.gangs:
            self.changed.add(self.changed.urgent, gang)

    def leaving(self, key: str) -> LeavingMember | None:
        """Returns a bound member that terminates, if other members are bound and the gang was complete; else None. Any
        pod may name a node and a gang, and a gang that never was complete has lost nothing."""
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
        """Returns the pod as last seen; a job keeps it as it was when its gang was last built."""
        member = self.members.get(pod.key)
        return pod if member is None or member.pod.metadata.uid != pod.metadata.uid else member.pod


def _on_node(member: GangMember | None) -> bool:
    return member is not None and member.bound is not None


def _order(named: tuple[str, GangMember]) -> tuple[int, float, str]:
    return named[1].order


def _urgent(old: GangMember, new: GangMember) -> bool:
    """Whether a member was lost, was bound or has started: what users cannot repeat at will."""
    if old.node != new.node or old.pod.metadata.uid != new.pod.metadata.uid:
        return True
    return old.bound is not None and new.bound is not None and old.bound.started != new.bound.started


def _matters(old: GangMember, new: GangMember) -> bool:
    """Whether the gang has to be built again. Not for conditions of a waiting pod, which the scheduler itself writes
    often, nor for changes of a running pod, except of its declaration."""
    if old.claim is not new.claim:
        return True
    if old.bound is not None and new.bound is not None:
        return False
    before, after = old.pod.metadata, new.pod.metadata
    same = before.labels == after.labels and before.annotations == after.annotations and old.pod.spec == new.pod.spec
    return not same or _silent(old.pod.status) != _silent(new.pod.status)


def _silent(status: Any) -> Any:
    return msgspec.structs.replace(status, conditions=[])
