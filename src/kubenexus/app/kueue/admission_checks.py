"""Answers Kueue's AdmissionChecks of the controller `kubenexus.io/placement`: is there a place for a Workload now?

    quota reserved ─▶ check Pending ─▶ decision on a copy ─┬─▶ Ready   all its pods have a place
                                                           └─▶ Retry   with the reason; Kueue gives the quota to others

The decision is that of the scheduling loop (`Planner.decide`), made in a copy of the process (`state_copies`), a few a
second. What was answered Ready and is not on nodes yet is placed first in each copy: one place is not promised twice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from kubenexus.api.codec import from_json
from kubenexus.api.gangs.declaration import KUEUE_WORKLOAD
from kubenexus.api.kueue import ADMITTED, QUOTA_RESERVED, AdmissionCheck, CheckState, KueueWorkload, ResourceFlavor
from kubenexus.api.meta import ApiObject
from kubenexus.app.http.api.request_problem import RequestProblem
from kubenexus.app.http.api.state_copies import StateCopies
from kubenexus.app.http.api.waiting_questions import Question
from kubenexus.app.kueue.workload_job import workload_job
from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed
from kubenexus.base.timestamps import format_time
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.verbs import get, list_call, patch
from kubenexus.config.kueue_settings import KueueSettings
from kubenexus.framework.job import Job
from kubenexus.observe import logs
from kubenexus.plan.decide import Planner, commit
from kubenexus.queue.gangs.gang_registry import GangRegistry
from kubenexus.state.ledger import Ledger

if TYPE_CHECKING:
    from kubenexus.app.scheduler import Scheduler

CONTROLLER: Final = "kubenexus.io/placement"
READY, RETRY, PENDING = "Ready", "Retry", "Pending"
PERIOD: Final = 1.0  # seconds between two rounds
AT_ONCE: Final = 3  # Workloads in a round
READ_SECONDS: Final = 10.0  # until AdmissionChecks and ResourceFlavors are read again
PAGE: Final = 500  # of each of these
RETRY_SECONDS: Final = 5  # until Kueue tries a refused Workload again; twice as long each time
MAX_RETRY_SECONDS: Final = 60
MAX_PROMISES: Final = 100
PROMISE_SECONDS: Final = 120.0  # for which a place is kept for a Workload that was answered Ready
MAX_MESSAGE: Final = 1000  # characters

log = logs.get("admission_checks")


class Copies(Protocol):
    """Runs questions in copies of the process (`app.http.api.state_copies`)."""

    async def answer(self, question: Question) -> bytes: ...

    async def close(self) -> None: ...


class PlacementAnswer(msgspec.Struct, frozen=True):
    """Whether all pods of a Workload have a place, and if not, why."""

    placed: bool
    message: str = ""


class _Promise(NamedTuple):
    job: Job
    until: float


class _Checks(ApiObject):
    items: list[AdmissionCheck] = []


class _Flavors(ApiObject):
    items: list[ResourceFlavor] = []


class _RawStatus(ApiObject):
    admission_checks: list[dict[str, Any]] = []


class _RawChecks(ApiObject):
    """The checks of a Workload with all their fields, which are written back."""

    status: _RawStatus = _RawStatus()


class AdmissionCheckController:
    """The task that answers. It ends when cancelled; an error affects one Workload alone. Without `enabled` it does
    nothing."""

    def __init__(
        self,
        api: Api,
        ledger: Ledger,
        planners: Mapping[str, Planner],
        registry: GangRegistry,
        *,
        copies: Copies,
        clock: Clock,
        enabled: bool,
    ) -> None:
        self._api, self._ledger, self._planners, self._registry = api, ledger, planners, registry
        self._copies, self._clock, self._enabled = copies, clock, enabled
        self._checks: frozenset[str] = frozenset()
        self._flavors: dict[str, ResourceFlavor] = {}
        self._read_at = -READ_SECONDS
        self._promises: dict[str, _Promise] = {}

    async def run(self) -> None:
        try:
            while self._enabled:
                await self.step()
                await asyncio.sleep(PERIOD)
        finally:
            await self._copies.close()

    async def step(self) -> None:
        """Answers the checks of some Workloads."""
        waiting = self._ledger.kueue_workloads.take_unchecked(AT_ONCE)
        try:
            if self._read_at + READ_SECONDS <= self._clock.now():
                await self._read()
        except (ApiError, Unreachable, Uncertain, Malformed) as error:
            log.error("Cannot read AdmissionChecks", err=str(error))
            return
        for key in waiting if self._checks else ():
            try:
                await self._answer(key)
            except (ApiError, Unreachable, Uncertain, Malformed, RequestProblem) as error:
                log.error("Cannot answer an AdmissionCheck; trying again", err=str(error), workload=key)

    # --- what there is --------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        self._read_at = self._clock.now()
        try:
            body = await self._api.send(list_call(kinds.ADMISSION_CHECKS, limit=PAGE))
        except ApiError as error:
            if error.code != 404:
                raise
            self._checks = frozenset()  # Kueue is not installed
            return
        ours = [each for each in from_json(body, _Checks).items if each.spec.controller_name == CONTROLLER]
        if ours:
            flavors = from_json(await self._api.send(list_call(kinds.RESOURCE_FLAVORS, limit=PAGE)), _Flavors)
            self._flavors = {each.metadata.name: each for each in flavors.items}
        for check in ours:
            await self._activate(check)
        self._checks = frozenset(check.metadata.name for check in ours)

    async def _activate(self, check: AdmissionCheck) -> None:
        """Writes that the check has a controller: before that, Kueue admits nothing to its ClusterQueues."""
        if any(each.type == "Active" and each.status == "True" for each in check.status.conditions):
            return
        condition = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "The scheduler answers this check",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        body = {"status": {"conditions": [condition]}}
        await self._api.send(patch(kinds.ADMISSION_CHECKS, "", check.metadata.name, body, part="status"))

    # --- one Workload ---------------------------------------------------------------------------------------------

    async def _answer(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        try:
            body = await self._api.send(get(kinds.KUEUE_WORKLOADS, namespace, name))
        except ApiError as error:
            if error.code == 404:
                return
            raise
        workload = from_json(body, KueueWorkload)
        pending = {each.name for each in workload.status.admission_checks if self._is_asked(each)}
        if not pending or not workload.has(QUOTA_RESERVED) or workload.has(ADMITTED):
            return
        found, job = await self._place(workload)
        await self._write(workload, from_json(body, _RawChecks).status.admission_checks, pending, found)
        if job is not None and found.placed:
            self._promises[key] = _Promise(job, self._clock.now() + PROMISE_SECONDS)
        log.info("Answered an AdmissionCheck", workload=key, state=READY if found.placed else RETRY, why=found.message)

    def _is_asked(self, check: CheckState) -> bool:
        return check.name in self._checks and check.state == PENDING

    async def _place(self, workload: KueueWorkload) -> tuple[PlacementAnswer, Job | None]:
        try:
            job = workload_job(workload, self._flavors)
        except Malformed as problem:
            return PlacementAnswer(False, str(problem)), None
        other = next((pod.spec.scheduler_name for pod in job.pods if pod.spec.scheduler_name not in self._planners), "")
        if other:
            return PlacementAnswer(False, f"its pods name the scheduler {other[:63]}, which is another"), None
        question = partial(place_in_copy, self._ledger, self._planners, self._promised(job.key), job, self._clock.now())
        return msgspec.json.decode(await self._copies.answer(question), type=PlacementAnswer), job

    async def _write(
        self, workload: KueueWorkload, checks: list[dict[str, Any]], names: set[str], answer: PlacementAnswer
    ) -> None:
        """Writes the answer into the list of checks, of which a merge patch replaces all: the others stay as they were
        read, and a change since then is a Conflict."""
        for check in checks:
            if check.get("name") in names:
                self._state(check, answer)
        version = {"resourceVersion": workload.metadata.resource_version}
        change = {"metadata": version, "status": {"admissionChecks": checks}}
        meta = workload.metadata
        await self._api.send(patch(kinds.KUEUE_WORKLOADS, meta.namespace, meta.name, change, part="status"))

    def _state(self, check: dict[str, Any], answer: PlacementAnswer) -> None:
        check["state"] = READY if answer.placed else RETRY
        check["message"] = "all pods have a place" if answer.placed else answer.message[:MAX_MESSAGE]
        check["lastTransitionTime"] = format_time(self._clock.now())
        if not answer.placed:
            doublings = min(max(int(check.get("retryCount") or 0), 0), 10)
            check["requeueAfterSeconds"] = min(RETRY_SECONDS << doublings, MAX_RETRY_SECONDS)

    # --- promises -------------------------------------------------------------------------------------------------

    def _promised(self, but: str) -> Sequence[Job]:
        """Returns the gangs that were answered Ready and are not on nodes yet, the oldest first."""
        now = self._clock.now()
        self._promises = {key: each for key, each in self._promises.items() if self._is_open(key, each, now)}
        jobs = [each.job for each in self._promises.values() if each.job.key != but]
        return jobs[-MAX_PROMISES:]

    def _is_open(self, key: str, promise: _Promise, now: float) -> bool:
        namespace, _, name = key.partition("/")
        found = self._ledger.groups.find(KUEUE_WORKLOAD, namespace, name)
        if now > promise.until or not isinstance(found, KueueWorkload) or not found.has(QUOTA_RESERVED):
            return False
        gang = self._registry.gangs.get(promise.job.key)
        placed = 0 if gang is None else sum(member in self._ledger.pods for member in gang.members)
        return placed < len(promise.job.pods)


def admission_check_controller(
    settings: KueueSettings, api: Api, scheduler: "Scheduler", clock: Clock
) -> AdmissionCheckController:
    """Makes the controller of a scheduler."""
    return AdmissionCheckController(
        api,
        scheduler.ledger,
        scheduler.planners,
        scheduler.registry,
        copies=StateCopies(clock, scheduler.silence),
        clock=clock,
        enabled=settings.admission_checks,
    )


def place_in_copy(
    ledger: Ledger, planners: Mapping[str, Planner], promised: Sequence[Job], job: Job, now: float
) -> bytes:
    """Decides for the job after those that were promised a place. Changes the ledger: called in a copy of the
    process."""
    ledger.read_devices()
    for other in promised:
        decision = planners[other.profile].decide(other, ledger.snapshot(), now)
        if decision.placed:
            commit(decision, other, ledger, now)
    try:
        decision = planners[job.profile].decide(job, ledger.snapshot(), now)
    except Malformed as problem:
        return msgspec.json.encode(PlacementAnswer(False, str(problem)))
    placed = decision.placed and len(decision.placements) == len(job.pods)
    return msgspec.json.encode(PlacementAnswer(placed, "" if placed else decision.sentence(job.namespace)))
