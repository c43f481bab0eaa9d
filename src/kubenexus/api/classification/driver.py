"""Drivers: the pod of a job that makes or leads the others (a Spark driver, a Ray head, an MPI launcher)."""

from collections.abc import Mapping
from typing import Final

from kubenexus.api.core import Pod
from kubenexus.api.keys import workload
from kubenexus.api.keys.reading import read_key

# By label: the values by which operators mark a driver, in lower case.
_DRIVERS: Final[Mapping[str, frozenset[str]]] = {
    workload.ROLE.key: frozenset({"driver"}),
    workload.SPARK_ROLE.key: frozenset({"driver"}),
    "ray.io/node-type": frozenset({"head"}),
    "training.kubeflow.org/replica-type": frozenset({"master", "chief", "launcher"}),
    "training.kubeflow.org/job-role": frozenset({"master", "chief", "launcher"}),
    "mpi-job-role": frozenset({"launcher"}),
}
# Labels that a driver and its workers have in common, the most telling first.
_JOB_LABELS: Final = (
    workload.SPARK_APP_SELECTOR.key,
    "sparkoperator.k8s.io/app-name",
    "ray.io/cluster",
    "training.kubeflow.org/job-name",
)
_LONGEST: Final = 63  # characters of a label's value


def is_driver(labels: Mapping[str, str]) -> bool:
    """Whether a pod with these labels is the driver of its job. Other pods mostly have none of these labels."""
    return any(key in labels and labels[key].lower() in values for key, values in _DRIVERS.items())


def job_label(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the label that a driver has in common with its workers, None if it has no such label."""
    found = ((key, labels[key]) for key in _JOB_LABELS if labels.get(key) and len(labels[key]) <= _LONGEST)
    return next(found, None)


def worker_size(pod: Pod) -> tuple[int, int, int]:
    """Returns how many workers a driver will make, and the milli CPU and bytes of memory of each, by its annotations;
    0 workers if they state none. With dynamic allocation it is the fewest workers."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    dynamic = read_key(workload.DYNAMIC_ALLOCATION, labels, annotations).value
    count = read_key(workload.MIN_EXECUTORS if dynamic else workload.EXECUTOR_COUNT, labels, annotations).value or 0
    cpu = read_key(workload.EXECUTOR_CPU, labels, annotations).value or 0
    memory = read_key(workload.EXECUTOR_MEMORY, labels, annotations).value or 0
    return (count, cpu, memory) if cpu or memory else (0, 0, 0)
