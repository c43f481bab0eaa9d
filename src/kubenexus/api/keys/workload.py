"""Keys of the kind of work of a pod: our own key, and the labels that frameworks put on their pods."""

from kubenexus.api.keys.entry import KeyKind, Spelling, define_key, section
from kubenexus.api.keys.values import Bool, DurationValue, Int, OneOf, Present, QuantityValue, Text

TYPE = define_key(
    "workload.kubenexus.io/type",
    on="Pod",
    values=OneOf(("training", "inference", "batch", "service", "interactive")),
    default=None,
    otherwise="told by the marks below",
    meaning="What kind of work this is. Training and batch are packed, services are spread.",
)

PLACEMENT = define_key(
    "workload.kubenexus.io/placement",
    on="Pod",
    values=OneOf(("pack", "spread")),
    default=None,
    otherwise="by the kind of work",
    meaning="Whether the pod goes to nodes that are full already, or to empty ones.",
)

AFTER = define_key(
    "scheduling.kubenexus.io/after",
    on="Pod",
    values=Text("prepare,download"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="Jobs of the same namespace that must have succeeded before this pod is tried, with commas between them: "
    "names of Jobs, pods or gangs, at most 16.",
)

MAX_RUNTIME = define_key(
    "scheduling.kubenexus.io/max-runtime",
    on="Pod",
    values=DurationValue(most=366 * 86_400),
    default=None,
    kind=KeyKind.ANNOTATION,
    otherwise="by earlier runs",
    meaning="How long the pod runs at most, by its own account. Jobs that end in time may go ahead of a job that waits "
    "(backfill). A pod that runs longer is not stopped, but later ones of its kind are believed less.",
    aliases=(Spelling("kueue.x-k8s.io/max-exec-time-seconds", KeyKind.LABEL),),
)

BATCH = define_key(
    "batch.kubernetes.io/job-name",
    on="Pod",
    values=Present(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The mark of a batch job.",
    aliases=(
        "spark-role",
        "spark-app-id",
        "spark-app-selector",
        "spark-exec-id",
        "sparkoperator.k8s.io/app-name",
        "tf-replica-type",
        "pytorch-replica-type",
        "pytorch-job-name",
        "mpi-job-role",
        "ray.io/node-type",
        "ray.io/cluster",
        "ray.io/is-ray-node",
        "kubeflow.org/component",
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/replicatedjob-name",
        "volcano.sh/job-name",
        "volcano.sh/task-spec",
        "workflows.argoproj.io/workflow",
    ),
)

TRAINING = define_key(
    "training.kubeflow.org/job-name",
    on="Pod",
    values=Present(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The mark of a training job.",
    aliases=(
        "training.kubeflow.org/replica-type",
        "training.kubeflow.org/replica-index",
        "training.kubeflow.org/job-role",
        "training.kubeflow.org/operator-name",
        "trainer.kubeflow.org/trainjob-ancestor-step",
        "pytorch.org/job-name",
        "tensorflow.org/job-name",
    ),
)

INFERENCE = define_key(
    "serving.kserve.io/inferenceservice",
    on="Pod",
    values=Present(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The mark of a model server.",
    aliases=(
        "serving.kserve.io/inferencegraph",
        "serving.kubeflow.org/inferenceservice",
        "seldon.io/deployment",
        "seldon-deployment-id",
        "ray.io/serve",
        "nvidia.com/dynamo-graph-deployment-name",
        "nvidia.com/dynamo-component-type",
        "nvidia.com/dynamo-component",
        "grove.io/podclique",
        "leaderworkerset.sigs.k8s.io/name",
    ),
)

RAY_ORIGIN = define_key(
    "ray.io/originated-from-crd",
    on="Pod",
    values=Text("RayService"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="`RayService` marks a model server.",
)

INTERACTIVE = define_key(
    "app.jupyter.org/hub-version",
    on="Pod",
    values=Present(),
    default=False,
    kind=KeyKind.LABEL,
    meaning="The mark of a notebook that a person waits for.",
    aliases=(
        "app.rstudio.com/rstudio-server",
        "hub.jupyter.org/username",
        "hub.jupyter.org/servername",
        "notebook-name",
    ),
)

APP_COMPONENT = define_key(
    "app.kubernetes.io/component",
    on="Pod",
    values=Text("predictor"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The words `predictor`, `inference`, `serving` and `llminferenceservice-workload` mark a model server; "
    "`hub`, `proxy` and the other services of JupyterHub are no notebooks. Whole words only.",
)

APP_NAME = define_key(
    "app.kubernetes.io/name",
    on="Pod",
    values=Text("jupyterhub"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="Names such as `jupyter` or `code-server` mark interactive work; whole words only.",
)

APP_ID = define_key(
    "scheduling.kubenexus.io/app-id",
    on="Pod",
    values=Text("etl-33"),
    default=None,
    otherwise="the pod's name",
    meaning="The application that a reservation is for.",
    recognised_only=True,
)

SPARK_APP_ID = define_key(
    "spark-app-id",
    on="Pod",
    values=Text("spark-1f2e"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The Spark application.",
    recognised_only=True,
)

SPARK_APP_SELECTOR = define_key(
    "spark-app-selector",
    on="Pod",
    values=Text("spark-1f2e"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The Spark application, as Spark itself labels it.",
)

SPARK_ROLE = define_key(
    "spark-role",
    on="Pod",
    values=OneOf(("driver", "executor")),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The pod's part in the Spark application.",
)

ROLE = define_key(
    "scheduling.kubenexus.io/role",
    on="Pod",
    values=OneOf(("driver",)),
    default=None,
    kind=KeyKind.LABEL,
    meaning="`driver` marks the pod that makes or leads the others of its job, as labels of Spark and Ray do.",
)

LAST_CHECKPOINT = define_key(
    "scheduling.kubenexus.io/last-checkpoint",
    on="Pod",
    values=Text("2026-01-31T12:00:00Z"),
    default=None,
    otherwise="the start of the pod",
    kind=KeyKind.ANNOTATION,
    meaning="When the pod last saved its work. Preemption takes pods first that lose less work.",
)

DRIVER_CPU = define_key(
    "kubenexus.io/driver-cpu",
    on="Pod",
    values=QuantityValue("milli", "500m"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="What the Spark driver will ask for.",
    recognised_only=True,
)

DRIVER_MEMORY = define_key(
    "kubenexus.io/driver-memory",
    on="Pod",
    values=QuantityValue("bytes", "2Gi"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="What the Spark driver will ask for.",
    recognised_only=True,
)

EXECUTOR_CPU = define_key(
    "kubenexus.io/executor-cpu",
    on="Pod",
    values=QuantityValue("milli", "4"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="What each Spark executor will ask for; used to reserve before the executors exist.",
)

EXECUTOR_MEMORY = define_key(
    "kubenexus.io/executor-memory",
    on="Pod",
    values=QuantityValue("bytes", "16Gi"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="What each Spark executor will ask for; used to reserve before the executors exist.",
)

EXECUTOR_COUNT = define_key(
    "kubenexus.io/executor-count",
    on="Pod",
    values=Int(most=100_000, example="8"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="How many executors the Spark application will start.",
)

DYNAMIC_ALLOCATION = define_key(
    "kubenexus.io/dynamic-allocation-enabled",
    on="Pod",
    values=Bool(),
    default=False,
    kind=KeyKind.ANNOTATION,
    meaning="The number of executors changes while the application runs.",
)

MIN_EXECUTORS = define_key(
    "kubenexus.io/min-executors",
    on="Pod",
    values=Int(most=100_000, example="2"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="With dynamic allocation: the fewest executors.",
)

MAX_EXECUTORS = define_key(
    "kubenexus.io/max-executors",
    on="Pod",
    values=Int(most=100_000, example="32"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="With dynamic allocation: the most executors.",
    recognised_only=True,
)

SECTION = section(
    "Kind of work", "One key says it outright; otherwise the marks of the common frameworks tell.", globals()
)
