"""The objects that the demo creates, as a user would write them."""

from typing import Any

from kubenexus.api.keys import network, tenant
from kubenexus.sim.demo.demo_nodes import GPU
from kubenexus.sim.kubelets.annotations import RUN_SECONDS

SCHEDULER = "kubenexus-scheduler"
GANG = "pod-group.scheduling.kubenexus.io"
Manifest = dict[str, Any]


def service(name: str) -> Manifest:
    """Selects the pods with this `app`: schedulers spread them."""
    return _object("v1", "Service", name, {"selector": {"app": name}, "ports": [{"port": 80}]})


def deployment(name: str, replicas: int, cpu: str) -> Manifest:
    spec = {"replicas": replicas, **_selecting(name), "template": _template(name, _spec(cpu))}
    return _object("apps/v1", "Deployment", name, spec)


def daemon_set(name: str) -> Manifest:
    """Runs on every node and tolerates all taints."""
    pod = _spec("100m", memory="64Mi", tolerations=[{"operator": "Exists"}])
    return _object("apps/v1", "DaemonSet", name, {**_selecting(name), "template": _template(name, pod)})


def stateful_set(name: str, replicas: int, cpu: str) -> Manifest:
    """At most one of its pods runs on a node."""
    apart = {"topologyKey": network.HOSTNAME.key, "labelSelector": {"matchLabels": {"app": name}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    spec = {"replicas": replicas, "serviceName": name, **_selecting(name)}
    spec["template"] = _template(name, _spec(cpu, affinity=affinity))
    return _object("apps/v1", "StatefulSet", name, spec)


def job(name: str, app: str, pods: int, cpu: str, *, seconds: float | None = None, gpu: int = 0) -> Manifest:
    """An indexed job: all pods run at once; each succeeds after `seconds`, or runs on."""
    template = _template(app, _spec(cpu, gpu=gpu, restartPolicy="Never"))
    if seconds is not None:
        template["metadata"]["annotations"] = {RUN_SECONDS: str(seconds)}
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "template": template}
    return _object("batch/v1", "Job", name, spec)


def pod(name: str, cpu: str, gpu: int, *, app: str = "", namespace: str = "") -> Manifest:
    made = _object("v1", "Pod", name, _spec(cpu, gpu=gpu))
    made["metadata"] |= {"labels": {"app": app or name}, **({"namespace": namespace} if namespace else {})}
    return made


def namespace(name: str, tier: str = "") -> Manifest:
    """A namespace of a tenant. Without a tier, its label is missing, and the tenant is a bronze one."""
    labels = {tenant.TIER.key: tier} if tier else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def priority_class(name: str, value: int) -> Manifest:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def gang(name: str, members: int, cpu: str, gpu: int, *, priority: str = "") -> list[Manifest]:
    """Pods that start together or not at all."""
    made = [pod(f"{name}-{number}", cpu, gpu) for number in range(members)]
    for each in made:
        each["spec"] |= {"priorityClassName": priority} if priority else {}
        each["metadata"]["labels"] = {"app": name, f"{GANG}/name": name, f"{GANG}/min-available": str(members)}
    return made


def _object(version: str, kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _selecting(name: str) -> Manifest:
    return {"selector": {"matchLabels": {"app": name}}}


def _template(app: str, spec: Manifest) -> Manifest:
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def _spec(cpu: str, *, memory: str = "1Gi", gpu: int = 0, **more: Any) -> Manifest:
    asked = {"cpu": cpu, "memory": memory, **({GPU: str(gpu)} if gpu else {})}
    container = {"name": "main", "image": "app:1", "resources": {"requests": asked, "limits": asked}}
    tolerated = [{"key": GPU, "operator": "Exists"}] if gpu else []
    return {"schedulerName": SCHEDULER, "containers": [container], "tolerations": tolerated, **more}
