"""GangPreemption against an exhaustive search over all sets of victims, on small random clusters.

`python -m tests.plan.preemption.small_clusters 5000` compares more of them.
"""

from random import Random

from tests.plan.preemption.small_clusters import SmallCluster, compare, small_cluster
from tests.rounds import rounds

CLUSTERS = rounds(120, 250)
FEWEST = 0.95  # share of clusters with evictions on which no fewer jobs could be hurt


def test_pods_have_to_go_if_and_only_if_that_suffices_and_the_least_priority_is_hurt() -> None:
    found = {seed: compare(small_cluster(Random(seed))) for seed in range(CLUSTERS)}
    assert {seed: each.problem for seed, each in found.items() if each.problem} == {}
    evicting = [each for each in found.values() if each.evicts]
    assert len(evicting) > CLUSTERS // 5
    assert sum(each.fewest for each in evicting) >= FEWEST * len(evicting)


def test_f53_victims_are_found_in_whatever_order_pods_came_that_may_not_go() -> None:
    differ, evicting = [], 0
    for seed in range(1_000, 1_060):
        cluster = small_cluster(Random(seed))
        found = compare(cluster)
        evicting += found.evicts
        differ += [seed for each in _shuffled(cluster, seed) if compare(each) != found]
    assert not differ
    assert evicting > 10


def _shuffled(cluster: SmallCluster, seed: int) -> list[SmallCluster]:
    """Returns the cluster with its pods, and the budgets that protect some of them, in other orders."""
    rng, found = Random(seed), []
    for _ in range(3):
        pods, budgets = cluster.pods[:], list(cluster.budgets.items())
        rng.shuffle(pods)
        rng.shuffle(budgets)
        found.append(cluster._replace(pods=pods, budgets=dict(budgets)))
    return found
