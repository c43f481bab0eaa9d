"""Writes the status of ResourceReservations. A status is written only if the object has another one."""

from collections.abc import Callable

from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.base.clock import Clock
from kubenexus.bind.job_binding import WriteGuard
from kubenexus.client.calls import Api
from kubenexus.observe import logs
from kubenexus.observe.reservation_status import ReservationReport, status_patch
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.state.reservations.objects import ReservationObjects

log = logs.get("reservations")


class ReservationReporter:
    """Writes through `status_patcher`, which the scheduler runs: namespaces take turns, and binds go first. Without the
    CRD nothing is written. `stalled` is called when the writes of a namespace do not go through."""

    def __init__(
        self,
        objects: ReservationObjects,
        api: Api,
        guard: WriteGuard,
        clock: Clock,
        stalled: Callable[[str, int], None],
    ) -> None:
        self._objects, self._clock = objects, clock
        self._last: dict[str, tuple[str, str, ReservationReport]] = {}  # by key: UID, resourceVersion and report
        self.status_patcher: StatusPatcher[ResourceReservation] = StatusPatcher(
            api, guard, self._is_there, self._unwritten, stalled
        )

    def report(self, key: str, report: ReservationReport) -> None:
        """Queues the write of a status, if the object's differs."""
        thing = self._objects.by_key.get(key)
        if thing is None:
            return
        meta = thing.metadata
        if self._last.get(key) == (meta.uid, meta.resource_version, report):
            return
        self._last[key] = meta.uid, meta.resource_version, report
        call = status_patch(thing, report, self._clock.now())
        if call is not None:
            self.status_patcher.submit(thing, call)
        else:
            self.status_patcher.cancel(meta.uid)

    def forget(self, key: str) -> None:
        """Drops what is known of an object that is gone."""
        last = self._last.pop(key, None)
        if last is not None:
            self.status_patcher.cancel(last[0])

    def _is_there(self, thing: ResourceReservation) -> bool:
        found = self._objects.by_key.get(thing.metadata.key)
        return found is not None and found.metadata.uid == thing.metadata.uid

    def _unwritten(self, thing: ResourceReservation, why: str) -> None:
        log.error("Failed to update the status of a ResourceReservation", err=why, reservation=thing.metadata.key)
        self._last.pop(thing.metadata.key, None)
