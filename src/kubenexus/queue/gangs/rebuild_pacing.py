"""Paces how often a gang is built again while it grows, or while its members are edited.

Building takes time by the number of members (4 us each, more with the attempt that follows). Members that come one by
one would cost the square of their number: minutes for 10,000. So a gang is built at once when it has grown by a
thirty-second (`changed_gangs`), and else while there is credit, which all gangs share. Edits of labels and specs have
a credit of their own: edits of one gang must not delay the growth of another. So have members that are lost or bound,
and updates of the objects that gangs name.
"""

from typing import Final

GROWTH: Final = 32
CREDIT: Final = 20_000  # members that may be built at once
PER_SECOND: Final = 10_000  # that are added to the credit


class RebuildPacing:
    """One credit, in members. The caller passes the time in."""

    def __init__(self) -> None:
        self._full_at = 0.0  # when the credit will be whole again

    def allows(self, members: int, now: float) -> bool:
        """Whether a gang of so many members may be built now. If so the credit is reduced."""
        if self.due(members) > now:
            return False
        self._full_at = max(self._full_at, now) + members / PER_SECOND
        return True

    def due(self, members: int) -> float:
        """Returns when there will be credit for so many. A gang larger than the full credit waits until it is full."""
        return self._full_at - max(CREDIT - members, 0) / PER_SECOND
