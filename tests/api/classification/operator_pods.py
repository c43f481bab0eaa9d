"""Pods with the labels, annotations and owners that operators really set on them.

The comment above each names where that was read: a Go module with its version, or a repository, and the file. Values
are made up.
"""

from typing import NamedTuple

from kubenexus.api.classification.workload import WorkloadType
from kubenexus.api.core import Pod
from kubenexus.testing.builders import a_pod
from tests.api.classification.builders import an_owned_pod

TRAINING, INFERENCE = WorkloadType.TRAINING, WorkloadType.INFERENCE
BATCH, INTERACTIVE, SERVICE = WorkloadType.BATCH, WorkloadType.INTERACTIVE, WorkloadType.SERVICE


class OperatorPod(NamedTuple):
    case: str
    pod: Pod
    type: WorkloadType
    reason: str


# k8s.io/api@v0.37.1, batch/v1/types.go; the Job controller adds both pairs of labels.
JOB = {
    "batch.kubernetes.io/job-name": "nightly",
    "batch.kubernetes.io/controller-uid": "u-1",
    "job-name": "nightly",
    "controller-uid": "u-1",
}

# sigs.k8s.io/jobset@v0.8.0, pkg/controllers/jobset_controller.go (labelAndAnnotateObject); also as annotations.
JOBSET = {
    "jobset.sigs.k8s.io/jobset-name": "llama",
    "jobset.sigs.k8s.io/replicatedjob-name": "workers",
    "jobset.sigs.k8s.io/replicatedjob-replicas": "1",
    "jobset.sigs.k8s.io/global-replicas": "1",
    "jobset.sigs.k8s.io/job-index": "0",
    "jobset.sigs.k8s.io/job-global-index": "0",
    "jobset.sigs.k8s.io/job-key": "8f5c",
    "jobset.sigs.k8s.io/restart-attempt": "0",
}

# sigs.k8s.io/lws@v0.6.0, pkg/controllers/leaderworkerset_controller.go, pkg/webhooks/pod_webhook.go. The owner is a
# StatefulSet. All of docs/examples but the samples of its features are model servers (vllm, sglang, tensorrt-llm,
# llamacpp, saxml).
LWS = {
    "leaderworkerset.sigs.k8s.io/name": "vllm",
    "leaderworkerset.sigs.k8s.io/worker-index": "0",
    "leaderworkerset.sigs.k8s.io/group-index": "0",
    "leaderworkerset.sigs.k8s.io/group-key": "a1b2",
    "leaderworkerset.sigs.k8s.io/template-revision-hash": "c3d4",
}

# github.com/ray-project/kuberay/ray-operator@v1.4.2, controllers/ray/common/pod.go (labelPod). The owner is a
# RayCluster, also for RayJob and RayService.
RAY = {
    "ray.io/is-ray-node": "yes",
    "ray.io/cluster": "tune",
    "ray.io/node-type": "worker",
    "ray.io/group": "small",
    "ray.io/identifier": "tune-worker",
    "app.kubernetes.io/name": "kuberay",
    "app.kubernetes.io/created-by": "kuberay-operator",
}

# volcano.sh/volcano@v1.10.0, pkg/controllers/job/job_controller_util.go (createJobPod), with the keys of
# volcano.sh/apis@v1.11.0, pkg/apis/batch/v1alpha1/labels.go.
VOLCANO = {
    "volcano.sh/job-name": "etl",
    "volcano.sh/job-namespace": "default",
    "volcano.sh/queue-name": "default",
    "volcano.sh/task-index": "0",
    "volcano.sh/task-spec": "worker",
}
VOLCANO_NOTES = {
    "volcano.sh/job-name": "etl",
    "volcano.sh/task-spec": "worker",
    "volcano.sh/template-uid": "etl-worker",
    "scheduling.k8s.io/group-name": "etl-7c1d",
}

# apache/spark, resource-managers/kubernetes/core, org/apache/spark/deploy/k8s/Constants.scala.
SPARK = {"spark-app-selector": "spark-1f2e", "spark-app-name": "pi", "spark-version": "4.0.0"}
# kubeflow/spark-operator, pkg/common/spark.go.
SPARK_OPERATOR = {
    "sparkoperator.k8s.io/app-name": "pi",
    "sparkoperator.k8s.io/launched-by-spark-operator": "true",
    "sparkoperator.k8s.io/submission-id": "9e21",
}

# ai-dynamo/grove, operator/internal/controller/podclique/components/pod/pod.go (getLabels), with the keys of
# operator/api/common/labels.go.
GROVE = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "vllm-disagg",
    "grove.io/podclique": "vllm-disagg-0-decode",
    "grove.io/podcliqueset-replica-index": "0",
    "grove.io/podgang": "vllm-disagg-0",
    "grove.io/podclique-pod-index": "0",
}
# ai-dynamo/dynamo, deploy/operator/internal/consts/consts.go.
DYNAMO = {
    "nvidia.com/dynamo-graph-deployment-name": "vllm-disagg",
    "nvidia.com/dynamo-component": "VllmDecodeWorker",
    "nvidia.com/dynamo-component-type": "worker",
    "nvidia.com/selector": "vllm-disagg-decode",
}

# jupyterhub/kubespawner, kubespawner/spawner.py (common_labels, _build_common_labels, _build_pod_labels).
JUPYTERHUB = {
    "app": "jupyterhub",
    "app.kubernetes.io/name": "jupyterhub",
    "app.kubernetes.io/managed-by": "kubespawner",
    "component": "singleuser-server",
    "hub.jupyter.org/username": "alice",
    "hub.jupyter.org/servername": "",
}


def hub_service(component: str) -> dict[str, str]:
    """jupyterhub/zero-to-jupyterhub-k8s@4.2.0, jupyterhub/templates/_helpers.tpl (jupyterhub.labels)."""
    return {
        "app": "jupyterhub",
        "component": component,
        "release": "jhub",
        "app.kubernetes.io/name": "jupyterhub",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "Helm",
    }


def llm_workload(component: str, **more: str) -> dict[str, str]:
    """github.com/kserve/kserve, pkg/controller/v1alpha2/llmisvc/workload_single_node.go and its neighbours."""
    return {
        "app.kubernetes.io/component": f"llminferenceservice-{component}",
        "app.kubernetes.io/name": "llama",
        "app.kubernetes.io/part-of": "llminferenceservice",
        **more,
    }


COSCHEDULED = {"scheduling.x-k8s.io/pod-group": "llama"}


def training_operator(operator: str, replica: str, **more: str) -> dict[str, str]:
    """github.com/kubeflow/training-operator@v1.9.2, pkg/controller.v1/common/pod.go (createNewPod), job_controller.go
    (GenLabels); the keys are in pkg/apis/kubeflow.org/v1/common_types.go."""
    return {
        "training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/operator-name": f"{operator}-controller",
        "training.kubeflow.org/replica-type": replica,
        "training.kubeflow.org/replica-index": "0",
        **more,
    }


def mpi_operator(role: str) -> dict[str, str]:
    """github.com/kubeflow/mpi-operator@v0.6.0, pkg/controller/mpi_job_controller.go (defaultLabels)."""
    return {
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-role": role,
    }


def kubeflow(kind: str, operator: str, replica: str) -> OperatorPod:
    pod = an_owned_pod(kind, "kubeflow.org/v1", labels=training_operator(operator, replica))
    return OperatorPod(f"{kind} {replica}", pod, TRAINING, "label training.kubeflow.org/job-name")


def job(labels: dict[str, str] | None = None, api_version: str = "batch/v1", **pod: object) -> Pod:
    return an_owned_pod("Job", api_version, labels=JOB | (labels or {}), **pod)


OPERATOR_PODS: tuple[OperatorPod, ...] = (
    OperatorPod("Job", job(), BATCH, "label batch.kubernetes.io/job-name"),
    # Before Kubernetes 1.27 the labels had no prefix.
    OperatorPod(
        "Job, old labels", an_owned_pod("Job", "batch/v1", labels={"job-name": "a"}, gpu=1), BATCH, "owner Job"
    ),
    OperatorPod("Job with 8 GPUs", job(gpu=8), TRAINING, "label batch.kubernetes.io/job-name and 8 GPUs"),
    OperatorPod("JobSet", job(JOBSET, annotations=JOBSET), BATCH, "label batch.kubernetes.io/job-name"),
    OperatorPod("JobSet with 8 GPUs", job(JOBSET, gpu=8), TRAINING, "label batch.kubernetes.io/job-name and 8 GPUs"),
    OperatorPod(
        "LeaderWorkerSet",
        an_owned_pod(
            "StatefulSet", "apps/v1", labels=LWS, annotations={"leaderworkerset.sigs.k8s.io/size": "2"}, gpu=8
        ),
        INFERENCE,
        "label leaderworkerset.sigs.k8s.io/name",
    ),
    OperatorPod(
        "LeaderWorkerSet in a gang",
        an_owned_pod("StatefulSet", "apps/v1", labels=LWS | COSCHEDULED, gpu=8),
        INFERENCE,
        "label leaderworkerset.sigs.k8s.io/name",
    ),
    kubeflow("PyTorchJob", "pytorchjob", "master"),
    kubeflow("PyTorchJob", "pytorchjob", "worker"),
    kubeflow("TFJob", "tfjob", "ps"),
    kubeflow("TFJob", "tfjob", "chief"),
    kubeflow("MPIJob", "mpijob", "launcher"),
    kubeflow("XGBoostJob", "xgboostjob", "master"),
    kubeflow("PaddleJob", "paddlejob", "worker"),
    kubeflow("JAXJob", "jaxjob", "worker"),
    # The last version with MXNet is v1.8.1: pkg/apis/kubeflow.org/v1/mxnet_types.go.
    kubeflow("MXJob", "mxjob", "worker"),
    OperatorPod(
        "MPI Operator, worker",
        an_owned_pod("MPIJob", "kubeflow.org/v2beta1", labels=mpi_operator("worker"), gpu=1),
        TRAINING,
        "label training.kubeflow.org/job-name",
    ),
    OperatorPod(
        "MPI Operator, launcher", job(mpi_operator("launcher")), TRAINING, "label training.kubeflow.org/job-name"
    ),
    # github.com/kubeflow/trainer/v2@v2.0.0: the JobSet plugin makes a JobSet, and trainer.kubeflow.org/
    # trainjob-ancestor-step is on its Jobs, not on the pods (manifests/base/runtimes/torch_distributed.yaml). With
    # coscheduling the pods have the label of the PodGroup (pkg/runtime/framework/plugins/coscheduling).
    OperatorPod(
        "TrainJob in a gang",
        job(JOBSET | COSCHEDULED, gpu=1),
        TRAINING,
        "label batch.kubernetes.io/job-name and gang",
    ),
    OperatorPod("TrainJob, 1 GPU, no gang", job(JOBSET, gpu=1), BATCH, "label batch.kubernetes.io/job-name"),
    OperatorPod(
        "RayCluster or RayJob, worker",
        an_owned_pod("RayCluster", "ray.io/v1", labels=RAY, gpu=1),
        BATCH,
        "label ray.io/node-type",
    ),
    OperatorPod(
        "RayCluster or RayJob, worker with 4 GPUs",
        an_owned_pod("RayCluster", "ray.io/v1", labels=RAY, gpu=4),
        TRAINING,
        "label ray.io/node-type and 4 GPUs",
    ),
    # controllers/ray/rayjob_controller.go (createNewK8sJob): the pod that submits is of a Job.
    OperatorPod("RayJob, submitter", job(), BATCH, "label batch.kubernetes.io/job-name"),
    # controllers/ray/common/pod.go (BuildPod): true on workers, false on the head at first.
    OperatorPod(
        "RayService, worker",
        an_owned_pod("RayCluster", "ray.io/v1", labels=RAY | {"ray.io/serve": "true"}, gpu=4),
        INFERENCE,
        "label ray.io/serve",
    ),
    OperatorPod(
        "RayService, head",
        an_owned_pod("RayCluster", "ray.io/v1", labels=RAY | {"ray.io/node-type": "head", "ray.io/serve": "false"}),
        INFERENCE,
        "label ray.io/serve",
    ),
    OperatorPod("Spark, driver", a_pod(labels=SPARK | {"spark-role": "driver"}), BATCH, "label spark-role"),
    OperatorPod(
        "Spark, executor",
        an_owned_pod("Pod", "v1", labels=SPARK | {"spark-role": "executor", "spark-exec-id": "3"}),
        BATCH,
        "label spark-role",
    ),
    OperatorPod(
        "Spark Operator, driver",
        an_owned_pod(
            "SparkApplication",
            "sparkoperator.k8s.io/v1beta2",
            labels=SPARK | SPARK_OPERATOR | {"spark-role": "driver"},
        ),
        BATCH,
        "label spark-role",
    ),
    OperatorPod(
        "Volcano Job",
        an_owned_pod("Job", "batch.volcano.sh/v1alpha1", labels=VOLCANO, annotations=VOLCANO_NOTES),
        TRAINING,
        "label volcano.sh/job-name and gang",
    ),
    # github.com/argoproj/argo-workflows/v3@v3.6.5, workflow/controller/workflowpod.go.
    OperatorPod(
        "Argo Workflow",
        an_owned_pod(
            "Workflow",
            "argoproj.io/v1alpha1",
            labels={"workflows.argoproj.io/workflow": "ci-x7", "workflows.argoproj.io/completed": "false"},
            annotations={"workflows.argoproj.io/node-name": "ci-x7.build", "workflows.argoproj.io/node-id": "ci-x7-1"},
        ),
        BATCH,
        "label workflows.argoproj.io/workflow",
    ),
    # github.com/kserve/kserve@v0.15.0, pkg/controller/v1beta1/inferenceservice/components/predictor.go, with Knative:
    # knative.dev/serving@v0.51.0, pkg/reconciler/revision/resources/meta.go.
    OperatorPod(
        "KServe InferenceService",
        an_owned_pod(
            "ReplicaSet",
            "apps/v1",
            labels={
                "serving.kserve.io/inferenceservice": "iris",
                "component": "predictor",
                "app": "iris-predictor-00001",
                "serving.knative.dev/revision": "iris-predictor-00001",
                "serving.knative.dev/revisionUID": "u-2",
            },
            gpu=2,
        ),
        INFERENCE,
        "label serving.kserve.io/inferenceservice",
    ),
    OperatorPod(
        "KServe InferenceGraph",
        an_owned_pod("ReplicaSet", "apps/v1", labels={"serving.kserve.io/inferencegraph": "chain"}),
        INFERENCE,
        "label serving.kserve.io/inferencegraph",
    ),
    *(
        OperatorPod(
            f"KServe LLMInferenceService, {component}",
            an_owned_pod("ReplicaSet", "apps/v1", labels=llm_workload(component), gpu=8),
            INFERENCE,
            "llminferenceservice-workload in label app.kubernetes.io/component",
        )
        for component in ("workload", "workload-prefill")
    ),
    OperatorPod(
        "KServe LLMInferenceService, a worker on several nodes",
        an_owned_pod(
            "StatefulSet",
            "apps/v1",
            labels=llm_workload("workload-worker", **{"leaderworkerset.sigs.k8s.io/name": "llama-kserve-mn"}),
            gpu=8,
        ),
        INFERENCE,
        "label leaderworkerset.sigs.k8s.io/name",
    ),
    OperatorPod(
        "KServe LLMInferenceService, its router",
        an_owned_pod("ReplicaSet", "apps/v1", labels=llm_workload("router-scheduler")),
        SERVICE,
        "no mark of another kind",
    ),
    # SeldonIO/seldon-core, operator/apis/machinelearning.seldon.io/v1/seldondeployment_types.go,
    # operator/controllers (the Deployments' templates).
    OperatorPod(
        "Seldon Core",
        an_owned_pod(
            "ReplicaSet",
            "apps/v1",
            labels={
                "seldon-deployment-id": "iris",
                "seldon-app": "iris-default",
                "app": "iris-default-0-classifier",
                "app.kubernetes.io/managed-by": "seldon-core",
            },
        ),
        INFERENCE,
        "label seldon-deployment-id",
    ),
    OperatorPod(
        "Grove", an_owned_pod("PodClique", "grove.io/v1alpha1", labels=GROVE), INFERENCE, "label grove.io/podclique"
    ),
    OperatorPod(
        "Dynamo on Grove",
        an_owned_pod("PodClique", "grove.io/v1alpha1", labels=GROVE | DYNAMO, gpu=8),
        INFERENCE,
        "label nvidia.com/dynamo-graph-deployment-name",
    ),
    OperatorPod(
        "Dynamo on Deployments",
        an_owned_pod("ReplicaSet", "apps/v1", labels=DYNAMO),
        INFERENCE,
        "label nvidia.com/dynamo-graph-deployment-name",
    ),
    OperatorPod(
        "JupyterHub, a user's server",
        a_pod(labels=JUPYTERHUB, image="quay.io/jupyter/scipy-notebook:2025-03-10", gpu=1),
        INTERACTIVE,
        "label hub.jupyter.org/username",
    ),
    *(
        OperatorPod(
            f"JupyterHub, its {component}",
            an_owned_pod("ReplicaSet", "apps/v1", labels=hub_service(component), image=f"quay.io/jupyterhub/{image}"),
            SERVICE,
            "no mark of another kind",
        )
        for component, image in (
            ("hub", "k8s-hub:4.2.0"),
            ("proxy", "configurable-http-proxy:4.6.3"),
            ("autohttps", "k8s-secret-sync:4.2.0"),
            ("user-scheduler", "mirror/kube-scheduler:v1.30.8"),
            ("continuous-image-puller", "mirror/pause:3.10"),
        )
    ),
    # kubeflow/kubeflow, components/notebook-controller/controllers/notebook_controller.go (generateStatefulSet).
    OperatorPod(
        "Kubeflow Notebook",
        an_owned_pod(
            "StatefulSet", "apps/v1", labels={"statefulset": "mine", "notebook-name": "mine", "app": "mine"}, gpu=1
        ),
        INTERACTIVE,
        "label notebook-name",
    ),
)
