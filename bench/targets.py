"""What was promised, and whether this run kept it. Printed, never an exit code: a time is not a test.

A promise is judged on every case the run has for it. Those that are harder than what was promised are marked: a
crowded cluster, and nodes that report their images.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bench import devices, gangs, gpu_replay, preemption
from bench.measure import Longest, Memory, Result, Timing
from bench.wishes import WISHES

DEVICES = devices.MEMORY
HARDER = ("crowded", "images a node", "volumes")
TERMS_LIMIT = 1.3


class Target(NamedTuple):
    """At most `limit` of what `of` finds in a result (None: this result is not concerned)."""

    what: str
    limit: float
    of: Callable[[Result], float | None]


class Judgement(NamedTuple):
    what: str
    case: str
    limit: float
    found: float

    @property
    def kept(self) -> bool:
        return self.found <= self.limit

    @property
    def harder(self) -> bool:
        """Whether this is a case beyond those the promise was made for."""
        return self.case.endswith(HARDER)


def _ratio(bench: str, nodes: int, beyond: bool = False, case: str = "") -> Callable[[Result], float | None]:
    """Of the pods that look beyond their node, or of the others."""

    def of(result: Result) -> float | None:
        if not isinstance(result, Timing) or (result.bench, result.nodes) != (bench, nodes):
            return None
        mine = (result.case in WISHES) == beyond and (not case or result.case.startswith(case))
        return result.ratio if mine else None

    return of


def _times(bench: str, case: str = "") -> Callable[[Result], float | None]:
    """Times the yardstick of this bench: the same pods with kube-scheduler's plugins alone, of all cases or one."""

    def of(result: Result) -> float | None:
        if not isinstance(result, Timing) or result.bench != bench or case not in ("", result.case):
            return None
        return result.ratio

    return of


def _replay_us(result: Result) -> float | None:
    """The mean of a decision in a replay, on as many nodes as openb has at most."""
    is_small = isinstance(result, Timing) and result.bench == gpu_replay.BENCH and result.nodes <= gpu_replay.FEW_NODES
    return result.us if is_small and isinstance(result, Timing) else None


TARGETS = (
    Target("a decision of a replay, up to 1,213 nodes, us", gpu_replay.LIMIT, _replay_us),
    Target("a decision of a replay, times without demand", 2.0, _times(gpu_replay.BENCH)),
    Target("shipped.warm, times kube-scheduler's plugins", 1.5, _times("shipped.warm")),
    Target("shipped.cold, times kube-scheduler's plugins", 2.5, _times("shipped.cold")),
    Target("shipped.mixed, times kube-scheduler's plugins", 2.0, _times("shipped.mixed")),
    Target("devices.warm, times plain numbers", 1.5, _times("devices.warm")),
    Target("devices.cold, times plain numbers", 1.5, _times("devices.cold")),
    Target("devices.gang, times plain numbers", 2.0, _times("devices.gang")),
    Target("claims.warm, times plain numbers", 3.0, _times("claims.warm", "1 GPU")),
    Target("numa.warm, times without NUMATopology", 1.5, _times("numa.warm")),
    Target("numa.cold, times without NUMATopology", 3.0, _times("numa.cold")),
    Target("numa.gang, times without NUMATopology", 2.0, _times("numa.gang")),
    Target("decide.warm at 5,000 nodes, kernels", 2.0, _ratio("decide.warm", 5_000)),
    Target("decide.cold at 5,000 nodes, kernels", 10.0, _ratio("decide.cold", 5_000)),
    Target("decide.mixed at 5,000 nodes, kernels", 4.0, _ratio("decide.mixed", 5_000)),
    Target("place at 5,000 nodes, kernels", 5.5, _ratio("place", 5_000)),
    Target("decide.warm at 50,000 nodes, kernels", 0.6, _ratio("decide.warm", 50_000)),
    Target("decide.warm at 5,000 nodes, looking beyond, kernels", 4.0, _ratio("decide.warm", 5_000, beyond=True)),
    Target("decide.cold at 5,000 nodes, looking beyond, kernels", 15.0, _ratio("decide.cold", 5_000, beyond=True)),
    Target("a job whose class was just refused, kernels", 0.2, _ratio("queue.refused", 5_000, case="each")),
    Target("queue.fair, times without queues", 3.0, _times("queue.fair")),
    Target("queue.usage, times that of 10 queues", 3.0, _times("queue.usage")),
    Target(
        "commit.gang, us a member", 20.0, lambda r: r.us if isinstance(r, Timing) and r.bench == "commit.gang" else None
    ),
    Target("longest turn, ms", 100.0, lambda r: r.ms if isinstance(r, Longest) and r.bench == "longest turn" else None),
    Target("largest turn, MB", 200.0, lambda r: r.mb if isinstance(r, Longest) and r.bench == "largest turn" else None),
    Target("process, MB", 150.0, lambda r: r.mb if isinstance(r, Memory) and r.mb and r.bench != DEVICES else None),
    Target("devices, MB", 40.0, lambda r: r.mb if isinstance(r, Memory) and r.bench == DEVICES else None),
    Target("each further pod, bytes", 1_500.0, lambda r: r.bytes if isinstance(r, Memory) and r.bytes else None),
)
GROWTH = "decide.cold from 1,000 to 50,000 nodes, exponent"
GROWTH_LIMIT = 0.75
GANG_GROWTH = 0.8
GANG, GANG_MEMBER = 30.0, 2.0  # what a gang may take: kernels, and microseconds for each member
LONGEST = 100.0  # milliseconds that one decision may take, whatever it is about


def judge(results: Iterable[Result]) -> Iterator[Judgement]:
    """Only what this run measured."""
    results = list(results)
    for target in TARGETS:
        for result in results:
            found = target.of(result)
            if found is not None:
                yield Judgement(target.what, result.case, target.limit, found)
    yield from _gangs(results)
    yield from _preemption(results)
    yield from _terms(results)
    yield from _compared(results)
    for case, exponent in growth(results, "decide.cold", 1_000, 50_000).items():
        yield Judgement(GROWTH, case, GROWTH_LIMIT, round(exponent, 3))
    for case, exponent in growth(results, "plan.gang", 1_000, 50_000).items():
        if case not in gangs.GROWING:
            continue
        yield Judgement("plan.gang from 1,000 to 50,000 nodes, exponent", case, GANG_GROWTH, round(exponent, 3))


def _gangs(results: list[Result]) -> Iterator[Judgement]:
    """Plans as they were measured, against a base and an allowance for each member, of members of one kind; of gangs of
    many kinds only how long they may hold the loop."""
    for result in results:
        if not isinstance(result, Timing) or (result.bench, result.nodes) != ("plan.gang", 5_000):
            continue
        if result.case in gangs.ALIKE:
            limit = GANG + GANG_MEMBER * gangs.ALIKE[result.case][0] / result.kernel_us
            what = f"plan.gang at 5,000 nodes, kernels ({GANG:g}, and {GANG_MEMBER:g} us a member)"
            yield Judgement(what, result.case, round(limit, 1), result.ratio)
        elif result.case in gangs.KINDS:
            yield Judgement("plan.gang at 5,000 nodes, many kinds, ms", result.case, LONGEST, round(result.us / 1e3, 2))


def _preemption(results: list[Result]) -> Iterator[Judgement]:
    for result in results:
        if isinstance(result, Timing) and (result.bench, result.nodes) == ("preempt", 5_000):
            limit = preemption.LIMITS[result.case]
            yield Judgement("preempt at 5,000 nodes, kernels", result.case, limit, result.ratio)


def _compared(results: list[Result]) -> Iterator[Judgement]:
    """Gangs against gangs: a refusal against the plan with one node more, a rack against anywhere."""
    times = {r.case: r.us for r in results if isinstance(r, Timing) and (r.bench, r.nodes) == ("plan.gang", 5_000)}
    for case, other, limit in (("refuse-1000", "tight-1000", 1.5), ("1000-rack", "1000", 2.0)):
        if case in times and other in times:
            yield Judgement(f"plan.gang, times that of {other}", case, limit, round(times[case] / times[other], 2))


def _terms(results: list[Result]) -> Iterator[Judgement]:
    """How much more memory the same number of pods takes when all have affinity terms."""
    sizes = {r.case: r.mb for r in results if isinstance(r, Memory) and r.mb and r.bench != DEVICES}
    for case, size in sizes.items():
        plain, _, wish = case.partition(", ")
        if wish in WISHES and sizes.get(plain):
            yield Judgement(
                "process with affinity terms, times without", case, TERMS_LIMIT, round(size / sizes[plain], 2)
            )


def growth(results: Iterable[Result], bench: str, small: int, large: int) -> dict[str, float]:
    """For each case measured at both sizes: x in time ~ nodes**x."""
    times = {(r.case, r.nodes): r.us for r in results if isinstance(r, Timing) and r.bench == bench}
    return {
        case: math.log(times[case, large] / us) / math.log(large / small)
        for (case, nodes), us in times.items()
        if nodes == small and (case, large) in times
    }
