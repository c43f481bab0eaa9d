"""What a pod may cost is counted, and one beyond the budget is refused in words that name the limit."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.codec import decode_pod
from kubenexus.api.core import Container, Pod, PodSpec, ResourceRequirements, TopologySpreadConstraint
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework import pod_limits
from kubenexus.framework.pod_limits import BUDGET, POD_LIMITS, ClusterScale, EntryCost, count_entries, limit_exceeded
from kubenexus.framework.verdict import Code
from kubenexus.state.nodes import NodeColumns
from kubenexus.testing.builders import a_node, a_pod
from kubenexus.testing.fuzz.call_counting import counted
from kubenexus.testing.harness import run
from kubenexus.testing.large.pods import PODS, plain

EVERY = [each for each in vars(pod_limits).values() if isinstance(each, EntryCost)]
HUGE = ClusterScale(nodes=1_000_000, pods=1 << 25, namespaces=1 << 17, taints=1 << 13)


def grown(dimension: str, number: int) -> Pod:
    pod = plain("large")
    PODS[dimension](pod, number)
    return decode_pod(msgspec.json.encode(pod))


def said(counts: dict[EntryCost, int], scale: ClusterScale) -> str:
    work = {weight: scale.cost(weight) * (n - weight.free) for weight, n in counts.items() if n > weight.free}
    return limit_exceeded(counts, work, scale.nodes)


@pytest.mark.parametrize("weight", EVERY, ids=lambda weight: str(weight.what))
def test_what_every_ordinary_pod_has_is_free_on_a_cluster_of_any_size(weight: EntryCost) -> None:
    assert said({weight: weight.free}, HUGE) == ""


@pytest.mark.parametrize("weight", EVERY, ids=lambda weight: str(weight.what))
def test_the_limit_that_is_named_is_the_limit(weight: EntryCost) -> None:
    scale = ClusterScale(nodes=5_000, pods=8_192, namespaces=64, taints=8)
    text = said({weight: 10**6}, scale)
    assert text.startswith(f"pod has 1000000 {weight.what}; at 5000 nodes at most ")
    most = int(text.split("at most ")[1].split()[0])
    assert said({weight: most}, scale) == ""
    assert said({weight: most + 1}, scale) != ""


def test_several_that_are_too_many_only_together_are_all_named() -> None:
    scale = ClusterScale(nodes=5_000, pods=1, namespaces=1, taints=1)
    half = {w: w.free + BUDGET * 2 // 3 // scale.cost(w) for w in (pod_limits.SPREAD, pod_limits.TERMS)}
    text = said(half, scale)
    assert f"{half[pod_limits.SPREAD]} topology spread constraints" in text
    assert f"{half[pod_limits.TERMS]} pod affinity terms" in text
    assert text.endswith("together they are too many to be evaluated at 5000 nodes")


@pytest.mark.parametrize(
    ("dimension", "weight", "number"),
    [
        pytest.param("hard spread, one key", pod_limits.SPREAD, 30, id="constraints"),
        pytest.param("hard spread, keys no node has", pod_limits.NODE_KEYS, 30, id="topology keys"),
        pytest.param("hard spread, one key", pod_limits.POD_REQUIREMENTS, 30, id="selectors of constraints"),
        pytest.param("soft spread, one key", pod_limits.POD_KEYS, 1, id="one key of many selectors counts once"),
        pytest.param("pod anti-affinity terms", pod_limits.TERMS, 30, id="terms"),
        pytest.param("preferred pod affinity", pod_limits.TERMS, 30, id="preferred terms"),
        pytest.param("pod affinity namespaces", pod_limits.NAMESPACES, 30, id="namespaces"),
        pytest.param("pod affinity values", pod_limits.VALUES, 30, id="values of pod labels"),
        pytest.param("node affinity values", pod_limits.VALUES, 30, id="values of node labels"),
        pytest.param("node affinity terms, one key", pod_limits.NODE_TERMS, 30, id="node affinity terms"),
        pytest.param("node affinity preferences", pod_limits.NODE_TERMS, 30, id="node affinity preferences"),
        pytest.param("node affinity requirements", pod_limits.NODE_REQUIREMENTS, 30, id="requirements"),
        pytest.param("node selector", pod_limits.NODE_KEYS, 30, id="node selector"),
        pytest.param("tolerations", pod_limits.TOLERATIONS, 30, id="tolerations"),
        pytest.param("init containers", pod_limits.CONTAINERS, 31, id="containers of both kinds"),
        pytest.param("resources no node offers", pod_limits.RESOURCES, 30, id="resources"),
        pytest.param("sidecars with resources", pod_limits.RESOURCES, 32, id="resources of several containers"),
        pytest.param("host ports", pod_limits.PORTS, 30, id="ports"),
        pytest.param("container statuses", pod_limits.STATUSES, 30, id="statuses"),
    ],
)
def test_each_field_is_counted(dimension: str, weight: EntryCost, number: int) -> None:
    assert count_entries(grown(dimension, 30))[weight] == number


LARGE = [
    ("hard spread, keys no node has", 5_000, "topology spread constraints"),
    ("soft spread, one key", 5_000, "topology spread constraints"),
    ("pod anti-affinity terms", 5_000, "pod affinity terms"),
    ("node affinity terms, one key", 40_000, "node affinity terms"),
    ("resources no node offers", 9_500, "different resources"),
    ("containers", 20_000, "containers"),
    ("host ports", 20_000, "host ports"),
]


@pytest.mark.parametrize(("dimension", "number", "what"), [pytest.param(*row, id=row[0]) for row in LARGE])
def test_a_pod_beyond_the_budget_is_refused_alone_and_before_any_node_is_looked_at(
    dimension: str, number: int, what: str
) -> None:
    found = run([a_node(f"n{i}") for i in range(3)], [grown(dimension, number), a_pod("beside")])
    decision = found.decisions["large"]
    assert decision.code is Code.UNRESOLVABLE
    assert decision.diagnosis.refused_by == (POD_LIMITS,)
    assert decision.sentence().startswith(f"0/3 nodes are available: pod has {number} {what}; at 3 nodes at most ")
    assert found.placements.keys() == {"beside"}
    assert found.planner.class_cache.work.builds == 1
    assert len(found.planner.class_cache) == 1, "nothing is kept of it"


def test_reading_a_pod_that_is_refused_counts_as_work_so_that_a_burst_has_few_of_them() -> None:
    found = run([a_node("n")], [grown("hard spread, one key", 5_000)])
    assert found.planner.class_cache.work.rows > 10_000


def test_fewer_nodes_help() -> None:
    """What is too much for many nodes is not for few; the class that was known before is asked again."""
    pod = grown("hard spread, one key", 200)
    found = run([a_node(f"n{i}") for i in range(10)], [pod])
    assert found.placements
    for i in range(10, 5_000):
        found.ledger.upsert_node(a_node(f"n{i}"))
    again = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name="again", uid="again"))
    assert "at 5000 nodes" in found.then([again]).refusals["again"]
    for i in range(10, 5_000):
        found.ledger.remove_node(f"n{i}")
    assert found.then([again]).placements


def test_the_same_pods_are_refused_whatever_is_in_the_cache() -> None:
    """Labels and names are no part of a class, and so they must not count."""
    one, other = grown("hard spread, one key", 100), grown("hard spread, one key", 100)
    labels: dict[str, Any] = {**other.metadata.labels, **{f"k{i}": "v" for i in range(1_000)}}
    other = msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, name="b", labels=labels))
    nodes = [a_node("n1"), a_node("n2")]
    cached = run(nodes, [one]).then([other])
    fresh = run(nodes, [other])
    assert cached.decisions["b"].code is fresh.decisions["b"].code is Code.SUCCESS


def test_the_scale_of_an_empty_cluster_is_small() -> None:
    assert pod_limits.cluster_scale(NodeColumns()) == ClusterScale(nodes=0, pods=1, namespaces=1, taints=1)


class Unread(dict[str, Any]):
    """A map whose entries nobody may go through."""

    def __iter__(self) -> Any:
        raise AssertionError("the entries were read one by one")

    keys = values = items = __iter__


MANY = Unread({f"k{i}": "1" for i in range(12_000)})
SELECTS = LabelSelector(match_labels=MANY)


@pytest.mark.parametrize(
    ("spec", "weight"),
    [
        pytest.param(PodSpec(node_selector=MANY), pod_limits.NODE_REQUIREMENTS, id="a node selector"),
        pytest.param(PodSpec(node_selector=MANY), pod_limits.NODE_KEYS, id="the keys of a node selector"),
        pytest.param(PodSpec(overhead=MANY), pod_limits.RESOURCES, id="an overhead"),
        pytest.param(
            PodSpec(containers=[Container(resources=ResourceRequirements(requests=MANY))]),
            pod_limits.RESOURCES,
            id="the requests of a container",
        ),
        pytest.param(
            PodSpec(topology_spread_constraints=[TopologySpreadConstraint(label_selector=SELECTS)]),
            pod_limits.POD_REQUIREMENTS,
            id="the selector of a constraint",
        ),
    ],
)
def test_a_map_with_more_entries_than_may_be_is_counted_without_reading_them(spec: PodSpec, weight: EntryCost) -> None:
    assert count_entries(Pod(spec=spec))[weight] == len(MANY)
    assert said({weight: len(MANY)}, ClusterScale(nodes=5_000, pods=1, namespaces=1, taints=1)) != ""


def test_a_name_in_several_maps_counts_once() -> None:
    few: dict[str, Any] = {"cpu": "1", "memory": "1Gi"}
    containers = [Container(resources=ResourceRequirements(requests=few))] * 3
    pod = Pod(spec=PodSpec(containers=containers, overhead={"cpu": "1", "example.com/disk": "1"}))
    assert count_entries(pod)[pod_limits.RESOURCES] == 3


@pytest.mark.parametrize("kind", ["podAntiAffinity", "podAffinity"])
def test_to_count_a_term_takes_few_calls(kind: str) -> None:
    """It is counted whenever the pod changes, three times each, and a pod may have 12,000."""
    made = plain("large")
    PODS["pod anti-affinity terms" if kind == "podAntiAffinity" else "pod affinity terms"](made, 5_000)
    pod = decode_pod(msgspec.json.encode(made))
    counts, calls = counted(lambda: count_entries(pod), 1_000_000)
    assert counts[pod_limits.TERMS] == counts[pod_limits.POD_REQUIREMENTS] == 5_000
    assert calls < 5 * 5_000
