"""Eight GPU nodes of three kinds in two zones, and the pods that tenants create there, as API objects.

| nodes | GPUs | clique | fabric | rack | zone | hardware |
|---|---|---|---|---|---|---|
| gpu-node-01, 02 | 8 x H100 | clique-0 | NVSwitch, fabric-01 | rack-A | us-east-1a | gold |
| gpu-node-03, 04 | 8 x H100 | clique-1 | NVSwitch, fabric-01 | rack-A | us-east-1a | gold |
| gpu-node-05, 06 | 4 x A100 | | InfiniBand, fabric-02 | rack-B | us-east-1a | silver |
| gpu-node-07, 08 | 2 x T4 | | Ethernet, fabric-03 | rack-C | us-east-1b | bronze |

The first node of each kind also publishes its GPUs by DRA, in the names of a driver that has a domain of its own.
"""

from typing import Any, Final

Object = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
TIER: Final = "tenant.kubenexus.io/tier"
KIND: Final = "workload.kubenexus.io/type"
MODEL: Final = "hardware.kubenexus.io/gpu-model"
FABRIC: Final = "network.kubenexus.io/fabric-type"
CLIQUE: Final = "nvidia.com/gpu.clique"
ZONE: Final = "topology.kubernetes.io/zone"
GOLD, BRONZE = "research", "students"

_LARGE: Final = ("128", "1Ti", "250", 8)
_MEDIUM: Final = ("64", "512Gi", "110", 4)
_SMALL: Final = ("32", "128Gi", "110", 2)


def nodes() -> list[Object]:
    """Returns the eight nodes."""
    made = []
    for number in range(1, 9):
        if number <= 4:
            clique = "clique-0" if number <= 2 else "clique-1"
            place = ("nvswitch", "fabric-01", "rack-A", "us-east-1a", "H100", "gold", "2")
            made.append(_node(number, _LARGE, place, clique))
        elif number <= 6:
            made.append(
                _node(number, _MEDIUM, ("infiniband", "fabric-02", "rack-B", "us-east-1a", "A100", "silver", "2"))
            )
        else:
            made.append(_node(number, _SMALL, ("ethernet", "fabric-03", "rack-C", "us-east-1b", "T4", "bronze", "1")))
    return made


def _node(number: int, size: tuple[str, str, str, int], place: tuple[str, ...], clique: str = "") -> Object:
    cpu, memory, pods, gpus = size
    fabric, fabric_id, rack, zone, model, tier, numa = place
    name = f"gpu-node-0{number}"
    labels = {
        "kubernetes.io/hostname": name,
        FABRIC: fabric,
        "network.kubenexus.io/fabric-id": fabric_id,
        "network.kubenexus.io/rack-id": rack,
        "network.kubenexus.io/az": zone,
        ZONE: zone,
        MODEL: model,
        "hardware.kubenexus.io/gpu-tier": tier,
        "numa.kubenexus.io/node-count": numa,
    } | ({CLIQUE: clique} if clique else {})
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, GPU: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def slices() -> list[Object]:
    """Returns what drivers publish for the first node of each kind."""
    return [
        _slice("gpu-node-01", 8, "H100", 81920, "80Gi", "clique-0"),
        _slice("gpu-node-05", 4, "A100", 81920, "80Gi"),
        _slice("gpu-node-07", 2, "T4", 16384, "16Gi"),
    ]


def _slice(node: str, count: int, model: str, mib: int, vram: str, clique: str = "") -> Object:
    attributes: Object = {"gpu.nvidia.com/model": {"string": model}, "gpu.nvidia.com/memory": {"int": mib}}
    if clique:
        attributes["gpu.nvidia.com/nvlinkDomain"] = {"string": clique}
    devices = [
        {"name": f"gpu-{i}", "attributes": attributes, "capacity": {"gpu.nvidia.com/vram": {"value": vram}}}
        for i in range(count)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpu.nvidia.com"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def namespaces() -> list[Object]:
    """Returns the namespace of a gold tenant, and one without a tier, which is bronze."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GOLD, "labels": {TIER: "gold"}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BRONZE, "labels": {}}},
    ]


def pod(
    name: str,
    namespace: str,
    *,
    gpus: int = 0,
    cpu: str = "2",
    memory: str = "4Gi",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Returns a pod with one container. Services request 2 cpu and 4Gi, training pods 4 cpu and 16Gi."""
    requests = {"cpu": cpu, "memory": memory}
    limits = {GPU: str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {
            "schedulerName": "kubenexus-scheduler",
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/app:1",
                    "resources": {"requests": requests | limits, "limits": limits},
                }
            ],
            **spec,
        },
    }


def training(name: str, namespace: str, gpus: int, **more: Any) -> Object:
    """Returns a training pod: the label says so."""
    more["labels"] = {KIND: "training"} | more.get("labels", {})
    return pod(name, namespace, gpus=gpus, cpu="4", memory="16Gi", **more)
