"""What placed pods get of NUMA nodes, for metrics."""

import pytest

from kubenexus.framework.job import Job
from kubenexus.plan.numa_outcomes import gang_shares, numa_outcomes
from kubenexus.state.numa.memory_use import shares_by_use
from tests.api.numa.builders import Row, a_numa_pod, an_nrt, guaranteed
from tests.plugins.numa.numa_cluster import EIGHT, GI, a_run

SPREAD = "scheduling.kubenexus.io/gang-numa-spread"


@pytest.mark.parametrize(
    ("cpu", "policy", "near", "outcome", "distance"),
    [
        pytest.param("4", "single-numa-node", 21, "single_numa", "", id="one NUMA node"),
        pytest.param("12", "restricted", 21, "cross_numa", "far", id="two, of two sockets"),
        pytest.param("12", "restricted", 12, "cross_numa", "near", id="two, of one socket"),
    ],
)
def test_the_numa_nodes_of_a_pod_and_how_far_they_are(
    cpu: str, policy: str, near: int, outcome: str, distance: str
) -> None:
    run, pod = a_run(an_nrt([{"cpu": EIGHT}] * 2, policy, near=near)), a_numa_pod(guaranteed("main", cpu), name="p")
    decision = run.then([pod]).decisions["p"]
    (found,) = numa_outcomes(decision, Job.of(pod), run.ledger.nodes)
    assert (found.outcome, found.distance) == (outcome, distance)
    assert list(gang_shares(decision, Job.of(pod), run.ledger.nodes)) == []


def test_a_node_without_a_report() -> None:
    run, pod = a_run(an_nrt([{"cpu": (8, 8, 0)}] * 2), others=1), a_numa_pod(guaranteed("main", "4"), name="p")
    (found,) = numa_outcomes(run.then([pod]).decisions["p"], Job.of(pod), run.ledger.nodes)
    assert found.outcome == "no_numa_info"


@pytest.mark.parametrize(
    ("spread", "free", "shares"),
    [
        pytest.param("packed", [8, 8], [(0, 3)], id="packed: all beside another"),
        pytest.param("packed", [4, 8], [(0, 2)], id="packed: the third is alone"),
        pytest.param("isolated", [2, 2], [], id="isolated: three do not fit"),
        pytest.param("balanced", [4, 8], [(0, 2), (1, 1)], id="balanced: two and one"),
        pytest.param("balanced", [8, 8], [(0, 3)], id="balanced: one NUMA node has all that the gang has"),
    ],
)
def test_members_that_share_numa_nodes_as_their_gang_wants(
    spread: str, free: list[int], shares: list[tuple[int, int]]
) -> None:
    run = a_run(an_nrt([{"cpu": (8, 8, left)} for left in free]))
    pods = tuple(a_numa_pod(guaranteed("main", "2"), name=f"m{n}", annotations={SPREAD: spread}) for n in range(3))
    job = Job("default/gang/g", pods, 3)
    (decision,) = run.then([job]).decisions.values()
    found = gang_shares(decision, job, run.ledger.nodes)
    assert [(each.numa, each.members) for each in found] == shares
    assert len(list(numa_outcomes(decision, job, run.ledger.nodes))) == sum(1 for _ in decision.placements)


def test_numa_nodes_by_how_much_of_their_memory_is_taken() -> None:
    def zone(left: int) -> dict[str, Row]:
        return {"cpu": EIGHT, "memory": (10 * GI, 10 * GI, left * GI)}

    run = a_run(an_nrt([zone(10), zone(5)], name="a"), an_nrt([zone(6), zone(2)], name="b"), an_nrt([{"cpu": EIGHT}]))
    assert shares_by_use(run.ledger.nodes.numa) == {"low": 50.0, "medium": 25.0, "high": 25.0}
    assert shares_by_use(a_run(an_nrt([{"cpu": EIGHT}])).ledger.nodes.numa) == {}
