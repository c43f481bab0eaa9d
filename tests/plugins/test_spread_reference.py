"""PodTopologySpread says of each node what its reference says, whatever happened before."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubenexus.api.codec import encode
from kubenexus.api.core import Pod, TopologySpreadConstraint
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.api.workloads import Service, ServiceSpec
from kubenexus.plugins.pod_topology_spread import constraints as spread
from kubenexus.plugins.pod_topology_spread import plugin, scoring
from kubenexus.plugins.pod_topology_spread.constraints import ConstraintDomains
from kubenexus.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubenexus.plugins.pod_topology_spread.scoring import SoftSpreadScores
from kubenexus.state.default_selectors import DefaultSelectors
from kubenexus.testing.builders import ZONE, a_node, a_pod
from tests.plugins.checked_cluster import PluginCluster, only
from tests.plugins.oracle_check import BEFORE, caught, compare, judge
from tests.plugins.random_cluster import RandomCluster
from tests.plugins.reference_spread import SKEWED, UNLABELLED, ReferenceSpread, belonging, counts_for, own_pods

seeds = st.integers(0, 2**32)
spreading = partial(judge, plugin="PodTopologySpread")
Patch = pytest.MonkeyPatch


@given(seed=seeds)
def test_spreading_says_of_each_node_what_its_reference_says(seed: int) -> None:
    spreading(seed, plugin_reference=ReferenceSpread())


@given(seed=seeds)
def test_spreading_follows_the_profiles_constraints(seed: int) -> None:
    by_profile(seed)


def by_profile(seed: int, **options: Any) -> Counter[str]:
    """Hard and soft ones; they have no selector, because a pod's services and controller are asked instead."""
    wanted = [msgspec.structs.replace(each, label_selector=None) for each in RandomCluster(seed).constraints()]
    listed = [msgspec.json.decode(encode(each)) for each in wanted]
    return spreading(
        seed, plugin_reference=ReferenceSpread(wanted), defaultingType="List", defaultConstraints=listed, **options
    )


@given(seed=seeds)
def test_spreading_keeps_saying_so_after_many_events(seed: int) -> None:
    spreading(seed, plugin_reference=ReferenceSpread(), steps=40, pods=5, looks=0.2)


@given(seed=seeds)
def test_spreading_says_so_however_many_domains_and_combinations_there_are(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spread, "_FEW_DOMAINS", 0)
        patch.setattr(scoring, "_PLAIN", 0)
        spreading(seed, plugin_reference=ReferenceSpread(), steps=10)


def test_by_default_an_empty_zone_is_that_of_nodes_without_one() -> None:
    """Upstream reads a missing label as an empty one: pods outside of any zone count for the zone without a name."""
    cluster = PluginCluster(only(*BEFORE, "PodTopologySpread"))
    for node in (a_node("blank", labels={ZONE: ""}), a_node("outside"), a_node("inside", zone="a")):
        cluster.upsert_node(node)
    cluster.group_seen(Service(metadata=ObjectMeta(namespace="default"), spec=ServiceSpec(selector={"app": "web"})))
    for name in ("p0", "p1"):
        cluster.bound(a_pod(name, labels={"app": "web"}), "outside")
    raw = ReferenceSpread().scores(a_pod(labels={"app": "web"}), list(cluster.nodes.values()), cluster)
    assert raw == {"blank": 9, "outside": 5, "inside": 6}
    compare(cluster, a_pod(labels={"app": "web"}), "PodTopologySpread", ReferenceSpread())
    cluster.gone("p0")
    compare(cluster, a_pod(labels={"app": "web"}), "PodTopologySpread", ReferenceSpread())


def test_classes_that_spread_alike_follow_the_pods_together() -> None:
    """They differ in what they ask for; whichever is looked at first after a pod came, the other is right too."""
    cluster = PluginCluster(only(*BEFORE, "PodTopologySpread"))
    for number in range(6):
        cluster.upsert_node(a_node(f"n{number}", zone=f"z{number % 2}"))
    cluster.group_seen(Service(metadata=ObjectMeta(namespace="default"), spec=ServiceSpec(selector={"app": "web"})))
    classes = [a_pod(cpu=cpu, labels={"app": "web"}) for cpu in ("100m", "200m", "300m")]
    for number in range(12):
        cluster.bound(a_pod(f"p{number}", labels={"app": "web"}), f"n{number * number % 5}")
        for pod in (classes[number % 3], classes[0], classes[-1]):
            compare(cluster, pod, "PodTopologySpread", ReferenceSpread())


def test_combinations_that_are_too_many_for_codes() -> None:
    """Soft constraints over two labels that have another value on every node."""
    cluster = PluginCluster(only(*BEFORE, "PodTopologySpread"))
    for number in range(40):
        labels = {"rack": f"r{number}", "shelf": f"s{number}"} if number else {"rack": "r0"}
        cluster.upsert_node(a_node(f"n{number}", labels=labels))
    web = LabelSelector(match_labels={"app": "web"})
    wanted = [
        TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable="ScheduleAnyway", label_selector=web)
        for key in ("rack", "shelf")
    ]
    pod = a_pod(labels={"app": "web"})
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, topology_spread_constraints=wanted))
    for number in range(4):
        cluster.bound(a_pod(f"p{number}", labels={"app": "web"}), f"n{number}")
        assert compare(cluster, pod, "PodTopologySpread", ReferenceSpread())["scores differ"]


# --- do these tests look at anything? ---------------------------------------------------------------------------------


def seen(cluster: PluginCluster, pod: Pod) -> Iterator[str]:
    """Which of the less common things there are to see."""
    own = pod.spec.topology_spread_constraints
    if not own and belonging(pod, cluster):
        controlled = any(owner.controller for owner in pod.metadata.owner_references)
        yield "belongs by services and a controller" if controlled else "belongs by services alone"
    nodes, running = cluster.nodes.values(), [p for p in cluster.pods.values() if p.spec.node_name in cluster.nodes]
    for each in own:
        looked_at = [node for node in nodes if counts_for(each, pod, node)]
        domains = {node.metadata.labels.get(each.topology_key) for node in looked_at} - {None}
        hard = each.when_unsatisfiable == "DoNotSchedule"
        if hard and each.min_domains and 0 < len(domains) < each.min_domains:
            yield "too few domains"
        if len(looked_at) < len(nodes):
            yield "nodes that do not count"
        if own_pods(each, pod) == []:
            yield "nothing is asked of pods"
        if each.match_label_keys and pod.metadata.labels.keys() & set(each.match_label_keys):
            yield "pods of the same version"
        if any(p.metadata.deletion_timestamp and p.metadata.namespace == pod.metadata.namespace for p in running):
            yield "pods that are being deleted"
    points = ReferenceSpread().scores(pod, list(nodes), cluster) or {}
    if own and len(set(points.values())) > 2 and -1 in points.values():
        yield "nodes that take no part"


RARE = ["belongs by services alone", "belongs by services and a controller", "nothing is asked of pods"]
COMMON = [
    *(SKEWED[0], UNLABELLED[0], "accepted", "scores differ", "no score", "nodes that take no part"),
    *("nodes that do not count", "too few domains", "pods of the same version", "pods that are being deleted"),
]


def test_all_that_can_happen_happens() -> None:
    counts: Counter[str] = sum(
        (spreading(seed, plugin_reference=ReferenceSpread(), watch=seen) for seed in range(40)), Counter()
    )
    assert {what: counts[what] for what in RARE if counts[what] < 10} == {}
    assert {what: counts[what] for what in COMMON if counts[what] < 50} == {}


def _parsed(**otherwise: Any) -> Callable[[Patch], None]:
    """Constraints that are read wrongly."""
    parse = spread.parse_constraint
    wrong = lambda *args: msgspec.structs.replace(parse(*args), **otherwise)  # noqa: E731
    return lambda patch: patch.setattr(plugin, "parse_constraint", wrong)


def _counting_the_dying(patch: Patch) -> None:
    parse = spread.parse_constraint

    def wrong(*args: Any) -> spread.ParsedConstraint:
        constraint = parse(*args)
        return msgspec.structs.replace(
            constraint, term=msgspec.structs.replace(constraint.term, skip_terminating=False)
        )

    patch.setattr(plugin, "parse_constraint", wrong)


def _answering(owner: Any, attribute: str, answer: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, attribute, lambda *_: answer)


def _everywhere(patch: Patch) -> None:
    patch.setattr(spread, "rows_with_keys", lambda constraints, nodes: np.ones(nodes.width, np.bool_))


MUTANTS: dict[str, Callable[[Patch], None]] = {
    "minDomains is not read": _parsed(min_domains=1),
    "maxSkew is one too many": lambda p: p.setattr(
        ConstraintDomains,
        "_skewed",
        lambda self: self.counts + int(self.constraint.counts_self) > self.constraint.max_skew,
    ),
    "the pod itself always counts": _parsed(counts_self=True),
    "taints are not looked at": _parsed(honors_taints=False),
    "node affinity is not looked at": _parsed(honors_affinity=False),
    "nodes without all labels are domains": _everywhere,
    "pods that are being deleted count": _counting_the_dying,
    "matchLabelKeys are not read": lambda p: p.setattr(spread, "_with_keys", lambda selector, keys, labels: selector),
    "filters are never asked again": _answering(PodTopologySpread, "stamp", 0),
    "there is one domain": _answering(ConstraintDomains, "in_use", 1),
    "nodes without all labels are scored": lambda p: p.setattr(
        scoring, "_ignored", lambda missing: np.zeros(missing.shape[1], np.bool_)
    ),
    "codes do not follow the pods": _answering(SoftSpreadScores, "_step", True),
    "services do not matter": _answering(DefaultSelectors, "_service_labels", {}),
    "controllers do not matter": lambda p: p.setattr("kubenexus.state.default_selectors._KINDS", {}),
    "pods on nodes that do not count are added": lambda p: p.setattr(
        spread, "eligible_rows", lambda c, spec, nodes: nodes.alive
    ),
}


@pytest.mark.parametrize("mutate", MUTANTS.values(), ids=MUTANTS)
def test_the_reference_finds_a_rule_where(mutate: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutate(monkeypatch)
    assert caught(partial(spreading, plugin_reference=ReferenceSpread()))
