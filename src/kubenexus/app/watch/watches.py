"""The watches of all kinds: which are listed, which are down, and whether they are current."""

import asyncio
import random

from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.app.watch.informers import OPTIONAL, InformerHandler, watch_target
from kubenexus.base.clock import Clock
from kubenexus.client import kinds
from kubenexus.client.calls import ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import ApiResource
from kubenexus.client.reflector import Reflector
from kubenexus.client.watch_protocols import WatchClient, WatchTiming
from kubenexus.observe import logs

# Kinds that schedulers write, and must have read before the first decision.
WRITTEN_KINDS = frozenset({kinds.PODS, kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS, kinds.RESOURCE_CLAIMS})
# Kinds that every decision depends on. None is made while their watch is down.
DECIDED_ON = frozenset({kinds.NODES, kinds.PODS})
OUTDATED = 30.0  # seconds without these watches until the scheduler is no longer ready
OPTIONAL_GRACE = 5.0  # seconds that optional kinds have to be listed before pods are placed without them
# Until our own kinds are installed, limits of queues and reservations do not hold: they are looked for more often.
OWN_KINDS = WatchTiming(absent=10.0)
LOG_INTERVAL = 10.0  # seconds between two log lines about kinds that are not listed yet

log = logs.get("watches")


class Watches:
    """One reflector and one informer for each kind that was added."""

    def __init__(self, api: WatchClient, clock: Clock, rng: random.Random, wakeup: Wakeup) -> None:
        self._api, self._clock, self._rng, self._wakeup = api, clock, rng, wakeup
        self.informers: dict[ApiResource, InformerHandler] = {}
        self.reflectors: list[Reflector] = []

    def add(self, resource: ApiResource, handlers: EventHandlers) -> None:
        """Watches one more kind as soon as `run` is called."""
        informer = self.informers[resource] = InformerHandler(handlers, resource, self._wakeup)
        self.reflectors.append(
            Reflector(
                self._api,
                watch_target(resource),
                informer,
                clock=self._clock,
                rng=self._rng,
                timing=OWN_KINDS if resource.group == kinds.QUEUES.group else None,
                group=self,
            )
        )

    async def run(self) -> None:
        """Runs all watches, until cancelled."""
        for informer in self.informers.values():
            informer.unlisted()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.reflectors:
                tasks.create_task(reflector.run())

    # --- what is listed and current ---------------------------------------------------------------------------------

    @property
    def unsynced(self) -> list[str]:
        """Returns the required kinds that have never been listed completely. No decision is made before they are."""
        return [str(each.resource) for each in self.reflectors if not each.synced and each.wanted not in OPTIONAL]

    @property
    def missing(self) -> dict[str, str]:
        """Returns the optional kinds that cannot be listed or watched now, each with the problem. Pods that name one
        wait."""
        optional = [each for each in self.reflectors if each.wanted in OPTIONAL]
        return {str(each.wanted): each.missing for each in optional if each.missing}

    def outdated(self, seconds: float = 0.0) -> list[str]:
        """Returns the kinds that decisions depend on and whose watch has been down for `seconds`, though they were
        listed."""
        lost = [each for each in self.reflectors if each.lost_since is not None and each.wanted in DECIDED_ON]
        latest = self._clock.now() - seconds if lost else 0.0
        return [str(each.resource) for each in lost if each.lost_since is not None and each.lost_since <= latest]

    async def listed(self, look: float = 0.01) -> None:
        """Waits until all required kinds have been listed, checking every `look` seconds. Optional kinds get up to
        `OPTIONAL_GRACE` seconds, so that at a normal start gangs with a PodGroup are queued before the first pod is
        placed."""
        looks, often = 0, round(LOG_INTERVAL / look)
        while self.unsynced or (self.missing and looks * look < OPTIONAL_GRACE):
            looks += 1
            if self.unsynced and looks % often == 0:
                log.warning("Still waiting for the first lists", kinds=self.unsynced)
            await asyncio.sleep(look)
        if self.missing:
            problems = [f"{kind}: {problem}" for kind, problem in self.missing.items()]
            log.warning("Scheduling without some optional kinds; pods that name one wait", kinds=problems)

    async def wait_until_current(self) -> None:
        """Waits until every bind made before this call is in the ledger, also the previous leader's last one. Decisions
        on an older state could use the same capacity twice. The other kinds are as old as their watches, as always."""
        kept = (each for each in self.reflectors if each.synced or each.wanted not in OPTIONAL)
        written = [each for each in kept if each.wanted in WRITTEN_KINDS]
        await asyncio.gather(*map(self._wait_until_current, written))

    @staticmethod
    async def _wait_until_current(reflector: Reflector) -> None:
        """An optional kind that does not answer counts as not listed: it keeps only pods that name its objects waiting,
        until it is listed again."""
        if reflector.wanted not in OPTIONAL:
            await reflector.wait_until_current(patience=0.2)
            return
        try:
            async with asyncio.timeout(OPTIONAL_GRACE):
                await reflector.wait_until_current(patience=0.2)
        except (ApiError, Unreachable, Uncertain, TimeoutError) as error:
            reflector.unlist(str(error) or f"no answer within {OPTIONAL_GRACE:g} s")

    # --- what the server has ----------------------------------------------------------------------------------------

    def serves(self, resource: ApiResource) -> bool:
        """Whether the server has an optional kind, and it was listed."""
        return any(each.wanted is resource and each.synced and each.served for each in self.reflectors)

    def version_of(self, resource: ApiResource) -> ApiResource:
        """Returns the version of a kind that the server has."""
        for each in self.reflectors:
            if each.wanted is resource:
                return each.resource
        return resource

    def pods_version(self) -> str | None:
        """Returns the resourceVersion that the watch of pods has reached, "" before its list, None without one."""
        watch = next((each for each in self.reflectors if each.resource is kinds.PODS), None)
        return None if watch is None else watch.version

    def server_answers(self) -> None:
        """Retries all watches at once, because one has come back. Otherwise they would come back seconds apart, each
        after its own backoff, and pods would be placed on an old state of the nodes."""
        for reflector in self.reflectors:
            reflector.retry()
        self._wakeup.set()

    def version_expired(self, version: str) -> None:
        """Has all watches confirm their state, because the server does not continue one of them. If its store was
        restored, pods that are listed again would otherwise be placed on nodes that no longer exist."""
        for reflector in self.reflectors:
            reflector.doubt(version)
