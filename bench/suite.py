"""Which benches there are, on which clusters, and the loop that runs them."""

import fnmatch
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench import (
    claims,
    decisions,
    decoding,
    devices,
    events,
    fair_queues,
    gangs,
    gpu_replay,
    longest_turn,
    memory,
    numa,
    preemption,
    queue,
    shipped,
)
from bench.cluster import CROWDED, PAGE, PLAIN, Cluster, Kind
from bench.kernel import Kernel
from bench.measure import Pair, Result, Round, interleaved, settle_down, timing
from bench.objects import ZONES, Template
from bench.wishes import WISHES

SIZES = (1_000, 5_000, 15_000, 50_000)
# Thirty pods on each node: beyond this the filling takes minutes and gigabytes, and tells nothing new.
MOST_CROWDED = 5_000
# Whose yardstick a bench is compared with that has nothing to do with nodes.
USUAL = 5_000

PREFERRED = "preferred-affinity"
FEW = 100  # pods of a kind that run before the first new class of it is looked at

BASIC = Template()
AFFINE = Template(zones=ZONES[:2])


class Plan(NamedTuple):
    """What a run is to do."""

    sizes: tuple[int, ...] = SIZES
    only: str = ""
    rounds: int = 60  # of each bench, or what `seconds` allow
    seconds: float = 2.0
    memory: tuple[int, int, int] | None = (5_000, 50_000, 50_000)  # nodes, pods, further pods
    waiting: int = queue.WAITING
    replayed: int = 1_500  # jobs of a drawn replay
    entries: int | None = None  # of large objects, at most; None: as many as an API server accepts

    def wants(self, bench: str, case: str) -> bool:
        """Whether the pattern, which may have wildcards, is found in `bench/case`."""
        return fnmatch.fnmatchcase(f"{bench}/{case}", f"*{self.only}*")


class Entry(NamedTuple):
    """A bench on a cluster: `make` is given the cluster and the calls of a round, which last a few milliseconds."""

    bench: str
    case: str
    calls: int
    make: Callable[[Cluster, int], Round]


ON_PLAIN = (
    Entry("decide.warm", "basic", 50, lambda cluster, calls: decisions.warm(cluster, BASIC, calls)),
    Entry("decide.warm", "node-affinity", 50, lambda cluster, calls: decisions.warm(cluster, AFFINE, calls)),
    Entry("decide.cold", "basic", 16, lambda cluster, calls: decisions.cold(cluster, False, calls)),
    Entry("decide.cold", "node-affinity", 16, lambda cluster, calls: decisions.cold(cluster, True, calls)),
    Entry("decide.mixed", "basic", 20, lambda cluster, calls: decisions.mixed(cluster, False, calls)),
    Entry("decide.mixed", "node-affinity", 20, lambda cluster, calls: decisions.mixed(cluster, True, calls)),
    Entry("place", "basic", 50, lambda cluster, calls: decisions.place(cluster, BASIC, calls)),
    Entry("place", "node-affinity", 50, lambda cluster, calls: decisions.place(cluster, AFFINE, calls)),
    Entry("place", "100 classes", 20, lambda cluster, calls: decisions.place_mixed(cluster, False, calls)),
    *(Entry("ledger.refresh", case, 50, make) for case, make in {**events.ABOUT_PODS, **events.ABOUT_NODES}.items()),
)
ON_CROWDED = (
    Entry("decide.warm", "crowded", 50, lambda cluster, calls: decisions.warm(cluster, BASIC, calls)),
    Entry("decide.cold", "crowded", 16, lambda cluster, calls: decisions.cold(cluster, False, calls)),
    Entry("decide.mixed", "crowded", 20, lambda cluster, calls: decisions.mixed(cluster, False, calls)),
    Entry("place", "crowded", 50, lambda cluster, calls: decisions.place(cluster, BASIC, calls)),
    *(Entry("ledger.refresh", f"{case}, crowded", 50, make) for case, make in events.ABOUT_NODES.items()),
)


def _wishing(wish: str, nodes: int) -> tuple[Entry, ...]:
    """Warm and cold for pods that look beyond their node; cold with some of their kind running already. Not so many
    that those who avoid each other find no node."""
    template = Template(wish=wish)

    def cold(cluster: Cluster, calls: int) -> Round:
        decisions.warm(cluster, template, min(FEW, nodes // 4))()
        return decisions.cold(cluster, False, calls, wish)

    return (
        Entry(
            "decide.warm", wish, min(50, nodes // 4), lambda cluster, calls: decisions.warm(cluster, template, calls)
        ),
        Entry("decide.cold", wish, 16, cold),
    )


def run(plan: Plan) -> Iterator[Result]:
    """Results as they come."""
    settle_down()
    for nodes in plan.sizes:
        yield from _on_cluster(PLAIN, nodes, ON_PLAIN, plan)
        if nodes <= MOST_CROWDED:
            yield from _on_cluster(CROWDED, nodes, ON_CROWDED, plan)
            for wish in WISHES:
                yield from _on_cluster(PLAIN, nodes, _wishing(wish, nodes), plan)
        yield from _gangs(nodes, plan)
        if nodes <= MOST_CROWDED:
            yield from _preemption(nodes, plan)
            yield from _pairs(nodes, plan)
    if plan.wants(gpu_replay.BENCH, gpu_replay.DRAWN):
        settle_down()
        yield from gpu_replay.rows(tuple(size for size in plan.sizes if size <= MOST_CROWDED), plan.replayed)
    yield from _queue(plan)
    yield from _decode(plan)
    yield from _longest(plan)
    yield from _memory(plan)


def _on_cluster(kind: Kind, nodes: int, entries: tuple[Entry, ...], plan: Plan) -> Iterator[Result]:
    wanted = [entry for entry in entries if plan.wants(entry.bench, entry.case)]
    if not wanted:
        return
    cluster, kernel = Cluster(kind, nodes), Kernel(nodes)
    for entry in wanted:
        round_ = entry.make(cluster, entry.calls)
        settle_down()
        yield timing(entry.bench, entry.case, nodes, _rounds(round_, kernel, plan))
        cluster.drain()


def _rounds(round_: Round, kernel: Kernel, plan: Plan) -> list[Pair]:
    return interleaved(round_, kernel.seconds, plan.rounds, plan.seconds)


def _gangs(nodes: int, plan: Plan) -> Iterator[Result]:
    kernel = Kernel(nodes)
    for case, (_, make) in gangs.CASES.items():
        if plan.wants("plan.gang", case):
            planned = make(nodes)
            if planned is None:
                continue
            settle_down()
            yield timing("plan.gang", case, nodes, _rounds(planned, kernel, plan))
    for case, make in gangs.COMMITS.items():
        if plan.wants("commit.gang", case):
            round_ = make(nodes)
            settle_down()
            yield timing("commit.gang", case, nodes, _rounds(round_, kernel, plan))


def _preemption(nodes: int, plan: Plan) -> Iterator[Result]:
    kernel = Kernel(nodes)
    for case, make in preemption.CASES.items():
        if plan.wants("preempt", case):
            round_ = make(nodes)
            settle_down()
            yield timing("preempt", case, nodes, _rounds(round_, kernel, plan))


def _pairs(nodes: int, plan: Plan) -> Iterator[Result]:
    """Each beside its yardstick: the same pods with kube-scheduler's plugins alone, GPUs as plain numbers."""
    parts = (shipped, devices, claims, numa)
    for (bench, case), make in {key: make for part in parts for key, make in part.pairs(nodes).items()}.items():
        if plan.wants(bench, case):
            own, plain = make()
            settle_down()
            yield timing(bench, case, nodes, interleaved(own, plain, plan.rounds, plan.seconds))
    if plan.memory is not None and plan.wants(devices.MEMORY, ""):
        yield devices.memory(nodes)


def _queue(plan: Plan) -> Iterator[Result]:
    nodes = USUAL if USUAL in plan.sizes else plan.sizes[0]
    kernel = Kernel(nodes)
    for (bench, case), (calls, make) in queue.CASES.items():
        if plan.wants(bench, case):
            round_ = make(calls, plan.waiting)
            settle_down()
            yield timing(bench, case, nodes, _rounds(round_, kernel, plan))
    for (bench, case), pair in fair_queues.CASES.items():
        if plan.wants(bench, case):
            own, plain = pair(plan.waiting)
            settle_down()
            yield timing(bench, case, nodes, interleaved(own, plain, plan.rounds, plan.seconds))


def _decode(plan: Plan) -> Iterator[Result]:
    nodes = USUAL if USUAL in plan.sizes else plan.sizes[0]
    kernel = Kernel(nodes)
    rounds = {"pod": decoding.one_by_one(100), f"list of {PAGE}": decoding.page()}
    settle_down()
    for case, round_ in rounds.items():
        if plan.wants("decode", case):
            yield timing("decode", case, nodes, _rounds(round_, kernel, plan))


def _longest(plan: Plan) -> Iterator[Result]:
    if plan.wants(longest_turn.BENCH, ""):
        yield from longest_turn.rows(USUAL if USUAL in plan.sizes else plan.sizes[0], plan.entries)


def _memory(plan: Plan) -> Iterator[Result]:
    """On scheduler_perf's bare nodes, and on nodes with images, as kubelets report them."""
    if plan.memory is None:
        return
    for images, case in ((0, "plain"), (CROWDED.nodes.images, "images")):
        if plan.wants("memory", case):
            yield from memory.measure(*plan.memory, images)
    if plan.wants("memory", PREFERRED):
        yield from memory.measure(*plan.memory, wish=PREFERRED)
