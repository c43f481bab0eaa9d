"""The benches of planning gangs: whole jobs on racks of a hundred nodes.

Every gang is new, and is committed and taken back between two plans, so that each plan finds rows that have changed.
Members are those of an indexed job: a label has each one's number, and the feed has them share what they are made of.
"""

import itertools
from collections.abc import Callable

from bench.cluster import BenchError
from bench.measure import Round, clock
from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, TopologyRequest
from kubenexus.app.watch.object_cache import ObjectCache, with_shared_parts
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit
from kubenexus.plan.gang import gang_limits
from kubenexus.plugins import profile_plugins
from kubenexus.state.ledger import Ledger
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger

RACK_OF = 100
INDEX = "batch.kubernetes.io/job-completion-index"
RACK = "topology.kubernetes.io/rack"
EACH = 11  # members that a node holds
IN_A_RACK = TopologyRequest(required="rack")
MANY = 1000
_numbers = itertools.count()


class Gangs:
    """A cluster, and gangs of one size on it, `large` of them of another kind or of `kinds` in turn. `apart`: they have
    no numbers and share nothing. `busy` nodes of each rack are full; of the first rack one less is, if the gang is to
    find its place there."""

    def __init__(
        self,
        nodes: int,
        members: int,
        topology: TopologyRequest = NO_TOPOLOGY_REQUEST,
        *,
        large: int = 0,
        kinds: int = 1,
        apart: bool = False,
        busy: int = 0,
        spare: int = 0,
    ) -> None:
        self.ledger = _cluster(nodes, busy, spare)
        self.members, self.large, self.apart, self.topology = members, large, apart, topology
        self.kinds = kinds
        self.planner, self._cache = Planner(profile_plugins()), ObjectCache()

    def plan(self) -> float:
        job = self.job()
        snapshot = self.ledger.snapshot()
        start = clock()
        decision = self.planner.decide(job, snapshot, 0.0)
        spent = clock() - start
        if decision.placed:
            self._commit(decision, job)
        return spent

    def commit(self) -> float:
        """Seconds for each member."""
        job = self.job()
        decision = self.planner.decide(job, self.ledger.snapshot(), 0.0)
        return self._commit(decision, job) / self.members

    def _commit(self, decision: Decision, job: Job) -> float:
        start = clock()
        commit(decision, job, self.ledger, 0.0)
        spent = clock() - start
        for pod in job.pods:
            self.ledger.forget(pod.key)
        return spent

    def job(self) -> Job:
        name = f"gang-{next(_numbers)}"
        pods = [self._member(f"{name}-{i}", i) for i in range(self.members)]
        return Job(f"default/{name}", tuple(pods), self.members, self.topology)

    def _member(self, name: str, index: int) -> Pod:
        cpu, labels = "400m" if index < self.large else f"{350 - index % self.kinds}m", {"app": "gang"}
        if self.apart:
            return a_pod(name, cpu=cpu, memory="1Gi", labels=labels)
        pod = a_pod(name, cpu=cpu, memory="1Gi", labels={**labels, INDEX: str(index)}, phase="Pending")
        return with_shared_parts(pod, self._cache.stripped_pod(pod))


def _cluster(nodes: int, busy: int, spare: int) -> Ledger:
    racks = {i: f"r{i // RACK_OF}" for i in range(nodes)}
    full = [i for i in range(nodes) if i % RACK_OF < busy and i >= spare]
    return a_ledger(
        [a_node(f"n{i}", cpu=4, zone=f"z{i // RACK_OF % 3}", labels={RACK: rack}) for i, rack in racks.items()],
        [a_pod(f"full-{i}", cpu=4, node=f"n{i}") for i in full],
    )


def most_kinds(nodes: int) -> int:
    """How many kinds of such members one gang may have there."""
    gangs = Gangs(1, 1)
    cache = gangs.planner.class_cache
    signature = cache.signature(gangs.job().pods[0], gangs.ledger.nodes)
    return gang_limits.max_member_classes(signature, nodes, cache.profile_plugins.per_node)


def _of_kinds(nodes: int, kinds: int) -> Round | None:
    """A thousand members of so many kinds; None where that are more than may be."""
    return None if kinds > most_kinds(nodes) else _judged(Gangs(nodes, MANY, kinds=kinds), True)


def _judged(gangs: Gangs, placed: bool) -> Round:
    """The bench, if it does what it claims to."""
    decision = gangs.planner.decide(gangs.job(), gangs.ledger.snapshot(), 0.0)
    if decision.placed != placed:
        raise BenchError(f"a gang of {gangs.members}: {decision.sentence()}")
    return gangs.plan


BUSY = RACK_OF - 1000 // EACH  # so that a rack lacks one node for a thousand
# How many members, and how a bench of so many nodes is made; None: there is none of so many.
Cases = dict[str, tuple[int, Callable[[int], Round | None]]]
ALIKE: Cases = {
    "8": (8, lambda nodes: _judged(Gangs(nodes, 8), True)),
    "100": (100, lambda nodes: _judged(Gangs(nodes, 100), True)),
    "1000": (1000, lambda nodes: _judged(Gangs(nodes, 1000), True)),
    "1000-apart": (1000, lambda nodes: _judged(Gangs(nodes, 1000, apart=True), True)),
    "1000-rack": (1000, lambda nodes: _judged(Gangs(nodes, 1000, IN_A_RACK), True)),
    "tight-1000": (1000, lambda nodes: _judged(Gangs(nodes, 1000, IN_A_RACK, busy=BUSY, spare=1), True)),
    "refuse-1000": (1000, lambda nodes: _judged(Gangs(nodes, 1000, IN_A_RACK, busy=BUSY), False)),
}
MIXED: Cases = {
    "1+99": (100, lambda nodes: _judged(Gangs(nodes, 100, large=1), True)),
    "500+500": (1000, lambda nodes: _judged(Gangs(nodes, 1000, large=500), True)),
}
KINDS: Cases = {
    "10-kinds": (MANY, lambda nodes: _of_kinds(nodes, 10)),
    "50-kinds": (MANY, lambda nodes: _of_kinds(nodes, 50)),
    "most-kinds": (MANY, lambda nodes: _of_kinds(nodes, most_kinds(nodes))),
    "too-many-kinds": (MANY, lambda nodes: _judged(Gangs(nodes, MANY, kinds=most_kinds(nodes) + 1), False)),
}
CASES: Cases = {**ALIKE, **MIXED, **KINDS}
GROWING: Cases = {**ALIKE, **MIXED, "10-kinds": KINDS["10-kinds"]}  # the same gangs however many nodes there are
COMMITS: dict[str, Callable[[int], Round]] = {
    "100": lambda nodes: Gangs(nodes, 100).commit,
    "1000": lambda nodes: Gangs(nodes, 1000).commit,
}
