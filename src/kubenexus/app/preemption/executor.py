"""Executes the preemptions that decisions contain: nominates the preemptor to its node, and deletes the victims.

    decision ─▶ nominatedNodeName ─▶ for each victim: condition DisruptionTarget ─▶ DELETE ─▶ event Preempted
                                       └─ stops if the preemptor is gone or placed, or a write fails

The calls are kube-scheduler's. Nothing waits here for the victims' end: the watch shows it, and the ledger's
`preemptions` then finishes. A preemption that fails half way ends; the preemptor is tried again, and waits for those of
its victims that are terminating already.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from kubenexus.api.core import Pod
from kubenexus.app.wakeup import Wakeup
from kubenexus.base.clock import Clock
from kubenexus.base.timestamps import format_time
from kubenexus.client import kinds
from kubenexus.client.calls import Api, ApiError, Call
from kubenexus.client.fair_slots import FairSlots
from kubenexus.client.verbs import delete, patch_pod_status
from kubenexus.framework.decision import Preemption
from kubenexus.observe import events, logs
from kubenexus.observe.metrics import Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, PodRecord

AT_ONCE: Final = 16  # preemptions whose calls are in flight; namespaces take turns
GONE: Final = (404, 409, 422)  # the pod is gone, or another pod has its name

log = logs.get("preemption")


class PreemptionExecutor:
    """Starts the calls of a preemption when the loop submits it. Never blocks the loop. `api` sends nothing while this
    process does not lead."""

    def __init__(
        self,
        api: Api,
        ledger: Ledger,
        *,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Clock,
        wakeup: Wakeup,
    ) -> None:
        self._api, self._ledger = api, ledger
        self._recorder, self._metrics, self._clock, self._wakeup = recorder, metrics, clock, wakeup
        self._slots = FairSlots(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        """Returns whether no call is under way."""
        return not self._tasks

    async def run(self) -> None:
        """Runs until cancelled, and then cancels what is under way."""
        try:
            await asyncio.Event().wait()
        finally:
            for task in self._tasks:
                task.cancel()

    def submit(self, pod: Pod, preemption: Preemption) -> None:
        """Enters a preemption into the ledger, which keeps the room for the pod from now on, and starts its calls."""
        found = [self._ledger.pods.get(victim.pod) for victim in preemption.victims]
        victims = [record for record in found if record is not None]
        node = preemption.nominations[0].node
        self._ledger.begin_preemption(pod, node, {record.uid for record in victims})
        self._metrics.preempted(len(victims))
        self._start(self._execute(pod, node, victims))

    def clear_nomination(self, pod: Pod) -> None:
        """Clears the nomination of a pod for which no preemption helps any more."""
        self._start(self._try(self._nominate(pod, "")))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, pod: Pod, node: str, victims: list[PodRecord]) -> None:
        slot = await self._slots.acquire(pod.metadata.namespace)
        try:
            await self._send(self._nominate(pod, node))
            for waiting in self._ledger.nominees(node):
                if waiting.priority < pod.spec.priority:  # it may not fit there any more
                    await self._send(_nomination(waiting.namespace, waiting.name, waiting.uid, ""))
            for victim in victims:
                if pod.metadata.uid not in self._ledger.preemptions:
                    return  # the preemptor is gone, or has a node: nothing more is evicted
                await self._evict(victim, pod, node)
        except Exception as problem:  # all errors: none may end the process
            log.error("Preemption failed; trying the pod again", problem, pod=pod, node=node)  # noqa: PLE1205 - our own log
            self._ledger.end_preemption(pod)  # the pod is tried again after its backoff
        finally:
            self._slots.release(slot)
            self._wakeup.set()

    async def _evict(self, victim: PodRecord, preemptor: Pod, node: str) -> None:
        if victim.terminating or victim.uid != self._uid(victim.key):
            return
        profile = preemptor.spec.scheduler_name
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": PREEMPTION_BY_SCHEDULER,
            "message": f"{profile}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        status = {"conditions": [condition]}
        await self._send(patch_pod_status(victim.namespace, victim.name, victim.uid, status))
        await self._send(delete(kinds.PODS, victim.namespace, victim.name, victim.uid))
        log.v(2, "Preemptor Pod preempted victim Pod", preemptor=preemptor, victim=victim.key, node=node)
        self._recorder.record(events.preempted(victim, preemptor.metadata.uid, node), profile)

    def _uid(self, key: str) -> str:
        record = self._ledger.pods.get(key)
        return "" if record is None else record.uid

    def _nominate(self, pod: Pod, node: str) -> Call:
        return _nomination(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, node)

    async def _try(self, call: Call) -> None:
        try:
            await self._send(call)
        except Exception as problem:
            log.error("Cannot clear a nomination", problem, call=str(call))  # noqa: PLE1205 - our own log

    async def _send(self, call: Call) -> None:
        try:
            await self._api.send(call)
        except ApiError as error:
            if error.code not in GONE:
                raise


def _nomination(namespace: str, name: str, uid: str, node: str) -> Call:
    return patch_pod_status(namespace, name, uid, {"nominatedNodeName": node or None})
