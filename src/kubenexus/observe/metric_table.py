"""The metrics as a table: kube-scheduler's with its names, labels, buckets and help texts, then ours.

Dashboards and alerts are written against these. A test compares the first part with a list made from kube-scheduler's
source. A metric that is never written would read as a measured zero, so these are left out: Permit, preemption by
workloads, times of single plugins (ours process all nodes at once, for all pods of a class), its batching and hint
caches, and `/metrics/resources`. docs/running.md lists them for users.
"""

from typing import Final

from kubenexus.observe.metric_definition import ALPHA, BETA, STABLE, MetricDefinition, exponential
from kubenexus.observe.use_metric_table import DEVICES, NUMA, SHARES, TENANTS

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
        "scheduler_preemption_victims",
        STABLE,
        (),
        "Number of selected preemption victims for preemption initiated by a single pod",
        exponential(1, 2, 7),
    ),
    MetricDefinition(
        "scheduler_preemption_attempts_total",
        STABLE,
        (),
        "Total preemption attempts in the cluster till now",
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
        "Number of times that what is counted on a node, or of pods over all nodes, was not what a recount gave, "
        "and was put right. Anything but 0 is a bug.",
    ),
    MetricDefinition(
        "kubenexus_scheduling_decisions_total",
        ALPHA,
        ("workload_type", "tier", "result"),
        "Number of decisions about jobs, by the kind of work ('training', 'inference', 'batch', 'service', "
        "'interactive'; 'unknown' without ProfileClassifier), the tier of the tenant, and the result ('scheduled', "
        "'unschedulable', 'error').",
    ),
    MetricDefinition(
        "kubenexus_pod_group_size",
        ALPHA,
        (),
        "Number of members that a gang started with.",
        (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    ),
    MetricDefinition(
        "kubenexus_preemptions_ended_total",
        ALPHA,
        ("end",),
        "Number of preemptions that ended: the job has nodes ('landed'), is gone ('gone'), a victim could not be "
        "evicted or the job did not fit afterwards ('failed'), the victims took too long ('expired'), or a job of "
        "higher priority took the capacity ('outranked').",
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
        "kubenexus_backfilled_jobs_total",
        ALPHA,
        ("profile",),
        "Number of jobs that were placed ahead of the first one in the queue, which waited for its expected start.",
    ),
    MetricDefinition(
        "kubenexus_resource_reservations",
        ALPHA,
        ("phase",),
        "Number of ResourceReservations under way, by phase; those of drivers count without an object, too.",
    ),
    *DEVICES,
    *NUMA,
    *TENANTS,
    *SHARES,
)

TABLE: Final = {row.name: row for row in (*UPSTREAM, *OURS)}
