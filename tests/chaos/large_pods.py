"""Pods of monstrous size: each is what one tenant may create, and none may keep the scheduler from the others' pods.

Each takes one list of a pod to a length that the API server still accepts.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.chaos.observed_cluster import MONSTER

Object = dict[str, Any]


def _spread(number: int) -> Object:
    selector = {"matchLabels": {"app": "monster"}}
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": f"example.com/k{i}", "whenUnsatisfiable": when, "labelSelector": selector}
            for i, when in zip(range(number), ("DoNotSchedule", "ScheduleAnyway") * number, strict=False)
        ]
    }


def _anti_affinity(number: int) -> Object:
    terms = [
        {"topologyKey": f"example.com/k{i}", "labelSelector": {"matchLabels": {f"app{i}": "monster"}}}
        for i in range(number)
    ]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _preferences(number: int) -> Object:
    terms = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]}}
        for i in range(number)
    ]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def _tolerations(number: int) -> Object:
    return {"tolerations": [{"key": f"example.com/t{i}", "operator": "Exists"} for i in range(number)]}


def _containers(number: int) -> Object:
    return {"containers": [{"name": f"c{i}", "image": f"registry.example/app:{i}"} for i in range(number)]}


def _ports(number: int) -> Object:
    ports = [{"containerPort": 1000 + i, "hostPort": 1000 + i} for i in range(number)]
    return {"containers": [{"name": "main", "image": "app:1", "ports": ports}]}


def _resources(number: int) -> Object:
    asked = {f"example.com/r{i}": "1" for i in range(number)}
    return {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": asked, "limits": asked}}]}


def _selectors(number: int) -> Object:
    terms = [{"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["a", "b"]}]} for i in range(number)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


MONSTERS: Final[tuple[tuple[Callable[[int], Object], int], ...]] = (
    (_spread, 300),
    (_spread, 4000),
    (_anti_affinity, 2000),
    (_preferences, 4000),
    (_tolerations, 8000),
    (_containers, 1000),
    (_ports, 4000),
    (_resources, 6000),
    (_selectors, 4000),
)


def a_monster(name: str, scheduler: str, rng: Random) -> Object:
    """One of them. It asks for no cpu, so that it takes nothing from the others but time."""
    build, most = rng.choice(MONSTERS)
    spec = {
        "schedulerName": scheduler,
        "containers": [{"name": "main", "image": "app:1"}],
        **build(rng.randrange(most // 2, most + 1)),
    }
    meta = {"name": name, "labels": {MONSTER: "true", "app": "monster"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
