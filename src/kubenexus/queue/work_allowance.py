"""How much of the queue's own work one turn of the event loop may do: estimated in units, not timed."""

from typing import Final

# Units that work which cannot wait may take beyond the allowance: 20 ms. After that it does without questions.
MAX_DEBT: Final = 500


class WorkAllowance:
    """Units of work that are left in this turn of the event loop; one unit is 10 to 40 us.

    A unit is a question to a hint about an ordinary pod (`queue.question_cost`), or a job class that is woken or moved.
    Work that cannot be divided may exceed the allowance. That debt is taken from the allowances of the next turns, so
    that on average no turn does more than its part.
    """

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def __bool__(self) -> bool:
        return self.left > 0

    @property
    def overdrawn(self) -> bool:
        """Whether even work that cannot wait has to do without questions."""
        return self.left <= -MAX_DEBT

    def renew(self) -> None:
        """Called once in each turn of the loop."""
        self.left = min(self.most, self.left + self.most)

    def spend(self, amount: int = 1) -> None:
        self.left -= amount
