"""Keys of a pod's gang and its minimum.

Only our own keys and their aliases share an entry. Membership that other projects define (native Workloads, the
coscheduling PodGroup, Kueue, Volcano) has entries of its own: the gang resolver ranks those sources, and reads the
minimum from different places.
"""

from kubenexus.api.keys.entry import KeyKind, define_key, section
from kubenexus.api.keys.values import Bool, Int, OneOf, Text

NAME = define_key(
    "pod-group.scheduling.kubenexus.io/name",
    on="Pod",
    values=Text("llama-8"),
    default=None,
    meaning="The gang this pod belongs to, within its namespace. A gang starts as a whole or not at all.",
    aliases=(
        "pod-group.scheduling.sigs.k8s.io/name",
        "gang.scheduling.kubenexus.io/name",
        "scheduling.kubenexus.io/gang-group",
    ),
)

MIN_AVAILABLE = define_key(
    "pod-group.scheduling.kubenexus.io/min-available",
    on="Pod",
    values=Int(least=1, most=2**31 - 1, example="8"),
    default=None,
    otherwise="not a gang",
    meaning="How many members must be placed together. A name without this number makes no gang.",
    aliases=(
        "pod-group.scheduling.sigs.k8s.io/min-available",
        "pod-group.scheduling.sigs.k8s.io/min-member",
        "scheduling.kubenexus.io/min-available",
    ),
)

TIMEOUT = define_key(
    "scheduling.kubenexus.io/gang-timeout-seconds",
    on="Pod",
    values=Int(least=1, most=86_400, example="300"),
    default=None,
    otherwise="`gangDeadlineSeconds` of the profile (300)",
    meaning="How long the gang may stay incomplete, once a member has a node, before it is released.",
)

NUMA_SPREAD = define_key(
    "scheduling.kubenexus.io/gang-numa-spread",
    on="Pod",
    values=OneOf(("packed", "balanced", "isolated")),
    default="packed",
    meaning=(
        "How members share the NUMA nodes of a machine: on as few as possible, evenly, or each on its own. "
        "`isolated` is about members of this gang; the NUMA policy of the same name is about every pod."
    ),
)

POD_GROUP = define_key(
    "scheduling.x-k8s.io/pod-group",
    on="Pod",
    values=Text("llama-8"),
    default=None,
    meaning="Member of this PodGroup (`scheduling.x-k8s.io/v1alpha1`), whose `spec.minMember` is the minimum.",
)

WORKLOAD = define_key(
    "scheduling.k8s.io/workload-name",
    on="Pod",
    values=Text("llama"),
    default=None,
    meaning="Member of this Workload (`scheduling.k8s.io`), for pods that cannot set `spec.workloadRef`.",
    aliases=("scheduling.k8s.io/workload",),
)

WORKLOAD_POD_GROUP = define_key(
    "scheduling.k8s.io/pod-group",
    on="Pod",
    values=Text("workers"),
    default=None,
    meaning="Which pod group of the Workload.",
    aliases=("scheduling.k8s.io/podset",),
)

KUEUE_NAME = define_key(
    "kueue.x-k8s.io/pod-group-name",
    on="Pod",
    values=Text("llama-8"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="Member of this Kueue group of plain pods.",
)

KUEUE_TOTAL_COUNT = define_key(
    "kueue.x-k8s.io/pod-group-total-count",
    on="Pod",
    values=Int(least=1, most=2**31 - 1, example="8"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="How many pods the Kueue group has; all of them are its minimum.",
)

KUEUE_REQUIRED_TOPOLOGY = define_key(
    "kueue.x-k8s.io/podset-required-topology",
    on="Pod",
    values=Text("topology.kubernetes.io/rack"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="The members must be within one domain of this level: a label of nodes, or a level's name (`rack`).",
)

KUEUE_PREFERRED_TOPOLOGY = define_key(
    "kueue.x-k8s.io/podset-preferred-topology",
    on="Pod",
    values=Text("topology.kubernetes.io/rack"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="The members should be within one domain of this level; if none has room, within the next wider one.",
)

KUEUE_SERVING = define_key(
    "kueue.x-k8s.io/pod-group-serving",
    on="Pod",
    values=Bool(),
    default=False,
    kind=KeyKind.ANNOTATION,
    meaning="The Kueue group is a server's: its pods come one after the other, so they are no gang. Written by Kueue.",
)

KUEUE_WORKLOAD = define_key(
    "kueue.x-k8s.io/workload",
    on="Pod",
    values=Text("job-llama-3f2a1"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="Member of this Kueue Workload, whose admitted pods are the minimum. Written by Kueue.",
)

KUEUE_SLICE = define_key(
    "kueue.x-k8s.io/workload-slice-name",
    on="Pod",
    values=Text("job-llama-3f2a1"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="The pod is of an elastic job, whose size may change at any time: its pods are no gang. Written by Kueue.",
)

VOLCANO_NAME = define_key(
    "scheduling.k8s.io/group-name",
    on="Pod",
    values=Text("llama-8"),
    default=None,
    meaning="Member of this Volcano PodGroup, whose `spec.minMember` is the minimum.",
)

VOLCANO_JOB = define_key(
    "volcano.sh/job-name",
    on="Pod",
    values=Text("llama"),
    default=None,
    meaning="The Volcano job that made this pod.",
    recognised_only=True,
)

INJECT = define_key(
    "kubenexus.io/gang-scheduling",
    on=("Job", "JobSet", "PyTorchJob", "MPIJob", "RayCluster", "SparkApplication"),
    values=Bool(),
    default=False,
    kind=KeyKind.ANNOTATION,
    meaning="Makes the admission webhook put the gang labels on the pods of this job. Needs the webhook.",
)

RESERVATION_GANG = define_key(
    "pod-group",
    on="ResourceReservation",
    values=Text("llama-8"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The gang that the reservation is for. Written by the scheduler.",
)

RESERVATION_OWNER = define_key(
    "app.kubernetes.io/managed-by",
    on="ResourceReservation",
    values=Text("kubenexus-scheduler"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="Who keeps the reservation. The scheduler touches only those that name it.",
)

PREEMPTED_FOR = define_key(
    "scheduling.kubenexus.io/preemption-for-gang",
    on="Pod",
    values=Text("ml/llama-8"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="The gang for which this pod is preempted. The scheduler writes the condition `DisruptionTarget` instead.",
    recognised_only=True,
)

PREEMPTED_AT = define_key(
    "scheduling.kubenexus.io/preemption-timestamp",
    on="Pod",
    values=Int(example="1790000000"),
    default=None,
    kind=KeyKind.ANNOTATION,
    meaning="When the pod was chosen as a victim, in seconds since 1970.",
    recognised_only=True,
)

SECTION = section(
    "Gangs",
    "A gang is set up by the pod's own fields (`spec.schedulingGroup`, `spec.workloadRef`) or by one of these keys.",
    globals(),
)
