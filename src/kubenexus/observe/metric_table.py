"""The metrics as a table: kube-scheduler's with its names, labels, buckets and help texts, then ours.

Dashboards and alerts are written against these. A test compares the first part with a list made from kube-scheduler's
source. A metric that is never written would read as a measured zero, so these are left out: preemption, Permit, times
of single plugins (ours process all nodes at once, for all pods of a class), its batching and hint caches, and
`/metrics/resources`. docs/running.md lists them for users.
"""

from typing import Final, NamedTuple

STABLE: Final = "STABLE"
BETA: Final = "BETA"
ALPHA: Final = "ALPHA"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Returns bounds as Go's client computes them, by repeated multiplication: the digits must be the same."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class MetricDefinition(NamedTuple):
    """A row of the table. `buckets` is set for histograms only."""

    name: str
    stability: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The help text after the stability, as Kubernetes' components write it."""
        return f"[{self.stability}] {self.help}"


UPSTREAM: Final = (
    MetricDefinition(
        "scheduler_schedule_attempts_total",
        STABLE,
        ("result", "profile"),
        "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, "
        "while 'error' means an internal scheduler problem.",
    ),
    MetricDefinition(
        "scheduler_scheduling_attempt_duration_seconds",
        STABLE,
        ("result", "profile"),
        "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
        exponential(0.001, 2, 15),
    ),
    MetricDefinition(
        "scheduler_scheduling_algorithm_duration_seconds",
        BETA,
        (),
        "Scheduling algorithm latency in seconds",
        exponential(0.001, 2, 15),
    ),
    MetricDefinition(
        "scheduler_pending_pods",
        STABLE,
        ("queue",),
        "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means "
        "number of pods in backoffQ; 'unschedulable' means number of pods in unschedulableEntities that the "
        "scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the "
        "scheduler never attempted to schedule because they are gated; 'incomplete' means number of pods in "
        "incompletePodGroupPods; 'pending' means number of pods in pendingPodGroupPods.",
    ),
    MetricDefinition(
        "scheduler_queued_entities",
        ALPHA,
        ("queue", "type"),
        "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not"
        " members of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' "
        "means number of entities in backoffQ; 'unschedulable' means number of entities in unschedulableEntities "
        "that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable entities "
        "that the scheduler never attempted to schedule because they are gated.",
    ),
    MetricDefinition(
        "scheduler_inflight_events",
        ALPHA,
        ("event",),
        "Number of events currently tracked in the scheduling queue.",
    ),
    MetricDefinition(
        "scheduler_goroutines",
        BETA,
        ("operation",),
        "Number of running goroutines split by the work they do such as binding.",
    ),
    MetricDefinition(
        "scheduler_pod_scheduling_sli_duration_seconds",
        BETA,
        ("attempts",),
        "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
        "involve multiple scheduling attempts.",
        exponential(0.01, 2, 20),
    ),
    MetricDefinition(
        "scheduler_pod_scheduling_attempts",
        STABLE,
        (),
        "Number of attempts to successfully schedule a pod.",
        exponential(1, 2, 5),
    ),
    MetricDefinition(
        "scheduler_pod_scheduled_after_flush_total",
        ALPHA,
        (),
        "Number of pods that were successfully scheduled after being flushed from unschedulableEntities due to "
        "timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
    ),
    MetricDefinition(
        "scheduler_queue_incoming_pods_total",
        STABLE,
        ("queue", "event"),
        "Number of pods added to scheduling queues by event and queue type.",
    ),
    MetricDefinition(
        "scheduler_queue_incoming_entities_total",
        ALPHA,
        ("queue", "event", "type"),
        "Number of scheduling entities added to scheduling queues by event, queue type, and entity type. Entity "
        "types are either 'pod' (for individual pods that are not members of any podgroup) or 'podgroup'.",
    ),
    MetricDefinition(
        "scheduler_cache_size",
        ALPHA,
        ("type",),
        "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    ),
    MetricDefinition(
        "scheduler_unschedulable_pods",
        BETA,
        ("plugin", "profile"),
        "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all "
        "plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.",
    ),
    MetricDefinition(
        "scheduler_async_api_call_execution_total",
        ALPHA,
        ("call_type", "result"),
        "Total number of API calls executed by the async dispatcher.",
    ),
    MetricDefinition(
        "scheduler_async_api_call_execution_duration_seconds",
        ALPHA,
        ("call_type", "result"),
        "Duration in seconds for executing API call in the async dispatcher.",
        exponential(0.001, 2, 15),
    ),
    MetricDefinition(
        "scheduler_pending_async_api_calls",
        ALPHA,
        ("call_type",),
        "Number of API calls currently pending in the async queue.",
    ),
    MetricDefinition(
        "scheduler_podgroup_schedule_attempts_total",
        ALPHA,
        ("result", "profile"),
        "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be "
        "scheduled, while 'error' means an internal scheduler problem.",
    ),
    MetricDefinition(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        ALPHA,
        ("result", "profile"),
        "Pod group scheduling attempt latency in seconds",
        exponential(0.001, 2, 15),
    ),
    MetricDefinition(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        ALPHA,
        (),
        "Pod group scheduling algorithm latency in seconds",
        exponential(0.001, 2, 15),
    ),
    MetricDefinition(
        "leader_election_master_status",
        ALPHA,
        ("name",),
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
        "'name' is the string used to identify the lease. Please make sure to group by name.",
    ),
)

OURS: Final = (
    MetricDefinition("kubenexus_build_info", ALPHA, ("version",), "1, with the version that is running."),
    MetricDefinition(
        "kubenexus_loop_lag_seconds",
        ALPHA,
        (),
        "How much later than asked for the event loop came back to a task that only sleeps.",
        exponential(0.001, 2, 13),
    ),
    MetricDefinition(
        "kubenexus_slow_jobs",
        ALPHA,
        (),
        "Number of jobs whose last decision took longer than it may: they are tried after all others. Anything but 0 "
        "deserves a look at the log.",
    ),
    MetricDefinition(
        "kubenexus_watch_lag_seconds",
        ALPHA,
        ("kind",),
        "Seconds since the watch of a kind last said anything, bookmarks included.",
    ),
    MetricDefinition(
        "kubenexus_watch_synced",
        ALPHA,
        ("kind",),
        "1 while objects of a kind are listed and watched, or the kind is not served; 0 while that fails.",
    ),
    MetricDefinition(
        "kubenexus_events_dropped_total",
        ALPHA,
        ("reason",),
        "Number of events that were not written: the queue was full, the server rejected them or was not reachable.",
    ),
    MetricDefinition(
        "kubenexus_unusable_objects_total",
        ALPHA,
        ("kind",),
        "Number of objects that could not be read or used and were set aside; the log names each.",
    ),
    MetricDefinition(
        "kubenexus_plugin_failures_total",
        ALPHA,
        ("plugin",),
        "Number of times that a plugin raised, or returned what its contract does not allow; pods' events say what.",
    ),
    MetricDefinition(
        "kubenexus_snapshot_refresh_rows",
        ALPHA,
        (),
        "Number of nodes that had to be looked at again before a decision.",
        exponential(1, 4, 9),
    ),
    MetricDefinition(
        "kubenexus_ledger_corrections_total",
        ALPHA,
        (),
        "Number of times that what is counted on a node, or of pods over all nodes, was not what counting anew gave, "
        "and was put right. Anything but 0 is a bug.",
    ),
    MetricDefinition(
        "kubenexus_pod_group_size",
        ALPHA,
        (),
        "Number of members that a gang started with.",
        (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    ),
    MetricDefinition(
        "kubenexus_gang_scheduling_decisions_total",
        ALPHA,
        ("outcome",),
        "Number of gangs that were given nodes as a whole ('success'), and of those that did not have all their "
        "members on nodes in time ('timeout').",
    ),
    MetricDefinition(
        "kubenexus_gang_waiting_time_seconds",
        ALPHA,
        (),
        "Age of a gang, by its oldest member, when it was given nodes.",
        (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
    ),
    MetricDefinition(
        "kubenexus_gang_completion_latency_seconds",
        ALPHA,
        (),
        "Age of a gang, by its oldest member, when as many members as it needs were bound.",
        (5, 15, 30, 60, 120, 300, 600, 1200, 3600),
    ),
    MetricDefinition(
        "kubenexus_gang_members_short",
        ALPHA,
        (),
        "Number of members for which capacity is missing, over all gangs that were refused and wait.",
    ),
    MetricDefinition(
        "kubenexus_gang_reservations",
        ALPHA,
        ("profile",),
        "Number of gangs with a reservation now: the first in the queue that waits for capacity, if there is one.",
    ),
    MetricDefinition(
        "kubenexus_gpu_allocation_success_total",
        ALPHA,
        ("gpu_count", "topology_aware"),
        "Number of placed pods with devices, by the number of their devices (1, 2, 4, 8, 16+, rounded up). "
        "'topology_aware' is true if several devices are on one NVLink island, PCIe switch or NUMA node.",
    ),
    MetricDefinition(
        "kubenexus_gpu_allocation_failures_total",
        ALPHA,
        ("reason",),
        "Number of refusals of jobs that lack devices, by the reason of most nodes: 'insufficient_gpus', "
        "'insufficient_vram', 'no_gpu_info' (no node reports the memory), 'not_joined', 'no_shared_gpu', 'wrong_type', "
        "'reserved_tier', 'gang'.",
    ),
    MetricDefinition(
        "kubenexus_gpu_data_source_usage_total",
        ALPHA,
        ("source",),
        "Number of placed pods with devices of which a fact came from a source: 'dra', 'nrt', 'gfd', 'nfd', 'manual', "
        "'allocatable', 'model'. A pod counts once for each.",
    ),
    MetricDefinition(
        "kubenexus_vram_placement_decisions_total",
        ALPHA,
        ("outcome", "data_source"),
        "Number of placed pods with devices by the part of their smallest GPU's memory that they asked for: 'good_fit' "
        "from 70 percent, 'acceptable_fit' from 40, 'poor_fit' below, 'no_vram_request'; and of refusals: "
        "'insufficient_vram', 'no_gpu_info'. 'data_source' is the source of the memory.",
    ),
    MetricDefinition(
        "kubenexus_vram_requested_bytes",
        ALPHA,
        (),
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

TABLE: Final = {row.name: row for row in (*UPSTREAM, *OURS)}
