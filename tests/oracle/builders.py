"""A case and vectors small enough to work out by hand, and a judge to put them before.

Nodes `a` and `b` are empty, `c` is cordoned. `web` asks for 1 cpu and 1Gi, `big` for more cpu than any node has.
"""

import copy
import gzip
from pathlib import Path
from typing import Any

import msgspec

from kubenexus.testing.oracle import ComparisonCounts, judge

CORDONED = ["NodeUnschedulable", "UnschedulableAndUnresolvable", "node(s) were unschedulable"]
TOO_SMALL = ["NodeResourcesFit", "UnschedulableAndUnresolvable", "Insufficient cpu"]
NOT_CONCERNED = [
    "DynamicResources",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodePorts",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
]


def node(name: str, cpu: str, *, cordoned: bool = False) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
    return {"metadata": {"name": name}, "spec": {"unschedulable": cordoned}, "status": {"allocatable": allocatable}}


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"metadata": {"namespace": "team", "name": name, "uid": name}, "spec": {"containers": [container]}}


def rejected(first: list[str]) -> dict[str, Any]:
    return {"first": first, "all": {first[0]: first[1:]}}


def same(number: int) -> dict[str, list[int]]:
    return {"raw": [number, number], "norm": [number, number]}


WEB: dict[str, Any] = {
    "requests": {"cpu": 1000, "memory": 1 << 30},
    "nonZeroRequests": {"cpu": 1000, "memory": 1 << 30},
    "skipFilter": NOT_CONCERNED,
    "rejects": {"c": rejected(CORDONED)},
    "feasible": ["a", "b"],
    "scores": {
        "TaintToleration": {"raw": [0, 0], "norm": [100, 100]},
        "NodeResourcesFit": {"raw": [75, 62], "norm": [75, 62]},
        "NodeResourcesBalancedAllocation": {"raw": [75, 68], "norm": [75, 68]},
        "ImageLocality": same(0),
        "VolumeBinding": same(0),
        "DynamicResources": same(0),
    },
    "skipScore": ["NodeAffinity", "PodTopologySpread", "InterPodAffinity"],
    "total": [450, 430],
    "best": ["a"],
}
BIG: dict[str, Any] = {
    "requests": {"cpu": 100_000, "memory": 1 << 30},
    "nonZeroRequests": {"cpu": 100_000, "memory": 1 << 30},
    "skipFilter": NOT_CONCERNED,
    "rejects": {
        "a": rejected(TOO_SMALL),
        "b": rejected(TOO_SMALL),
        "c": {"first": CORDONED, "all": {CORDONED[0]: CORDONED[1:], TOO_SMALL[0]: TOO_SMALL[1:]}},
    },
    "feasible": [],
    "fitError": "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.",
    "preemption": {"eligible": True},
}
CASE: dict[str, Any] = {
    "case": {
        "id": "small-1",
        "kind": "small",
        "seed": 1,
        "objects": {"nodes": [node("a", "4"), node("b", "2"), node("c", "4", cordoned=True)], "pods": []},
        "incoming": [pod("web", "1"), pod("big", "100")],
    },
    "expected": {"pods": {"team/web": WEB, "team/big": BIG}},
}
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
VECTORS: dict[str, dict[str, Any]] = {
    "quantities": {"in": "1500m", "canonical": "1500m", "value": 2, "milli": 1500, "sign": 1},
    "requests": {
        "pod": pod("web", "1"),
        "scheduler": WEB["requests"],
        "nonZeroRequests": WEB["nonZeroRequests"],
        "requests": AMOUNTS,
        "specOnly": AMOUNTS,
        "limits": {},
    },
    "selectors": {
        "selector": {"matchLabels": {"app": "web"}},
        "labels": [{"app": "web"}, {"app": "db"}],
        "match": [True, False],
        "string": "app=web",
    },
    "nodeselectors": {
        "selector": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
        },
        "nodes": [{"metadata": {"name": "a", "labels": {"disk": "ssd"}}}, {"metadata": {"name": "b"}}],
        "match": [True, False],
    },
}


def a_case() -> dict[str, Any]:
    """A copy that may be spoiled."""
    return copy.deepcopy(CASE)


def written(folder: Path, kind: str, items: Any) -> Path:
    file = folder / f"{kind}.json.gz"
    file.write_bytes(gzip.compress(msgspec.json.encode(items)))
    return file


def judged(folder: Path, *items: Any, kind: str = "small") -> ComparisonCounts:
    return judge([written(folder, kind, list(items))])


def aspects(tally: ComparisonCounts) -> set[str]:
    """The aspects in which something differs."""
    return {key.aspect for key in tally.different}
