"""Keys of a pod's tenant and its rights: tenants, tiers, queues, preemption and spreading."""

from kubenexus.api.keys.entry import KeyKind, Spelling, define_key, section
from kubenexus.api.keys.values import Bool, Int, OneOf, Text

TIERS = ("gold", "silver", "bronze")
# The words that tiers of hardware have.
_HARDWARE_WORDS = {"premium": "gold", "standard": "silver", "economy": "bronze"}

# A pod that fills gaps agrees to be evicted, so `true` means preemptible; `false` has no such meaning.
_FILLS_GAPS = {"false": ""}

TIER = define_key(
    "tenant.kubenexus.io/tier",
    on=("Namespace", "ClusterQueue", "LocalQueue"),
    values=OneOf(TIERS, _HARDWARE_WORDS),
    default="bronze",
    meaning="The tenant's tier. On a namespace only the label counts.",
    aliases=("scheduling.kubenexus.io/tier",),
)

POD_TIER = define_key(
    "tenant.kubenexus.io/tier",
    on="Pod",
    values=OneOf(TIERS, _HARDWARE_WORDS),
    default=None,
    otherwise="the tenant's tier",
    meaning="A tier for this pod alone. It can lower the pod's tier, never raise it above its queue's or namespace's.",
    aliases=(
        Spelling(
            "scheduling.kubenexus.io/priority-tier",
            says={"high-priority": "gold", "medium-priority": "silver", "low-priority": "bronze"},
        ),
    ),
)

NAME = define_key(
    "tenant.kubenexus.io/name",
    on=("Namespace", "Pod"),
    values=Text("research"),
    default=None,
    otherwise="the ClusterQueue of the pod's LocalQueue, or the namespace",
    meaning="The tenant's name, as a label of the namespace. On a pod it has no effect: a pod could name another "
    "tenant, whose use it would add to.",
)

SCHEDULER_NAME = define_key(
    "scheduling.kubenexus.io/scheduler-name",
    on="Namespace",
    values=Text("kubenexus-scheduler"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The scheduler of pods in this namespace that name none, or `default-scheduler`. Needs the webhook.",
)

RESERVED_TIER = define_key(
    "tenant.kubenexus.io/reserved-tier",
    on="Node",
    values=OneOf((*TIERS, "none"), _HARDWARE_WORDS),
    default="none",
    meaning="The node is kept for tenants of this tier and above.",
)

QUEUE = define_key(
    "kueue.x-k8s.io/queue-name",
    on="Pod",
    values=Text("research"),
    default=None,
    kind=KeyKind.LABEL,
    meaning="The Kueue LocalQueue that admits this pod.",
)

NAMESPACE_QUEUE = define_key(
    "scheduling.kubenexus.io/queue",
    on="Namespace",
    values=Text("research"),
    default=None,
    otherwise="a queue that lists or selects the namespace, or the queue `default`",
    kind=KeyKind.LABEL,
    meaning="The Queue that the jobs of this namespace wait in. On a pod it has no effect: pods do not choose queues.",
)

BACKFILL = define_key(
    "scheduling.kubenexus.io/backfill",
    on="Pod",
    values=Bool(),
    default=False,
    meaning="The pod may fill gaps in front of a reservation, and agrees to be preempted for it.",
    aliases=("backfill.scheduling.kubenexus.io/eligible",),
)

PREEMPTIBLE = define_key(
    "workload.kubenexus.io/preemptible",
    on="Pod",
    values=Bool(),
    default=None,
    otherwise="only with a negative priority",
    meaning="Whether the pod may be preempted.",
    aliases=(
        Spelling("scheduling.kubenexus.io/backfill", says=_FILLS_GAPS),
        Spelling("backfill.scheduling.kubenexus.io/eligible", says=_FILLS_GAPS),
    ),
)

SPREAD_ZONES = define_key(
    "topology.kubenexus.io/spread-zones",
    on="Pod",
    values=Bool(),
    default=False,
    meaning="Spread the pods of this workload over zones.",
)

MIN_ZONES = define_key(
    "topology.kubenexus.io/min-zones",
    on="Pod",
    values=Int(least=1, most=1000, example="3"),
    default=None,
    meaning="Over how many zones at least.",
)

RACK_AFFINITY = define_key(
    "topology.kubenexus.io/affinity",
    on="Pod",
    values=OneOf(("same-rack", "spread-rack")),
    default=None,
    meaning="Keep the pods of this workload in one rack, or apart over racks.",
)

SECTION = section("Tenants and placement wishes", "Who a pod belongs to and how it wants to be treated.", globals())
