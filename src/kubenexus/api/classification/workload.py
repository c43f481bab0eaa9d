"""The kind of work of a pod. Pure: it reads the pod alone."""

import enum
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys import tenant, workload
from kubenexus.api.keys.reading import read_key


class WorkloadType(enum.StrEnum):
    """The five kinds of work. Batch and training are packed, the others are spread."""

    TRAINING = "training"
    INFERENCE = "inference"
    BATCH = "batch"
    SERVICE = "service"
    INTERACTIVE = "interactive"

    @property
    def packs(self) -> bool:
        return self in _PACKED


_PACKED: Final = frozenset({WorkloadType.TRAINING, WorkloadType.BATCH})


class Workload(NamedTuple):
    """A pod's kind of work and what showed it (`label spark-role`, `owner Job`). `preemptible`: the pod agrees to be
    preempted, so it may fill gaps."""

    type: WorkloadType
    reason: str
    preemptible: bool = False


def classify(pod: Pod) -> Workload:
    """Returns the kind of work of a pod."""
    meta = pod.metadata
    said = read_key(workload.TYPE, meta.labels, meta.annotations)
    if said.value is not None:
        return Workload(WorkloadType(said.value), f"key {said.source_key}", is_preemptible(pod))
    owner = next((each.kind for each in meta.owner_references if each.controller), "")
    if owner in ("Job", "CronJob"):
        return Workload(WorkloadType.BATCH, f"owner {owner}", is_preemptible(pod))
    return Workload(WorkloadType.SERVICE, "no mark of another kind", is_preemptible(pod))


def is_preemptible(pod: Pod) -> bool:
    """Returns whether a pod agrees to be preempted: it says so, or its priority is negative."""
    meta = pod.metadata
    said: bool | None = read_key(tenant.PREEMPTIBLE, meta.labels, meta.annotations).value
    return pod.spec.priority < 0 if said is None else said
