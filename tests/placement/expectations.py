"""The eight expectations about `gpu_cluster`: the pods of each, and its judgement from API objects alone.

The first KubeNexus has tests with these names. Most of them accept any node; these judge what the names state.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.placement.gpu_cluster import BRONZE, CLIQUE, FABRIC, GOLD, GPU, MODEL, ZONE, Object, pod, slices, training

Objects = Mapping[str, Object]
GANG: Final = "pod-group.scheduling.kubenexus.io/name"
MINIMUM: Final = "pod-group.scheduling.kubenexus.io/min-available"
REQUIRE_CLIQUE: Final = "scheduling.kubenexus.io/require-clique"
VRAM: Final = "scheduling.kubenexus.io/vram-request"
HOSTNAME: Final = "kubernetes.io/hostname"


class Cluster(NamedTuple):
    """What the API server has, by name."""

    pods: Objects
    nodes: Objects
    slices: Objects


class Expectation(NamedTuple):
    """An expectation. `problems` returns what does not hold once all pods are settled: those of `waiting` have a
    reason why they wait, and all others have a node."""

    name: str
    pods: tuple[Object, ...]
    problems: Callable[[Cluster], list[str]]
    waiting: frozenset[str] = frozenset()


def node_of(pods: Objects, name: str) -> str:
    """Returns the node of a pod, "" if it has none."""
    return str(pods[name]["spec"].get("nodeName") or "")


def reason_of(pods: Objects, name: str) -> str:
    """Returns why a pod waits, "" if it does not or if the scheduler has not written it yet."""
    conditions = pods[name].get("status", {}).get("conditions", ())
    found = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
    return str(found[0].get("message", "")) if found else ""


def settled(expectation: Expectation, pods: Objects) -> bool:
    """Returns whether the scheduler has decided about all pods of the expectation."""
    names = {each["metadata"]["name"] for each in expectation.pods}
    return names <= pods.keys() and all(
        reason_of(pods, name) if name in expectation.waiting else node_of(pods, name) for name in names
    )


def judge(expectation: Expectation, cluster: Cluster) -> list[str]:
    """Returns what does not hold: of the expectation, and that just the pods of `waiting` wait."""
    found = []
    for each in expectation.pods:
        name = each["metadata"]["name"]
        node = node_of(cluster.pods, name)
        if bool(node) == (name in expectation.waiting):
            found.append(f"{name} has node {node!r}: {reason_of(cluster.pods, name)}")
    return found or expectation.problems(cluster)


def _label(cluster: Cluster, name: str, key: str) -> str:
    """Returns a label of the node of a pod."""
    return str(cluster.nodes[node_of(cluster.pods, name)]["metadata"]["labels"].get(key, ""))


def _labels(key: str, **expected: str) -> Callable[[Cluster], list[str]]:
    """Returns the judgement that the nodes of these pods have these values of a label."""

    def problems(cluster: Cluster) -> list[str]:
        found = {name: _label(cluster, name.replace("_", "-"), key) for name in expected}
        return [
            f"{name} is on {node}, not on {expected[name]}" for name, node in found.items() if node != expected[name]
        ]

    return problems


def _nodes(expectation: tuple[Object, ...], cluster: Cluster) -> set[str]:
    return {node_of(cluster.pods, each["metadata"]["name"]) for each in expectation}


def service_pods(app: str, count: int, **fields: Any) -> tuple[Object, ...]:
    """Returns the pods of a workload as its users create it: the label `app` and nothing about its kind."""
    return tuple(pod(f"{app}-{i}", BRONZE, labels={"app": app}, **fields) for i in range(count))


def _training_gets_gold(cluster: Cluster) -> list[str]:
    return [*_labels(MODEL, trainer="H100")(cluster), *_labels(FABRIC, trainer="nvswitch")(cluster)]


def _services_spread(cluster: Cluster) -> list[str]:
    nodes = _nodes(_SERVICES, cluster)
    return [] if len(nodes) >= 2 else [f"all service pods are on {nodes}"]


def _one_clique(cluster: Cluster) -> list[str]:
    cliques = {_label(cluster, each["metadata"]["name"], CLIQUE) for each in _MEMBERS}
    return [] if len(cliques) == 1 and "" not in cliques else [f"the gang is in the cliques {cliques}"]


def _not_ethernet(cluster: Cluster) -> list[str]:
    return ["the pod is on ethernet"] if _label(cluster, "fabric", FABRIC) == "ethernet" else []


def _both_zones(cluster: Cluster) -> list[str]:
    zones = {_label(cluster, each["metadata"]["name"], ZONE) for each in _ZONED}
    there = {str(each["metadata"]["labels"][ZONE]) for each in cluster.nodes.values()}
    return [] if zones == there else [f"the service is in {zones} of {there}"]


def _slices_served(cluster: Cluster) -> list[str]:
    """The same number of devices is served as drivers have published, and the scheduler knows their memory by them.

    The two nodes have the same labels. An A100 has 40 or 80 GB, and the slice alone states which.
    """
    expected = {each["metadata"]["name"]: len(each["spec"]["devices"]) for each in slices()}
    served = {name: len(each["spec"]["devices"]) for name, each in cluster.slices.items()}
    found = [] if served == expected else [f"{served} devices are served, not {expected}"]
    reason = reason_of(cluster.pods, "without-slice")
    return found if "memory" in reason else [*found, f"the reason is {reason!r}"]


def _excess(cluster: Cluster) -> list[str]:
    reason = reason_of(cluster.pods, "excess")
    return [] if reason.startswith(f"0/8 nodes are available: 8 Insufficient {GPU}") else [f"the reason is {reason!r}"]


_SERVICES: Final = service_pods("web", 3)
_ZONED: Final = service_pods("shop", 4)
_MEMBERS: Final = tuple(
    training(f"member-{i}", GOLD, 2, labels={GANG: "llama", MINIMUM: "4"}, annotations={REQUIRE_CLIQUE: "true"})
    for i in range(4)
)
_PROBES: Final = tuple(
    pod(name, GOLD, gpus=1, annotations={VRAM: "70Gi"}, nodeSelector={HOSTNAME: node})
    for name, node in (("with-slice", "gpu-node-05"), ("without-slice", "gpu-node-06"))
)

EXPECTATIONS: Final = (
    Expectation("TrainingPodGetsGoldGPU", (training("trainer", GOLD, 2),), _training_gets_gold),
    Expectation("ServicePodsSpread", _SERVICES, _services_spread),
    Expectation("GangCliqueCoLocation", _MEMBERS, _one_clique),
    Expectation(
        "TenantHardwareMatching",
        (pod("gold", GOLD, gpus=1), pod("bronze", BRONZE, gpus=1)),
        _labels(MODEL, gold="H100", bronze="T4"),
    ),
    Expectation("NetworkFabricPreference", (training("fabric", GOLD, 1),), _not_ethernet),
    Expectation("TopologySpreadAcrossAZs", _ZONED, _both_zones),
    Expectation("DRAResourceSlicesExist", _PROBES, _slices_served, frozenset({"without-slice"})),
    Expectation("UnschedulableExcessGPU", (pod("excess", GOLD, gpus=16),), _excess, frozenset({"excess"})),
)

# A bronze tenant fills the cluster: first the T4, then the A100, then the H100, as it has no other place.
FILLING: Final = tuple(pod(f"bronze-{i:02}", BRONZE, gpus=1) for i in range(14))
FILLED: Final = ("T4",) * 4 + ("A100",) * 8 + ("H100",) * 2


def models_of(pods: Objects, nodes: Objects) -> list[str]:
    """Returns the models of the GPUs on which the pods of `FILLING` are, in their order."""
    names = sorted(name for name in pods if name.startswith("bronze-"))
    return [str(nodes[node_of(pods, name)]["metadata"]["labels"][MODEL]) for name in names]
