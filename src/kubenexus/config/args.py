"""The arguments of built-in plugins (`pluginConfig`), with kube-scheduler's names and defaults, and our own.

A plugin gets its arguments as plain data in this shape, defaults included.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from kubenexus.api.core import NodeAffinity
from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.api.meta import Int32, Int64
from kubenexus.api.selectors import LabelSelector
from kubenexus.config.decode import OR_DEFAULT, decode_struct
from kubenexus.config.durations import Duration
from kubenexus.config.field_errors import FieldPath
from kubenexus.config.v1 import VERSION, ConfigObject, PluginConfig, Text
from kubenexus.framework.aging import HIGHEST
from kubenexus.framework.preemption_defaults import MAX_MOVED_PODS, MAX_VICTIMS, PROTECTED_NAMESPACES


class Args(ConfigObject, tag=True, tag_field="kind"):
    """The base of all kinds of arguments. `kind` and `apiVersion` need not be given."""

    api_version: Text = VERSION


class ResourceSpec(ConfigObject):
    name: str = ""
    weight: Annotated[Int64, OR_DEFAULT] = 1


class ShapePoint(ConfigObject):
    """A point of a scoring shape: the score (0 to 10) of a node with this utilization (0 to 100)."""

    utilization: Int32 = 0
    score: Int32 = 0


def _cpu_and_memory() -> list[ResourceSpec]:
    return [ResourceSpec(name="cpu"), ResourceSpec(name="memory")]


def _emptier_is_better() -> list[ShapePoint]:
    return [ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0)]


class RequestedToCapacityRatio(ConfigObject):
    shape: list[ShapePoint] = []


class ScoringStrategy(ConfigObject):
    """A scoring strategy. A strategy without a type is invalid, as with kube-scheduler."""

    type: str = ""
    resources: Annotated[list[ResourceSpec], OR_DEFAULT] = msgspec.field(default_factory=_cpu_and_memory)
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(Args):
    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class NodeResourcesBalancedAllocationArgs(Args):
    resources: Annotated[list[ResourceSpec], OR_DEFAULT] = msgspec.field(default_factory=_cpu_and_memory)


class NodeAffinityArgs(Args):
    added_affinity: NodeAffinity | None = None


class InterPodAffinityArgs(Args):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class SpreadConstraint(ConfigObject):
    """A default constraint. Its fields have no defaults, unlike those in pods, which the API server has completed."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class PodTopologySpreadArgs(Args):
    default_constraints: list[SpreadConstraint] = []
    defaulting_type: Text = "System"


class VolumeBindingArgs(Args):
    bind_timeout_seconds: Int64 = 600
    shape: Annotated[list[ShapePoint], OR_DEFAULT] = msgspec.field(default_factory=_emptier_is_better)


class DefaultPreemptionArgs(Args):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Args):
    filter_timeout: Duration = Duration.of("10s")
    binding_timeout: Duration = Duration.of("10m")


class TierBoosts(ConfigObject):
    """How much more the jobs of a tier count than others of their priority."""

    gold: Int64 = 20
    silver: Int64 = 10
    bronze: Int64 = 0


NO_BOOSTS: Final = TierBoosts(gold=0, silver=0, bronze=0)


class QueueTierArgs(ConfigObject):
    """What a queue sets for nodes of one hardware tier."""

    guaranteed: dict[str, Any] = {}
    limit: dict[str, Any] = {}
    borrowing_limit: dict[str, Any] = {}
    lending_limit: dict[str, Any] = {}
    namespace_limit: dict[str, Any] = {}


class QueueArgs(ConfigObject):
    """A queue, as the kind `Queue` has it (`api.queues`). Amounts are quantities."""

    name: str = ""
    parent: str = ""
    weight: Int64 = 1
    guaranteed: dict[str, Any] = {}
    limit: dict[str, Any] = {}
    borrowing_limit: dict[str, Any] = {}
    lending_limit: dict[str, Any] = {}
    namespace_limit: dict[str, Any] = {}
    tiers: dict[str, QueueTierArgs] = {}
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None


class KubeNexusArgs(Args):
    """Settings of a profile that belong to no plugin. Without `tieBreak`: seeded, or in-use if the profile packs.
    Without `tierBoosts`: 20, 10 and 0, or none in a profile with kube-scheduler's name. `queues` are for all
    profiles. `queueUsageHalfLifeSeconds`, too: in this time half of what queues used in the past is forgotten; 0: only
    what they use now counts."""

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    tie_break: str | None = None
    seed: Int64 = 0
    allow_pod_tier: bool = False
    tier_boosts: TierBoosts | None = None
    namespace_priorities: dict[str, Int64] = {}
    queues: list[QueueArgs] = []
    queue_usage_half_life_seconds: Int64 = 0


class WorkloadAwareScoringArgs(Args):
    """What cpu, memory and GPUs count in the utilization of a node. Without GPUs the other two count alone."""

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    cpu_weight: Int64 = 35
    memory_weight: Int64 = 35
    gpu_weight: Int64 = 30


class ResourceFragmentationScoreArgs(Args):
    """byDemand: whether what pods are expected to ask for decides, once enough pods with GPUs were placed."""

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    by_demand: bool = True


class TenantHardwareAffinityScoreArgs(Args):
    """Which GPUs tenants prefer, and which they may use. Tiers of tenants are gold, silver and bronze; of hardware
    premium, standard and economy.

    scores                by tenant tier and hardware tier: points of 0 to 100, instead of the usual ones
    costFactors           by hardware tier: points of hardware above a tenant's own tier are divided by it
    allowedTiers          by tenant tier: the only hardware that its GPU pods may use
    tenantAllowedTiers    the same by the name of a tenant, instead of that of its tier
    """

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    scores: dict[str, dict[str, Int64]] = {}
    cost_factors: dict[str, float] = {}
    allowed_tiers: dict[str, list[str]] = {}
    tenant_allowed_tiers: dict[str, list[str]] = {}


class TopologyLevelArgs(ConfigObject):
    """A level of the topology. A node's domain is the value of the first of these labels that the node has."""

    name: str = ""
    keys: list[str] = []


class TopologyDefault(ConfigObject):
    """The topology request of gangs in these namespaces that have none of their own; "*" is every other namespace."""

    namespaces: list[str] = []
    required: str = ""
    preferred: str = ""


def _usual_levels() -> list[TopologyLevelArgs]:
    return [TopologyLevelArgs(name=level.name, keys=list(level.keys)) for level in DEFAULT_LEVELS]


class Starvation(ConfigObject):
    """The priority that a waiting job gains: `boost` for each threshold, up to the ceiling. 0 seconds: none."""

    threshold_seconds: Int64 = 60
    boost: Int64 = 100
    ceiling: Int64 = HIGHEST


class BackfillArgs(ConfigObject):
    """Which jobs go ahead of the first job in the queue, by their expected runtimes.

    aheadSeconds    ends that are further away are not waited for; 0: no backfill by time
    lateSeconds     how long a job keeps its nodes after its expected start
    longestSeconds  jobs that are expected to run longer do not go ahead
    reportSeconds   how often expected starts are computed for the conditions of pods; 0: never
    """

    ahead_seconds: Int64 = 86_400
    late_seconds: Int64 = 3600
    longest_seconds: Int64 = 86_400
    report_seconds: Int64 = 60


class CoschedulingArgs(Args):
    """How gangs are planned. Without `starvation` waiting jobs age, and without `reservationSeconds` reservations last
    300 seconds. A profile with kube-scheduler's name does neither, as kube-scheduler does neither. With a
    `provisioningClassName` a ProvisioningRequest of this class is made for each gang that does not fit. The last three
    fields are those of scheduler-plugins and of the founding documents: accepted, without effect."""

    gang_deadline_seconds: Annotated[Int64, OR_DEFAULT] = 300
    topology_levels: Annotated[list[TopologyLevelArgs], OR_DEFAULT] = msgspec.field(default_factory=_usual_levels)
    topology_defaults: list[TopologyDefault] = []
    starvation: Starvation | None = None
    reservation_seconds: Int64 | None = None
    backfill: Annotated[BackfillArgs, OR_DEFAULT] = BackfillArgs()
    provisioning_class_name: str = ""
    permit_waiting_time_seconds: Int64 | None = None
    pod_group_backoff_seconds: Int64 | None = None
    kubeflow_auto_gang: bool | None = None


RESERVATION_SECONDS: Final = 300
NO_STARVATION: Final = Starvation(threshold_seconds=0)


def _protected() -> list[str]:
    return list(PROTECTED_NAMESPACES)


class GangPreemptionArgs(Args):
    """Which pods may be evicted for others.

    pdbPolicy             `hard`: a PodDisruptionBudget is a limit; `prefer`: it may be violated if nothing else helps
    tierPreemption        tenants of a higher tier outrank pods of the same priority
    servicesPreemptBatch  services outrank batch work of the same priority
    reclaim               jobs of a queue below its guarantee evict pods of no more priority that borrow it
    protectedNamespaces   their pods are never evicted; the list replaces the default one
    cooldownSeconds       how long a job does not evict again after it evicted pods
    fenceSeconds          how long the capacity is kept for a job whose victims do not end
    maxVictims            pods that one job may evict at a time
    consolidation         preemptible pods move to other nodes if a waiting job then fits
    maxMovedPods          pods that move for one job at most
    """

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    pdb_policy: Text = "hard"
    tier_preemption: bool = False
    services_preempt_batch: bool = False
    reclaim: bool = False
    protected_namespaces: Annotated[list[str], OR_DEFAULT] = msgspec.field(default_factory=_protected)
    cooldown_seconds: Int64 = 30
    fence_seconds: Annotated[Int64, OR_DEFAULT] = 300
    max_victims: Annotated[Int64, OR_DEFAULT] = MAX_VICTIMS
    consolidation: bool = False
    max_moved_pods: Annotated[Int64, OR_DEFAULT] = MAX_MOVED_PODS


class ResourceReservationArgs(Args):
    """Whose ResourceReservations take effect. Reservations keep capacity from all other tenants, so by default only
    those in the scheduler's own namespace do.

    namespaces            further namespaces whose reservations take effect, up to `maxPercent`
    unlimitedNamespaces   namespaces without that limit
    maxPercent            the part of each resource of the cluster that one of `namespaces` may reserve
    maxDuration           how long a reservation may last
    writeObjects          whether the scheduler shows its own reservations, for gangs and drivers, as objects
    """

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    namespaces: list[str] = []
    unlimited_namespaces: Annotated[list[str], OR_DEFAULT] = msgspec.field(default_factory=lambda: ["kubenexus-system"])
    max_percent: Int32 = 25
    max_duration: Duration = Duration.of("24h")
    write_objects: bool = True


class KueueArgs(Args):
    """What the scheduler does beside Kueue, besides placing what Kueue admits.

    admissionChecks   whether it answers AdmissionChecks of the controller `kubenexus.io/placement`: a Workload is Ready
                      once all its pods have a place. It then writes the status of Workloads.
    """

    api_version: Text = "scheduling.kubenexus.io/v1alpha1"
    admission_checks: bool = False


SETTINGS: Final = "KubeNexus"  # the name of `KubeNexusArgs` in `pluginConfig`
GANGS: Final = "Coscheduling"
RESERVATIONS: Final = "ResourceReservation"
KUEUE: Final = "Kueue"
KINDS: Final[Mapping[str, type[Args]]] = {
    kind.__name__.removesuffix("Args"): kind
    for kind in (
        NodeResourcesFitArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeAffinityArgs,
        InterPodAffinityArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        KubeNexusArgs,
        CoschedulingArgs,
        GangPreemptionArgs,
        ResourceReservationArgs,
        KueueArgs,
        WorkloadAwareScoringArgs,
        TenantHardwareAffinityScoreArgs,
        ResourceFragmentationScoreArgs,
    )
}


def read_args(config: PluginConfig, place: FieldPath) -> Args | dict[str, Any]:
    """Returns the arguments of one `pluginConfig`: typed if the kind is known, else as they are."""
    kind = KINDS.get(config.name)
    if kind is None:
        return config.args
    said = config.args.get("kind") or kind.__name__
    if said != kind.__name__:
        place["args"].invalid(said, f"has to match plugin args: expected {kind.__name__}")
        return kind()
    return decode_struct(config.args, kind, place["args"])


def as_plugin_args(args: Args | dict[str, Any]) -> dict[str, Any]:
    """Returns arguments as a plugin gets them."""
    data: dict[str, Any] = as_data(args)
    return {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}


def as_data(value: object) -> Any:
    """Returns a struct as plain data with the names of a file, without empty fields."""
    return _without_nothing(msgspec.to_builtins(value, enc_hook=str))


def _without_nothing(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nothing(value) for key, value in data.items() if value is not None}
    return [_without_nothing(value) for value in data] if isinstance(data, list) else data
