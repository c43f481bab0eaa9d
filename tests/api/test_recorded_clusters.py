"""The same functions on whole recorded clusters: what each one says of a pod and a node, kube-scheduler said too."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubenexus.api.codec import from_data
from kubenexus.api.core import Node, Pod
from kubenexus.api.features import required_features
from kubenexus.api.node_selectors import (
    matches,
    node_selector_term,
    parse_preferred,
    parse_required,
    required_node_names,
)
from kubenexus.api.resources import demand, footprint
from kubenexus.api.tolerations import SOFT_EFFECTS, untolerated
from kubenexus.base.errors import Malformed
from tests.api.oracle import recorded

Expected = dict[str, Any]


def pods(*names: str) -> Iterator[tuple[Pod, list[Node], Expected]]:
    """Every incoming pod of these files with the nodes of its cluster and what was recorded for it."""
    for case in (case for name in names for case in recorded(name)):
        nodes = [from_data(node, Node) for node in case["case"]["objects"]["nodes"]]
        for incoming in case["case"]["incoming"]:
            pod = from_data(incoming, Pod)
            yield pod, nodes, case["expected"]["pods"][pod.key]


def rejected_by(plugin: str, expected: Expected) -> set[str]:
    return {node for node, why in expected.get("rejects", {}).items() if plugin in why.get("all", {})}


def test_requests() -> None:
    for pod, _, expected in pods("mini", "resources"):
        counted = footprint(pod)
        assert dict(demand(pod).amounts) == expected["requests"]
        assert {"cpu": counted.nonzero_cpu, "memory": counted.nonzero_memory} == expected["nonZeroRequests"]


def test_taints_that_keep_a_pod_off() -> None:
    for pod, nodes, expected in pods("mini", "taints"):
        off = {node.metadata.name for node in nodes if untolerated(pod.spec.tolerations, node.spec.taints)}
        assert off == rejected_by("TaintToleration", expected), pod.key


def test_taints_that_cost_points() -> None:
    for pod, nodes, expected in pods("mini", "taints"):
        by_name = {node.metadata.name: node for node in nodes}
        if "scores" not in expected or "TaintToleration" in expected.get("skipScore", ()):
            continue
        counted = [
            len(untolerated(pod.spec.tolerations, by_name[name].spec.taints, effects=SOFT_EFFECTS))
            for name in expected["feasible"]
        ]
        assert counted == expected["scores"]["TaintToleration"]["raw"], pod.key


def test_declared_features() -> None:
    seen = 0
    for pod, nodes, expected in pods("mini", "taints"):
        needed = required_features(pod)
        off = {node.metadata.name for node in nodes if not needed <= set(node.status.declared_features)}
        assert off == rejected_by("NodeDeclaredFeatures", expected), pod.key
        seen += bool(off)
    assert seen > 10


def test_required_node_affinity() -> None:
    for pod, nodes, expected in pods("mini", "nodeaffinity"):
        if "NodeAffinity" in expected.get("skipFilter", ()) or "status" in expected.get("preFilter", {}).get(
            "NodeAffinity", {}
        ):
            continue
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
        selector = affinity.required if affinity else None
        terms, fixed = parse_required(selector) if selector else None, node_selector_term(pod.spec.node_selector)
        off = {
            node.metadata.name
            for node in nodes
            if not matches(fixed, node.metadata.name, node.metadata.labels)
            or (terms and not terms.matches(node.metadata.name, node.metadata.labels))
        }
        assert off == rejected_by("NodeAffinity", expected), pod.key


def test_nodes_named_by_every_term() -> None:
    for pod, _, expected in pods("mini", "nodeaffinity"):
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
        names = required_node_names(affinity.required) if affinity and affinity.required else None
        verdict = expected.get("preFilter", {}).get("NodeAffinity", {})
        if names is None:
            assert not verdict, pod.key
        elif names:
            assert names == set(verdict["nodes"]), pod.key
        else:
            assert verdict["status"][0] == "UnschedulableAndUnresolvable", pod.key


def test_preferred_node_affinity() -> None:
    for pod, nodes, expected in pods("mini", "nodeaffinity"):
        if "NodeAffinity" not in expected.get("scores", {}):
            continue
        assert pod.spec.affinity
        assert pod.spec.affinity.node_affinity
        preferences = parse_preferred(pod.spec.affinity.node_affinity.preferred)
        by_name = {node.metadata.name: node for node in nodes}
        scores = [
            sum(each.weight for each in preferences if matches(each.term, name, by_name[name].metadata.labels))
            for name in expected["feasible"]
        ]
        assert scores == expected["scores"]["NodeAffinity"]["raw"], pod.key


def test_preferences_that_cannot_be_parsed_fail_in_upstreams_words() -> None:
    told = []
    for pod, _, expected in pods("mini", "nodeaffinity", "spread"):
        if "scoreError" not in expected:
            continue
        assert pod.spec.affinity
        assert pod.spec.affinity.node_affinity
        with pytest.raises(Malformed) as raised:
            parse_preferred(pod.spec.affinity.node_affinity.preferred)
        told.append(str(raised.value))
        assert f'running PreScore plugin "NodeAffinity": {raised.value}' == expected["scoreError"]
    assert any(text.startswith("[[") for text in told), "a case with two problems was recorded, too"
