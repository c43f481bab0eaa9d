"""Metrics that are read from the scheduler's state when `/metrics` is scraped, because that is cheaper than to update
them at every change."""

import asyncio
from collections.abc import Mapping
from typing import NoReturn

from kubenexus.app.election.leader import LeaderElector
from kubenexus.app.report.metered_api import GROUP_STATUS, POD_STATUS
from kubenexus.app.report.queue_usage import queue_uses
from kubenexus.app.scheduler import Scheduler
from kubenexus.base.clock import Clock
from kubenexus.observe.meters import Counter
from kubenexus.state.object_kinds import kind_name

PERIOD = 1.0


def _set_counters(family: Counter, counts: Mapping[str, int]) -> None:
    """Sets each counter of a family to a count that is kept elsewhere."""
    for label, count in counts.items():
        child = family.labels(label)
        child.add(count - child.value)


class GaugeCollector:
    """A source of the scheduler's metrics: `read` is called at each scrape."""

    def __init__(self, scheduler: Scheduler, elector: LeaderElector | None, clock: Clock) -> None:
        self._scheduler, self._elector, self._clock = scheduler, elector, clock
        scheduler.metrics.add_source(self.read)

    def read(self) -> None:
        metrics, scheduler, ledger = self._scheduler.metrics, self._scheduler, self._scheduler.ledger
        metrics.cache_size.labels("nodes").set(ledger.nodes.count)
        metrics.cache_size.labels("pods").set(len(ledger.pods))
        metrics.cache_size.labels("assumed_pods").set(ledger.assumed)
        metrics.slow_jobs.labels().set(len(scheduler.loop.activity.slow_jobs.entries))
        metrics.tasks.labels("binding").set(scheduler.dispatcher.open_count)
        metrics.pending_api_calls.labels(POD_STATUS).set(len(scheduler.status_patcher))
        metrics.pending_api_calls.labels(GROUP_STATUS).set(len(scheduler.pod_group_reporter.status_patcher))
        for profile in scheduler.gangs:
            metrics.gang_reservations.labels(profile).set(scheduler.loop.reservations.held(profile) is not None)
        for phase, number in scheduler.resource_reservations.phases().items():
            metrics.resource_reservations.labels(str(phase)).set(number)
        if self._elector is not None:
            metrics.leader.labels(self._elector.terms.name).set(self._elector.may_write())
        for reflector in scheduler.watches.reflectors:
            kind = kind_name(reflector.wanted.kind, reflector.wanted.group)  # there are several sorts of PodGroups
            metrics.watch_synced.labels(kind).set(not reflector.missing)
            if reflector.synced and reflector.served:
                metrics.watch_lag.labels(kind).set(self._clock.now() - reflector.last_event_at)
        metrics.tenants.record(scheduler.tenant_usage.drain())
        metrics.queues.record(queue_uses(ledger.queues, scheduler.queue))
        metrics.numa.read(scheduler.ledger.nodes.numa)
        _set_counters(metrics.events_dropped, scheduler.recorder.dropped)
        _set_counters(metrics.unusable_objects, scheduler.handlers.bad_objects.logged)
        _set_counters(metrics.plugin_failures, scheduler.plugin_failures)

    async def measure_loop_lag(self) -> NoReturn:
        """Measures once a second how late the event loop wakes this task. Runs until cancelled."""
        lag = self._scheduler.metrics.loop_lag.labels()
        while True:
            began = self._clock.now()
            await asyncio.sleep(PERIOD)
            lag.observe(max(0.0, self._clock.now() - began - PERIOD))
