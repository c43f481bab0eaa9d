"""The benches of deciding and placing. Each makes a function that does one round and returns seconds per call."""

import itertools

from bench.cluster import Cluster, decide_and_commit, mixture, never_seen, placed
from bench.measure import Round, clock
from bench.objects import Template
from kubenexus.api.core import Pod
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner, commit

CLASSES = 100
DRAIN = 500  # so many pods are placed before they are all taken back
_NOW = 0.0


class Rounds:
    """Pods of some templates in turn, on one cluster, with one planner that lives as long as the bench."""

    def __init__(self, cluster: Cluster, templates: list[Template], calls: int) -> None:
        self.cluster = cluster
        self.planner: Planner = cluster.planner()
        self.templates = templates
        self.calls = calls
        self._turns = itertools.cycle(templates)
        self._lap()

    def decide(self) -> float:
        """Each decision is applied before the next; only deciding is timed."""
        spent = 0.0
        for job in map(Job.of, self._next()):
            spent += decide_and_commit(self.planner, job, self.cluster.ledger, _NOW)
            self.cluster.placed.append(job)
        return spent / self.calls

    def place(self) -> float:
        """From a decoded pod to an assumed one, all of it timed."""
        ledger, decide = self.cluster.ledger, self.planner.decide
        pods = self._next()
        start = clock()
        for pod in pods:
            job = Job.of(pod)
            commit(decide(job, ledger.snapshot(), _NOW), job, ledger, _NOW)
        spent = clock() - start
        self.cluster.placed.extend(map(Job.of, pods))
        return spent / self.calls

    def _next(self) -> list[Pod]:
        if len(self.cluster.placed) >= DRAIN:
            self.cluster.drain()
            self._lap()
        return self.cluster.pods(itertools.islice(self._turns, self.calls))

    def _lap(self) -> None:
        """One pod of each template is placed, not timed: after it every class is as far behind as it always will be,
        by the placements of the others and not by what was taken back."""
        for job in map(Job.of, self.cluster.pods(self.templates)):
            ledger = self.cluster.ledger
            commit(placed(self.planner.decide(job, ledger.snapshot(), _NOW)), job, ledger, _NOW)
            self.cluster.placed.append(job)


def warm(cluster: Cluster, template: Template, calls: int) -> Round:
    """The same class again and again."""
    return Rounds(cluster, [template], calls).decide


def mixed(cluster: Cluster, zones: bool, calls: int) -> Round:
    """A hundred classes in turn: each finds a hundred rows changed since it last looked."""
    return Rounds(cluster, mixture(CLASSES, zones=zones), calls).decide


def place(cluster: Cluster, template: Template, calls: int) -> Round:
    """Pods of one workload."""
    return Rounds(cluster, [template], calls).place


def place_mixed(cluster: Cluster, zones: bool, calls: int) -> Round:
    """Pods of a hundred workloads in turn."""
    return Rounds(cluster, mixture(CLASSES, zones=zones), calls).place


def cold(cluster: Cluster, zones: bool, calls: int, wish: str = "") -> Round:
    """A class that was never seen before, on a cluster where nothing else changed.

    The planner keeps the tables of earlier classes until its cache is full, as it would in life.
    """
    planner, templates = cluster.planner(), never_seen(zones, wish)

    def round_() -> float:
        jobs = [Job.of(pod) for pod in cluster.pods(itertools.islice(templates, calls))]
        snapshot, spent = cluster.ledger.snapshot(), 0.0
        for job in jobs:
            start = clock()
            decision = planner.decide(job, snapshot, _NOW)
            spent += clock() - start
            placed(decision)
        return spent / calls

    return round_
