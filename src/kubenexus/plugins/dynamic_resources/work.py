"""`Work`: what one attempt may still spend on looking at devices, and `SelectorAnswers`, which spend it.

The unit is the step: a device looked at in a search, about a microsecond. A pod class whose selectors or constraints
tell all nodes apart would cost seconds at 5,000 nodes. So an attempt looks at as many nodes as its steps last, and the
next one goes on from there.

The first search of an attempt may take all steps, so that each search ends in some attempt. A later one that needs more
than is left is given up, and is the first of the next attempt.
"""

from typing import Final

from kubenexus.api.cel.selector import DeviceSelector
from kubenexus.state.claims.device import PoolDevice, cel_device

MAX_STEPS: Final = 20_000  # of one attempt, and of one search
STATE: Final = 40  # for a state of a node, whatever its devices
DEVICE: Final = 2  # for each of them
ROW: Final = 5  # for each row whose devices changed
ROWS: Final = 3  # of other plugins that cost as much as a step


class WorkMeter:
    """The steps that were spent since they were last taken, for all claims of a profile."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps = 0

    def add(self, steps: int) -> None:
        self._steps += steps

    def take(self) -> int:
        """Returns the steps, and begins again with none."""
        taken, self._steps = self._steps, 0
        return taken


class Work:
    """The steps that are left. `spent` were spent on the rows before, in the same turn; they count up to a half, so
    that an attempt gets on although the devices of all rows changed."""

    __slots__ = ("_begin", "_meter", "left", "searched")

    def __init__(self, meter: WorkMeter | None = None, spent: int = 0) -> None:
        self._begin = self.left = MAX_STEPS - min(spent, MAX_STEPS // 2)
        self._meter = meter
        self.searched = False  # whether a search was begun

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self._meter is not None:
            self._meter.add(steps)

    def begin_search(self) -> "Work":
        """Returns the steps of one search: all if it is the first, else what is left."""
        own = Work()
        if self.searched:
            own.left = own._begin = min(own.left, self.left)
        self.searched = True
        return own

    @property
    def spent(self) -> int:
        return self._begin - self.left

    @property
    def cut(self) -> bool:
        """Whether there were fewer steps than a search may take."""
        return self._begin < MAX_STEPS

    @property
    def halved(self) -> bool:
        """Whether half is spent. Counting stops there: the other half is for rows that it does not decide."""
        return self.left <= self._begin // 2

    @property
    def ended(self) -> bool:
        return self.left <= 0


class SelectorAnswers:
    """What selectors say about the devices of one node. Devices that a selector cannot tell apart cost once."""

    __slots__ = ("_known", "_work")

    def __init__(self, work: Work) -> None:
        self._work = work
        self._known: dict[tuple[DeviceSelector, object], bool | str] = {}

    def matches(self, selector: DeviceSelector, device: PoolDevice, driver: str) -> bool | str:
        """Returns whether a device matches, or the error of the evaluation."""
        seen = cel_device(device, driver, selector.reads)
        key = (selector, seen.problem or selector.shape(seen))
        known = self._known.get(key)
        if known is None:
            self._work.spend(selector.steps)
            known = self._known[key] = selector.matches(seen)
        return known
