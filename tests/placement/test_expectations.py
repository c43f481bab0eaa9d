"""The eight expectations about the cluster of `gpu_cluster`, by the planner with the shipped profile."""

from typing import Any

import pytest

from tests.placement import gpu_cluster
from tests.placement.decisions import Object, decide_in_turn
from tests.placement.expectations import (
    EXPECTATIONS,
    FILLED,
    FILLING,
    Cluster,
    Expectation,
    judge,
    models_of,
    service_pods,
)
from tests.placement.gpu_cluster import GOLD, ZONE, pod

NODES = {each["metadata"]["name"]: each for each in gpu_cluster.nodes()}
SLICES = {each["metadata"]["name"]: each for each in gpu_cluster.slices()}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7c", "uid": "uid-web", "controller": True}


def decided(*pods: Object) -> dict[str, Object]:
    """The pods as an API server has them after the decisions: with a node, or with the condition."""
    cluster = [*gpu_cluster.namespaces(), *NODES.values(), *SLICES.values()]
    found: dict[str, Any] = decide_in_turn([*cluster, *pods])
    answered = {}
    for each in pods:
        name, spec = each["metadata"]["name"], each["spec"]
        node, sentence, _ = found[name]
        condition = {"type": "PodScheduled", "status": "False", "message": sentence}
        answered[name] = each | {
            "spec": spec | {"nodeName": node},
            "status": {"conditions": [] if node else [condition]},
        }
    return answered


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda each: each.name)
def test_the_expectation_holds_as_it_is_named(expectation: Expectation) -> None:
    assert judge(expectation, Cluster(decided(*expectation.pods), NODES, SLICES)) == []


def test_the_expectations_hold_together_on_one_cluster() -> None:
    pods = decided(*(each for expectation in EXPECTATIONS for each in expectation.pods))
    cluster = Cluster(pods, NODES, SLICES)
    assert {each.name: judge(each, cluster) for each in EXPECTATIONS} == {each.name: [] for each in EXPECTATIONS}


def test_the_pods_of_a_replica_set_are_in_both_zones_too() -> None:
    pods = service_pods("web", 4)
    for each in pods:
        each["metadata"] |= {"labels": {}, "ownerReferences": [OWNER]}
    zones = {NODES[each["spec"]["nodeName"]]["metadata"]["labels"][ZONE] for each in decided(*pods).values()}
    assert zones == {"us-east-1a", "us-east-1b"}


def test_a_bronze_tenant_gets_the_best_gpus_only_when_there_are_no_others() -> None:
    assert models_of(decided(*FILLING), NODES) == list(FILLED)


def test_a_gold_tenant_gets_the_best_gpus_from_the_first_to_the_last() -> None:
    pods = decided(*(pod(f"bronze-{i:02}", GOLD, gpus=1) for i in range(34)))
    assert models_of(pods, NODES) == ["H100"] * 32 + ["A100"] * 2


def test_the_judgement_finds_pods_that_are_not_where_they_should_be() -> None:
    """Each expectation fails if all pods are on one T4, and if all wait without a reason."""
    for expectation in EXPECTATIONS:
        for node in ("gpu-node-07", ""):
            pods = {each["metadata"]["name"]: each | {"spec": {"nodeName": node}} for each in expectation.pods}
            assert judge(expectation, Cluster(pods, NODES, SLICES)), (expectation.name, node)
