"""The Prometheus metrics of the process. `app` creates one object and passes it to the parts that count.

Earlier packages return timings and amounts as data; the scheduling loop records them here. `text` produces the answer
of `/metrics`.
"""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kubenexus import __version__
from kubenexus.observe.device_metrics import UNKNOWN, DeviceMetrics
from kubenexus.observe.meters import Counter, Gauge, Histogram
from kubenexus.observe.metric_table import TABLE
from kubenexus.observe.numa_metrics import NumaMetrics
from kubenexus.observe.share_metrics import ShareMetrics
from kubenexus.observe.tenant_metrics import TenantMetrics
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"
POD, GROUP = "pod", "podgroup"

AFamily = TypeVar("AFamily", Counter, Gauge, Histogram)

PLACES = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED)


class Metrics(Collector):
    """All metrics. Attributes have the names of the metrics, without `scheduler_` and units."""

    def __init__(self) -> None:
        self._families: list[Counter | Histogram] = []
        self._sources: list[Callable[[], None]] = []
        self._attempts()
        self._preemption()
        self._queue()
        self._groups()
        self.devices = DeviceMetrics(self._counter, self._histogram)
        self.numa = NumaMetrics(self._counter, self._histogram, self._gauge)
        self.tenants = TenantMetrics(self._counter, self._gauge)
        self.queues = ShareMetrics(self._gauge, self._counter)
        self._process()
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.process = ProcessCollector(registry=self.registry)

    # --- the metrics ----------------------------------------------------------------------------------------------

    def _attempts(self) -> None:
        self.schedule_attempts = self._counter("scheduler_schedule_attempts_total")
        self.decisions = self._counter("kubenexus_scheduling_decisions_total")
        self.attempt_duration = self._histogram("scheduler_scheduling_attempt_duration_seconds")
        self.algorithm_duration = self._histogram("scheduler_scheduling_algorithm_duration_seconds")
        self.pod_attempts = self._histogram("scheduler_pod_scheduling_attempts")
        self.sli_duration = self._histogram("scheduler_pod_scheduling_sli_duration_seconds")
        self.after_flush = self._counter("scheduler_pod_scheduled_after_flush_total")
        self.api_calls = self._counter("scheduler_async_api_call_execution_total")
        self.api_call_duration = self._histogram("scheduler_async_api_call_execution_duration_seconds")
        self.pending_api_calls = self._gauge("scheduler_pending_async_api_calls")

    def _preemption(self) -> None:
        self.preemption_attempts = self._counter("scheduler_preemption_attempts_total")
        self.preemption_victims = self._histogram("scheduler_preemption_victims")
        self.preemptions_ended = self._counter("kubenexus_preemptions_ended_total")

    def _queue(self) -> None:
        self.pending_pods = self._gauge("scheduler_pending_pods")
        self.queued_entities = self._gauge("scheduler_queued_entities")
        self.incoming_pods = self._counter("scheduler_queue_incoming_pods_total")
        self.incoming_entities = self._counter("scheduler_queue_incoming_entities_total")
        self.inflight_events = self._gauge("scheduler_inflight_events")
        self.unschedulable_pods = self._gauge("scheduler_unschedulable_pods")

    def _groups(self) -> None:
        self.group_attempts = self._counter("scheduler_podgroup_schedule_attempts_total")
        self.group_attempt_duration = self._histogram("scheduler_podgroup_scheduling_attempt_duration_seconds")
        self.group_algorithm_duration = self._histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds")
        self.gang_size = self._histogram("kubenexus_pod_group_size")
        self.gang_decisions = self._counter("kubenexus_gang_scheduling_decisions_total")
        self.gang_waiting = self._histogram("kubenexus_gang_waiting_time_seconds")
        self.gang_completion = self._histogram("kubenexus_gang_completion_latency_seconds")
        self.gang_members_short = self._gauge("kubenexus_gang_members_short")
        self.gang_reservations = self._gauge("kubenexus_gang_reservations")
        self.backfilled_jobs = self._counter("kubenexus_backfilled_jobs_total")
        self.resource_reservations = self._gauge("kubenexus_resource_reservations")

    def _process(self) -> None:
        self.tasks = self._gauge("scheduler_goroutines")
        self.cache_size = self._gauge("scheduler_cache_size")
        self.leader = self._gauge("leader_election_master_status")
        self.loop_lag = self._histogram("kubenexus_loop_lag_seconds")
        self.slow_jobs = self._gauge("kubenexus_slow_jobs")
        self.watch_lag = self._gauge("kubenexus_watch_lag_seconds")
        self.watch_synced = self._gauge("kubenexus_watch_synced")
        self.events_dropped = self._counter("kubenexus_events_dropped_total")
        self.unusable_objects = self._counter("kubenexus_unusable_objects_total")
        self.plugin_failures = self._counter("kubenexus_plugin_failures_total")
        self.refresh_rows = self._histogram("kubenexus_snapshot_refresh_rows")
        self.ledger_corrections = self._counter("kubenexus_ledger_corrections_total")
        self._gauge("kubenexus_build_info").labels(__version__).set(1)

    # --- recording ------------------------------------------------------------------------------------------------

    def attempt(self, result: str, profile: str, seconds: float, pods: int = 1) -> None:
        """Records an attempt for `pods` pods. `seconds` is the time to decide and, for placed pods, to bind."""
        self.attempt_duration.labels(result, profile).observe(seconds, pods)
        self.schedule_attempts.labels(result, profile).add(pods)

    def preempted(self, victims: int) -> None:
        """Records a preemption that is executed."""
        self.preemption_victims.labels().observe(victims)

    def preemption_ended(self, how: str) -> None:
        """Records the end of a preemption (`state.preemptions.PreemptionEnd`)."""
        self.preemptions_ended.labels(how).add()

    def decided(self, workload: str, tier: str, result: str) -> None:
        """Records a decision about a job, by its kind of work ("" if that is not known) and its tenant's tier."""
        self.decisions.labels(workload or UNKNOWN, tier, result).add()

    def group_attempt(self, result: str, profile: str, seconds: float) -> None:
        """Records an attempt for a gang, which counts once however many pods it has."""
        self.group_attempt_duration.labels(result, profile).observe(seconds)
        self.group_attempts.labels(result, profile).add()

    def gang_started(self, members: int, seconds: float) -> None:
        """Records a gang without bound members that was given `members` nodes, `seconds` after its oldest member was
        created."""
        self.gang_decisions.labels("success").add()
        self.gang_size.labels().observe(members)
        self.gang_waiting.labels().observe(max(0.0, seconds))

    def bound(self, attempts: int, seconds: float) -> None:
        """Records a bound pod: how many attempts it took, and the seconds since the first."""
        self.pod_attempts.labels().observe(attempts)
        self.sli_duration.labels(str(attempts) if attempts < 15 else "15+").observe(seconds)

    def read_queue(self, queue: SchedulingQueue) -> None:
        """Sets the metrics of the queue: pods by state, arrivals, refusals by plugin. Registered as a source, so it
        runs at each scrape."""
        for state in PLACES:
            waiting, gangs = queue.pending(state), queue.pending_gangs(state)
            self.pending_pods.labels(state.value).set(waiting.pods)
            self.queued_entities.labels(state.value, POD).set(waiting.jobs - gangs)
            self.queued_entities.labels(state.value, GROUP).set(gangs)
        for state_name, event, jobs, pods, gangs in queue.drain_incoming():
            self.incoming_pods.labels(state_name, event).add(pods)
            for kind, count in ((POD, jobs - gangs), (GROUP, gangs)):
                if count:
                    self.incoming_entities.labels(state_name, event, kind).add(count)
        self.inflight_events.replace({(label,): count for label, count in queue.in_flight_events().items()})
        self._read_refusals(queue)

    def _read_refusals(self, queue: SchedulingQueue) -> None:
        blamed: Tally[tuple[str, ...]] = Tally()
        short = 0
        for refusal in queue.unschedulable_counts():
            for plugin in refusal.plugins:
                blamed[plugin, refusal.profile] += refusal.pods
            short += refusal.short
        self.unschedulable_pods.replace(blamed)
        self.gang_members_short.labels().set(short)

    # --- scraping -------------------------------------------------------------------------------------------------

    def add_source(self, source: Callable[[], None]) -> None:
        """Registers a function that is called in the event loop before each scrape, for values that are cheaper to look
        up than to track."""
        self._sources.append(source)

    async def text(self, accept: str = "") -> tuple[bytes, str]:
        """Returns the body of `/metrics` and its content type, chosen by the `Accept` header.

        Formatting runs in a thread: it takes tens of milliseconds, which would stall the event loop.
        """
        for source in self._sources:
            source()
        return await asyncio.to_thread(self.render, accept)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """As `text`, without calling the sources."""
        encoder, content_type = choose_encoder(accept)
        view = self.registry if "openmetrics" in content_type else _OlderText(self)
        return encoder(view), content_type

    def collect(self, *, canonical: bool = True) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        return (family.collect(canonical=canonical) for family in self._families)

    def describe(self) -> Iterator[Metric]:
        """Called by the registry at registration, to find duplicate names."""
        return (
            Metric(family.row.name.removesuffix("_total"), family.row.text, family.kind) for family in self._families
        )

    def _counter(self, name: str) -> Counter:
        return self._added(Counter(TABLE[name]))

    def _gauge(self, name: str) -> Gauge:
        return self._added(Gauge(TABLE[name]))

    def _histogram(self, name: str) -> Histogram:
        return self._added(Histogram(TABLE[name]))

    def _added(self, family: AFamily) -> AFamily:
        self._families.append(family)
        return family


class _OlderText(Collector):
    """The same metrics with bucket bounds as Go's client writes them, for scrapers that do not accept OpenMetrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics.collect(canonical=False)
        yield from self._metrics.process.collect()
