"""The pods that an object makes: the templates in it, and how many pods each of them becomes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kubenexus.webhook.admission import Object, items, part, texts

Path = tuple[str, ...]

MAX_POD_SETS: Final = 256  # templates of one object that are looked at
_MAX_COUNT: Final = 2**31 - 1

BATCH, APPS, KUBEFLOW, RAY = "batch", "apps", "kubeflow.org", "ray.io"
JOB_SET, SPARK = "jobset.x-k8s.io", "sparkoperator.k8s.io"


class PodSet(msgspec.Struct, frozen=True):
    """Pods of one template. `meta` and `spec_path` are where it has its labels and its spec. `most` is how many pods
    there are at the same time, None if the object does not say; `least` how many start together. `gang` tells the
    gangs of one object apart; None: the pods start before or after the others and cannot wait for them."""

    meta: Path
    spec_path: Path
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Object
    most: int | None = None
    least: int = 0
    gang: str | None = ""

    @property
    def where(self) -> str:
        """The template in a message: `spec.template`."""
        path = self.meta[:-1] if self.meta[-1] == "metadata" else self.meta
        return ".".join(path).replace(".metadata", "") or "metadata"


def pod_sets(group: str, kind: str, data: Object) -> list[PodSet]:
    """Returns the pod sets of an object, at most `MAX_POD_SETS` and one more; none for kinds that make no pods."""
    read = KINDS.get((group, kind))
    found: list[PodSet] = []
    for each in read(data) if read is not None else ():
        found.append(each)
        if len(found) > MAX_POD_SETS:
            break
    return found


def makes_pods(group: str, kind: str) -> bool:
    """Whether objects of this kind have templates that `pod_sets` reads."""
    return (group, kind) in KINDS


def whole(data: object, key: str, default: int) -> int:
    """Returns a count of an object, the default if it is absent or not one."""
    found = data.get(key) if isinstance(data, dict) else None
    return found if type(found) is int and 0 <= found <= _MAX_COUNT else default


def _template(data: Object, path: Path, most: int | None, least: int = 0, gang: str | None = "") -> PodSet:
    """Returns the pod set of a template; `path` leads from the object to it."""
    found: Any = data
    for step in path:
        if isinstance(found, list) and step.isdecimal():  # an index that was counted in the list
            found = found[int(step)]
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return PodSet(
        (*path, "metadata"),
        (*path, "spec"),
        texts(found, "metadata", "labels"),
        texts(found, "metadata", "annotations"),
        part(found, "spec"),
        most,
        least,
        gang,
    )


def _pod(data: Object) -> Iterator[PodSet]:
    yield _template(data, (), None)


def _replicated(data: Object) -> Iterator[PodSet]:
    count = whole(part(data, "spec"), "replicas", 1)
    yield _template(data, ("spec", "template"), count, count)


def _daemon_set(data: Object) -> Iterator[PodSet]:
    yield _template(data, ("spec", "template"), None)


def job_members(spec: object) -> int:
    """Returns how many pods a Job runs at the same time."""
    parallelism = whole(spec, "parallelism", 1)
    return min(parallelism, whole(spec, "completions", parallelism))


def _job(data: Object) -> Iterator[PodSet]:
    count = job_members(part(data, "spec"))
    yield _template(data, ("spec", "template"), count, count)


def _cron_job(data: Object) -> Iterator[PodSet]:
    count = job_members(part(data, "spec", "jobTemplate", "spec"))
    yield _template(data, ("spec", "jobTemplate", "spec", "template"), count, count)


def _job_set(data: Object) -> Iterator[PodSet]:
    """A JobSet that starts its jobs one after the other has a gang for each: the first would wait for the others."""
    jobs = items(data, "spec", "replicatedJobs")
    ordered = part(data, "spec", "startupPolicy").get("startupPolicyOrder") == "InOrder"
    ordered = ordered or any(items(each, "dependsOn") for each in jobs[:MAX_POD_SETS])
    for number, each in enumerate(jobs):
        count = whole(each, "replicas", 1) * job_members(part(each, "template", "spec"))
        name = each.get("name") if isinstance(each, dict) else None
        gang = str(name or number) if ordered else ""
        path = ("spec", "replicatedJobs", str(number), "template", "spec", "template")
        yield _template(data, path, count, count, gang)


def _training(field: str) -> Callable[[Object], Iterator[PodSet]]:
    def read(data: Object) -> Iterator[PodSet]:
        elastic = part(data, "spec", "elasticPolicy")
        for role, replicas in part(data, "spec", field).items():
            count = whole(replicas, "replicas", 1)
            worker = role == "Worker" and bool(elastic)
            most = max(count, whole(elastic, "maxReplicas", count)) if worker else count
            least = whole(elastic, "minReplicas", count) if worker else count
            yield _template(data, ("spec", field, role, "template"), most, least)

    return read


def _mpi_job(data: Object) -> Iterator[PodSet]:
    """The launcher of an MPIJob is made with the workers, or when all of them are ready."""
    waits = part(data, "spec").get("launcherCreationPolicy") == "WaitForWorkersReady"
    for role, replicas in part(data, "spec", "mpiReplicaSpecs").items():
        count = whole(replicas, "replicas", 1 if role == "Launcher" else 0)
        gang = None if waits and role == "Launcher" else ""
        yield _template(data, ("spec", "mpiReplicaSpecs", role, "template"), count, count, gang)


def _ray(*root: str) -> Callable[[Object], Iterator[PodSet]]:
    def read(data: Object) -> Iterator[PodSet]:
        cluster = part(data, *root)
        if not cluster:
            return
        grows = cluster.get("enableInTreeAutoscaling") is True
        yield _template(data, (*root, "headGroupSpec", "template"), 1, 1)
        for number, group in enumerate(items(cluster, "workerGroupSpecs")):
            hosts = whole(group, "numOfHosts", 1)
            count = 0 if part(group).get("suspend") is True else whole(group, "replicas", 0)
            least = whole(group, "minReplicas", 0) if grows else count
            most = max(count, whole(group, "maxReplicas", _MAX_COUNT)) if grows else count
            path = (*root, "workerGroupSpecs", str(number), "template")
            yield _template(data, path, most * hosts, least * hosts)

    return read


def _spark(data: Object) -> Iterator[PodSet]:
    """The driver makes the executors, so it cannot wait for them; with dynamic allocation they come one by one."""
    spec = part(data, "spec")
    grows = part(spec, "dynamicAllocation").get("enabled") is True
    for role in ("driver", "executor"):
        pods = part(spec, role)
        count = 1 if role == "driver" else whole(pods, "instances", 1)
        most = None if grows and role == "executor" else count
        member = role == "executor" and not grows
        labels, annotations = texts(pods, "labels"), texts(pods, "annotations")
        path = ("spec", role)
        yield PodSet(path, path, labels, annotations, pods, most, count, "" if member else None)


KINDS: Final[Mapping[tuple[str, str], Callable[[Object], Iterator[PodSet]]]] = {
    ("", "Pod"): _pod,
    ("", "ReplicationController"): _replicated,
    (APPS, "ReplicaSet"): _replicated,
    (APPS, "Deployment"): _replicated,
    (APPS, "StatefulSet"): _replicated,
    (APPS, "DaemonSet"): _daemon_set,
    (BATCH, "Job"): _job,
    (BATCH, "CronJob"): _cron_job,
    (JOB_SET, "JobSet"): _job_set,
    (KUBEFLOW, "PyTorchJob"): _training("pytorchReplicaSpecs"),
    (KUBEFLOW, "TFJob"): _training("tfReplicaSpecs"),
    (KUBEFLOW, "XGBoostJob"): _training("xgbReplicaSpecs"),
    (KUBEFLOW, "MPIJob"): _mpi_job,
    (RAY, "RayCluster"): _ray("spec"),
    (RAY, "RayJob"): _ray("spec", "rayClusterSpec"),
    (RAY, "RayService"): _ray("spec", "rayClusterConfig"),
    (SPARK, "SparkApplication"): _spark,
}
