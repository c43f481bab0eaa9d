"""Clusters for tests of the page, as kubectl prints them: zones, racks, GPUs, gangs, services, and what waits."""

import json
from typing import Any

GANG, MIN = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
OURS = "kubenexus-scheduler"
TENANTS = ("vision", "speech", "search", "recsys", "genai", "research", "platform", "robotics")
RACK_NODES, ZONE_RACKS = 16, 24
CREATED = "2026-11-01T08:00:00Z"
HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=1</script>'


def cluster(nodes: int, hostile: str = "") -> bytes:
    """Returns a dump. `hostile` is written into every name and label that takes any text."""
    made = [_node(number, nodes, hostile) for number in range(nodes)]
    items = [*made, *_namespaces(hostile), *_running(nodes, hostile), *_waiting(nodes, hostile)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def _has_gpus(number: int) -> bool:
    return number % 10 != 9


def _node(number: int, nodes: int, hostile: str) -> dict[str, Any]:
    rack = number // min(RACK_NODES, max(4, nodes // 5))
    zone = "abcdefghijklmnopqrstuvwxyz"[rack // (ZONE_RACKS if nodes > 100 else 3) % 26]
    labels = {
        "kubernetes.io/hostname": _name(number),
        "topology.kubernetes.io/zone": f"eu-{zone}{hostile}",
        "topology.kubernetes.io/rack": f"r{rack:03}{hostile}",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    offered = {"cpu": "128", "memory": "1024Gi", "pods": "110"}
    if _has_gpus(number):
        offered["nvidia.com/gpu"] = "8"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _name(number), "uid": f"n{number}", "labels": labels},
        "spec": {"unschedulable": True} if number % 97 == 13 else {},
        "status": {"allocatable": offered, "capacity": offered},
    }


def _name(number: int) -> str:
    return f"gpu-{number:04}" if _has_gpus(number) else f"cpu-{number:04}"


def _namespaces(hostile: str) -> list[dict[str, Any]]:
    tiers = ("gold", "silver", "bronze")
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"tenant.kubenexus.io/tier": tiers[i % 3], "team": hostile or name}},
        }
        for i, name in enumerate(TENANTS)
    ]


def _pod(name: str, namespace: str, node: str = "", gpus: int = 0, cpu: str = "4", **more: Any) -> dict[str, Any]:
    wanted = {"cpu": cpu, "memory": "16Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "creationTimestamp": CREATED}
    container = {"name": "main", "resources": {"requests": wanted, "limits": wanted}}
    spec = {"schedulerName": OURS, "containers": [container], "priority": more.pop("priority", 0)}
    spec |= {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta | more,
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def _running(nodes: int, hostile: str) -> list[dict[str, Any]]:
    """Gangs of 4 to 32 nodes one after the other, with gaps; single GPUs on some nodes; services elsewhere."""
    found, number, gang = list[dict[str, Any]](), 0, 0
    while number < nodes:
        size, tenant = (4, 8, 16, 32)[gang * 7 % 4] if nodes > 100 else 3, TENANTS[gang * 5 % len(TENANTS)]
        name = f"{('llama', 'whisper', 'ranker', 'diffusion')[gang % 4]}-{gang}"
        here = [each for each in range(number, min(number + size, nodes)) if _has_gpus(each)]
        labels = {GANG: name, MIN: str(len(here)), "team": hostile or tenant}
        if gang % 7 != 5:
            found += [_pod(f"{name}-{i}", tenant, _name(each), 8, "32", labels=labels) for i, each in enumerate(here)]
        else:
            found += [
                _pod(f"notebook-{each}-{i}", tenant, _name(each), 1) for each in here for i in range(each * 5 % 8)
            ]
        number, gang = number + size + (gang % 3 == 2), gang + 1
    for each in range(9, nodes, 10):
        for i in range(each % 7):
            owner = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "shop-6d4f9",
                "uid": "rs",
                "controller": True,
            }
            labels = {"app": hostile or "shop"}
            found.append(
                _pod(f"shop-{each}-{i}", "platform", _name(each), cpu="14", labels=labels, ownerReferences=[owner])
            )
    return found


def _waiting(nodes: int, hostile: str) -> list[dict[str, Any]]:
    found = list[dict[str, Any]]()
    for i in range(min(240, max(3, nodes // 12))):
        tenant = TENANTS[i % len(TENANTS)]
        if i % 4 == 0:
            labels = {GANG: f"wait-{i}", MIN: "4"}
            annotations = {REQUIRED: "rack", "note": hostile}
            found += [_pod(f"wait-{i}-{k}", tenant, gpus=8, labels=labels, annotations=annotations) for k in range(4)]
        else:
            found.append(_pod(f"single-{i}", tenant, gpus=(i % 8) + 1, priority=i % 3 * 100))
    huge = _pod("hopeless", "research", gpus=16)
    huge["spec"]["nodeSelector"] = {"kubernetes.io/hostname": hostile or "gpu-0003"}
    return [*found, huge]
