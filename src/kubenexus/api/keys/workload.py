"""What kind of work a pod does: said outright, or told by the marks that frameworks leave on their pods."""

from kubenexus.api.keys.entry import Kind, entry, section
from kubenexus.api.keys.values import Amount, Bool, Int, OneOf, Present, Text

TYPE = entry(
    "workload.kubenexus.io/type",
    on="Pod",
    values=OneOf(("training", "inference", "batch", "service", "interactive")),
    default=None,
    otherwise="told by the marks below",
    meaning="What kind of work this is. Training and batch are packed, services are spread.",
)

BATCH = entry(
    "batch.kubernetes.io/job-name",
    on="Pod",
    values=Present(),
    default=False,
    kind=Kind.LABEL,
    meaning="The mark of a batch job.",
    aliases=(
        "spark-role",
        "spark-app-id",
        "spark-app-selector",
        "tf-replica-type",
        "pytorch-replica-type",
        "pytorch-job-name",
        "mpi-job-role",
        "ray.io/node-type",
        "kubeflow.org/component",
        "jobset.sigs.k8s.io/jobset-name",
        "volcano.sh/job-name",
    ),
)

TRAINING = entry(
    "training.kubeflow.org/job-name",
    on="Pod",
    values=Present(),
    default=False,
    kind=Kind.LABEL,
    meaning="The mark of a training job.",
    aliases=(
        "training.kubeflow.org/replica-type",
        "training.kubeflow.org/job-role",
        "pytorch.org/job-name",
        "tensorflow.org/job-name",
    ),
)

INFERENCE = entry(
    "serving.kserve.io/inferenceservice",
    on="Pod",
    values=Present(),
    default=False,
    kind=Kind.LABEL,
    meaning="The mark of a model server.",
    aliases=("serving.kubeflow.org/inferenceservice", "seldon.io/deployment"),
)

INTERACTIVE = entry(
    "app.jupyter.org/hub-version",
    on="Pod",
    values=Present(),
    default=False,
    kind=Kind.LABEL,
    meaning="The mark of a notebook that a person waits for.",
    aliases=("app.rstudio.com/rstudio-server",),
)

APP_COMPONENT = entry(
    "app.kubernetes.io/component",
    on="Pod",
    values=Text("predictor"),
    default=None,
    kind=Kind.LABEL,
    meaning="`predictor`, `inference` and `serving` mark a model server.",
)

APP_NAME = entry(
    "app.kubernetes.io/name",
    on="Pod",
    values=Text("jupyterhub"),
    default=None,
    kind=Kind.LABEL,
    meaning="Names such as `jupyter` or `code-server` mark interactive work; whole words only.",
)

APP_ID = entry(
    "scheduling.kubenexus.io/app-id",
    on="Pod",
    values=Text("etl-33"),
    default=None,
    otherwise="the pod's name",
    meaning="The application that a reservation is for.",
)

SPARK_APP_ID = entry(
    "spark-app-id",
    on="Pod",
    values=Text("spark-1f2e"),
    default=None,
    kind=Kind.LABEL,
    meaning="The Spark application.",
)

SPARK_APP_SELECTOR = entry(
    "spark-app-selector",
    on="Pod",
    values=Text("spark-1f2e"),
    default=None,
    kind=Kind.LABEL,
    meaning="The Spark application, as Spark itself labels it.",
)

SPARK_ROLE = entry(
    "spark-role",
    on="Pod",
    values=OneOf(("driver", "executor")),
    default=None,
    kind=Kind.LABEL,
    meaning="The pod's part in the Spark application.",
)

DRIVER_CPU = entry(
    "kubenexus.io/driver-cpu",
    on="Pod",
    values=Amount("milli", "500m"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="What the Spark driver will ask for.",
)

DRIVER_MEMORY = entry(
    "kubenexus.io/driver-memory",
    on="Pod",
    values=Amount("bytes", "2Gi"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="What the Spark driver will ask for.",
)

EXECUTOR_CPU = entry(
    "kubenexus.io/executor-cpu",
    on="Pod",
    values=Amount("milli", "4"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="What each Spark executor will ask for; used to reserve before the executors exist.",
)

EXECUTOR_MEMORY = entry(
    "kubenexus.io/executor-memory",
    on="Pod",
    values=Amount("bytes", "16Gi"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="What each Spark executor will ask for; used to reserve before the executors exist.",
)

EXECUTOR_COUNT = entry(
    "kubenexus.io/executor-count",
    on="Pod",
    values=Int(most=100_000, example="8"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="How many executors the Spark application will start.",
)

DYNAMIC_ALLOCATION = entry(
    "kubenexus.io/dynamic-allocation-enabled",
    on="Pod",
    values=Bool(),
    default=False,
    kind=Kind.ANNOTATION,
    meaning="The number of executors changes while the application runs.",
)

MIN_EXECUTORS = entry(
    "kubenexus.io/min-executors",
    on="Pod",
    values=Int(most=100_000, example="2"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="With dynamic allocation: the fewest executors.",
)

MAX_EXECUTORS = entry(
    "kubenexus.io/max-executors",
    on="Pod",
    values=Int(most=100_000, example="32"),
    default=None,
    kind=Kind.ANNOTATION,
    meaning="With dynamic allocation: the most executors.",
)

SECTION = section(
    "Kind of work", "One key says it outright; otherwise the marks of the common frameworks tell.", globals()
)
