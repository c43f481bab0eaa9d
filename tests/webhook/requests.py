"""Admission requests and workloads in one line."""

from collections.abc import Mapping
from typing import Any

from kubenexus.webhook.admission import AdmissionRequest, GroupVersionKind
from kubenexus.webhook.json_patch import pointer

Object = dict[str, Any]

GROUPS = {
    "Job": "batch",
    "CronJob": "batch",
    "Deployment": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "ReplicaSet": "apps",
    "JobSet": "jobset.x-k8s.io",
    "PyTorchJob": "kubeflow.org",
    "TFJob": "kubeflow.org",
    "MPIJob": "kubeflow.org",
    "RayCluster": "ray.io",
    "RayJob": "ray.io",
    "SparkApplication": "sparkoperator.k8s.io",
    "ResourceReservation": "scheduling.kubenexus.io",
    "LocalQueue": "kueue.x-k8s.io",
    "ClusterQueue": "kueue.x-k8s.io",
}
NAME, MIN = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"


def request(kind: str, data: Any, *, old: Any = None, operation: str = "", namespace: str = "ml") -> AdmissionRequest:
    return AdmissionRequest(
        uid="5f0c9a7e-1111-2222-3333-444444444444",
        kind=GroupVersionKind(group=GROUPS.get(kind, ""), version="v1", kind=kind),
        operation=operation or ("CREATE" if old is None else "UPDATE"),
        namespace=namespace,
        object=data,
        old_object=old,
    )


def meta(labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None, **more: Any) -> Object:
    return {"labels": dict(labels or {}), "annotations": dict(annotations or {})} | more


def template(labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None) -> Object:
    return {"metadata": meta(labels, annotations), "spec": {"containers": [{"name": "main"}]}}


def pod(labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None) -> Object:
    return template(labels, annotations) | {"apiVersion": "v1", "kind": "Pod"}


def job(inner: Object, parallelism: int | None = 4, completions: int | None = None, **metadata: Any) -> Object:
    spec = {"parallelism": parallelism, "completions": completions, "template": inner}
    return {"metadata": {"name": "train"} | metadata, "spec": {k: v for k, v in spec.items() if v is not None}}


def within(kind: str, inner: Object) -> Object:
    """A workload of this kind with one pod template, and 4 pods."""
    named: Object = {"metadata": {"name": "train"}}
    if kind == "Pod":
        return inner
    specs: Object = {
        "Job": {"parallelism": 4, "template": inner},
        "CronJob": {"jobTemplate": {"spec": {"parallelism": 4, "template": inner}}},
        "Deployment": {"replicas": 4, "template": inner},
        "StatefulSet": {"replicas": 4, "template": inner},
        "ReplicaSet": {"replicas": 4, "template": inner},
        "DaemonSet": {"template": inner},
        "JobSet": {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 2, "template": inner}}}]},
        "PyTorchJob": {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": inner}}},
        "TFJob": {"tfReplicaSpecs": {"Worker": {"replicas": 4, "template": inner}}},
        "MPIJob": {"mpiReplicaSpecs": {"Worker": {"replicas": 4, "template": inner}}},
        "RayCluster": ray(inner),
        "RayJob": {"rayClusterSpec": ray(inner)},
        "SparkApplication": {"executor": {"instances": 4} | inner["metadata"]},
    }
    return named | {"spec": specs[kind]}


def ray(inner: Object) -> Object:
    return {"headGroupSpec": {"template": {}}, "workerGroupSpecs": [{"replicas": 4, "template": inner}]}


def applied(data: Any, patch: Any) -> Any:
    """The object after a JSON patch of `add` operations: written for these tests alone."""
    import copy

    result = copy.deepcopy(data)
    for each in patch:
        assert each.op == "add"
        steps = [step.replace("~1", "/").replace("~0", "~") for step in each.path.split("/")[1:]]
        assert pointer(*steps) == each.path
        *way, last = steps
        place = result
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            assert last == "-"
            place.append(copy.deepcopy(each.value))
        else:
            place[last] = copy.deepcopy(each.value)
    return result
