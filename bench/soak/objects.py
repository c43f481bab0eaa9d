"""What a soak throws at a scheduler. A few dozen pods are a job with names of its own, so that whatever a
scheduler remembers by a label, a selector or a name has to be forgotten again."""

from typing import Any

Data = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
ZONES = ("a", "b", "c")
SCHEDULER = "soaked"
SIZES = tuple((f"{50 * (1 + n % 5)}m", f"{64 * (1 + n % 4)}Mi") for n in range(20))
NOT_READY: Data = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def node(name: str) -> Data:
    """As a kubelet would register it."""
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {HOST: name, ZONE: ZONES[int(name[1:]) % len(ZONES)]}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(number: int, job: int) -> Data:
    """The pods of a job (so many) are alike; of ten jobs, four have something to say about where."""
    which, index = divmod(number, job)
    name = f"job-{which}"
    labels = {"job-name": name, "index": str(index)}
    return _pod(f"{name}-{index}", labels, SIZES[which % len(SIZES)], _wish(which, name))


def too_large(number: int) -> Data:
    """Waits in vain until it is deleted."""
    return _pod(f"huge-{number}", {"huge": str(number)}, ("1000", "1Gi"), {})


def _pod(name: str, labels: dict[str, str], size: tuple[str, str], wish: Data) -> Data:
    asked = {"cpu": size[0], "memory": size[1]}
    containers = [{"name": "main", "image": "app:1", "resources": {"requests": asked}}]
    meta = {"name": name, "labels": labels}
    spec = {"schedulerName": SCHEDULER, "restartPolicy": "Never", "containers": containers, **wish}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _wish(number: int, job: str) -> Data:
    chosen = {"labelSelector": {"matchLabels": {"job-name": job}}}
    match number % 10:
        case 0:
            return {"nodeSelector": {ZONE: ZONES[number % len(ZONES)]}}
        case 1:
            return {"affinity": {"podAffinity": {_REQUIRED: [{**chosen, "topologyKey": ZONE}]}}}
        case 2:
            return {"affinity": {"podAntiAffinity": {_REQUIRED: [{**chosen, "topologyKey": HOST}]}}}
        case 3:
            evenly = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            return {"topologySpreadConstraints": [{**chosen, **evenly}]}
    return {}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
