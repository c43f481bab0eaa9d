"""`ClaimPreBind`: the PreBind part of DynamicResources. Writes allocations and reservations of device claims.

    finalizer ──▶ allocation and reservedFor, in one write ──▶ devices report that they are ready (if they have to)

Each write has the resourceVersion that it was computed from: a claim that another client changed is a conflict, and is
read again. What a write returns goes into the ledger at once, before the watch brings it. So devices stay taken from
the decision on: first by the assumed pod, then by the claim. If the pod is not bound in the end, the allocation is
taken back; one that another pod uses by now stays.

A claim of the pod's PodGroup is reserved once, for the PodGroup. It stays allocated while any member may use it, and is
taken back when the PodGroup finds no node and no member has one.

A write without an answer may have happened. The claim is then read until the server answers, and the pod stays
assumed: its devices are given to no other claim in the meantime.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final

from kubenexus.api.codec import read_object
from kubenexus.api.core import Pod
from kubenexus.api.devices.pod_claims import claim_name
from kubenexus.api.devices.resource_claim import FINALIZER, AllocationResult, ConsumerReference, ResourceClaim
from kubenexus.api.gangs.declaration import POD_GROUP, GroupRef
from kubenexus.base.clock import Clock, Sleep
from kubenexus.bind.claim_calls import ClaimCalls, pod_user
from kubenexus.bind.job_binding import NOT_LEADING, PodBinding, WriteGuard
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable
from kubenexus.client.kinds import RESOURCE_CLAIMS, ApiResource
from kubenexus.client.verbs import patch_pod_status
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.plugins.dynamic_resources.plugin import DynamicResources
from kubenexus.state.claims.store import ClaimAllocation, ClaimStore
from kubenexus.state.pods import PodRecord, PodStage

TRIES: Final = 5  # writes of one claim that other clients may cross
TIMEOUT: Final = 600.0
LOOK: Final = 5.0  # seconds that a GET may take
MAX_TAKEN_BACK: Final = 64  # pods of a refused job whose claims are looked at
PAUSE: Final = 1.0  # seconds between two reads of a claim whose write had no answer


class ClaimPreBind:
    """A `PreBind` plugin. `store` has the claims of the ledger, `pods` are its records. `written` is called with each
    claim that a write returned; the owner of the watch calls `on_claim_changed` after each change. `served` returns
    the version of claims that the server has."""

    name = "DynamicResources"
    awaited = "device claims"

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        api: Api,
        guard: WriteGuard,
        store: ClaimStore,
        pods: Mapping[str, PodRecord],
        written: Callable[[ResourceClaim], None],
        clock: Clock,
        *,
        timeouts: Mapping[str, float] | None = None,
        served: Callable[[], ApiResource] = lambda: RESOURCE_CLAIMS,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._api, self._guard, self._claims, self._pods = api, guard, store.claims, pods
        self._groups = store.pod_groups
        self._written, self._clock, self._sleep = written, clock, sleep
        self._timeouts = timeouts or {}  # by the profile
        self._calls = ClaimCalls(served)
        self._writing: dict[str, asyncio.Event] = {}  # by claim: set when its writer has ended
        self._allocated: dict[str, list[str]] = {}  # by pod: the claims that were written for it
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._taking_back: dict[str, asyncio.Task[None]] = {}

    def may_concern(self, pod: Pod) -> bool:
        return bool(pod.spec.resource_claims)

    def concerns(self, pod_binding: PodBinding) -> bool:
        record = self._pods.get(pod_binding.key)
        return bool(pod_binding.pod.spec.resource_claims) or (record is not None and bool(record.claims))

    async def pre_bind(self, pod_binding: PodBinding) -> str:
        record, pod = self._pods.get(pod_binding.key), pod_binding.pod
        if record is None or record.uid != pod_binding.uid:
            return "the pod is gone"
        given = {each.claim: each for each in record.claims}
        users = dict(self._users(pod))
        keys = list(users)
        for key, user in users.items():
            problem = await self._reserve(key, given.get(key), pod, user)
            if problem:
                return problem
        if "" in given:
            key, problem = await self._create(given[""], pod)
            if problem:
                return problem
            keys.append(key)
        return await self._ready(keys, self._timeouts.get(pod.spec.scheduler_name, TIMEOUT))

    def post_bind(self, pod_binding: PodBinding) -> None:
        self._allocated.pop(pod_binding.uid, None)

    async def un_bind(self, pod_binding: PodBinding) -> None:
        """Takes back what was written for a pod that is not bound."""
        for key in self._allocated.pop(pod_binding.uid, ()):
            stored = self._claims.get(key)
            if stored is None or not self._guard.may_write():
                continue
            claim, own = stored.claim, f"{pod_binding.pod.metadata.name}-extended-resources-"
            with contextlib.suppress(ApiError, Unreachable, Uncertain):  # the next attempt finds the claim as it is
                if claim.metadata.name.startswith(own):
                    await self._send(self._calls.remove_finalizer(claim))
                    await self._api.send(self._calls.delete(claim), timeout=self._guard.write_timeout)
                else:
                    await self._send(self._calls.deallocate(claim, pod_binding.uid))

    def on_refused(self, job: Job, decision: Decision) -> None:
        """Takes back the allocations of claims that keep the pods of a refused job from nodes, and that no other pod
        uses (kube-scheduler: PostFilter). The job is tried again when the watch shows that."""
        away = any(text == DynamicResources.AWAY.text for text, _ in decision.diagnosis.counts)
        if not away and not (job.is_gang and self.name in decision.diagnosis.refused_by):
            return
        placed: dict[GroupRef, bool] = {}
        for pod in job.pods[:MAX_TAKEN_BACK]:
            for key, user in self._users(pod):
                stored = self._claims.get(key)
                if stored is None or key in self._taking_back:
                    continue
                if self._is_idle(stored.claim, pod, user, placed):
                    uids = (pod.metadata.uid, user.uid)
                    task = asyncio.get_running_loop().create_task(self._take_back(stored.claim, uids))
                    self._taking_back[key] = task
                    break

    async def _take_back(self, claim: ResourceClaim, uids: tuple[str, ...]) -> None:
        try:
            if self._guard.may_write():
                with contextlib.suppress(ApiError, Unreachable, Uncertain):
                    await self._send(self._calls.deallocate(claim, *uids))
        finally:
            self._taking_back.pop(claim.metadata.key, None)

    def on_claim_changed(self, key: str) -> None:
        for each in self._waiting.get(key, ()):
            each.set()

    # --- one claim -------------------------------------------------------------------------------------------------

    def _users(self, pod: Pod) -> Iterator[tuple[str, ConsumerReference]]:
        """Yields the keys of the pod's claims, and whom each is reserved for: the pod, or its PodGroup."""
        for each in pod.spec.resource_claims:
            name = claim_name(pod, each)
            if name:
                yield f"{pod.metadata.namespace}/{name}", self._groups.user_of(pod, each) or pod_user(pod)

    def _is_idle(self, claim: ResourceClaim, pod: Pod, user: ConsumerReference, placed: dict[GroupRef, bool]) -> bool:
        """Whether a claim has devices that no pod but this one uses. A PodGroup uses it once a member has a node; the
        pods are looked through for that (3 ms for 50,000), once for all claims: `placed` has what was found."""
        if claim.status.allocation is None:
            return False
        if not {each.uid for each in claim.status.reserved_for} <= {pod.metadata.uid, user.uid}:
            return False
        group = None if user.uid == pod.metadata.uid else _group_of(pod)
        if group is None:
            return True
        if group not in placed:
            placed[group] = any(_is_placed_in(each, group) for each in self._pods.values())
        return not placed[group]

    async def _reserve(self, key: str, given: ClaimAllocation | None, pod: Pod, user: ConsumerReference) -> str:
        """Writes the allocation of a claim, if it has none, and whom it is reserved for."""
        async with self._alone(key):
            stored = self._claims.get(key)
            if stored is None:
                return f"claim {key} is gone"
            return await self._write(stored.claim, given, pod, user)

    async def _write(  # noqa: C901 - one for each answer
        self, claim: ResourceClaim, given: ClaimAllocation | None, pod: Pod, user: ConsumerReference
    ) -> str:
        key, crossed = claim.metadata.key, 0
        while crossed < TRIES:
            problem = _problem(claim, given)
            if problem:
                return problem
            if claim.status.allocation is not None and _is_reserved(claim, pod, user):
                return ""
            if not self._guard.may_write():
                return NOT_LEADING
            try:
                fresh = claim.status.allocation is None
                if fresh and FINALIZER not in claim.metadata.finalizers:
                    claim = await self._send(self._calls.add_finalizer(claim))
                if fresh and user.uid == pod.metadata.uid:
                    self._allocated.setdefault(pod.metadata.uid, []).append(key)
                await self._send(
                    self._calls.allocate(claim, None if given is None else given.allocation, user, self._clock.now())
                )
            except ApiError as error:
                if error.code != 409:
                    return f"add allocation and reservation to claim {key}: {error}"
                crossed += 1
            except Unreachable as error:
                return f"add allocation and reservation to claim {key}: {error}"
            except Uncertain:
                pass
            else:
                return ""
            found = await self._read(claim)
            if isinstance(found, str):
                return found
            claim = found
        return f"add allocation and reservation to claim {key}: other clients changed the claim {TRIES} times"

    async def _create(self, given: ClaimAllocation, pod: Pod) -> tuple[str, str]:
        """Makes the claim for the extended resources of a pod. Returns its key, or the problem."""
        if not self._guard.may_write():
            return "", NOT_LEADING
        try:
            claim = await self._send(self._calls.create_extended(pod, given))
        except (ApiError, Unreachable, Uncertain) as error:
            return "", f"create claim for extended resources: {error}"
        key = claim.metadata.key
        self._allocated.setdefault(pod.metadata.uid, []).append(key)
        problem = await self._write(claim, given, pod, pod_user(pod))
        if problem:
            return key, problem
        meta = pod.metadata
        status = {"requestMappings": list(given.mappings), "resourceClaimName": claim.metadata.name}
        call = patch_pod_status(meta.namespace, meta.name, meta.uid, {"extendedResourceClaimStatus": status})
        try:
            await self._api.send(call, timeout=self._guard.write_timeout)
        except (ApiError, Unreachable, Uncertain) as error:
            return key, f"update pod {pod.key} ExtendedResourceClaimStatus: {error}"
        return key, ""

    async def _send(self, call: Call) -> ResourceClaim:
        """Sends a write. Returns the claim as it is afterwards, which the ledger has then, too."""
        body = await self._api.send(call, timeout=self._guard.write_timeout)
        claim = read_object(body, ResourceClaim)
        if not isinstance(claim, ResourceClaim):
            raise Uncertain(f"{call}: the answer is no ResourceClaim")
        self._written(claim)
        return claim

    async def _read(self, claim: ResourceClaim) -> ResourceClaim | str:
        """Reads a claim, however long that takes. Returns the problem if it is gone or cannot be read."""
        meta = claim.metadata
        while True:
            try:
                body = await self._api.send(self._calls.read(claim), timeout=LOOK)
            except ApiError as error:
                if error.code in (403, 404):
                    return f"get updated claim {meta.key}: {error}"
            except (Unreachable, Uncertain):
                pass
            else:
                found = read_object(body, ResourceClaim)
                if isinstance(found, ResourceClaim):
                    self._written(found)
                    return found if found.metadata.uid == meta.uid else f"claim {meta.key} is another one by now"
                return f"get updated claim {meta.key}: {found.error}"
            await self._sleep(PAUSE)

    @contextlib.asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        """A context that one pod at a time enters for a claim: members of a gang may share one. Its pod
        waits for the API server alone, never for another claim."""
        while key in self._writing:
            await self._writing[key].wait()
        ended = self._writing[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._writing[key]
            ended.set()

    # --- devices that have to get ready ----------------------------------------------------------------------------

    async def _ready(self, keys: list[str], timeout: float) -> str:
        """Waits until all devices of the claims report that they are ready."""
        changed = asyncio.Event()
        with self._listening(keys, changed):
            try:
                async with asyncio.timeout(timeout):
                    while True:
                        state = self._readiness(keys)
                        if isinstance(state, str) or state:
                            return state if isinstance(state, str) else ""
                        changed.clear()
                        await changed.wait()
            except TimeoutError:
                return f"device binding timeout: claims {', '.join(keys)}"

    def _readiness(self, keys: list[str]) -> bool | str:
        """Returns whether all devices are ready, or why one never will be."""
        ready = True
        for key in keys:
            stored = self._claims.get(key)
            if stored is None:
                return f"claim {key} is gone"
            state = _devices_ready(stored.claim)
            if isinstance(state, str):
                return state
            ready = ready and state
        return ready

    @contextlib.contextmanager
    def _listening(self, keys: list[str], event: asyncio.Event) -> Iterator[None]:
        for key in keys:
            self._waiting.setdefault(key, set()).add(event)
        try:
            yield
        finally:
            for key in keys:
                self._waiting[key].discard(event)
                if not self._waiting[key]:
                    del self._waiting[key]


def _group_of(pod: Pod) -> GroupRef | None:
    group = pod.spec.scheduling_group
    return None if group is None else GroupRef(POD_GROUP, pod.metadata.namespace, group.pod_group_name)


def _is_placed_in(record: PodRecord, group: GroupRef) -> bool:
    """Whether this is a pod with a node, and of this PodGroup."""
    gang = record.traits.gang
    return gang is not None and gang.ref == group and record.stage is not PodStage.NOMINATED


def _problem(claim: ResourceClaim, given: ClaimAllocation | None) -> str:
    """Returns why the claim cannot be written as decided, or ""."""
    key, current = claim.metadata.key, claim.status.allocation
    if claim.metadata.deletion_timestamp:
        return f"claim {key} got deleted in the meantime"
    if given is None:
        return "" if current is not None else f"claim {key} got deallocated elsewhere in the meantime"
    if given.claim and claim.metadata.uid != given.uid:
        return f"claim {key} is another one by now"
    if current is not None and _devices(current) != _devices(given.allocation):
        return f"claim {key} got allocated elsewhere in the meantime"
    return ""


def _devices(allocation: AllocationResult) -> list[tuple[Any, ...]]:
    return [(each.request, each.driver, each.pool, each.device) for each in allocation.devices.results]


def _is_reserved(claim: ResourceClaim, pod: Pod, user: ConsumerReference) -> bool:
    return any(each.uid in (pod.metadata.uid, user.uid) for each in claim.status.reserved_for)


def _devices_ready(claim: ResourceClaim) -> bool | str:
    if claim.status.allocation is None:
        return f"claim {claim.metadata.key} got deallocated elsewhere in the meantime"
    for result in claim.status.allocation.devices.results:
        if not result.binding_conditions:
            continue
        named = (result.driver, result.pool, result.device)
        status = next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == named), None)
        if status is None:
            return False
        true = {each.type: each for each in status.conditions if each.status == "True"}
        for failure in result.binding_failure_conditions or ():
            if failure in true:
                said = true[failure]
                text = f"claim={claim.metadata.name}, reason={said.reason}, message={said.message!r}"
                return f"device binding failed: {text}"
        if any(each not in true for each in result.binding_conditions):
            return False
    return True
