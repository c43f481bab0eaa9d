"""The golden vectors of classification: what the first KubeNexus, written in Go, answers, and what ours does.

Each row is reproduced, or a deliberate change with the id of the bug that it mends. `make docs` writes the table to
docs/classification-golden.md (`golden_page`).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kubenexus.api.classification.workload import classify
from kubenexus.testing.builders import a_pod
from tests.api.classification.builders import an_owned_pod
from tests.golden_vectors import Vector

NAME, COMPONENT, TYPE = "app.kubernetes.io/name", "app.kubernetes.io/component", "workload.kubenexus.io/type"
OWN_GANG = {"pod-group.scheduling.kubenexus.io/name": "g", "pod-group.scheduling.kubenexus.io/min-available": "4"}
OLD_GANG = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}
SPARK = {"spark-role": "executor"}


def kind(labels: Mapping[str, str] | None = None, **pod: Any) -> str:
    return classify(a_pod(labels=labels, **pod)).type.value


def owned(kind: str, api_version: str, **pod: Any) -> str:
    return classify(an_owned_pod(kind, api_version, **pod)).type.value


def strategy(labels: Mapping[str, str] | None = None, **pod: Any) -> str:
    """Returns the two-valued answer of the first part: batch is packed, a service is spread."""
    return "batch" if classify(a_pod(labels=labels, **pod)).type.packs else "service"


def owned_strategy(kind: str, api_version: str) -> str:
    return "batch" if classify(an_owned_pod(kind, api_version)).type.packs else "service"


def preemptible(labels: Mapping[str, str] | None = None, **pod: Any) -> str:
    return "preemptible" if classify(a_pod(labels=labels, **pod)).preemptible else "not preemptible"


def gang(**pod: Any) -> str:
    return "gang" if classify(a_pod(**pod)).gang else "no gang"


BATCH_OR_SERVICE: tuple[Vector, ...] = (
    Vector("labels of a gang", lambda: strategy(OWN_GANG), "batch", "batch"),
    Vector(f"label `{TYPE}: batch`", lambda: strategy({TYPE: "batch"}), "batch", "batch"),
    Vector(f"label `{TYPE}: service`", lambda: strategy({TYPE: "service"}), "service", "service"),
    Vector(f"label `{TYPE}: training`", lambda: strategy({TYPE: "training"}), "service", "batch", "CLS-1"),
    Vector(f"label `{TYPE}: Batch`", lambda: strategy({TYPE: "Batch"}), "service", "batch", "CLS-1"),
    *(
        Vector(f"label `{key}`", partial(strategy, {key: "x"}), "batch", "batch")
        for key in (
            "spark-role",
            "spark-app-id",
            "tf-replica-type",
            "pytorch-replica-type",
            "mpi-job-role",
            "ray.io/node-type",
            "kubeflow.org/component",
            "batch.kubernetes.io/job-name",
        )
    ),
    *(
        Vector(f"label `{key}`", partial(strategy, {key: "x"}), "service", "batch", "CLS-2")
        for key in (
            "training.kubeflow.org/job-name",
            "training.kubeflow.org/replica-type",
            "training.kubeflow.org/job-role",
            "jobset.sigs.k8s.io/jobset-name",
            "spark-app-selector",
            "pytorch-job-name",
            "volcano.sh/job-name",
        )
    ),
    Vector(
        "label `leaderworkerset.sigs.k8s.io/name`: a model server",
        lambda: strategy({"leaderworkerset.sigs.k8s.io/name": "x"}),
        "service",
        "service",
    ),
    Vector("owner Job", lambda: owned_strategy("Job", "batch/v1"), "batch", "batch"),
    Vector("owner CronJob", lambda: owned_strategy("CronJob", "batch/v1"), "batch", "batch"),
    *(
        Vector(f"owner {each}", partial(owned_strategy, each, f"{group}/v1"), "service", "batch", "CLS-2")
        for each, group in {
            "PyTorchJob": "kubeflow.org",
            "TFJob": "kubeflow.org",
            "MPIJob": "kubeflow.org",
            "XGBoostJob": "kubeflow.org",
            "PaddleJob": "kubeflow.org",
            "MXJob": "kubeflow.org",
            "JAXJob": "kubeflow.org",
            "TrainJob": "trainer.kubeflow.org",
            "RayJob": "ray.io",
            "RayCluster": "ray.io",
            "SparkApplication": "sparkoperator.k8s.io",
            "JobSet": "jobset.x-k8s.io",
            "Workflow": "argoproj.io",
        }.items()
    ),
    Vector("owner DaemonSet", lambda: owned_strategy("DaemonSet", "apps/v1"), "service", "service"),
    Vector("owner StatefulSet", lambda: owned_strategy("StatefulSet", "apps/v1"), "service", "service"),
    Vector("label `app: nginx`", lambda: strategy({"app": "nginx"}), "service", "service"),
    Vector("no labels", lambda: strategy({}), "service", "service"),
    Vector(
        "name of a gang without a minimum, and `spark-role`",
        lambda: strategy({"pod-group.scheduling.kubenexus.io/name": "g"} | SPARK),
        "batch",
        "batch",
    ),
    Vector(
        "labels `app: tensorflow` and `job-role: worker`",
        lambda: strategy({"app": "tensorflow", "job-role": "worker"}),
        "service",
        "service",
    ),
)

KINDS: tuple[Vector, ...] = (
    *(
        Vector(f"label `{TYPE}: {each}`", partial(kind, {TYPE: each}), each, each)
        for each in ("training", "inference", "batch", "service", "interactive")
    ),
    Vector(f"label `{TYPE}: INFERENCE`", lambda: kind({TYPE: "INFERENCE"}), "inference", "inference"),
    Vector(f"annotation `{TYPE}: batch`", lambda: kind(annotations={TYPE: "batch"}), "batch", "batch"),
    Vector(
        f"label `{TYPE}: nonsense`, and `spark-role`",
        lambda: kind({TYPE: "nonsense"} | SPARK),
        "unknown",
        "batch",
        "CLS-1",
    ),
    *(
        Vector(f"label `{key}`", partial(kind, {key: "x"}), "interactive", "interactive")
        for key in ("app.jupyter.org/hub-version", "app.rstudio.com/rstudio-server")
    ),
    *(
        Vector(f"label `{NAME}: {name}`", partial(kind, {NAME: name}), "interactive", "interactive")
        for name in ("jupyter", "jupyterhub", "rstudio", "code-server", "vscode", "my-ide", "repl", "lab", "notebook-1")
    ),
    *(
        Vector(f"label `{NAME}: {name}`", partial(kind, {NAME: name}), "interactive", "service", "PC-2")
        for name in ("identity", "video", "provider", "gitlab", "label", "available", "replica")
    ),
    *(
        Vector(f"image `{image}`", partial(kind, image=image), "interactive", "interactive")
        for image in (
            "jupyter/scipy-notebook",
            "rocker/rstudio",
            "codercom/code-server",
            "acme/vscode",
            "nteract/hydrogen",
        )
    ),
    Vector("image `app:jupyter`", lambda: kind(image="app:jupyter"), "interactive", "service", "PC-2"),
    Vector(
        "owner Job, image `jupyter/scipy-notebook`",
        lambda: owned("Job", "batch/v1", image="jupyter/scipy-notebook"),
        "interactive",
        "batch",
        "PC-3",
    ),
    *(
        Vector(f"label `{key}`", partial(kind, {key: "x"}), "service", "training", "PC-3")
        for key in ("training.kubeflow.org/job-name", "pytorch.org/job-name", "tensorflow.org/job-name")
    ),
    Vector(
        "labels `training.kubeflow.org/job-name` and `spark-role`",
        lambda: kind({"training.kubeflow.org/job-name": "x"} | SPARK),
        "training",
        "training",
    ),
    Vector("label `spark-role`", lambda: kind(SPARK), "batch", "batch"),
    Vector("label `spark-role`, 1 GPU", lambda: kind(SPARK, gpu=1), "batch", "batch"),
    Vector("label `spark-role`, 2 GPUs", lambda: kind(SPARK, gpu=2), "training", "training"),
    Vector(
        "label `spark-role`, 2 GPUs of AMD",
        lambda: kind(SPARK, requests={"amd.com/gpu": 2}),
        "batch",
        "training",
        "X-6",
    ),
    Vector("2 GPUs", lambda: kind(gpu=2), "service", "service"),
    *(
        Vector(f"label `{key}`", partial(kind, {key: "x"}), "inference", "inference")
        for key in (
            "serving.kubeflow.org/inferenceservice",
            "serving.kserve.io/inferenceservice",
            "seldon.io/deployment",
        )
    ),
    *(
        Vector(f"label `{COMPONENT}: {each}`", partial(kind, {COMPONENT: each}), "inference", "inference")
        for each in ("predictor", "inference", "serving")
    ),
    Vector(f"label `{COMPONENT}: observing`", lambda: kind({COMPONENT: "observing"}), "service", "service"),
    Vector(
        "label `serving.kserve.io/inferenceservice`, in a gang",
        lambda: kind({"serving.kserve.io/inferenceservice": "x"} | OWN_GANG),
        "batch",
        "inference",
        "PC-3",
    ),
)

GANGS: tuple[Vector, ...] = (
    Vector("labels `pod-group.scheduling.kubenexus.io/*`", lambda: gang(labels=OWN_GANG), "no gang", "gang", "PC-1"),
    Vector("labels `pod-group.scheduling.sigs.k8s.io/*`", lambda: gang(labels=OLD_GANG), "no gang", "gang", "PC-1"),
    Vector("such a gang: its kind", lambda: kind(OWN_GANG), "batch", "training", "PC-1"),
    Vector(
        "annotation `scheduling.x-k8s.io/pod-group`",
        lambda: gang(annotations={"scheduling.x-k8s.io/pod-group": "g"}),
        "gang",
        "gang",
    ),
    Vector(
        "label `gang.scheduling.kubenexus.io/name`, annotation `scheduling.kubenexus.io/min-available`",
        lambda: gang(
            labels={"gang.scheduling.kubenexus.io/name": "g"},
            annotations={"scheduling.kubenexus.io/min-available": "2"},
        ),
        "gang",
        "gang",
    ),
    Vector(
        "label `gang.scheduling.kubenexus.io/name` alone: no minimum",
        lambda: gang(labels={"gang.scheduling.kubenexus.io/name": "g"}),
        "gang",
        "no gang",
        "X-3",
    ),
)

PREEMPTIBLE: tuple[Vector, ...] = (
    *(
        Vector(
            f"label `workload.kubenexus.io/preemptible: {text}`",
            partial(preemptible, {"workload.kubenexus.io/preemptible": text}),
            answer,
            answer,
        )
        for text, answer in (("true", "preemptible"), ("false", "not preemptible"))
    ),
    Vector("priority -1", lambda: preemptible(priority=-1), "preemptible", "preemptible"),
    Vector("priority 0", lambda: preemptible(priority=0), "preemptible", "not preemptible", "X-2"),
    Vector("priority 100", lambda: preemptible(priority=100), "preemptible", "not preemptible", "X-2"),
    Vector("priority 101", lambda: preemptible(priority=101), "not preemptible", "not preemptible"),
    Vector(
        "priority class `low-priority`, priority 101",
        lambda: preemptible(priority=101, priority_class_name="low-priority"),
        "preemptible",
        "not preemptible",
        "X-2",
    ),
    *(
        Vector(
            f"label `{key}: true`, priority 101",
            partial(preemptible, {key: "true"}, priority=101),
            "not preemptible",
            "preemptible",
            "PC-4",
        )
        for key in ("scheduling.kubenexus.io/backfill", "backfill.scheduling.kubenexus.io/eligible")
    ),
)

SECTIONS = {
    "ClassifyPod: batch or service": BATCH_OR_SERVICE,
    "ProfileClassifier: the kind of work": KINDS,
    "ProfileClassifier: gangs": GANGS,
    "ProfileClassifier: preemptible pods": PREEMPTIBLE,
}
