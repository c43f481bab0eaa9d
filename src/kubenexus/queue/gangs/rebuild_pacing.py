"""How often a gang is formed again that does nothing but grow, or whose members are edited.

To form it costs in proportion to its members (4 us each, more when it is tried again for it). Members that come one by
one would cost as much as the square of their number: 10,000 of them minutes. So a gang is formed at once when it has
grown by a thirty-second, and else while there is credit, which all gangs share. So it is with labels and specs that are
changed, at most by a patch a member, and with a credit of their own: who edits a gang must not hold up one that grows.
"""

from typing import Final

GROWTH: Final = 32
CREDIT: Final = 20_000  # members that may be looked at without more ado
PER_SECOND: Final = 10_000  # that come to the credit


class RebuildPacing:
    """Asked by the assembly, which tells the time."""

    def __init__(self) -> None:
        self._full_at = 0.0  # when the credit will be whole again

    def allows(self, members: int, new: int, now: float) -> bool:
        """Whether a gang of so many members, so many of them new or edited, may be formed now. If so, it is
        paid for."""
        if new * GROWTH >= members:
            return True
        if self.due(members) > now:
            return False
        self._full_at = max(self._full_at, now) + members / PER_SECOND
        return True

    def due(self, members: int) -> float:
        """When there will be credit for so many. A gang that is larger than any credit waits until it is whole."""
        return self._full_at - max(CREDIT - members, 0) / PER_SECOND
