"""The cluster and its queue as plain numbers, which a simulation of starts can play forward without any object.

A kind is what one pod asks for, and the rows that it may go to. Rows are nodes. Amounts are by resource, and GPUs also
by card, so that parts of cards and whole ones are distinct.
"""

import math
from typing import Any, NamedTuple

import msgspec

NO_LEVEL = -1
Uses = tuple[tuple[int, int], ...]  # numbers of limits (`QueueModel.limits`), and the amount of each


class TierUse(NamedTuple):
    """What a job takes of the limits of a hardware tier (by its code) if it is on nodes of this tier."""

    tier: int
    uses: Uses


class Members(msgspec.Struct, frozen=True, gc=False):
    """Pods of one kind: `need` must start together, `most` of them wait."""

    kind: int
    need: int = 1
    most: int = 1


class ModelJob(msgspec.Struct, frozen=True, gc=False):
    """A job that waits, or (`at` in the future) is expected to come.

    `order`: less comes first. `believed` are the seconds that the scheduler expects it to run, infinite if that is not
    known; it goes ahead of others by these, not by the seconds that a simulation draws. `level` is in
    `QueueModel.levels`, where all members have to share one domain. It starts only within the limits of `uses`, and on
    nodes of a tier only within those of `tiers`.
    """

    members: tuple[Members, ...]
    order: tuple[float, ...]
    believed: float = math.inf
    level: int = NO_LEVEL
    at: float = 0.0
    uses: Uses = ()
    tiers: tuple[TierUse, ...] = ()


class RunningPod(msgspec.Struct, frozen=True, gc=False):
    """A pod on a row, what it frees there, and the thousandths that it holds of the row's cards."""

    row: int
    amounts: Any  # int64, by resource
    cards: tuple[tuple[int, int], ...] = ()


class RunningJob(msgspec.Struct, frozen=True, gc=False):
    """Pods that end together. `believed` are the seconds that the scheduler expects them to run from `since` on;
    infinite if that is not known: then they never end in a simulation. `uses` is given back at their end."""

    pods: tuple[RunningPod, ...]
    since: float
    believed: float = math.inf
    uses: Uses = ()

    def believed_end(self, now: float) -> float:
        """Returns when they are expected to end: one that has outlived its runtime takes twice as long, then four
        times, as in `state.runtimes.expected_ends`."""
        return believed_end(self.since, self.believed, now)


class QueueModel(msgspec.Struct, frozen=True, gc=False):
    """`free[n, r]` is what row n has left of resource r, `cards[n, c]` the free thousandths of its cards. Of kind k a
    pod takes `demand[k, r]`, and `card_share[k]` of each of `card_number[k]` cards. `open[k, n]`: it may go there.
    `levels` are the codes of rows by level, 0 for no domain. `limits` is what is left of each limit of a queue, and
    `tiers` the hardware tier of each row."""

    free: Any
    demand: Any
    open: Any
    cards: Any
    card_number: Any
    card_share: Any
    jobs: tuple[ModelJob, ...]
    running: tuple[RunningJob, ...]
    levels: tuple[Any, ...] = ()
    limits: tuple[int, ...] = ()
    tiers: Any = None


def believed_end(since: float, seconds: float, now: float) -> float:
    """Returns `since` + `seconds`, doubled until it is after `now`."""
    seconds = max(seconds, 1.0)
    if now - since < seconds or seconds == math.inf:
        return since + seconds
    return since + seconds * 2.0 ** (math.floor(math.log2((now - since) / seconds)) + 1)
