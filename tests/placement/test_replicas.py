"""Replicas of a service on nodes that are used unevenly: no more on one node than kube-scheduler would put there."""

from collections import Counter

import pytest

from kubenexus.framework.profile import Profile
from kubenexus.plugins import default_profile, shipped_profile
from tests.placement.decisions import Object, decide_in_turn

CPU, MEMORY = 32, 128


def node(name: str) -> Object:
    amounts = {"cpu": str(CPU), "memory": f"{MEMORY}Gi", "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"kind": "Node", "metadata": meta, "status": {"capacity": amounts, "allocatable": amounts}}


def pod(name: str, cpu: str, memory: str, **spec: object) -> Object:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    meta = {"name": name, "namespace": "web", "uid": name, "labels": {}}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def replica(name: str, **spec: object) -> Object:
    made = pod(name, "500m", "1Gi", **spec)
    made["metadata"]["labels"] = {"app": "web"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs-1", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def most_on_a_node(percent: int, replicas: int, profile: Profile, **spec: object) -> int:
    """Of four nodes three are used by so many percent, as after an autoscaler has added the fourth."""
    fillers = [
        pod(f"filler-{i}", f"{CPU * percent * 10}m", f"{MEMORY * percent * 1024 // 100}Mi", nodeName=f"n{i}")
        for i in range(3)
    ]
    selector = {"matchLabels": {"app": "web"}}
    owner = {"kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": "web"}, "spec": {"selector": selector}}
    objects = [node(f"n{i}") for i in range(4)] + fillers + [owner]
    found = decide_in_turn([*objects, *(replica(f"r{i}", **spec) for i in range(replicas))], profile)
    return max(Counter(each.node for each in found.values()).values())


@pytest.mark.parametrize("percent", [0, 25, 37, 50, 75])
@pytest.mark.parametrize("replicas", [3, 4, 6])
def test_an_empty_node_does_not_get_them_all(percent: int, replicas: int) -> None:
    ours, theirs = (most_on_a_node(percent, replicas, made) for made in (shipped_profile(), default_profile()))
    assert ours <= theirs


def test_a_constraint_of_the_users_own_is_kept_where_it_can() -> None:
    wish = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    assert most_on_a_node(75, 3, shipped_profile(), topologySpreadConstraints=[wish]) == 1
