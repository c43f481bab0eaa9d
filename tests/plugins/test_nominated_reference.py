"""Where pods are nominated to a node, a pod must be fine there with them and without; so says the reference, too."""

from collections import Counter
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.core import Pod
from kubenexus.cycle.nominated_pods import filter_with_nominated_pods
from kubenexus.state.pod_columns import PodColumns
from kubenexus.testing.builders import HOSTNAME, a_node, a_pod
from kubenexus.testing.harness import run
from tests.plugins.checked_cluster import PluginCluster, only
from tests.plugins.oracle_check import BEFORE, PluginReference, caught, usable
from tests.plugins.random_cluster import Few, RandomCluster
from tests.plugins.reference_affinity import ReferenceAffinity, away, means, near, placed
from tests.plugins.reference_spread import ReferenceSpread

seeds = st.integers(0, 2**32)


def judge(seed: int, plugin: str, plugin_reference: PluginReference) -> Counter[str]:
    """The nodes that are left to each of some pods, by our rules and by those of the reference."""
    random_cluster, seen = (Few if plugin == "PodTopologySpread" else RandomCluster)(seed), Counter[str]()
    cluster = PluginCluster.of(random_cluster, only(*BEFORE, plugin), steps=3)
    for i in range(4):
        cluster.nominated(waiting(random_cluster, f"q{i}", random_cluster.choice(random_cluster.names)))
    for pod in [waiting(random_cluster, f"w{i}") for i in range(8)]:
        columns = cluster.ledger.nodes
        table = cluster.planner.class_cache.lookup(pod, columns).table
        yielding = filter_with_nominated_pods(pod, table, cluster.ledger.snapshot())
        rows = set(columns.row_of.values()) if yielding is None else set(columns.row_of.values()) - {*yielding.rows}
        alone = {
            n
            for n, node in cluster.nodes.items()
            if usable(pod, node) and not plugin_reference.refusal(pod, node, cluster)
        }
        left = {
            n for n in alone if skipped(plugin_reference, pod, cluster) or welcome(plugin_reference, pod, n, cluster)
        }
        assert {columns.names[row] for row in rows if table.feasible[row]} == left, pod
        seen["yields"] += left != alone
        seen["does not"] += left == alone
    return seen


def waiting(random_cluster: RandomCluster, name: str, node: str = "") -> Pod:
    pod = random_cluster.pod(name)
    spec = msgspec.structs.replace(pod.spec, priority=random_cluster.choice([0, 0, 10]))
    return msgspec.structs.replace(pod, spec=spec, status=msgspec.structs.replace(pod.status, nominated_node_name=node))


def welcome(plugin_reference: PluginReference, pod: Pod, node: str, cluster: PluginCluster) -> bool:
    return not plugin_reference.refusal(pod, cluster.nodes[node], cluster.with_nominees(pod, node))


def skipped(plugin_reference: PluginReference, pod: Pod, cluster: PluginCluster) -> bool:
    """Upstream does not ask about pod affinity at all where neither the pod nor anybody who runs insists on something:
    those who are nominated are then not asked either."""
    if not isinstance(plugin_reference, ReferenceAffinity) or near(pod).required or away(pod).required:
        return False
    minded = [
        term.topology_key in node.metadata.labels
        for other, node in placed(cluster)
        for term in away(other).required
        if means(term, other, pod, cluster, strangers=True)
    ]
    return not any(minded)


REFERENCES: dict[str, PluginReference] = {
    "InterPodAffinity": ReferenceAffinity(),
    "PodTopologySpread": ReferenceSpread(),
}


@pytest.mark.parametrize("plugin", REFERENCES)
@given(seed=seeds)
def test_nominated_pods_are_counted_as_the_reference_counts_them(plugin: str, seed: int) -> None:
    judge(seed, plugin, REFERENCES[plugin])


@pytest.mark.parametrize("plugin", REFERENCES)
def test_pods_do_yield(plugin: str) -> None:
    seen: Counter[str] = sum((judge(seed, plugin, REFERENCES[plugin]) for seed in range(40)), Counter())
    assert seen["yields"] >= 10


def test_what_a_nominated_pod_avoids_counts_whatever_label_it_is_about() -> None:
    """Nobody who runs asks about `app`, so that no class would know its pods' value of it."""
    nodes = [a_node("n1"), a_node("n2")]
    done = run(nodes, [a_pod("front", node="n1", apart=[f"tier=front per {HOSTNAME}"])])
    done.ledger.upsert_pod(a_pod("waits", priority=10, nominated="n2", apart=[f"app=web per {HOSTNAME}"]))
    pod = a_pod("p", labels={"tier": "front", "app": "web"})
    sentence = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    assert done.then([pod]).refusals == {"p": sentence}
    done.ledger.remove_pod("default/waits")
    assert done.then([pod]).placements == {"p": "n2"}


def test_the_reference_finds_a_rule_that_does_not_know_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PodColumns, "nominated", lambda *_: None)
    assert caught(partial(judge, plugin="InterPodAffinity", plugin_reference=ReferenceAffinity()), most=200)
