"""Members of groups that have to be worked on again because their group changed, in portions."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Member = TypeVar("Member", bound=Hashable)


class ChangedGroups(Generic[Member]):
    """Members by group: jobs of namespaces, pods of nodes. A change of a group concerns all its members; `next` returns
    them one by one, so that a group with 100,000 of them does not stall the loop.

    Groups take turns, a member each, in the order of their changes. A group that changes again keeps its turn and goes
    on with its oldest member. So no tenant can keep the changes of others from being applied.

    Each member has the number of the change after which it was last returned, or came. Members are sorted by that
    number, so all methods take O(1).
    """

    def __init__(self) -> None:
        self._members: dict[str, OrderedDict[Member, int]] = {}
        self._changed: OrderedDict[str, int] = OrderedDict()  # by group: the number of its last change
        self._number = 0

    def __contains__(self, group: str) -> bool:
        """Whether a group has members."""
        return group in self._members

    def counts(self) -> list[tuple[str, int]]:
        """Returns the number of members of each group."""
        return [(group, len(members)) for group, members in self._members.items()]

    def add(self, group: str, member: Member) -> None:
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = OrderedDict()
        members[member] = self._number
        members.move_to_end(member)

    def remove(self, group: str, member: Member) -> None:
        members = self._members.get(group)
        if members is not None:
            members.pop(member, None)
            if not members:
                del self._members[group]

    def changed(self, group: str) -> None:
        """Notes that all members of a group have to be returned."""
        if group in self._members:
            self._number += 1
            self._changed[group] = self._number

    def changed_all(self) -> None:
        """Notes a change of each group."""
        for group in self._members:
            self.changed(group)

    def __bool__(self) -> bool:
        """Whether `next` may return a member."""
        return bool(self._changed)

    def next(self) -> Member | None:
        """Returns a member that has not been returned since its group changed, or None."""
        while self._changed:
            group, number = next(iter(self._changed.items()))
            members = self._members.get(group)
            first = None if members is None else next(iter(members))
            if members is None or first is None or members[first] >= number:
                del self._changed[group]
                continue
            members[first] = self._number
            members.move_to_end(first)
            self._changed.move_to_end(group)
            return first
        return None
