"""How a figure is taken on a machine that is shared with others.

A bench is a function that does a round of work and returns the seconds per call. The seconds are those this thread ran
(`clock`): nothing here waits for anything, and while the machine runs somebody else's process it does not run ours.

What remains is neighbours who fill the caches and slow the cores down. The yardstick is timed just before and just
after each round, so that both see the same neighbours. Disturbance only ever makes things slower: the least disturbed
figure is the best round over the best kernel, and that is the `ratio`. The `median_ratio` compares each round with the
kernel right beside it, and says what an ordinary moment looks like.
"""

import gc
import statistics
import time
from collections.abc import Callable

import msgspec

from kubenexus.base import gc_tuning

Round = Callable[[], float]


def _finest_clock() -> Callable[[], float]:
    """The time this thread ran, where that is counted finely enough; else the time on the wall."""
    steps = []
    for _ in range(200):
        before = time.thread_time()
        steps.append(time.thread_time() - before)
    return time.thread_time if 0 < statistics.median(steps) < 5e-6 else time.perf_counter


clock = _finest_clock()


class Timing(msgspec.Struct, frozen=True):
    """One line of the table. Times are microseconds per call (a decision, a pod, an event)."""

    bench: str
    case: str
    nodes: int
    us: float
    kernel_us: float
    ratio: float
    median_ratio: float
    rounds: int


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line about memory: the whole process in MB, or bytes for each further pod."""

    bench: str
    case: str
    nodes: int
    mb: float = 0.0
    bytes: float = 0.0


class Longest(msgspec.Struct, frozen=True):
    """The longest turn of the loop in milliseconds, and the most memory that a turn took in MB."""

    bench: str
    case: str
    nodes: int
    ms: float
    mb: float


Result = Timing | Memory | Longest


class Pair(msgspec.Struct, frozen=True):
    """One round's seconds per call, and the kernel's beside it."""

    bench: float
    before: float
    after: float

    @property
    def ratio(self) -> float:
        return 2 * self.bench / (self.before + self.after)


def interleaved(round_: Round, kernel: Round, rounds: int, seconds: float) -> list[Pair]:
    """The rounds with the yardstick between them, fewer when they take longer than `seconds`.

    Rounds are short and many: a shared machine is undisturbed for milliseconds at a time, and both the bench and the
    yardstick need to meet such a moment. If only the yardstick did, we go on for a while. The first round is for
    caches to fill, and is not counted.
    """
    round_()
    pairs: list[Pair] = []
    before, started = kernel(), time.perf_counter()
    while True:
        spent, after = round_(), kernel()
        pairs.append(Pair(spent, before, after))
        before = after
        passed = time.perf_counter() - started
        enough = len(pairs) >= rounds or (len(pairs) >= 5 and passed > seconds)
        if enough and (passed > 2 * seconds or not _unlucky(pairs)):
            return pairs


def _unlucky(pairs: list[Pair]) -> bool:
    """Whether the least disturbed figures compare worse than those taken side by side."""
    best = min(pair.bench for pair in pairs) / min(min(pair.before, pair.after) for pair in pairs)
    return best > 1.05 * statistics.median(pair.ratio for pair in pairs)


def timing(bench: str, case: str, nodes: int, pairs: list[Pair]) -> Timing:
    best = min(pair.bench for pair in pairs)
    kernel = min(min(pair.before, pair.after) for pair in pairs)
    return Timing(
        bench=bench,
        case=case,
        nodes=nodes,
        us=round(best * 1e6, 2),
        kernel_us=round(kernel * 1e6, 2),
        ratio=round(best / kernel, 3),
        median_ratio=round(statistics.median(pair.ratio for pair in pairs), 3),
        rounds=len(pairs),
    )


def settle_down() -> None:
    """The garbage collector as in a scheduler that runs. Called before each bench, after its cluster was built."""
    gc.unfreeze()
    gc_tuning.freeze_after_list()
    gc_tuning.freeze_after_import()
