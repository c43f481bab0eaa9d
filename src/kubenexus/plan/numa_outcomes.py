"""What placed pods get of NUMA nodes, for metrics."""

from collections.abc import Iterator
from typing import NamedTuple

from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plugins.numa.points import LEAST_FITTING
from kubenexus.plugins.numa.request import NAME, numa_request
from kubenexus.state.nodes import NodeColumns

SINGLE, SEVERAL, NO_REPORT = "single_numa", "cross_numa", "no_numa_info"


class NumaOutcome(NamedTuple):
    """One pod: its own policy, what it gets, and the points of its node (None without a report)."""

    policy: str
    outcome: str
    score: int | None = None


def numa_outcomes(decision: Decision, job: Job, columns: NodeColumns) -> Iterator[NumaOutcome]:
    """Yields the outcome of a single pod that asks something of NUMA nodes, if any node reports some."""
    if not columns.numa.any or len(job.pods) != 1 or len(decision.placements) != 1:
        return
    (pod,), (placement,) = job.pods, decision.placements
    request = numa_request(pod)
    if request is None:
        return
    if columns.numa.of_row(columns.row_of.get(placement.node, -1)) is None:
        yield NumaOutcome(request.policy, NO_REPORT)
        return
    score = next((int(each.raw) for each in placement.scores if each.plugin == NAME), None)
    if score is not None:
        yield NumaOutcome(request.policy, SINGLE if score >= LEAST_FITTING else SEVERAL, score)
