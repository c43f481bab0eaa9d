"""The rows of the metrics about devices, NUMA nodes and tenants (`metric_table`)."""

from typing import Final

from kubenexus.observe.metric_definition import ALPHA, QUEUE_SERIES, TENANT_SERIES, MetricDefinition

DEVICES: Final = (
    MetricDefinition(
        "kubenexus_gpu_allocation_success_total",
        ALPHA,
        ("workload_type", "gpu_count", "topology_aware"),
        "Number of placed pods with devices, by the number of their devices (1, 2, 4, 8, 16+, rounded up). "
        "'topology_aware' is true if several devices are on one NVLink island, PCIe switch or NUMA node.",
    ),
    MetricDefinition(
        "kubenexus_gpu_allocation_failures_total",
        ALPHA,
        ("reason", "workload_type"),
        "Number of refusals of jobs that lack devices, by the reason of most nodes: 'insufficient_gpus', "
        "'insufficient_vram', 'no_gpu_info' (no node reports the memory), 'not_joined', 'no_shared_gpu', 'wrong_type', "
        "'reserved_tier', 'gang'.",
    ),
    MetricDefinition(
        "kubenexus_gpu_data_source_usage_total",
        ALPHA,
        ("source",),
        "Number of placed pods with devices of which a fact came from a source: 'dra', 'nrt', 'gfd', 'nfd', 'manual', "
        "'cloud', 'allocatable', 'model'. A pod counts once for each.",
    ),
    MetricDefinition(
        "kubenexus_vram_placement_decisions_total",
        ALPHA,
        ("outcome", "workload_type", "data_source"),
        "Number of placed pods with devices by the part of their smallest GPU's memory that they asked for: 'good_fit' "
        "from 70 percent, 'acceptable_fit' from 40, 'poor_fit' below, 'no_vram_request'; and of refusals: "
        "'insufficient_vram', 'no_gpu_info'. 'data_source' is the source of the memory.",
    ),
    MetricDefinition(
        "kubenexus_vram_requested_bytes",
        ALPHA,
        ("workload_type",),
        "Memory that placed pods asked for on each of their GPUs.",
        (8e9, 16e9, 24e9, 40e9, 48e9, 80e9, 160e9, 320e9),
    ),
    MetricDefinition(
        "kubenexus_topology_decisions_total",
        ALPHA,
        ("topology_type", "success", "constraint_type"),
        "Number of placed pods with several devices by what holds these together ('NVLink', 'PCIe', 'NUMA', 'none'), "
        "and of refusals for want of joined ones ('success' is false). 'constraint_type' is 'required' if they must be "
        "joined, else 'multi_gpu'.",
    ),
    MetricDefinition(
        "kubenexus_topology_quality_score",
        ALPHA,
        ("topology_type",),
        "How close the devices of placed pods with several are: 100 for NVLink, 70 for a PCIe switch, 60 for a NUMA "
        "node, 30 otherwise.",
        (0, 25, 50, 75, 90, 95, 100),
    ),
    MetricDefinition(
        "kubenexus_fragmentation_score",
        ALPHA,
        ("resource_type",),
        "Points of ResourceFragmentationScore for the island that a placed pod took whole GPUs from.",
        (0, 10, 20, 30, 50, 75, 90, 100),
    ),
    MetricDefinition(
        "kubenexus_island_protection_events_total",
        ALPHA,
        ("protection_type", "prevented"),
        "Number of placed pods with one or two GPUs that left islands of four or more whole ('pristine_island', "
        "'prevented' is true), and of placed pods that took less than half of one that was whole (false). And of "
        "refusals by nodes that are reserved for a higher tier ('tenant_mismatch').",
    ),
    MetricDefinition(
        "kubenexus_perfect_fit_placements_total",
        ALPHA,
        ("island_size", "topology_type"),
        "Number of placed pods that took all GPUs that were free of an island, by the size of the island (1, 2, 4, 8, "
        "16+) and its link.",
    ),
    MetricDefinition(
        "kubenexus_island_completions_total",
        ALPHA,
        ("island_size", "topology_quality"),
        "Number of placed pods that took the last free GPUs of an island that was in use, by the size of the island "
        "and the quality of its link in percent.",
    ),
)

NUMA: Final = (
    MetricDefinition(
        "kubenexus_numa_placement_decisions_total",
        ALPHA,
        ("policy", "outcome", "workload_type"),
        "Number of placed pods that ask something of NUMA nodes, by their own policy: 'single_numa' if one NUMA node "
        "has all of it, 'cross_numa' if it takes several, 'no_numa_info' on nodes without a report.",
    ),
    MetricDefinition(
        "kubenexus_numa_fit_quality_score",
        ALPHA,
        ("policy",),
        "Points of NUMATopology for the nodes of these pods, members of gangs left out.",
        (0, 25, 50, 75, 90, 95, 100),
    ),
    MetricDefinition(
        "kubenexus_numa_false_accepts_total",
        ALPHA,
        ("cause", "reason"),
        "Number of pods that a kubelet's managers rejected though they were placed there, by the kubelet's reason. The "
        "likely cause is 'no_report', 'unexplained' (it is not known what some pods there hold), 'since_report' (pods "
        "were placed since the last report), or 'report'.",
    ),
    MetricDefinition(
        "kubenexus_numa_distance_penalty_total",
        ALPHA,
        ("distance_level",),
        "Number of placed pods that take several NUMA nodes, by the largest distance between these: 'near' up to 20, "
        "else 'far'.",
    ),
    MetricDefinition(
        "kubenexus_numa_gang_affinity_success_total",
        ALPHA,
        ("gang_policy", "numa_id"),
        "Number of members of gangs that share NUMA nodes as their gang-numa-spread says, by the number of the NUMA "
        "node: 'packed' with another member, 'isolated' with none, 'balanced' as evenly as possible.",
    ),
    MetricDefinition(
        "kubenexus_numa_memory_bandwidth_pressure_percent",
        ALPHA,
        ("pressure_level",),
        "Percentage of the NUMA nodes whose memory pods take by less than half ('low'), less than four fifths "
        "('medium') or more ('high'). Bandwidth is not measured; memory in use stands for it.",
    ),
)

SHARES: Final = (
    MetricDefinition(
        "kubenexus_queue_used",
        ALPHA,
        ("queue", "resource"),
        "What the pods of a queue request, those of queues below it included. cpu is in cores, memory in bytes.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_guaranteed",
        ALPHA,
        ("queue", "resource"),
        "What is guaranteed to a queue; at least the sum of those below it.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_limit",
        ALPHA,
        ("queue", "resource"),
        "What the pods of a queue may use at most, of resources with a limit.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_borrowed",
        ALPHA,
        ("queue", "resource"),
        "What a queue uses beyond what is guaranteed.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_share",
        ALPHA,
        ("queue",),
        "The dominant share of a queue: the largest part of any resource of the cluster that its pods request.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_waiting_jobs",
        ALPHA,
        ("queue",),
        "Number of jobs that wait in a queue and in those below it. A gang is one job.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_position",
        ALPHA,
        ("queue",),
        "Place of a queue with waiting jobs among its siblings that have some: the first is served next.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_past_share",
        ALPHA,
        ("queue",),
        "Dominant share that a queue borrowed in the past, if that counts: half of it is forgotten in each half-life.",
        series=QUEUE_SERIES,
    ),
    MetricDefinition(
        "kubenexus_queue_reclaimed_pods_total",
        ALPHA,
        ("queue",),
        "Number of pods of a queue that were chosen as victims because it borrows what another is guaranteed.",
    ),
)

TENANTS: Final = (
    MetricDefinition(
        "kubenexus_tenant_gpus",
        ALPHA,
        ("tenant", "tier", "hardware"),
        "Number of GPUs that bound pods of a tenant hold, parts included, by the hardware tier of the nodes "
        "('premium', 'standard', 'economy', 'unknown'). The leader alone has it.",
        series=TENANT_SERIES,
    ),
    MetricDefinition(
        "kubenexus_tenant_gpu_seconds_total",
        ALPHA,
        ("tenant", "tier", "hardware"),
        "GPU time that pods of a tenant held since this process began to schedule. Divide by 3600 for hours.",
        series=TENANT_SERIES,
    ),
    MetricDefinition(
        "kubenexus_tenant_cost_total",
        ALPHA,
        ("tenant", "tier", "hardware"),
        "Cost of that GPU time on nodes with the label hardware.kubenexus.io/cost-hour, in the unit of that label.",
        series=TENANT_SERIES,
    ),
    MetricDefinition(
        "kubenexus_premium_gpu_seconds_by_low_tiers_total",
        ALPHA,
        ("tenant", "tier"),
        "GPU time on premium nodes that tenants of the tiers silver and bronze held.",
        series=TENANT_SERIES,
    ),
)
