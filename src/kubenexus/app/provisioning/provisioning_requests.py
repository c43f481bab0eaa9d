"""ProvisioningRequests for gangs that do not fit: the autoscaler then adds the nodes of all their pods, or none.

    gang refused ─▶ wanted ─▶ after DELAY: a ProvisioningRequest ─┬─▶ Provisioned: the gang is tried
                      │                                          ├─▶ Failed: deleted, again after REST
                      └─▶ placed, gated or gone: deleted ◀───────┘

The object is only a question. What the gang gets is decided as ever, on the nodes that come. Its owner is the first
pod, so it is gone with the gang if no scheduler runs, and it owns its PodTemplates. Objects of an earlier process are
found by their label. Only objects whose UID is known are deleted: a tenant may have others of the same name.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kubenexus.api.codec import from_json
from kubenexus.api.core import Pod
from kubenexus.api.meta import ApiObject, ObjectMeta
from kubenexus.app.provisioning.request_objects import (
    OURS,
    Member,
    PodTemplateSource,
    pod_template,
    provisioning_request,
    request_name,
)
from kubenexus.base.clock import Clock
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import POD_TEMPLATES, PODS, PROVISIONING_REQUESTS
from kubenexus.client.verbs import create, delete, get, list_call
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.queue_limits import TIER_LIMIT
from kubenexus.framework.verdict import Code
from kubenexus.observe import logs
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

if TYPE_CHECKING:
    from kubenexus.app.scheduler import Scheduler

PERIOD: Final = 5.0  # seconds between two rounds
DELAY: Final = 10.0  # seconds from the first refusal to the request: a gang may fit a moment later
READ_SECONDS: Final = 30.0  # until the requests are listed again
REST: Final = 600.0  # seconds until nodes are asked for again that could not be added
MOST: Final = 64  # requests at a time
MOST_OF_NAMESPACE: Final = 8
MAX_POD_SETS: Final = 16  # classes of pods of one gang; the autoscaler takes 32
PAGE: Final = 500
PORTION: Final = 200  # pods that are signed in one turn of the event loop

log = logs.get("provisioning")


class _Wanted(msgspec.Struct):
    """A gang that waits for nodes, by its key in the queue."""

    gang: str
    namespace: str
    display_name: str
    profile: str
    since: float

    @property
    def key(self) -> str:
        return _key_of_request(self.namespace, self.display_name)


class _Condition(ApiObject):
    type: str = ""
    status: str = ""


class _Status(ApiObject):
    conditions: list[_Condition] = []


class _Request(ApiObject):
    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()

    def has(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


class _Requests(ApiObject):
    items: list[_Request] = []


class ProvisioningRequests:
    """The task that writes the requests. `classes` has the provisioning class by profile, "" for none; `sign` returns
    equal bytes for pods of one class. `on_refused` is called by the scheduling loop and does not block."""

    def __init__(
        self, api: Api, queue: SchedulingQueue, classes: Mapping[str, str], sign: Callable[[Pod], bytes], clock: Clock
    ) -> None:
        self._api, self._queue, self._sign, self._clock = api, queue, sign, clock
        self._classes = {profile: each for profile, each in classes.items() if each}
        self._wanted: dict[str, _Wanted] = {}  # by the key of the gang
        self._made: dict[str, str] = {}  # the UIDs of objects that exist, by their keys
        self._rests: dict[str, float] = {}
        self._told: set[str] = set()  # gangs that were tried because their nodes had come
        self._read_at = -READ_SECONDS
        self._is_served = True

    @property
    def is_on(self) -> bool:
        return bool(self._classes)

    def on_refused(self, job: Job, decision: Decision) -> None:
        """Takes in a refusal: a gang for which there is too little room is wanted from now on."""
        if not self._classes.get(job.profile) or not job.is_gang or job.key in self._wanted:
            return
        lacks = decision.gang_diagnosis is not None and not decision.gang_diagnosis.unlabelled
        limited = decision.diagnosis.held_back or TIER_LIMIT in decision.diagnosis.refused_by
        if decision.code is not Code.UNSCHEDULABLE or decision.preemption is not None or not lacks or limited:
            return
        self._want(job, self._clock.now())

    def _want(self, job: Job, since: float) -> None:
        others = [each.namespace for each in self._wanted.values()]
        if len(others) >= MOST or others.count(job.namespace) >= MOST_OF_NAMESPACE:
            return
        if self._rests.get(_key_of_request(job.namespace, job.display_name), 0.0) <= self._clock.now():
            self._wanted[job.key] = _Wanted(job.key, job.namespace, job.display_name, job.profile, since)

    async def run(self) -> None:
        """Writes until cancelled; does nothing if no profile wants it."""
        while self._classes:
            await asyncio.sleep(PERIOD)
            await self.step()

    async def step(self) -> None:
        """Makes the requests that are wanted, and deletes the others."""
        try:
            await self._read()
            self._forget_settled()
            self._want_alike()
            for wanted in list(self._wanted.values()) if self._is_served else ():
                await self._make_if_due(wanted)
            keep = {each.key for each in self._wanted.values()}
            for key in [key for key in self._made if key not in keep]:
                await self._delete_if_allowed(key)
        except (ApiError, Unreachable, Uncertain, Malformed) as error:
            log.error("Cannot write ProvisioningRequests; trying again", err=str(error))

    async def _make_if_due(self, wanted: _Wanted) -> None:
        """A request that the API server refuses rests. Those of other gangs are made all the same."""
        now = self._clock.now()
        if wanted.key in self._made or self._rests.get(wanted.key, 0.0) > now or wanted.since + DELAY > now:
            return
        job = self._queue.job(wanted.gang)
        pod_sets = None if job is None else await self._pod_sets(job)
        if not pod_sets:
            self._rests[wanted.key] = now + REST
            self._wanted.pop(wanted.gang, None)
            return
        try:
            await self._make(wanted, pod_sets)
        except (ApiError, Malformed) as error:
            self._rests[wanted.key] = now + REST
            log.error("Cannot ask for the nodes of a gang", gang=wanted.display_name, err=str(error))

    async def _delete_if_allowed(self, key: str) -> None:
        try:
            await self._delete(key)
        except ApiError as error:
            log.error("Cannot delete a ProvisioningRequest; trying again", request=key, err=str(error))

    # --- what there is --------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Lists the requests with our label, every now and then. Those of an earlier process are taken over."""
        now = self._clock.now()
        if self._read_at + READ_SECONDS > now:
            return
        self._read_at = now
        try:
            body = await self._api.send(list_call(PROVISIONING_REQUESTS, limit=PAGE, labels=OURS))
        except ApiError as error:
            if error.code != 404:
                raise
            if self._is_served:
                log.info(
                    "The kind is not served; no ProvisioningRequests are made", resource=str(PROVISIONING_REQUESTS)
                )
            self._is_served = False
            return
        self._is_served = True
        found = {each.metadata.key: each for each in from_json(body, _Requests).items}
        self._made = {key: each.metadata.uid for key, each in found.items()}
        self._rests = {key: until for key, until in self._rests.items() if until > now}
        for gang, wanted in list(self._wanted.items()):  # further gangs are refused meanwhile
            request = found.get(wanted.key)
            if request is not None:
                await self._follow(gang, wanted, request)

    async def _follow(self, gang: str, wanted: _Wanted, request: _Request) -> None:
        """Looks what became of a request."""
        if request.has("Failed"):
            log.info("Nodes for a gang could not be added", gang=wanted.display_name)
            self._rests[wanted.key] = self._clock.now() + REST
            await self._delete_if_allowed(wanted.key)
        elif request.has("Provisioned") and gang not in self._told:
            self._told.add(gang)
            self._queue.activate(gang)

    def _forget_settled(self) -> None:
        """Forgets gangs that have been placed, are gone, or wait for something else."""
        for gang in list(self._wanted):
            if self._queue.state(gang) in (QueueState.GONE, QueueState.GATED):
                del self._wanted[gang]
        self._told &= self._wanted.keys()

    def _want_alike(self) -> None:
        """Adds gangs that are like a wanted one: they share its refusal, and are not tried by themselves. A class may
        have thousands: each is looked at once, and those of a namespace with enough requests cost a lookup."""
        counts, seen = Counter([each.namespace for each in self._wanted.values()]), set[str]()
        for gang, wanted in list(self._wanted.items()):
            alike = self._queue.same_class(gang) if gang not in seen else []
            seen.update(alike)
            for key in alike:
                namespace = key.partition("/")[0]
                if counts[namespace] >= MOST_OF_NAMESPACE or key in self._wanted:
                    continue
                if len(self._wanted) >= MOST:
                    return
                job = self._queue.job(key)
                if job is not None and job.is_gang:
                    self._want(job, wanted.since)
                    counts[namespace] += key in self._wanted

    # --- one request ----------------------------------------------------------------------------------------------

    async def _pod_sets(self, job: Job) -> list[tuple[Pod, int]]:
        """Returns how many pods there are of each class, and one of these; none if there are too many classes. To sign
        a pod takes 5 to 60 us, and a gang may have ten thousand: other work goes on in between."""
        samples, counts = dict[bytes, Pod](), Counter[bytes]()
        for number, pod in enumerate(job.pods, 1):
            if number % PORTION == 0:
                await asyncio.sleep(0)
            signature = self._sign(pod)
            samples.setdefault(signature, pod)
            counts[signature] += 1
            if len(samples) > MAX_POD_SETS:
                return []
        return [(samples[each], number) for each, number in counts.items()]

    async def _make(self, wanted: _Wanted, pod_sets: list[tuple[Pod, int]]) -> None:
        namespace, _, name = wanted.key.partition("/")
        members: list[Member] = []
        for pod, count in pod_sets:
            found = await self._get(pod)
            if found is None:
                self._wanted.pop(wanted.gang, None)
                return  # the gang has changed; its next refusal tells how
            members.append(Member(found, count))
        numbers = [each.number for each in members]
        body = provisioning_request(name, numbers, self._classes[wanted.profile], pod_sets[0][0])
        try:
            made = from_json(await self._api.send(create(PROVISIONING_REQUESTS, body, namespace)), _Request)
        except ApiError as error:
            if error.code != 409:
                raise
            log.info("Another ProvisioningRequest has this name", gang=wanted.display_name, request=name)
            self._rests[wanted.key] = self._clock.now() + REST
            return
        self._made[wanted.key] = made.metadata.uid
        try:
            for i, member in enumerate(members):
                template = pod_template(f"{name}-{i}", member, namespace, name, made.metadata.uid)
                await self._api.send(create(POD_TEMPLATES, template, namespace))
        except ApiError:
            await self._delete(wanted.key)
            raise
        log.info("Asked for the nodes of a gang", gang=wanted.display_name, request=name)

    async def _get(self, pod: Pod) -> PodTemplateSource | None:
        try:
            body = await self._api.send(get(PODS, pod.metadata.namespace, pod.metadata.name))
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        found = from_json(body, PodTemplateSource)
        return found if found.metadata.uid == pod.metadata.uid else None

    async def _delete(self, key: str) -> None:
        """Deletes a request; its PodTemplates go with it. Two gangs may have one request between them, by their names:
        then it may be gone already."""
        namespace, _, name = key.partition("/")
        uid = self._made.get(key)
        if uid is None:
            return
        try:
            await self._api.send(delete(PROVISIONING_REQUESTS, namespace, name, uid))
        except ApiError as error:
            if error.code not in (404, 409):  # it is gone, or another one
                raise
        del self._made[key]


def _key_of_request(namespace: str, display_name: str) -> str:
    return f"{namespace}/{request_name(display_name.removeprefix(f'{namespace}/'))}"


def provisioning_requests(api: Api, scheduler: "Scheduler", clock: Clock) -> ProvisioningRequests:
    """Makes the task of a scheduler."""
    planners, nodes = scheduler.planners, scheduler.ledger.nodes

    def sign(pod: Pod) -> bytes:
        return planners[pod.spec.scheduler_name].class_cache.short_signature(pod, nodes)

    classes = {name: each.provisioning_class for name, each in scheduler.gangs.items()}
    return ProvisioningRequests(api, scheduler.queue, classes, sign, clock)
