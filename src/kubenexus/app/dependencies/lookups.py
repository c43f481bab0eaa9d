"""Looks up whether jobs that other jobs wait for have ended (`queue.job_dependencies`).

Pods that have ended are not watched, and after a restart the scheduler knows none of them; so the API server is asked:
for a Job of the name, then for a pod, then for the pods of a gang. Names are looked up only while a pod waits for them,
a few at a time, and namespaces take turns.
"""

import asyncio
from typing import Final, NoReturn

import msgspec

from kubenexus.api.codec import from_json
from kubenexus.api.keys.gang import NAME as GANG
from kubenexus.api.meta import ApiObject
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.wakeup import Wakeup
from kubenexus.base.errors import Malformed
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError, Call, Uncertain, Unreachable
from kubenexus.client.verbs import get, list_call
from kubenexus.observe import logs
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.job_dependencies import JobDependencies, JobName, JobOutcome
from kubenexus.queue.scheduling_queue import SchedulingQueue

PERIOD: Final = 1.0  # seconds between two looks whether a name is due
AT_ONCE: Final = 10  # names in a period
PORTION: Final = 50  # jobs whose gates are called in one turn of the event loop: 60 us each
_ENDED: Final = {"Succeeded": JobOutcome.SUCCEEDED, "Failed": JobOutcome.FAILED}

log = logs.get("dependencies")


class _Condition(ApiObject):
    type: str = ""
    status: str = ""


class _Status(ApiObject):
    phase: str = ""
    conditions: list[_Condition] = []


class _Object(ApiObject):
    """A Job or a pod."""

    status: _Status = _Status()


class _Page(ApiObject):
    items: list[msgspec.Raw] = []


class DependencyLookups:
    """The task that looks jobs up. It ends when cancelled; an error affects one name alone."""

    def __init__(
        self,
        api: Api,
        dependencies: JobDependencies,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        pod_reporter: PodReporter,
        wakeup: Wakeup,
    ) -> None:
        self._api, self._dependencies, self._queue, self._waiting = api, dependencies, queue, waiting
        self._pod_reporter, self._wakeup = pod_reporter, wakeup

    async def run(self) -> NoReturn:
        while True:
            await self.step()
            await asyncio.sleep(PERIOD)

    async def step(self) -> None:
        """Looks up the names that are due, so many at most, and lets the gates of pods that wait for them answer."""
        for _ in range(AT_ONCE if self._dependencies else 0):
            job = self._dependencies.next_to_look_up()
            if job is None:
                return
            try:
                outcome = await self._outcome(job)
            except (ApiError, Unreachable, Uncertain, Malformed) as error:
                log.error("Failed to look up a job that others wait for", err=str(error), namespace=job.namespace)
                continue
            keys = dict.fromkeys(map(self._waiting.job_key, self._dependencies.set(job, outcome)))
            for number, key in enumerate(keys, 1):
                if number % PORTION == 0:
                    await asyncio.sleep(0)
                self._queue.activate(key)
                self._pod_reporter.report_gate(key)
                self._wakeup.set()

    async def _outcome(self, job: JobName) -> JobOutcome:
        found = await self._object(get(kinds.JOBS, job.namespace, job.name))
        if found is not None:
            true = {each.type for each in found.status.conditions if each.status == "True"}
            if "Complete" in true:
                return JobOutcome.SUCCEEDED
            return JobOutcome.FAILED if "Failed" in true else JobOutcome.RUNNING
        found = await self._object(get(kinds.PODS, job.namespace, job.name))
        if found is not None:
            return _ENDED.get(found.status.phase, JobOutcome.RUNNING)
        return await self._gang(job)

    async def _object(self, call: Call) -> _Object | None:
        try:
            return from_json(await self._api.send(call), _Object)
        except ApiError as error:
            if error.code in (403, 404):  # without the permission to read Jobs, pods and gangs can be waited for
                return None
            raise

    async def _gang(self, job: JobName) -> JobOutcome:
        """Returns what became of the pods with this gang's name: succeeded if all have. Each question is answered with
        one pod at most, since a pod may have a megabyte and a gang ten thousand members."""
        if await self._any_member(job, "status.phase=Failed"):
            return JobOutcome.FAILED
        if await self._any_member(job, "status.phase!=Succeeded"):
            return JobOutcome.RUNNING
        return JobOutcome.SUCCEEDED if await self._any_member(job, "") else JobOutcome.MISSING

    async def _any_member(self, job: JobName, fields: str) -> bool:
        labels = f"{GANG.key}={job.name}"
        call = list_call(kinds.PODS, namespace=job.namespace, limit=1, fields=fields, labels=labels)
        return bool(from_json(await self._api.send(call), _Page).items)
