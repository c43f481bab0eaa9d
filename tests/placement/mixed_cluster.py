"""A small cluster of six kinds of nodes, and pods of many kinds of work, as API objects."""

from typing import Any, Final, NamedTuple

from kubenexus.api.keys import gpu, network, tenant, workload
from tests.explain.device_dump import cards
from tests.placement.gpu_cluster import GPU, Object, pod

TIERS: Final = ("gold", "silver", "bronze")
FRACTION: Final = gpu.FRACTION.key
VRAM: Final = gpu.VRAM_REQUEST.key
H100: Final = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    network.FABRIC_TYPE.key: "nvswitch",
}
A100: Final = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    "nvidia.com/gpu.memory": "40960",
    network.FABRIC_TYPE.key: "infiniband",
}
T4: Final = {
    "nvidia.com/gpu.product": "Tesla-T4",
    "nvidia.com/gpu.memory": "15360",
    network.FABRIC_TYPE.key: "ethernet",
}


class NodeKind(NamedTuple):
    """A node with the text of its kind, and the pods that run on it."""

    text: str
    node: Object
    running: tuple[Object, ...] = ()

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


class PodKind(NamedTuple):
    """A pod with the text of its kind."""

    text: str
    pod: Object


def node(
    name: str, gpus: int = 0, labels: dict[str, str] | None = None, cpu: str = "32", memory: str = "256Gi"
) -> Object:
    """Returns a node. GPUs are offered by a device plugin."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"} | ({GPU: str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def running(on: str, cpu: str, memory: str, held: tuple[int, ...] = (), name: str = "", **more: Any) -> Object:
    """Returns a pod that runs on a node and holds these of its GPUs."""
    annotations = cards(*(f"gpu-{i}" for i in held)) if held else {}
    annotations |= more.pop("annotations", {})
    return pod(
        name or f"on-{on}",
        more.pop("namespace", "silver"),
        gpus=len(held),
        cpu=cpu,
        memory=memory,
        annotations=annotations,
        nodeName=on,
        **more,
    )


NODE_KINDS: Final = (
    NodeKind("CPU, empty", node("cpu-empty")),
    NodeKind("CPU, half full", node("cpu-half"), (running("cpu-half", "16", "128Gi"),)),
    NodeKind("4 T4, to be shared", node("t4", 4, T4 | {gpu.SHARED.key: "true"})),
    NodeKind("8 A100, all free", node("a100", 8, A100, "64", "512Gi")),
    NodeKind("8 H100, all free", node("h100", 8, H100, "128", "1Ti")),
    NodeKind(
        "8 H100, 3 in use", node("h100-used", 8, H100, "128", "1Ti"), (running("h100-used", "12", "96Gi", (0, 1, 2)),)
    ),
)


def namespaces() -> list[Object]:
    """Returns a namespace of each tier, with the name of the tier."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tier, "labels": {tenant.TIER.key: tier}}}
        for tier in TIERS
    ]


def owned(made: Object, kind: str, name: str, api_version: str = "batch/v1") -> Object:
    """Returns the pod with a controller."""
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def service(tier: str = "bronze", **more: Any) -> Object:
    """Returns a pod of a Deployment."""
    return owned(pod("web", tier, **more), "ReplicaSet", "web-7c", "apps/v1")


def job(tier: str = "bronze", **more: Any) -> Object:
    """Returns a pod of a Job."""
    labels = {workload.BATCH.key: "etl"} | more.pop("labels", {})
    return owned(pod("etl", tier, labels=labels, **more), "Job", "etl")


def inference(tier: str, gpus: int = 1, **more: Any) -> Object:
    """Returns a pod of KServe."""
    labels = {workload.INFERENCE.key: "chat"} | more.pop("labels", {})
    return owned(pod("chat", tier, gpus=gpus, labels=labels, **more), "ReplicaSet", "chat-5f", "apps/v1")


def training(tier: str, gpus: int, **more: Any) -> Object:
    """Returns a pod of Kubeflow."""
    labels = {workload.TRAINING.key: "llama"} | more.pop("labels", {})
    return pod("llama", tier, gpus=gpus, cpu="8", memory="64Gi", labels=labels, **more)


def notebook(tier: str, gpus: int = 0, **more: Any) -> Object:
    """Returns a notebook of Kubeflow."""
    labels = {"notebook-name": "lab"} | more.pop("labels", {})
    return owned(pod("lab", tier, gpus=gpus, labels=labels, **more), "StatefulSet", "lab", "apps/v1")


POD_KINDS: Final = (
    PodKind("pod of a Deployment", service()),
    PodKind("pod of a Job", job()),
    PodKind("pod of a Job with `placement: spread`", job(annotations={workload.PLACEMENT.key: "spread"})),
    PodKind("pod of a Job with `preemptible: true`", job(annotations={tenant.PREEMPTIBLE.key: "true"})),
    PodKind("notebook without GPUs", notebook("bronze")),
    PodKind("model server, 1 GPU, gold", inference("gold")),
    PodKind("model server, 1 GPU, silver", inference("silver")),
    PodKind("model server, 1 GPU, bronze", inference("bronze")),
    PodKind("the same with `vram-request: 35Gi`", inference("bronze", annotations={VRAM: "35Gi"})),
    PodKind("half a GPU (`gpu-fraction: 0.5`), bronze", inference("bronze", 0, annotations={FRACTION: "0.5"})),
    PodKind("notebook, 1 GPU, gold", notebook("gold", 1)),
    PodKind("pod of a Job, 1 GPU, gold", job("gold", gpus=1)),
    PodKind("training, 4 GPUs, gold", training("gold", 4)),
    PodKind("training, 4 GPUs, bronze", training("bronze", 4)),
    PodKind("training, 8 GPUs, bronze", training("bronze", 8)),
)


def cluster() -> list[Object]:
    """Returns all nodes and the pods that run on them."""
    return [*namespaces(), *(thing for kind in NODE_KINDS for thing in (kind.node, *kind.running))]
