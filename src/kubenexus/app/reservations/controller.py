"""Makes ResourceReservations take effect: plans their entries onto nodes, and ends them in time.

    object ─▶ Pending ──all entries have a node──▶ Active ⇄ Claimed ──the group is bound──▶ Complete
                 ▲    └── not yet, no capacity, not allowed (the reason is in a condition)
                 └── a node is gone, or is too full: its entries are planned again ──┘
    any of them ──▶ Expired

Only the ledger decides what counts: this module puts entries into its table and takes them out. Times come from the
object (creation, `from`, `duration`), and the nodes of entries are in its status, so the next process goes on with
them. Called by the scheduling loop before each burst of decisions; a step plans one reservation at most.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kubenexus.api.reservations.request import ReservationEntry, ReservationRequest, request_of
from kubenexus.api.reservations.resource_reservation import ResourceReservation
from kubenexus.app.reservations.admission import TOO_MANY, Refusal, not_allowed, refusal, share_refusal
from kubenexus.app.reservations.adoption import adopt, enter, is_complete, nodes_before, placed_entries, take_lacking
from kubenexus.app.reservations.reporter import ReservationReporter
from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed
from kubenexus.config.reservation_settings import ReservationSettings
from kubenexus.framework.profile import DEFAULT_SCHEDULER
from kubenexus.observe import logs
from kubenexus.observe.reservation_status import Phase, ReservationReport
from kubenexus.plan.decide import Planner
from kubenexus.plan.reservation_entries import entry_pod, reservation_job
from kubenexus.queue.object_events import pod_forgotten
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage

PERIOD: Final = 1.0  # seconds between two reviews of all reservations, while the ledger changes
MAX_PAUSE: Final = 30.0  # seconds until a reservation that does not fit is tried again
MAX_CHANGES: Final = 64  # objects that a step reads
MAX_WAITING: Final = 1024  # objects beyond a limit that are remembered, to be tried when another one ends

log = logs.get("reservations")


class TrackedReservation(msgspec.Struct, gc=False):
    """A reservation under way. `missing` are the entries that have no node. `tried` is the ledger's generation at the
    last try that did not fit."""

    request: ReservationRequest
    missing: tuple[ReservationEntry, ...]
    phase: Phase = Phase.PENDING
    reason: str = ""
    message: str = ""
    retry_at: float = 0.0
    pause: float = PERIOD
    tried: int = -1


class ReservationController:
    """All reservations under way. Entries are planned by the first profile that is not kube-scheduler's."""

    def __init__(
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        planners: Mapping[str, Planner],
        clock: Clock,
        settings: ReservationSettings,
        reporter: ReservationReporter,
    ) -> None:
        self._ledger, self._queue, self._clock, self._settings = ledger, queue, clock, settings
        self._reporter = reporter
        self._profile = next((name for name in planners if name != DEFAULT_SCHEDULER), next(iter(planners)))
        self._planner = planners[self._profile]
        self._tracked: dict[str, TrackedReservation] = {}
        self._waiting: dict[str, None] = {}  # objects beyond a limit
        self._complete: dict[str, tuple[str, int]] = {}  # by key: UID and generation of objects that are complete
        self._reviewed = (-1, 0)  # the ledger at the last review
        self._review_at = 0.0
        self._due = 0.0  # when the next review is due, if the ledger does not change
        self._caught_up = False

    # --- called by the loop -----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Reads changed objects, ends and begins what is due, and plans one reservation at most."""
        objects = self._ledger.reservation_objects
        if not self._tracked and not objects.any_changed:
            self._caught_up = True
            return
        now = self._clock.now()
        for key in objects.take_changed(MAX_CHANGES) if objects.any_changed else ():
            self._object_changed(key, now)
        self._caught_up = self._caught_up or not objects.any_changed
        if self._review_due(now):
            self._review(now)

    @property
    def caught_up(self) -> bool:
        """Whether all objects of the first list were read. Decisions wait for that after a start, so that no pod takes
        what an earlier process reserved."""
        return self._caught_up

    @property
    def busy(self) -> bool:
        """Whether a step has more to do at once."""
        due = bool(self._tracked) and (not self._review_at or self._clock.now() >= self._due)
        return due or self._ledger.reservation_objects.any_changed

    @property
    def due(self) -> float | None:
        """Returns when the next step has something to do."""
        if not self._tracked:
            return None
        changed = self._reviewed != self._stamp
        return min(self._due, self._review_at + PERIOD) if changed else self._due

    def add(self, request: ReservationRequest) -> None:
        """Begins a reservation that the scheduler makes itself."""
        if request.key not in self._tracked:
            self._begin(request, {}, {}, self._clock.now())

    def end(self, key: str) -> None:
        """Ends a reservation that the scheduler made itself."""
        self._forget(key)

    def phases(self) -> dict[Phase, int]:
        """Returns how many reservations under way are in each phase, for metrics."""
        found = dict.fromkeys((Phase.PENDING, Phase.ACTIVE, Phase.CLAIMED), 0)
        for each in self._tracked.values():
            found[each.phase] += 1
        return found

    def __contains__(self, key: str) -> bool:
        return key in self._tracked

    # --- objects ----------------------------------------------------------------------------------------------------

    def _object_changed(self, key: str, now: float) -> None:
        thing = self._ledger.reservation_objects.by_key.get(key)
        if thing is None or thing.metadata.deletion_timestamp:
            self._waiting.pop(key, None)
            self._complete.pop(key, None)
            self._reporter.forget(key)
            self._forget(key)
            return
        if thing.is_for_gang or is_complete(thing) or self._complete.get(key) == _version(thing):
            return  # a report of ours: what it says is in memory already; or one that is over
        if not self._settings.allows(thing.metadata.namespace):
            self._reporter.report(key, _pending(*not_allowed(), None))
            self._ledger.reservation_objects.drop_spec(key)
            return
        try:
            request = request_of(thing)
        except Malformed as problem:
            self._forget(key)
            self._reporter.report(key, _pending("Invalid", str(problem), None))
            return
        tracked = self._tracked.get(key)
        if tracked is not None and (tracked.request == request or thing.is_managed):
            self._report(tracked)
            return
        self._forget(key)
        self._begin(request, nodes_before(thing, request), thing.status.pods, now)

    def _begin(
        self, request: ReservationRequest, nodes: Mapping[str, str], pods: Mapping[str, str], now: float
    ) -> None:
        if now >= request.expires_at:
            self._reporter.report(request.key, _expired(request))
            return
        refused = refusal(request, [each.request for each in self._tracked.values()], self._settings)
        if refused is not None:
            self._reporter.report(request.key, _pending(*refused, request.expires_at, request.owner.describe()))
            if refused.reason == TOO_MANY and len(self._waiting) < MAX_WAITING:
                self._waiting[request.key] = None
            return
        self._waiting.pop(request.key, None)
        tracked = TrackedReservation(request, request.entries, retry_at=request.starts_at)
        begun = bool(nodes) and now >= request.starts_at and self._share_refusal(request) is None
        self._tracked[request.key] = tracked
        if begun and adopt(self._ledger, request, nodes, pods):
            tracked.missing = ()
            tracked.phase, tracked.reason, tracked.message = Phase.ACTIVE, "Reserved", "reserved before, and kept"
        elif now < request.starts_at:
            tracked.reason, tracked.message = "NotStarted", "begins at the time that spec.from names"
        self._report(tracked)
        self._review_at = 0.0

    def _forget(self, key: str) -> None:
        tracked = self._tracked.pop(key, None)
        if tracked is not None:
            self._release(tracked)
            self._review_at = 0.0
            self._try_waiting()

    def _try_waiting(self) -> None:
        """Reads the objects beyond a limit again, since another reservation has ended."""
        waiting, self._waiting = self._waiting, {}
        for key in waiting:
            thing = self._ledger.reservation_objects.by_key.get(key)
            if thing is not None:
                self._ledger.reservation_objects.seen(thing)

    # --- time and change --------------------------------------------------------------------------------------------

    @property
    def _stamp(self) -> tuple[int, int]:
        """Changes with all that a review looks at: what counts, and which pods are bound."""
        return self._ledger.generation, self._ledger.assumed

    def _review_due(self, now: float) -> bool:
        changed = self._reviewed != self._stamp and now >= self._review_at + PERIOD
        return bool(self._tracked) and (not self._review_at or changed or now >= self._due)

    def _next_time(self, tracked: TrackedReservation) -> float:
        if tracked.phase is not Phase.PENDING:
            return tracked.request.expires_at
        if tracked.tried == self._ledger.generation:
            return tracked.request.expires_at  # nothing has changed since
        return min(tracked.retry_at, tracked.request.expires_at)

    def _review(self, now: float) -> None:
        for tracked in list(self._tracked.values()):
            if now >= tracked.request.expires_at:
                self._finish(tracked, Phase.EXPIRED)
            elif tracked.request.key in self._ledger.reservations.by_key:
                self._review_active(tracked, now)
        ready = self._ready()
        if ready is not None:
            self._place(ready, now)
        self._reviewed, self._review_at = self._stamp, now
        self._due = min([self._next_time(each) for each in self._tracked.values()], default=0.0)

    def _review_active(self, tracked: TrackedReservation, now: float) -> None:
        request, record = tracked.request, self._ledger.reservations.by_key[tracked.request.key]
        bound = sum(self._stage(pod) is PodStage.BOUND for pod in record.pods)
        if request.once and bound >= request.min_member:
            self._finish(tracked, Phase.COMPLETE)
            return
        lost = take_lacking(self._ledger, request)
        if lost:
            tracked.missing, tracked.retry_at, tracked.tried, tracked.pause = (*tracked.missing, *lost), now, -1, PERIOD
            tracked.phase, tracked.reason = Phase.PENDING, "NodeLost"
            tracked.message = "a node of the reservation is gone or has no room for it any more"
        elif not tracked.missing:
            tracked.phase = Phase.CLAIMED if record.is_claimed else Phase.ACTIVE
        self._report(tracked)

    def _stage(self, pod: str) -> PodStage | None:
        record = self._ledger.pods.get(pod)
        return None if record is None else record.stage

    def _ready(self) -> TrackedReservation | None:
        """Returns the pending reservation that has waited longest for its next try."""
        now, generation = self._clock.now(), self._ledger.generation
        waiting = [each for each in self._tracked.values() if each.phase is Phase.PENDING and each.retry_at <= now]
        tries = [each for each in waiting if each.tried != generation]
        return min(tries, key=lambda each: (each.retry_at, each.request.starts_at), default=None)

    def _place(self, tracked: TrackedReservation, now: float) -> None:
        """Plans the entries onto nodes: all of them, or none."""
        request = tracked.request
        refused = self._share_refusal(request)
        if refused is not None:
            self._retry_later(tracked, refused.reason, refused.message, now)
            return
        job = reservation_job(msgspec.structs.replace(request, entries=tracked.missing), self._profile)
        try:
            decision = self._planner.plan_entries(job, self._ledger.snapshot(), now)
        except Exception as error:
            log.error("Failed to plan a reservation; trying it later", error, reservation=request.key)  # noqa: PLE1205 - our own log
            self._retry_later(tracked, "Error", f"{type(error).__name__}: {error}", now)
            return
        if not decision.placed or len(decision.placements) < len(tracked.missing):
            self._retry_later(tracked, "NoRoom", decision.full_sentence(), now)
            return
        nodes = {each.pod.rpartition("#")[2]: each.node for each in decision.placements}
        enter(self._ledger, request, placed_entries(request, tracked.missing, nodes))
        tracked.missing = ()
        tracked.phase, tracked.reason, tracked.message = Phase.ACTIVE, "Reserved", "all entries have a node"
        tracked.pause = PERIOD
        self._report(tracked)

    def _share_refusal(self, request: ReservationRequest) -> Refusal | None:
        """Returns why the reservation, with those of its namespace in effect, would keep too much."""
        active = [each.request for each in self._tracked.values() if each.request is not request and not each.missing]
        return share_refusal(request, active, self._settings, self._ledger.nodes)

    def _retry_later(self, tracked: TrackedReservation, reason: str, message: str, now: float) -> None:
        tracked.reason, tracked.message, tracked.tried = reason, message, self._ledger.generation
        tracked.retry_at, tracked.pause = now + tracked.pause, min(2 * tracked.pause, MAX_PAUSE)
        self._report(tracked)

    def _finish(self, tracked: TrackedReservation, phase: Phase) -> None:
        """Ends a reservation. Its object stays until its user deletes it."""
        tracked.phase = phase
        words = {Phase.EXPIRED: ("Expired", "its time is over"), Phase.COMPLETE: ("Complete", "its group is bound")}
        tracked.reason, tracked.message = words[phase]
        thing = self._ledger.reservation_objects.by_key.get(tracked.request.key)
        if phase is Phase.COMPLETE and thing is not None:
            self._complete[tracked.request.key] = _version(thing)
        self._report(tracked)
        self._forget(tracked.request.key)

    def _release(self, tracked: TrackedReservation) -> None:
        """Takes the entries out of the ledger, and wakes jobs that may use the capacity."""
        record, request = self._ledger.release_reservation(tracked.request.key), tracked.request
        if record is None:
            return
        by_name = {each.name: each for each in request.entries}
        kinds = {by_name[each.name].amounts: each for each in record.entries.values() if each.left()}
        for entry in kinds.values():  # at most MAX_KINDS but for entries that name their nodes
            self._queue.on_event(pod_forgotten(entry_pod(request, by_name[entry.name], self._profile), entry.node))

    # --- reports ----------------------------------------------------------------------------------------------------

    def _report(self, tracked: TrackedReservation) -> None:
        record = self._ledger.reservations.by_key.get(tracked.request.key)
        entries = [] if record is None else record.entries.values()
        nodes = {each.name: each.node for each in entries}
        pods = {} if record is None else {pod: self._pod_state(pod) for pod in record.pods}
        report = ReservationReport(
            tracked.phase,
            tracked.reason,
            tracked.message,
            tracked.request.expires_at,
            tracked.request.owner.describe(),
            nodes,
            pods,
        )
        self._reporter.report(tracked.request.key, report)

    def _pod_state(self, pod: str) -> str:
        return "Bound" if self._stage(pod) is PodStage.BOUND else "Assumed"


def _version(thing: ResourceReservation) -> tuple[str, int]:
    return thing.metadata.uid, thing.metadata.generation


def _pending(reason: str, message: str, expires_at: float | None, owner: str = "") -> ReservationReport:
    return ReservationReport(Phase.PENDING, reason, message, expires_at, owner)


def _expired(request: ReservationRequest) -> ReservationReport:
    return ReservationReport(Phase.EXPIRED, "Expired", "its time is over", request.expires_at, request.owner.describe())
