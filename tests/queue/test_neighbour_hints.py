"""Which event wakes a pod that was refused because of other pods: kube-scheduler's queueing hints and what they
forget, case by case."""

from typing import Any

import msgspec
import pytest

from kubenexus.api.core import Node, Pod, PodAffinityTerm, TopologySpreadConstraint
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.selectors import LabelSelector
from kubenexus.framework.cluster_events import ClusterEvent
from kubenexus.queue.object_events import (
    node_added,
    node_changed,
    node_gone,
    nomination_ended,
    pod_bound,
    pod_changed,
    pod_forgotten,
    pod_gone,
)
from kubenexus.testing.builders import HOSTNAME, ZONE, a_node, a_pod
from tests.plugins.checked_cluster import LEAVING
from tests.queue.test_hints import case, changed, woken

WEB, DB = {"app": "web"}, {"app": "db"}
A, B, BARE = a_node(zone="a"), a_node(zone="b"), a_node()
JOINS = a_pod(near=[f"app=web per {ZONE}"])
STARTS = a_pod(near=[f"app=web per {ZONE}"], labels=WEB)
JOINS_BOTH = a_pod(near=[f"app=web per {ZONE}", f"tier=x per {HOSTNAME}"])
AVOIDS = a_pod(apart=[f"app=web per {ZONE}"])
AVOIDS_TWO = a_pod(apart=[f"app=web per {ZONE}", f"tier=x per {HOSTNAME}"])
PLAIN = a_pod(labels=WEB)


def there(name: str = "other", **fields: Any) -> Pod:
    return a_pod(name, node="n", **fields)


def leaving(**fields: Any) -> Pod:
    pod = there(**fields)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=LEAVING))


def without_hostname(node: Node) -> Node:
    labels = {key: value for key, value in node.metadata.labels.items() if key != HOSTNAME}
    return msgspec.structs.replace(node, metadata=ObjectMeta(name="n", labels=labels))


def anywhere(*namespaces: str, **labels: str) -> PodAffinityTerm:
    selected = LabelSelector(match_labels=labels)
    everyone = LabelSelector(match_labels=WEB)
    return PodAffinityTerm(
        topology_key=ZONE, label_selector=everyone, namespaces=list(namespaces), namespace_selector=selected
    )


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(JOINS, pod_bound(there(labels=WEB)), True, "a pod to join came"),
        case(JOINS, pod_bound(there(labels=DB)), False, "not another one"),
        case(JOINS, pod_bound(there(labels=WEB, namespace="x")), False, "nor one of another namespace"),
        case(JOINS_BOTH, pod_bound(there(labels=WEB)), False, "nor one that only one of the terms selects"),
        case(JOINS_BOTH, pod_bound(there(labels={**WEB, "tier": "x"})), True, "one that all of them select"),
        case(JOINS, pod_changed(there(labels=DB), there(labels=WEB)), True, "a pod is relabelled to be joined"),
        case(JOINS, pod_changed(there(labels=WEB), there(labels=DB)), False, "or no longer to be joined"),
        case(STARTS, pod_changed(there(labels=WEB), there(labels=DB)), True, "which helps if the pod may be the first"),
        case(JOINS, pod_gone(there(labels=WEB)), False, "a pod to join left"),
        case(STARTS, pod_gone(there(labels=WEB)), True, "which helps if the pod may be the first"),
        case(STARTS, pod_gone(there(labels=DB)), False, "a pod left that was none to join"),
        case(a_pod(near=[anywhere(env="x")]), pod_bound(there(labels=WEB, namespace="y")), True, "namespaces by label"),
        case(a_pod(near=[anywhere("y")]), pod_bound(there(labels=WEB, namespace="z")), True, "all namespaces"),
        case(AVOIDS, pod_gone(there(labels=WEB)), True, "a pod to avoid left"),
        case(AVOIDS, pod_gone(there(labels=DB)), False, "not another one"),
        case(AVOIDS, pod_forgotten(a_pod("x", labels=WEB), "n"), True, "one was assumed, and did not get its node"),
        case(AVOIDS, nomination_ended(a_pod("x", labels=WEB, nominated="n")), True, "one was nominated, and no longer"),
        case(AVOIDS, pod_bound(there(labels=WEB)), False, "a pod to avoid came"),
        case(AVOIDS, pod_bound(there(labels=DB)), False, "or another one"),
        case(AVOIDS, pod_changed(there(labels=WEB), there(labels=DB)), True, "a pod is relabelled, not to be avoided"),
        case(
            AVOIDS_TWO,
            pod_changed(there(labels={**WEB, "tier": "x"}), there(labels={"tier": "x"})),
            True,
            "not to be avoided by one of the terms",
        ),
        case(AVOIDS, pod_changed(there(labels=DB), there(labels=WEB)), False, "a pod is relabelled to be avoided"),
        case(AVOIDS, pod_changed(there(cpu=2, labels=WEB), there(cpu=1, labels=WEB)), False, "a pod shrinks"),
        case(
            AVOIDS, pod_changed(there(labels=WEB), leaving(labels=WEB)), False, "a pod is being deleted: it counts on"
        ),
        case(PLAIN, pod_gone(there(apart=[f"app=web per {ZONE}"])), True, "a pod left that would not have it near"),
        case(PLAIN, pod_gone(there(apart=[f"app=db per {ZONE}"])), False, "or would not have another near"),
        case(PLAIN, pod_gone(there(apart=[anywhere(env="x")])), True, "or perhaps, by the namespace's labels"),
        case(PLAIN, pod_gone(there(near=[f"app=web per {ZONE}"])), False, "a pod left that would have it near"),
        case(PLAIN, pod_bound(there(apart=[f"app=web per {ZONE}"])), False, "a pod came that would not have it near"),
        case(
            PLAIN,
            pod_changed(there(apart=[f"app=web per {ZONE}"]), there(apart=[f"app=web per {ZONE}"], labels=DB)),
            False,
            "such a pod is relabelled",
        ),
        case(PLAIN, changed(PLAIN, a_pod(labels=DB)), True, "the pod itself is relabelled"),
        case(JOINS, node_added(A), True, "a node with the label by which it joins"),
        case(JOINS, node_added(BARE), False, "not one without"),
        case(AVOIDS, node_added(A), True, "any node for who only avoids"),
        case(AVOIDS, node_added(BARE), True, "with or without the label"),
        case(PLAIN, node_added(BARE), True, "and for whom others avoid"),
        case(PLAIN, node_changed(A, B), True, "a node moves: others may have avoided it by any label"),
        case(PLAIN, node_changed(A, a_node(zone="a", cpu=99)), False, "a node grows"),
        case(PLAIN, node_changed(A, a_node(zone="a", taints=["x:NoSchedule"])), False, "a node is tainted"),
        case(PLAIN, node_gone(A), True, "a node goes, and its pods no longer stand in the way"),
    ],
)
def test_inter_pod_affinity(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("InterPodAffinity", pod, events) is expected


def spread(*more: dict[str, Any], **fields: Any) -> Pod:
    """A pod with a constraint over zones, and further ones."""
    wanted: list[dict[str, Any]] = [{}, *more]
    constraints = [
        TopologySpreadConstraint(**{"topology_key": ZONE, "label_selector": LabelSelector(match_labels=WEB), **each})
        for each in wanted
    ]
    return a_pod(topology_spread_constraints=constraints, **{"labels": WEB, **fields})


def strict(**fields: Any) -> Pod:
    """One that counts only nodes without taints."""
    pod = spread(**fields)
    honours = msgspec.structs.replace(pod.spec.topology_spread_constraints[0], node_taints_policy="Honor")
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, topology_spread_constraints=[honours]))


EVEN = spread()
EVEN_TWICE = spread({"topology_key": HOSTNAME, "label_selector": LabelSelector(match_labels=DB)})
OF_VERSION = spread({"match_label_keys": ["version"]}, labels=DB)
ON_SSD = spread(selects={"disk": "ssd"})
SSD_A = a_node(zone="a", labels={"disk": "ssd"})
TAINTED_A = a_node(zone="a", taints=["x:NoSchedule"])


@pytest.mark.parametrize(
    ("pod", "events", "expected"),
    [
        case(EVEN, pod_gone(there(labels=WEB)), True, "a pod that counted left"),
        case(EVEN, pod_gone(there(labels=DB)), False, "not one that did not"),
        case(EVEN, pod_gone(there(labels=WEB, namespace="x")), False, "nor one of another namespace"),
        case(EVEN, pod_gone(leaving(labels=WEB)), False, "nor one that was being deleted before"),
        case(
            EVEN, pod_changed(there(labels=WEB), leaving(labels=WEB)), True, "a pod is being deleted: it counts no more"
        ),
        case(EVEN, pod_changed(there(labels=DB), leaving(labels=DB)), False, "one that never counted"),
        case(EVEN, pod_bound(there(labels=WEB)), True, "a pod that counts came: the least full domain has more"),
        case(EVEN, pod_bound(there(labels=DB)), False, "not one that does not"),
        case(EVEN, pod_changed(there(labels=DB), there(labels=WEB)), True, "a pod is relabelled, and counts"),
        case(EVEN, pod_changed(there(labels=WEB), there(labels=DB)), True, "or counts no more"),
        case(EVEN, pod_changed(there(labels=WEB), there(labels={**WEB, "x": "y"})), False, "or counts as before"),
        case(EVEN, pod_changed(there(cpu=2, labels=WEB), there(cpu=1, labels=WEB)), False, "a pod shrinks"),
        case(EVEN_TWICE, pod_gone(there(labels=DB)), True, "any of the constraints will do"),
        case(EVEN, nomination_ended(a_pod("x", labels=WEB, nominated="n")), True, "one was nominated, and no longer"),
        case(EVEN, pod_forgotten(a_pod("x", labels=WEB), "n"), True, "one was assumed, and did not get its node"),
        case(EVEN, changed(EVEN, spread(labels=DB)), True, "the pod itself no longer counts"),
        case(EVEN, changed(EVEN, spread(labels={**WEB, "x": "y"})), False, "the pod has another label nobody asks for"),
        case(
            OF_VERSION,
            changed(OF_VERSION, spread({"match_label_keys": ["version"]}, labels={**DB, "version": "2"})),
            True,
            "the pod itself is of another version, and so are those it counts",
        ),
        case(EVEN, changed(EVEN, spread(tolerates=["x"])), False, "the pod tolerates more, but taints do not matter"),
        case(strict(), changed(strict(), strict(tolerates=["x"])), True, "the pod tolerates more, and taints matter"),
        case(EVEN, node_added(A), True, "a node in a domain"),
        case(EVEN, node_added(BARE), False, "not one outside"),
        case(EVEN_TWICE, node_added(a_node(labels={ZONE: "a", HOSTNAME: "n"})), True, "one with all the labels"),
        case(EVEN_TWICE, node_added(without_hostname(A)), False, "not one with some of them"),
        case(EVEN, node_gone(A), True, "a node of a domain goes, and perhaps the emptiest domain"),
        case(EVEN, node_gone(BARE), False, "not one outside"),
        case(EVEN, node_changed(A, B), True, "a node moves"),
        case(EVEN, node_changed(A, BARE), True, "a node leaves its domain"),
        case(EVEN, node_changed(BARE, A), True, "a node gets into a domain"),
        case(EVEN, node_changed(A, SSD_A), False, "a node is labelled, and the pod does not mind"),
        case(ON_SSD, node_changed(SSD_A, A), True, "a node no longer counts: the pod could not use it"),
        case(ON_SSD, node_changed(A, SSD_A), True, "or counts now"),
        case(EVEN, node_changed(A, TAINTED_A), False, "a node is tainted, and taints do not matter"),
        case(strict(), node_changed(A, TAINTED_A), True, "a node is tainted, and taints matter"),
        case(strict(tolerates=["x"]), node_changed(A, TAINTED_A), False, "but not one that the pod tolerates"),
        case(EVEN, node_changed(A, a_node(zone="a", cpu=99)), False, "a node grows"),
    ],
)
def test_pod_topology_spread(pod: Pod, events: ClusterEvent, expected: bool) -> None:
    assert woken("PodTopologySpread", pod, events) is expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(pod_gone(there(labels=DB)), True, id="any pod of the namespace may have counted"),
        pytest.param(pod_gone(there(labels=DB, namespace="x")), False, id="not one of another namespace"),
        pytest.param(pod_changed(there(labels=DB), there(labels=WEB)), True, id="or one that was relabelled"),
        pytest.param(pod_changed(there(cpu=2), there(cpu=1)), False, id="a pod shrinks"),
        pytest.param(changed(PLAIN, a_pod(labels=DB)), True, id="the pod itself is relabelled"),
        pytest.param(node_added(A), True, id="a node in a domain"),
        pytest.param(node_added(BARE), False, id="not one outside"),
    ],
)
def test_pod_topology_spread_by_the_profiles_constraints(events: ClusterEvent, expected: bool) -> None:
    hard = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]
    assert woken("PodTopologySpread", PLAIN, events, defaultingType="List", defaultConstraints=hard) is expected
