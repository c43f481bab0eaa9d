"""The metrics as a table: kube-scheduler's under its own names, labels, buckets and help texts, then ours.

Dashboards and alerts are written against these; a test compares the first part with a list made from kube-scheduler's
source. What it has and we do not: counters of its batching and hint caches, goroutines of preemption, and
`/metrics/resources`.
"""

from typing import Final, NamedTuple

STABLE: Final = "STABLE"
BETA: Final = "BETA"
ALPHA: Final = "ALPHA"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds as Go's client computes them, one multiplication after the other: the same digits."""
    bounds = [start]
    for _ in range(count - 1):
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class Row(NamedTuple):
    """`buckets` for histograms only."""

    name: str
    stability: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The help text with the stability before it, as Kubernetes' components have it."""
        return f"[{self.stability}] {self.help}"


UPSTREAM: Final = (
    Row(
        "scheduler_schedule_attempts_total",
        STABLE,
        ("result", "profile"),
        "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, "
        "while 'error' means an internal scheduler problem.",
    ),
    Row(
        "scheduler_event_handling_duration_seconds",
        ALPHA,
        ("event",),
        "Event handling latency in seconds.",
        exponential(0.0001, 2, 12),
    ),
    Row(
        "scheduler_scheduling_attempt_duration_seconds",
        STABLE,
        ("result", "profile"),
        "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
        exponential(0.001, 2, 15),
    ),
    Row(
        "scheduler_scheduling_algorithm_duration_seconds",
        BETA,
        (),
        "Scheduling algorithm latency in seconds",
        exponential(0.001, 2, 15),
    ),
    Row(
        "scheduler_preemption_victims",
        STABLE,
        (),
        "Number of selected preemption victims for preemption initiated by a single pod",
        exponential(1, 2, 7),
    ),
    Row(
        "scheduler_preemption_attempts_total",
        STABLE,
        (),
        "Total preemption attempts in the cluster till now",
    ),
    Row(
        "scheduler_pending_pods",
        STABLE,
        ("queue",),
        "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means "
        "number of pods in backoffQ; 'unschedulable' means number of pods in unschedulableEntities that the "
        "scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the "
        "scheduler never attempted to schedule because they are gated; 'incomplete' means number of pods in "
        "incompletePodGroupPods; 'pending' means number of pods in pendingPodGroupPods.",
    ),
    Row(
        "scheduler_queued_entities",
        ALPHA,
        ("queue", "type"),
        "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not"
        " members of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' "
        "means number of entities in backoffQ; 'unschedulable' means number of entities in unschedulableEntities "
        "that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable entities "
        "that the scheduler never attempted to schedule because they are gated.",
    ),
    Row(
        "scheduler_inflight_events",
        ALPHA,
        ("event",),
        "Number of events currently tracked in the scheduling queue.",
    ),
    Row(
        "scheduler_goroutines",
        BETA,
        ("operation",),
        "Number of running goroutines split by the work they do such as binding.",
    ),
    Row(
        "scheduler_batch_attempts_total",
        ALPHA,
        ("profile", "result"),
        "Counts of results when we attempt to use batching.",
    ),
    Row(
        "scheduler_pod_scheduling_sli_duration_seconds",
        BETA,
        ("attempts",),
        "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
        "involve multiple scheduling attempts.",
        exponential(0.01, 2, 20),
    ),
    Row(
        "scheduler_pod_scheduling_attempts",
        STABLE,
        (),
        "Number of attempts to successfully schedule a pod.",
        exponential(1, 2, 5),
    ),
    Row(
        "scheduler_pod_scheduled_after_flush_total",
        ALPHA,
        (),
        "Number of pods that were successfully scheduled after being flushed from unschedulableEntities due to "
        "timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.",
    ),
    Row(
        "scheduler_framework_extension_point_duration_seconds",
        STABLE,
        ("extension_point", "status", "profile"),
        "Latency for running all plugins of a specific extension point.",
        exponential(0.0001, 2, 12),
    ),
    Row(
        "scheduler_plugin_execution_duration_seconds",
        BETA,
        ("plugin", "extension_point", "status"),
        "Duration for running a plugin at a specific extension point.",
        exponential(0.00001, 1.5, 20),
    ),
    Row(
        "scheduler_queueing_hint_execution_duration_seconds",
        ALPHA,
        ("plugin", "event", "hint"),
        "Duration for running a queueing hint function of a plugin.",
        exponential(0.00001, 1.5, 20),
    ),
    Row(
        "scheduler_queue_incoming_pods_total",
        STABLE,
        ("queue", "event"),
        "Number of pods added to scheduling queues by event and queue type.",
    ),
    Row(
        "scheduler_queue_incoming_entities_total",
        ALPHA,
        ("queue", "event", "type"),
        "Number of scheduling entities added to scheduling queues by event, queue type, and entity type. Entity "
        "types are either 'pod' (for individual pods that are not members of any podgroup) or 'podgroup'.",
    ),
    Row(
        "scheduler_permit_wait_duration_seconds",
        BETA,
        ("result",),
        "Duration of waiting on permit.",
        exponential(0.001, 2, 15),
    ),
    Row(
        "scheduler_cache_size",
        ALPHA,
        ("type",),
        "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    ),
    Row(
        "scheduler_unschedulable_pods",
        BETA,
        ("plugin", "profile"),
        "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all "
        "plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.",
    ),
    Row(
        "scheduler_plugin_evaluation_total",
        BETA,
        ("plugin", "extension_point", "profile"),
        "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter,"
        " Filter, PreScore, and Score).",
    ),
    Row(
        "scheduler_async_api_call_execution_total",
        ALPHA,
        ("call_type", "result"),
        "Total number of API calls executed by the async dispatcher.",
    ),
    Row(
        "scheduler_async_api_call_execution_duration_seconds",
        ALPHA,
        ("call_type", "result"),
        "Duration in seconds for executing API call in the async dispatcher.",
        exponential(0.001, 2, 15),
    ),
    Row(
        "scheduler_pending_async_api_calls",
        ALPHA,
        ("call_type",),
        "Number of API calls currently pending in the async queue.",
    ),
    Row(
        "scheduler_podgroup_schedule_attempts_total",
        ALPHA,
        ("result", "profile"),
        "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be "
        "scheduled, while 'error' means an internal scheduler problem.",
    ),
    Row(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        ALPHA,
        ("result", "profile"),
        "Pod group scheduling attempt latency in seconds",
        exponential(0.001, 2, 15),
    ),
    Row(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        ALPHA,
        (),
        "Pod group scheduling algorithm latency in seconds",
        exponential(0.001, 2, 15),
    ),
    Row(
        "scheduler_workload_preemption_attempts_total",
        ALPHA,
        ("result",),
        "Total preemption attempts initiated by workload (including pod groups) in the cluster till now.",
    ),
    Row(
        "scheduler_workload_preemption_victims",
        ALPHA,
        (),
        "Number of pod preemption victims caused by workload preemption.",
        exponential(1, 2, 11),
    ),
    Row(
        "scheduler_preemption_workload_disruptions",
        ALPHA,
        ("preemptor",),
        "Number of workload preemption units being preempted. A single preemption unit can be all pods in a pod "
        "group (in case of DisruptionMode=all), or a single pod (in case of DisruptionMode=single).",
        exponential(1, 2, 11),
    ),
    Row(
        "scheduler_preemption_evaluation_duration_seconds",
        ALPHA,
        ("preemptor", "result"),
        "Duration in seconds for identifying the target preemption victims.",
        exponential(0.001, 2, 16),
    ),
    Row(
        "scheduler_preemption_execution_duration_seconds",
        ALPHA,
        ("preemptor", "result"),
        "Duration in seconds for preempting the target preemption victims. With async preemption enabled, "
        "preemption execution does not block the scheduling of other pods.",
        exponential(0.001, 2, 16),
    ),
    Row(
        "scheduler_preemption_pdb_violations_total",
        ALPHA,
        ("preemptor",),
        "Total number of pod disruption budget violations caused by preemption.",
    ),
    Row(
        "scheduler_generated_placements_total",
        ALPHA,
        ("profile",),
        "Number of candidate placements generated when scheduling pod groups.",
    ),
    Row(
        "scheduler_placement_evaluations_total",
        ALPHA,
        ("result", "profile"),
        "Number of candidate placements evaluated when scheduling pod groups, by result. 'feasible' means the pod"
        " group fit into the placement, while 'infeasible' means it did not.",
    ),
    Row(
        "scheduler_placement_evaluation_duration_seconds",
        ALPHA,
        ("result", "profile"),
        "Latency in seconds of evaluating a single candidate placement when scheduling pod groups, by result. "
        "'feasible' means the pod group fit into the placement, while 'infeasible' means it did not.",
        exponential(0.001, 2, 15),
    ),
    Row(
        "leader_election_master_status",
        ALPHA,
        ("name",),
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
        "'name' is the string used to identify the lease. Please make sure to group by name.",
    ),
)

OURS: Final = (
    Row("kubenexus_build_info", ALPHA, ("version",), "1, with the version that is running."),
    Row(
        "kubenexus_loop_lag_seconds",
        ALPHA,
        (),
        "How much later than asked for the event loop came back to a task that only sleeps.",
        exponential(0.001, 2, 13),
    ),
    Row(
        "kubenexus_watch_lag_seconds",
        ALPHA,
        ("kind",),
        "Seconds since the watch of a kind last said anything, bookmarks included.",
    ),
    Row(
        "kubenexus_pending_pods_by_reason",
        ALPHA,
        ("reason", "queue"),
        "Number of pending pods by the first reason that applies. Every pending pod is counted once.",
    ),
    Row(
        "kubenexus_events_dropped_total",
        ALPHA,
        ("reason",),
        "Number of events that were not written: the queue was full, the server rejected them or was not reachable.",
    ),
    Row(
        "kubenexus_snapshot_refresh_rows",
        ALPHA,
        (),
        "Number of nodes that had to be looked at again before a decision.",
        exponential(1, 4, 9),
    ),
)

TABLE: Final = {row.name: row for row in (*UPSTREAM, *OURS)}
