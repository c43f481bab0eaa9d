"""GETs pods the watch does not show: binds unconfirmed after 30 s, and bound pods that vanished while Pending.

The watch leaves out pods that have ended, so it does not show why. A pod that ended without having run may have been
rejected by its kubelet: then its class avoids that node for a while, in its namespace. Only pods that this process
bound are examined: a pod that names its node itself was never checked against the rules.

Several GETs are in flight at a time and namespaces take turns, so that calls of one namespace that hang do not keep the
pods of others from being checked.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from kubenexus.api.codec import decode_pod, from_json
from kubenexus.api.core import Pod
from kubenexus.api.meta import ApiObject
from kubenexus.app.binding.bind_results import BindResultHandler
from kubenexus.app.binding.recent_binds import RecentBinds, UnconfirmedBind
from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.fair_slots import FairSlots
from kubenexus.client.kinds import PODS
from kubenexus.client.verbs import get
from kubenexus.observe import logs
from kubenexus.observe.numa_metrics import NumaMetrics
from kubenexus.plan.decide import Planner
from kubenexus.plan.node_backoff import NodeBackoff, is_kubelet_rejection, is_rejection_by_managers
from kubenexus.queue.queued_job import QueueState

PERIOD = 5.0
AT_ONCE = 8  # GETs in flight

log = logs.get("bind_verifier")


class _Status(ApiObject):
    phase: str = ""
    reason: str = ""


class _Ended(ApiObject):
    status: _Status = _Status()


class BindVerifier:
    """Runs the checks. Pods to check are in `recent_binds`."""

    def __init__(
        self,
        api: Api,
        handlers: EventHandlers,
        bind_results: BindResultHandler,
        recent_binds: RecentBinds,
        *,
        planners: Mapping[str, Planner],
        node_backoff: NodeBackoff,
        wakeup: Wakeup,
        numa: NumaMetrics,
    ) -> None:
        self._api, self._handlers, self._bind_results, self._recent_binds = api, handlers, bind_results, recent_binds
        self._planners, self._node_backoff, self._wakeup, self._numa = planners, node_backoff, wakeup, numa
        self._slots = FairSlots(AT_ONCE)
        self._open: set[asyncio.Task[None]] = set()  # checks that have not ended

    async def run(self) -> None:
        """Runs until cancelled."""
        work = self._recent_binds.work
        try:
            while True:
                work.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PERIOD):
                        await work.wait()
                await self.step()
                self._wakeup.set()
        finally:
            for task in self._open:
                task.cancel()

    async def step(self) -> None:
        """Begins to check all binds that are unconfirmed for too long and all vanished pods. Returns when these checks
        have ended, or after `PERIOD`: the others go on."""
        unconfirmed = self._recent_binds.unconfirmed_too_long()
        begun = [self._begin(late.namespace, self._confirm_one(late)) for late in unconfirmed]
        while self._recent_binds.vanished:
            pod = self._recent_binds.vanished.popleft()
            begun.append(self._begin(pod.metadata.namespace, self._examine(pod)))
        if begun:
            await asyncio.wait(begun, timeout=PERIOD)

    def _begin(self, namespace: str, check: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self._in_turn(namespace, check))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return task

    async def _in_turn(self, namespace: str, check: Coroutine[Any, Any, None]) -> None:
        try:
            slot = await self._slots.acquire(namespace)
        except BaseException:
            check.close()
            raise
        try:
            await check
        except Exception as error:  # one pod must not end the checks of others
            log.error("Failed to look at a bound pod; going on", error, namespace=namespace)  # noqa: PLE1205 - our own log
        finally:
            self._slots.release(slot)

    async def _confirm_one(self, late: UnconfirmedBind) -> None:
        try:
            await self._confirm(late)
        except Exception as error:
            log.error("Failed to look after a bind; looking again later", error, pod=late.key)  # noqa: PLE1205 - our own log
            self._recent_binds.expect_confirmation(late)

    async def _confirm(self, late: UnconfirmedBind) -> None:
        try:
            pod = decode_pod(await self._api.send(get(PODS, late.namespace, late.name)))
        except ApiError as error:
            if error.code == 404:
                self._gone(late)
            else:
                self._recent_binds.expect_confirmation(late)
        except (Unreachable, Uncertain, Malformed):
            self._recent_binds.expect_confirmation(late)
        else:
            self._handlers.on_pod_looked_up(pod)
            if pod.metadata.uid == late.uid and not pod.spec.node_name:
                self._never_bound(pod)

    def _never_bound(self, pod: Pod) -> None:
        """Queues a pod again that is counted on a node it does not have. Not while a bind of it is in flight, and not
        if the watch has shown a newer state."""
        handlers, known = self._handlers, self._handlers.cache.pods.get(pod.key)
        if handlers.queue.state(handlers.assembler.waiting.job_key(pod.key)) is QueueState.IN_FLIGHT:
            return
        if known is not None and known.metadata.uid == pod.metadata.uid and not known.spec.node_name:
            self._bind_results.never_bound(pod)
            handlers.on_pod_update(pod)

    def _gone(self, late: UnconfirmedBind) -> None:
        """Removes the pod, unless the ledger has another pod of its name."""
        record = self._handlers.ledger.pods.get(late.key)
        if record is not None and record.uid == late.uid:
            self._handlers.on_pod_delete(late.key)

    async def _examine(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            body = await self._api.send(get(PODS, meta.namespace, meta.name))
            ended, found = from_json(body, _Ended), decode_pod(body)
        except (ApiError, Unreachable, Uncertain, Malformed):
            return  # most likely deleted; nothing depends on it
        reason = ended.status.reason
        if found.metadata.uid == meta.uid and ended.status.phase == "Failed" and is_kubelet_rejection(reason):
            self._refused(found, reason)

    def _refused(self, pod: Pod, reason: str) -> None:
        node = pod.spec.node_name
        if is_rejection_by_managers(reason):
            self._numa.false_accepts.labels(self._handlers.ledger.contradict_numa(node), reason).add()
        waiting = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        planner = self._planners.get(pod.spec.scheduler_name)
        if planner is None:
            return
        try:
            signature = planner.class_cache.signature(waiting, self._handlers.ledger.nodes)
        except Malformed:
            return
        self._node_backoff.add(pod.metadata.namespace, signature, node)
        log.warning("Kubelet refused pod; its like stay away for a while", pod=pod, node=node, reason=reason)
