"""The workloads, as kube-scheduler's own benchmark (scheduler_perf) has them: each asks something else of a scheduler.

Nodes have 4 cpu, 32 Gi, room for 110 pods and one of three zones; all pods ask for 100m and 500 Mi.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

Data = dict[str, Any]

SCHEDULER: Final = "measured"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
ZONES: Final = ("zone1", "zone2", "zone3")
URGENT: Final = "urgent"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Case(NamedTuple):
    """`drain` and `burst` are how many pods of it are measured. `churn`: the cluster changes meanwhile."""

    name: str
    drain: int
    burst: int
    wish: Callable[[], tuple[str, Data]]  # a colour, and what goes into the spec
    churn: bool = False


def _nothing() -> tuple[str, Data]:
    return "", {}


def _node_affinity() -> tuple[str, Data]:
    where = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(ZONES[:2])}]}
    return "", {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [where]}}}}


def _required_affinity() -> tuple[str, Data]:
    return "blue", {"affinity": {"podAffinity": {_REQUIRED: [_term("blue", ZONE)]}}}


def _anti_affinity() -> tuple[str, Data]:
    return "green", {"affinity": {"podAntiAffinity": {_REQUIRED: [_term("green", HOST)]}}}


def _preferred_affinity() -> tuple[str, Data]:
    return "red", {"affinity": {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _term("red", HOST)}]}}}


def _spread() -> tuple[str, Data]:
    even = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return "blue", {"topologySpreadConstraints": [even | {"labelSelector": {"matchLabels": {"color": "blue"}}}]}


def _term(color: str, key: str) -> Data:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}


# The first has the size for which memory is promised. The others are as large as kube-scheduler is quick at them.
CASES: Final = {
    case.name: case
    for case in (
        Case("basic", 10_000, 5_000, _nothing),
        Case("node-affinity", 4_000, 2_000, _node_affinity),
        Case("required-affinity", 2_000, 1_000, _required_affinity),
        Case("anti-affinity", 1_000, 1_000, _anti_affinity),
        Case("spread", 2_000, 1_000, _spread),
        Case("preferred-affinity", 1_000, 1_000, _preferred_affinity),
        Case("churn", 4_000, 2_000, _nothing, churn=True),
    )
}


def node(number: int) -> Data:
    name, amounts = f"worker-{number:05d}", {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {HOST: name, ZONE: ZONES[number % len(ZONES)]}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(case: Case, name: str) -> Data:
    color, wish = case.wish()
    meta: Data = {"name": name, "labels": {"color": color} if color else {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec("100m", "500Mi") | wish}


# What a churning cluster has one moment and has not the next: a node without room, a pod for which there is none, and a
# service of nobody.


def churn_node() -> Data:
    status = {"capacity": {"pods": "0"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-churn"}, "status": status}


def churn_pod() -> Data:
    spec = _spec("9", "500Mi") | {"priorityClassName": URGENT}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-churn"}, "spec": spec}


def churn_service() -> Data:
    spec = {"selector": {"app": "foo"}, "ports": [{"protocol": "TCP", "port": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service-churn"}, "spec": spec}


def _spec(cpu: str, memory: str) -> Data:
    amounts = {"cpu": cpu, "memory": memory}
    container: Data = {"name": "pause", "image": "registry.k8s.io/pause:3.10.2", "ports": [{"containerPort": 80}]}
    container["resources"] = {"requests": amounts, "limits": amounts}
    return {"schedulerName": SCHEDULER, "containers": [container]}
