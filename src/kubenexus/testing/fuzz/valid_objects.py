"""Valid objects as an API server would send them, mixed with malformed ones or mutated into them.

Names come from small pools. Updates without an add, deletes of unknown objects, pods on unknown nodes and names that
return with another UID therefore occur by themselves.
"""

from random import Random
from typing import Any, Final

from kubenexus.api.keys import network

Json = dict[str, Any]

NODES: Final = 60
PODS: Final = 500
CLASSES: Final = 6
ZONES: Final = ("a", "b", "c")
IMAGES: Final = tuple(f"registry.example/app-{i}:v1" for i in range(8))
GPU: Final = "example.com/gpu"
TAINTS: Final = (
    {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
    {"key": "spot", "effect": "PreferNoSchedule"},
    {"key": "drain", "effect": "NoExecute"},
)


def node_name(rng: Random) -> str:
    return f"node-{rng.randrange(NODES)}"


def node(rng: Random) -> Json:
    """Returns a node with sixteen cores and a zone; some have taints, images, accelerators or a cordon."""
    name = node_name(rng)
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "40", "ephemeral-storage": "100Gi"}
    if rng.random() < 0.3:
        allocatable[GPU] = str(rng.randrange(1, 9))
    images = [{"names": [image], "sizeBytes": rng.randrange(10**9)} for image in IMAGES if rng.random() < 0.3]
    return {
        "metadata": {"name": name, "uid": name, "labels": {"zone": rng.choice(ZONES), network.HOSTNAME.key: name}},
        "spec": {
            "unschedulable": rng.random() < 0.05,
            "taints": [dict(taint) for taint in TAINTS if rng.random() < 0.1],
        },
        "status": {"allocatable": allocatable, "capacity": allocatable, "images": images},
    }


def device_class(rng: Random) -> Json:
    spec = {"extendedResourceName": GPU} if rng.random() < 0.5 else {}
    return {"metadata": {"name": f"class-{rng.randrange(CLASSES)}"}, "spec": spec}


def pod(rng: Random, bound: float) -> Json:
    """Returns a pod that waits or, with probability `bound`, runs on some node, known or not."""
    number = rng.randrange(PODS)
    name = f"pod-{number}"
    status: Json = {"phase": "Pending"}
    spec: Json = {"containers": [container(rng, i) for i in range(rng.choice((1, 1, 1, 2)))]}
    if rng.random() < bound:
        spec["nodeName"] = node_name(rng)
        status["phase"] = rng.choice(("Running", "Running", "Running", "Pending", "Succeeded", "Failed"))
    elif rng.random() < 0.03:
        status["nominatedNodeName"] = node_name(rng)
    for wish in (_priority, _tolerations, _selector, _affinity, _more_containers, _overhead):
        if rng.random() < 0.25:
            wish(rng, spec)
    meta = {
        "name": name,
        "namespace": f"team-{number % 3}",
        "uid": f"{name}-{rng.randrange(2)}",
        "labels": {"app": f"app-{number % 7}", "index": str(number)},
    }
    return {"metadata": meta, "spec": spec, "status": status}


def container(rng: Random, index: int = 0) -> Json:
    requests: Json = {"cpu": f"{rng.randrange(1, 20) * 100}m", "memory": f"{rng.randrange(1, 16) * 256}Mi"}
    if rng.random() < 0.1:
        requests[GPU] = "1"
    made: Json = {"name": f"c{index}", "image": rng.choice(IMAGES), "resources": {"requests": requests}}
    if rng.random() < 0.05:
        made["ports"] = [{"hostPort": rng.choice((80, 443, 8080)), "protocol": "TCP"}]
    return made


def _priority(rng: Random, spec: Json) -> None:
    spec["priority"] = rng.choice((-10, 0, 10, 1000, 2_000_001_000))


def _tolerations(rng: Random, spec: Json) -> None:
    spec["tolerations"] = [
        {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"},
        {"key": rng.choice(("spot", "drain")), "operator": "Exists"},
    ]


def _selector(rng: Random, spec: Json) -> None:
    spec["nodeSelector"] = {"zone": rng.choice(ZONES)}


def _affinity(rng: Random, spec: Json) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [rng.choice(ZONES), rng.choice(ZONES)]}]}
    spec["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": rng.randrange(1, 101), "preference": term}],
        }
    }


def _more_containers(rng: Random, spec: Json) -> None:
    spec["initContainers"] = [container(rng, 7), {**container(rng, 8), "restartPolicy": "Always"}]


def _overhead(rng: Random, spec: Json) -> None:
    spec["overhead"] = {"cpu": "100m", "memory": "64Mi"}
