"""What is cheaper to look up when somebody reads `/metrics` than to follow all the time."""

import asyncio
from collections.abc import Mapping
from typing import NoReturn

from kubenexus.app.counted import GROUP_STATUS, POD_STATUS
from kubenexus.app.leader import LeaderElection
from kubenexus.app.scheduler import Scheduler
from kubenexus.base.clock import Clock
from kubenexus.observe.meters import Counter
from kubenexus.state.intake import named

PERIOD = 1.0


def _follow(family: Counter, counts: Mapping[str, int]) -> None:
    """A counter of what is counted elsewhere."""
    for label, count in counts.items():
        child = family.at(label)
        child.add(count - child.value)


class Gauges:
    """Added to the scheduler's metrics as a source."""

    def __init__(self, scheduler: Scheduler, election: LeaderElection | None, clock: Clock) -> None:
        self._scheduler, self._election, self._clock = scheduler, election, clock
        scheduler.metrics.add_source(self.read)

    def read(self) -> None:
        metrics, scheduler, ledger = self._scheduler.metrics, self._scheduler, self._scheduler.ledger
        metrics.cache_size.at("nodes").set(ledger.nodes.count)
        metrics.cache_size.at("pods").set(len(ledger.pods))
        metrics.cache_size.at("assumed_pods").set(ledger.assumed)
        metrics.slow_jobs.at().set(len(scheduler.loop.activity.slow_jobs.entries))
        metrics.tasks.at("binding").set(scheduler.dispatcher.open)
        metrics.pending_api_calls.at(POD_STATUS).set(len(scheduler.notes))
        metrics.pending_api_calls.at(GROUP_STATUS).set(len(scheduler.registrar.notes))
        for profile in scheduler.gangs:
            metrics.gang_reservations.at(profile).set(scheduler.loop.reservations.held(profile) is not None)
        if self._election is not None:
            metrics.leader.at(self._election.terms.name).set(self._election.may_write())
        for reflector in scheduler.reflectors:
            kind = named(reflector.wanted.kind, reflector.wanted.group)  # there are several sorts of PodGroups
            metrics.watch_synced.at(kind).set(not reflector.missing)
            if reflector.synced and reflector.served:
                metrics.watch_lag.at(kind).set(self._clock.now() - reflector.heard_at)
        _follow(metrics.events_dropped, scheduler.recorder.dropped)
        _follow(metrics.unusable_objects, scheduler.feed.unusable)
        _follow(metrics.plugin_failures, scheduler.plugin_failures)

    async def feel(self) -> NoReturn:
        """How late the loop is, once a second."""
        lag = self._scheduler.metrics.loop_lag.at()
        while True:
            asked = self._clock.now()
            await asyncio.sleep(PERIOD)
            lag.observe(max(0.0, self._clock.now() - asked - PERIOD))
