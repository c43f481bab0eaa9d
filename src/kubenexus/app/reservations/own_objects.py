"""The objects by which the scheduler shows its own reservations: for the first gang in the queue, and for drivers.

The objects are reports. What a gang keeps is in memory (`app.gangs.reservations`), and no object in a tenant's
namespace can add to it: its users may write such an object, too. After a restart the first refusal of the gang makes
the same reservation, and finds its object by name. An object whose reservation is over is deleted; it also has an owner
reference, and no finalizer, so it is gone with its gang if no scheduler runs.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.gangs.job_key import is_gang_key
from kubenexus.api.keys import gang
from kubenexus.api.meta import ObjectMeta
from kubenexus.api.reservations.request import MAX_ENTRIES, quantity_text
from kubenexus.api.reservations.resource_reservation import MANAGER, ResourceReservation, object_name
from kubenexus.api.resource_names import Amounts
from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.app.reservations.drivers import DriverReservation, DriverReservations
from kubenexus.app.reservations.reporter import ReservationReporter
from kubenexus.base.clock import Clock
from kubenexus.bind.job_binding import WriteGuard
from kubenexus.client.calls import Api
from kubenexus.client.kinds import RESOURCE_RESERVATIONS
from kubenexus.client.verbs import create, delete
from kubenexus.observe import logs
from kubenexus.observe.reservation_status import Phase, ReservationReport
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.plan.gang.reservation import Reservation
from kubenexus.state.footprint import footprint_of
from kubenexus.state.reservations.objects import ReservationObjects

PERIOD: Final = 5.0  # seconds between two looks; a reservation that is over by then is never shown
GRACE: Final = 60.0  # seconds after the start for which objects of an earlier process are left alone
LOOKS: Final = 256  # objects at a time; every user who may create them can set our label
AGAIN: Final = 60.0  # seconds until an object that does not appear is made again

log = logs.get("reservations")


class ShownReservation(NamedTuple):
    """An object that should exist, and what its status should be (None if the controller writes it)."""

    body: dict[str, Any]
    report: ReservationReport | None


class OwnObjects:
    """Makes and deletes the objects, through `status_patcher`, which the scheduler runs: namespaces take turns, and
    binds go first. Only objects with our label are touched. `served`: whether the kind is there, and objects are
    wanted; if not, it only ends what is over."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        objects: ReservationObjects,
        gangs: GangReservations,
        drivers: DriverReservations,
        profiles: Iterable[str],
        *,
        reporter: ReservationReporter,
        api: Api,
        guard: WriteGuard,
        clock: Clock,
        stalled: Callable[[str, int], None],
        served: Callable[[], bool],
    ) -> None:
        self._served = served
        self._objects, self._gangs, self._drivers, self._profiles = objects, gangs, drivers, tuple(profiles)
        self._reporter, self._clock = reporter, clock
        self._shown: dict[str, ShownReservation] = {}
        self._asked: dict[str, float] = {}  # by key: when an object was made that the watch has not shown yet
        self._was_shown: set[str] = set()  # keys of objects that this process has shown
        self._since = clock.now()
        self.status_patcher: StatusPatcher[ResourceReservation] = StatusPatcher(
            api, guard, self._still, self._failed, stalled, settled=frozenset({404, 409, 422})
        )

    async def run(self) -> None:
        """Looks every few seconds, until cancelled."""
        self._since = self._clock.now()  # a standby may have waited for days
        while True:
            await asyncio.sleep(PERIOD)
            self.step()

    def step(self) -> None:
        """Queues the writes that make the objects what they should be. Writes nothing where the kind is not served."""
        self._drivers.end_gone()
        if not self._served():
            return
        now = self._clock.now()
        self._shown = dict(self._wanted(now))
        for key, shown in self._shown.items():
            if key in self._objects.by_key:
                self._asked.pop(key, None)
                if shown.report is not None and self._objects.by_key[key].is_managed:
                    self._reporter.report(key, shown.report)
            elif self._asked.get(key, -AGAIN) + AGAIN <= now:
                self._asked[key] = now
                namespace, _, name = key.partition("/")
                self._submit(namespace, name, f"create {key}", create(RESOURCE_RESERVATIONS, shown.body, namespace))
        self._asked = {key: at for key, at in self._asked.items() if key in self._shown}
        self._was_shown = {key for key in self._was_shown if key in self._objects.by_key} | set(self._shown)
        self._delete_others(all_=now >= self._since + GRACE)

    def _delete_others(self, *, all_: bool) -> None:
        """Deletes objects whose reservation is over: those of this process, or all."""
        for thing in self._objects.some_managed(LOOKS):
            meta, key = thing.metadata, thing.metadata.key
            if key in self._shown or meta.deletion_timestamp:
                continue
            if (all_ or key in self._was_shown) and not self._adopted(key):
                call = delete(RESOURCE_RESERVATIONS, meta.namespace, meta.name, meta.uid)
                self._submit(meta.namespace, meta.name, meta.uid, call)

    def _adopted(self, key: str) -> bool:
        """Whether the object is a driver's that this process took over, and that is not over yet."""
        return self._drivers.is_under_way(key)

    def _submit(self, namespace: str, name: str, uid: str, call: Any) -> None:
        noted = ResourceReservation(metadata=ObjectMeta(namespace=namespace, name=name, uid=uid))
        if uid not in self.status_patcher:
            self.status_patcher.submit(noted, call)

    def _still(self, thing: ResourceReservation) -> bool:
        """Whether a write is still needed: to make an object that is shown, or to delete one that is not."""
        key = thing.metadata.key
        found = self._objects.by_key.get(key)
        if thing.metadata.uid.startswith("create "):
            return key in self._shown and found is None
        return key not in self._shown and found is not None and found.metadata.uid == thing.metadata.uid

    def _failed(self, thing: ResourceReservation, why: str) -> None:
        log.error("Cannot make or delete a ResourceReservation", err=why, reservation=thing.metadata.key)

    # --- what should exist ------------------------------------------------------------------------------------------

    def _wanted(self, now: float) -> Iterable[tuple[str, ShownReservation]]:
        for profile in self._profiles:
            held = self._gangs.held(profile)
            if held is not None and is_gang_key(held.gang):
                shown = gang_object(held, profile, self._gangs.ends_at(profile) or now)
                yield f"{held.namespace}/{shown.body['metadata']['name']}", shown
        for driver in self._drivers.under_way():
            yield driver.request.key, ShownReservation(driver_body(driver), None)


def gang_object(held: Reservation, profile: str, ends_at: float) -> ShownReservation:
    """Returns the object of what the first gang in the queue keeps: an entry for each member, with the node that it
    waits for, as far as that is known."""
    group = held.display_name.removeprefix(f"{held.namespace}/")
    nodes = [node for promised in held.reserved_nodes for node, number in promised.items() for _ in range(number)]
    entries, places = dict[str, Any](), dict[str, str]()
    for pod, count in held.member_counts:
        for _ in range(min(count, MAX_ENTRIES - len(entries))):
            name = f"member-{len(entries)}"
            entries[name] = {"resources": _quantities(footprint_of(pod).amounts)}
            if nodes:
                places[name] = nodes.pop(0)
    first = held.member_counts[0][0]
    spec = {"podGroupName": group[:253], "minMember": min(held.needed, MAX_ENTRIES), "reservations": entries}
    message = f"first of the waiting gangs of {profile}; {held.ready:.0%} of its members would fit now"
    report = ReservationReport(
        Phase.ACTIVE, "FirstInLine", message, ends_at, f"gang {group} of {held.namespace}", places
    )
    labels = {gang.RESERVATION_GANG.key: group.replace("/", ".")[:63].strip("-_.")}
    return ShownReservation(_body(group, held.namespace, labels, first, spec), report)


def driver_body(driver: DriverReservation) -> dict[str, Any]:
    """Returns the object of what a driver's workers will need."""
    request = driver.request
    entries = {each.name: {"resources": _quantities(each.amounts)} for each in request.entries}
    selector = {"matchLabels": dict([driver.job_label])}
    seconds = round(request.expires_at - request.starts_at)
    spec = {"reservations": entries, "owner": {"podSelector": selector}, "duration": f"{seconds}s"}
    return _body(driver.pod.metadata.name, request.namespace, {}, driver.pod, spec)


def _body(group: str, namespace: str, labels: dict[str, str], owner: Pod, spec: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.metadata.name, "uid": owner.metadata.uid}
    return {
        "apiVersion": RESOURCE_RESERVATIONS.api_version,
        "kind": RESOURCE_RESERVATIONS.kind,
        "metadata": {
            "name": object_name(group),
            "namespace": namespace,
            "labels": {gang.RESERVATION_OWNER.key: MANAGER, **labels},
            "ownerReferences": [reference],
        },
        "spec": spec,
    }


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {name: quantity_text(name, amount) for name, amount in amounts}
