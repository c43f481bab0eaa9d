"""What operators write on their pods, as tables: owners here, labels in the registry of keys.

Each row is what the operator's code sets; the fixtures of tests/api/classification name the module and file.
"""

from collections.abc import Mapping
from typing import Final

from kubenexus.api.classification.workload_type import WorkloadType
from kubenexus.api.keys import workload
from kubenexus.api.meta import OwnerReference

MAX_OWNERS: Final = 16  # owner references that are looked at

_KUBEFLOW: Final = {"kubeflow.org": WorkloadType.TRAINING}
_RAY: Final = {"ray.io": WorkloadType.BATCH}
_DYNAMO: Final = {"nvidia.com": WorkloadType.INFERENCE}
_GROVE: Final = {"grove.io": WorkloadType.INFERENCE}

# By kind and API group: other projects have kinds of the same name.
OWNERS: Final[Mapping[str, Mapping[str, WorkloadType]]] = {
    "Job": {"batch": WorkloadType.BATCH, "batch.volcano.sh": WorkloadType.BATCH},
    "CronJob": {"batch": WorkloadType.BATCH},
    "JobSet": {"jobset.x-k8s.io": WorkloadType.BATCH},
    "Workflow": {"argoproj.io": WorkloadType.BATCH},
    "SparkApplication": {"sparkoperator.k8s.io": WorkloadType.BATCH, "spark.apache.org": WorkloadType.BATCH},
    "RayCluster": _RAY,
    "RayJob": _RAY,
    "RayService": {"ray.io": WorkloadType.INFERENCE},
    "PyTorchJob": _KUBEFLOW,
    "TFJob": _KUBEFLOW,
    "MPIJob": _KUBEFLOW,
    "XGBoostJob": _KUBEFLOW,
    "PaddleJob": _KUBEFLOW,
    "JAXJob": _KUBEFLOW,
    "MXJob": _KUBEFLOW,
    "MXNetJob": _KUBEFLOW,
    "TrainJob": {"trainer.kubeflow.org": WorkloadType.TRAINING},
    "InferenceService": {"serving.kserve.io": WorkloadType.INFERENCE},
    "SeldonDeployment": {"machinelearning.seldon.io": WorkloadType.INFERENCE},
    # Its pods run until they are deleted, and all examples of the project are model servers.
    "LeaderWorkerSet": {"leaderworkerset.x-k8s.io": WorkloadType.INFERENCE},
    "PodClique": _GROVE,
    "PodCliqueSet": _GROVE,
    "DynamoGraphDeployment": _DYNAMO,
    "DynamoComponentDeployment": _DYNAMO,
    "Notebook": {"kubeflow.org": WorkloadType.INTERACTIVE},
}

# By falling precedence. A RayService's pods have marks of a model server and of a batch job.
LABELS: Final = {
    WorkloadType.INTERACTIVE: tuple(each.key for each in workload.INTERACTIVE.spellings),
    WorkloadType.TRAINING: tuple(each.key for each in workload.TRAINING.spellings),
    WorkloadType.INFERENCE: tuple(each.key for each in workload.INFERENCE.spellings),
    WorkloadType.BATCH: tuple(each.key for each in workload.BATCH.spellings),
}
LABEL_KEYS: Final = frozenset(key for keys in LABELS.values() for key in keys) | workload.RAY_ORIGIN.keys
_RAY_SERVICE: Final = "RayService"

Mark = tuple[WorkloadType, str]


def owner_mark(owners: list[OwnerReference]) -> Mark | None:
    """Returns the kind of work that the first known owner stands for, and the owner's kind."""
    for owner in owners[:MAX_OWNERS]:
        groups = OWNERS.get(owner.kind)
        if groups is not None:
            found = groups.get(owner.api_version.partition("/")[0])
            if found is not None:
                return found, f"owner {owner.kind}"
    return None


def strongest_mark(labels: Mapping[str, str], owner: Mark | None) -> Mark | None:
    """Returns the mark of the highest precedence among the labels and the owner."""
    for kind, keys in LABELS.items():
        for key in keys:
            if key in labels:
                return kind, f"label {key}"
        if kind is WorkloadType.INFERENCE and labels.get(workload.RAY_ORIGIN.key) == _RAY_SERVICE:
            return kind, f"label {workload.RAY_ORIGIN.key}"
        if owner is not None and owner[0] is kind:
            return owner
    return None
