"""TopologyScoring returns what its reference in plain Python returns, while pods and nodes come, go and change.

One class cache lives through all steps, so that counts are followed and not made anew. After each step the ledger is
also compared with one that is built from the objects.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubenexus.api.core import Pod
from kubenexus.cycle.class_cache import ClassCache
from kubenexus.cycle.scores import code_counts
from kubenexus.plugins.topology_scoring import own_pods
from kubenexus.state.digest import digest
from kubenexus.state.footprint import footprint_of
from kubenexus.state.ledger import Ledger
from kubenexus.testing.harness import a_ledger
from tests.plugins.topology_scoring.spread_cluster import PLUGINS, own_pod, place, points

LABELS = {
    "zone": ["a", "b", "c"],
    "network.kubenexus.io/az": ["a", "d"],
    "region": ["x", "y"],
    "rack": ["r1", "r2", "r3"],
    "topology.kubernetes.io/rack": ["r1", "r4"],
}
NODES = ["n0", "n1", "n2", "n3", "n4"]
marks = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in LABELS.items()})
names = st.sampled_from(["p0", "p1", "p2", "p3", "p4", "p5"])
wishes = st.fixed_dictionaries(
    {},
    optional={
        "spread-zones": st.sampled_from(["true", "false"]),
        "min-zones": st.sampled_from(["1", "2", "3"]),
        "affinity": st.sampled_from(["same-rack", "spread-rack"]),
    },
)
kinds = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(["rs-1", "rs-1", "rs-2", ""]),
        "labels": st.fixed_dictionaries(
            {},
            optional={
                "app": st.sampled_from(["web", "api"]),
                "app.kubernetes.io/name": st.sampled_from(["web", ""]),
                "app.kubernetes.io/instance": st.sampled_from(["x", "y"]),
            },
        ),
        "terminating": st.sampled_from([False, False, False, True]),
    }
)
steps = st.one_of(
    st.tuples(st.just("bind"), names, st.sampled_from([*NODES, "n9"]), kinds),
    st.tuples(st.just("assume"), names, st.sampled_from(NODES), kinds),
    st.tuples(st.just("delete"), names, st.none(), st.none()),
    st.tuples(st.just("relabel"), st.sampled_from(NODES), marks, st.none()),
    st.tuples(st.just("drop"), st.sampled_from(NODES), st.none(), st.none()),
    st.tuples(st.just("try"), st.lists(st.tuples(st.sampled_from(NODES), kinds), max_size=4), st.none(), st.none()),
)


class Cluster(NamedTuple):
    """The cluster as plain objects: the labels of nodes, and the pods on them."""

    nodes: dict[str, dict[str, str]]
    pods: dict[str, Pod]


# --- the rule for one node -----------------------------------------------------------------------------------------


def domain(labels: Mapping[str, str], level: str) -> str:
    keys = {
        "zone": ("zone", "network.kubenexus.io/az"),
        "region": ("region",),
        "rack": ("rack", "topology.kubernetes.io/rack"),
    }
    return next((labels[key] for key in keys[level] if key in labels), "")


def workload(pod: Pod) -> tuple[Any, ...]:
    """What pods of one workload have in common; () for a pod of none."""
    meta = pod.metadata
    if meta.owner_references:
        return ("controller", meta.owner_references[0].uid)
    if meta.labels.get("app.kubernetes.io/name"):
        own = ("app.kubernetes.io/name", "app.kubernetes.io/instance")
        return tuple((key, meta.labels[key]) for key in own if key in meta.labels)
    return (("app", meta.labels["app"]),) if "app" in meta.labels else ()


def is_own(pod: Pod, other: Pod) -> bool:
    wanted, labels = workload(pod), other.metadata.labels
    if other.metadata.deletion_timestamp:
        return False
    if wanted[0] == "controller":
        return workload(other) == wanted
    return all(labels.get(key) == value for key, value in wanted)


class Wanted(NamedTuple):
    """The weight of each level, the least number of zones, and whether pods are kept in one rack."""

    weights: dict[str, int]
    least: int
    together: bool


def wanted_by(pod: Pod, cluster: Cluster) -> Wanted:
    notes = {key.partition("/")[2]: value for key, value in pod.metadata.annotations.items()}
    serves = pod.metadata.labels["workload.kubenexus.io/type"] == "service"
    racks, least = notes.get("affinity", ""), int(notes.get("min-zones", "0"))
    zones = least > 0 or (serves and racks != "same-rack")
    if "spread-zones" in notes:
        zones = notes["spread-zones"] == "true"
    if not racks and zones and serves:
        racks = "a little"
    weights = {"zone": 6 * zones, "region": 3 * zones, "rack": {"": 0, "spread-rack": 6}.get(racks, 1)}
    for level in weights:
        if len({domain(labels, level) for labels in cluster.nodes.values()} - {""}) < 2:
            weights[level] = 0
    largest = next((level for level in ("zone", "region", "rack") if weights[level]), "zone")
    weights[largest] = 6 if weights[largest] else 0
    return Wanted(weights, least, racks == "same-rack")


def expected(pod: Pod, cluster: Cluster) -> dict[str, int]:
    neutral, (weights, least, together) = dict.fromkeys(cluster.nodes, 50), wanted_by(pod, cluster)
    if not workload(pod) or not any(weights.values()):
        return neutral
    homes = [
        cluster.nodes[other.spec.node_name]
        for other in cluster.pods.values()
        if is_own(pod, other) and other.spec.node_name in cluster.nodes
    ]

    def pods_in(labels: Mapping[str, str], level: str) -> int:
        return sum(domain(home, level) == domain(labels, level) for home in homes)

    costs: dict[str, int] = {}
    most = max((pods_in(each, "rack") for each in cluster.nodes.values() if domain(each, "rack")), default=0)
    for name, labels in cluster.nodes.items():
        cost = 0
        for level, weight in weights.items():
            if level == "rack" and together:
                cost += weight * (most - (pods_in(labels, level) if domain(labels, level) else 0))
            else:
                cost += weight * pods_in(labels, level)
        costs[name] = cost
    if weights["zone"]:
        used = {domain(home, "zone") for home in homes} - {""}
        if len(used) < least:
            high = 200 * (max(costs.values()) + 1)
            costs = {n: cost + high * (pods_in(cluster.nodes[n], "zone") > 0) for n, cost in costs.items()}
        costs = {n: cost for n, cost in costs.items() if domain(cluster.nodes[n], "zone")}
    low, high = min(costs.values(), default=0), max(costs.values(), default=0)
    if high - low <= high / 10:
        return neutral
    span = max(high - low, 6)
    return neutral | {name: 100 * (low + span - cost) // span for name, cost in costs.items()}


# --- the check -----------------------------------------------------------------------------------------------------


def take(step: tuple[Any, ...], ledger: Ledger, cluster: Cluster, check: Any) -> None:
    """Applies a step to both. A trial is checked while it lasts, and then taken back."""
    verb, what, where, kind = step
    if verb == "bind":
        pod = own_pod(what, where, work="", **kind)
        ledger.upsert_pod(pod)
        cluster.pods[what] = pod
    elif verb == "assume" and what not in cluster.pods and where in cluster.nodes:
        pod = own_pod(what, work="", **kind)
        ledger.assume(pod, where, 0.0)
        cluster.pods[what] = own_pod(what, where, work="", **kind)
    elif verb == "delete":
        ledger.remove_pod(f"default/{what}")
        cluster.pods.pop(what, None)
    elif verb == "relabel":
        ledger.upsert_node(place(what, where))
        cluster.nodes[what] = where
    elif verb == "drop" and len(cluster.nodes) > 1:
        ledger.remove_node(what)
        cluster.nodes.pop(what, None)
    elif verb == "try":
        before, trial = digest(ledger), Cluster(cluster.nodes, dict(cluster.pods))
        with ledger.transaction() as transaction:
            for i, (node, how) in enumerate(what):
                if node in cluster.nodes:
                    pod = own_pod(f"t{i}", work="", **how)
                    transaction.place(pod, node, footprint_of(pod))
                    trial.pods[f"t{i}"] = own_pod(f"t{i}", node, work="", **how)
                    check(trial)
        assert digest(ledger) == before


@given(
    nodes=st.lists(marks, min_size=1, max_size=5),
    notes=wishes,
    kind=kinds,
    work=st.sampled_from(["service", "batch"]),
    taken=st.lists(steps, max_size=12),
    few=st.booleans(),
)
def test_it_scores_each_node_as_its_reference_does(
    nodes: list[dict[str, str]],
    notes: dict[str, str],
    kind: dict[str, Any],
    work: str,
    taken: list[tuple[Any, ...]],
    few: bool,
) -> None:
    """`few`: as with few domains, by plain numbers; otherwise as with many, by columns."""
    with ExitStack() as patched:
        if not few:
            patched.enter_context(mock.patch.object(own_pods, "_FEW", 0))
            patched.enter_context(mock.patch.object(code_counts, "_MAX_CODES", -1))
        compare(nodes, notes, kind, work, taken)


def compare(
    nodes: list[dict[str, str]], notes: dict[str, str], kind: dict[str, Any], work: str, taken: list[tuple[Any, ...]]
) -> None:
    cluster = Cluster({f"n{i}": labels for i, labels in enumerate(nodes)}, {})
    ledger, cache = a_ledger([place(name, labels) for name, labels in cluster.nodes.items()]), ClassCache(PLUGINS)
    pod = own_pod("waiting", work=work, notes=notes, **kind | {"terminating": False})

    def check(now: Cluster) -> None:
        assert points(pod, ledger, cache) == expected(pod, now)

    check(cluster)
    for step in taken:
        take(step, ledger, cluster, check)
        check(cluster)
    rebuilt = a_ledger([place(name, labels) for name, labels in cluster.nodes.items()], cluster.pods.values())
    assert points(pod, rebuilt) == points(pod, ledger, cache)
    assert digest(rebuilt) == digest(ledger)


def test_a_pod_that_gets_other_labels_or_another_controller_is_counted_anew() -> None:
    ledger, cache = a_ledger([place("a", zone="a"), place("b", zone="b")]), ClassCache(PLUGINS)
    waiting, pod = own_pod(), own_pod("1", "a")
    ledger.upsert_pod(pod)
    assert points(waiting, ledger, cache) == {"a": 0, "b": 100}
    ledger.upsert_pod(replace(pod, metadata=replace(pod.metadata, labels={"zone": "of the kubelet"})))
    assert points(waiting, ledger, cache) == {"a": 0, "b": 100}
    ledger.upsert_pod(own_pod("1", "a", owner="rs-2"))  # adopted by another
    assert points(waiting, ledger, cache) == {"a": 50, "b": 50}
    assert [ledger.audit_query(question) for question in ledger.nodes.pods.queries] == [[]] * len(
        ledger.nodes.pods.queries
    )
