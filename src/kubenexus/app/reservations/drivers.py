"""Reserves the capacity of workers that do not exist yet, when their driver has been placed.

A Spark driver starts alone and makes its executors later. If other pods take their capacity meanwhile, the driver
holds its own for nothing. So what its annotations state (`kubenexus.io/executor-count`, `-cpu`, `-memory`) is reserved
for pods with the same job label, for ten minutes at most, until all of them are bound, or until the driver is gone.

Annotations cost a tenant nothing. So only namespaces whose ResourceReservations take effect have these, within the same
limits (`admission`).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubenexus.api.classification.driver import is_driver, job_label, worker_size
from kubenexus.api.core import Pod
from kubenexus.api.reservations.request import (
    DEFAULT_SECONDS,
    MAX_ENTRIES,
    ReservationEntry,
    ReservationOwner,
    ReservationRequest,
    quantity_text,
)
from kubenexus.api.reservations.resource_reservation import object_name
from kubenexus.api.selectors import LabelSelector, compile_selector
from kubenexus.app.reservations.controller import ReservationController
from kubenexus.base.clock import Clock
from kubenexus.config.reservation_settings import ReservationSettings
from kubenexus.framework.job import Job
from kubenexus.state.ledger import Ledger

MAX_DRIVERS: Final = 256  # that have a reservation under way


class DriverReservation(NamedTuple):
    """A driver, the label that it has in common with its workers, and what is reserved for them."""

    pod: Pod
    job_label: tuple[str, str]
    request: ReservationRequest


class DriverReservations:
    """The reservations of drivers that this process placed. After a restart their objects are reservations like those
    of users."""

    def __init__(
        self, ledger: Ledger, controller: ReservationController, settings: ReservationSettings, clock: Clock
    ) -> None:
        self._ledger, self._controller, self._settings, self._clock = ledger, controller, settings, clock
        self._drivers: dict[str, DriverReservation] = {}

    def placed(self, job: Job) -> None:
        """Reserves for the workers of a driver that was just placed. Called by the loop for every placed job."""
        pod = job.pods[0]
        labels = pod.metadata.labels
        if not labels or len(job.pods) > 1 or job.is_gang or not is_driver(labels):
            return
        if len(self._drivers) >= MAX_DRIVERS or not self._settings.allows(job.namespace):
            return
        label = job_label(labels)
        request = None if label is None else self._request(pod, label)
        if label is not None and request is not None:
            self._drivers[request.key] = DriverReservation(pod, label, request)
            self._controller.add(request)

    def _request(self, pod: Pod, label: tuple[str, str]) -> ReservationRequest | None:
        count, cpu, memory = worker_size(pod)
        if not count:
            return None
        amounts = tuple([each for each in (("cpu", cpu), ("memory", memory)) if each[1]])
        texts = tuple([(name, quantity_text(name, amount)) for name, amount in amounts])
        workers = [ReservationEntry(f"worker-{i}", amounts, texts) for i in range(min(count, MAX_ENTRIES))]
        meta, now = pod.metadata, self._clock.now()
        owner = ReservationOwner(
            frozenset({meta.namespace}), pods=compile_selector(LabelSelector(match_labels=dict([label])))
        )
        return ReservationRequest(
            f"{meta.namespace}/{object_name(meta.name)}",
            meta.uid,
            tuple(workers),
            owner,
            now,
            now + DEFAULT_SECONDS,
            len(workers),
            pod.spec.node_selector,
            tuple(pod.spec.tolerations[:16]),
            once=True,
        )

    def under_way(self) -> Iterable[DriverReservation]:
        return self._drivers.values()

    def is_under_way(self, key: str) -> bool:
        """Whether the reservation under this key goes on, also if an earlier process began it."""
        return key in self._controller

    def end_gone(self) -> None:
        """Ends the reservations whose driver is gone, and forgets those that are over."""
        for key, driver in list(self._drivers.items()):
            record = self._ledger.pods.get(driver.pod.key)
            if record is None or record.uid != driver.pod.metadata.uid:
                self._controller.end(key)
            if key not in self._controller:
                del self._drivers[key]
