"""How much work one draw of the simulation may take: counted, so that equal queues have equal answers.

A unit is about a microsecond. What a draw costs depends on the queue: a job that does not fit is looked up against all
ends that are known, at each step.
"""

from typing import Final

PASS: Final = 20  # a look at all groups, and one for each eight groups more
END: Final = 2  # of a pod, when the start of the first job is looked for
TRIAL: Final = 100  # of the rows of the first job, and more by what has ended and by rows
START: Final = 60  # of a job, and more by rows
ROW: Final = 20  # on which something starts or ends, and one for each eight kinds more
_PER_UNIT: Final = 32  # numbers of an array that take one unit


class SimulationWork:
    """The work that was spent, of so much at most."""

    def __init__(self, most: float) -> None:
        self._most = most
        self.spent = 0

    @property
    def is_done(self) -> bool:
        return self.spent >= self._most

    def spend(self, units: int, numbers: int = 0) -> None:
        """Counts work, and the numbers of the arrays that it reads."""
        self.spent += units + numbers // _PER_UNIT
