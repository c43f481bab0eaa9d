"""Scores that depend on the job's other members are computed for jobs that have some, and only for those."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import SINGLE_POD_VIEW, Job, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import NodeVerdict
from kubenexus.plan.decide import Planner
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.harness import a_ledger, run
from tests.framework.rules import Rule, lineup_with


class NearMembers(Rule):
    """100 where a member of the job is. It does not concern pods without the label `near`."""

    name = "NearMembers"
    depends = Depends.JOB
    filter_depends = Depends.NODE
    normalize = AS_IS
    default_score = 7
    scored = filtered = 0

    def __init__(self, args: Mapping[str, Any]) -> None:
        type(self).scored = type(self).filtered = 0

    def sign(self, pod: Pod, nodes: NodeColumns) -> Any:
        return True if "near" in pod.metadata.labels else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        type(self).filtered += 1

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
        type(self).scored += 1
        return np.where(np.isin(nodes.table_rows(), job.placed), 100, 0)


NODES = [a_node(f"n{i}") for i in range(4)]
NEAR, FAR = a_pod("a", labels={"near": "yes"}), a_pod("b")


def points(cache: ClassCache, columns: NodeColumns, pod: Pod, job: JobView = SINGLE_POD_VIEW) -> list[int]:
    table = cache.lookup(pod, columns, job).table
    (column,) = [each for each in table.scores if each.plugin.name == NearMembers.name]
    return [column.at(row) for row in range(columns.size)]


def test_members_count_for_their_job_alone() -> None:
    cache, columns = ClassCache(lineup_with(NearMembers)), a_ledger(NODES).nodes
    assert points(cache, columns, NEAR) == [0, 0, 0, 0]
    assert points(cache, columns, NEAR, JobView(3, (1, 3))) == [0, 100, 0, 100]
    assert points(cache, columns, NEAR, JobView(3, (2,))) == [0, 0, 100, 0]
    assert points(cache, columns, NEAR) == [0, 0, 0, 0]


def test_pods_without_other_members_cost_no_call_after_the_first() -> None:
    cache, columns = ClassCache(lineup_with(NearMembers)), a_ledger(NODES).nodes
    for _ in range(5):
        points(cache, columns, NEAR)
    assert NearMembers.scored == 1
    points(cache, columns, NEAR, JobView(2, (1,)))
    assert NearMembers.scored == 2
    for _ in range(5):
        points(cache, columns, NEAR)
    assert NearMembers.scored == 3, "once, to forget the members"
    assert NearMembers.filtered == 1, "the filter depends on the nodes alone"


def test_a_class_that_is_not_concerned_costs_no_call_at_all() -> None:
    cache, columns = ClassCache(lineup_with(NearMembers)), a_ledger(NODES).nodes
    assert points(cache, columns, FAR, JobView(2, (1,))) == [7, 7, 7, 7]
    assert points(cache, columns, FAR) == [7, 7, 7, 7]
    assert NearMembers.scored == NearMembers.filtered == 0
    assert not cache.lookup(FAR, columns).table.plugins.depends_on_job
    assert cache.lookup(NEAR, columns).table.plugins.depends_on_job


def test_a_job_with_bound_members_leaves_nothing_for_the_next_pod() -> None:
    """`decide` is pure: the second pod is of the same class and of another job."""
    ledger, planner = a_ledger(NODES), Planner(lineup_with(NearMembers))
    alone = planner.decide(Job.of(NEAR), ledger.snapshot(), 0.0)
    joined = planner.decide(Job("default/gang/g", (NEAR,), 1, bound_nodes=("n2", "gone")), ledger.snapshot(), 0.0)
    assert [each.node for each in joined.placements] == ["n2"]
    assert planner.decide(Job.of(NEAR), ledger.snapshot(), 0.0) == alone


@pytest.mark.parametrize("members", [1, 3])
def test_the_rest_of_a_gang_is_counted_beside_its_bound_members(members: int) -> None:
    pods = tuple(a_pod(f"m{i}", labels={"near": "yes"}) for i in range(members))
    for near in ("n0", "n3"):
        done = run(NODES, [Job("default/gang/g", pods, members, bound_nodes=(near,))], profile=lineup_with(NearMembers))
        assert set(done.placements.values()) == {near}


class FailsForMembers(NearMembers):
    name = "FailsForMembers"

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> Any:
        if job.placed:
            raise RuntimeError("no")
        return super().score(pod, nodes, job)


def test_a_plugin_that_fails_for_members_fails_their_job_alone() -> None:
    ledger, planner = a_ledger(NODES), Planner(lineup_with(FailsForMembers))
    job = Job("default/gang/g", (NEAR,), 1, bound_nodes=("n2",))
    assert "FailsForMembers" in planner.decide(job, ledger.snapshot(), 0.0).error
    assert planner.decide(Job.of(NEAR), ledger.snapshot(), 0.0).placed
