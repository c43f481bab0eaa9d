"""GangPreemption against an exhaustive search over all sets of victims, on small random clusters.

`python -m tests.plan.preemption.small_clusters 5000` compares more of them.
"""

from random import Random

from tests.plan.preemption.small_clusters import compare, small_cluster

CLUSTERS = 250
FEWEST = 0.95  # share of clusters with evictions on which no fewer jobs could be hurt


def test_pods_have_to_go_if_and_only_if_that_suffices_and_the_least_priority_is_hurt() -> None:
    found = {seed: compare(small_cluster(Random(seed))) for seed in range(CLUSTERS)}
    assert {seed: each.problem for seed, each in found.items() if each.problem} == {}
    evicting = [each for each in found.values() if each.evicts]
    assert len(evicting) > CLUSTERS // 5
    assert sum(each.fewest for each in evicting) >= FEWEST * len(evicting)
