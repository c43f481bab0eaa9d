"""What became of pods that we cannot see: one the watch has not confirmed, and one that ended before it ran.

The watch leaves out pods that have ended and so does not say how. Whoever ends without having run was perhaps refused
by its kubelet; that is worth a look, and if so its class stays away from that node for a while, in its namespace. Only
pods that we bound count: one that names its node itself was never held against the rules, and says nothing about them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from kubenexus.api.codec import decode_pod, from_json
from kubenexus.api.core import Pod
from kubenexus.api.meta import ApiObject
from kubenexus.app.binding.bind_results import BindResultHandler, UnconfirmedBind
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.base.errors import Malformed
from kubenexus.client.calls import Api, ApiError, Uncertain, Unreachable
from kubenexus.client.kinds import PODS
from kubenexus.client.verbs import get
from kubenexus.observe import logs
from kubenexus.plan.decide import Planner
from kubenexus.plan.node_backoff import NodeBackoff, is_kubelet_rejection
from kubenexus.queue.queued_job import QueueState

PERIOD = 5.0
MOST = 1024  # pods that wait for an inquest; of a thousand, the last ones tell as much as the first

log = logs.get("bind_verifier")


class _Status(ApiObject):
    phase: str = ""
    reason: str = ""


class _Ended(ApiObject):
    status: _Status = _Status()


class BindVerifier:
    def __init__(
        self,
        api: Api,
        handlers: EventHandlers,
        bind_results: BindResultHandler,
        planners: Mapping[str, Planner],
        node_backoff: NodeBackoff,
    ) -> None:
        self._api, self._handlers, self._bind_results = api, handlers, bind_results
        self._planners, self._node_backoff = planners, node_backoff
        self._vanished: deque[Pod] = deque(maxlen=MOST)
        self._work = asyncio.Event()

    def check_vanished_pod(self, pod: Pod) -> None:
        """A bound pod of ours is no longer among the living, and never ran."""
        if pod.spec.scheduler_name in self._planners and self._bind_results.bound_here(pod.metadata.uid):
            self._vanished.append(pod)
            self._work.set()

    async def run(self, woken: Callable[[], None] = lambda: None) -> None:
        """Until cancelled."""
        while True:
            self._work.clear()
            try:
                async with asyncio.timeout(PERIOD):
                    await self._work.wait()
            except TimeoutError:
                pass
            await self.step()
            woken()

    async def step(self) -> None:
        """Look into all that is open."""
        for pod in self._bind_results.unconfirmed_too_long():
            try:
                await self._confirm(pod)
            except Exception as error:  # one pod must not keep us from looking after the others
                log.error("Failed to look after a bind; looking again later", error, pod=pod.key)  # noqa: PLE1205 - our own log
                self._bind_results.expect_confirmation(pod)
        while self._vanished:
            await self._examine(self._vanished.popleft())

    async def _confirm(self, late: UnconfirmedBind) -> None:
        try:
            pod = decode_pod(await self._api.send(get(PODS, late.namespace, late.name)))
        except ApiError as error:
            if error.code == 404:
                self._gone(late)
            else:
                self._bind_results.expect_confirmation(late)
        except (Unreachable, Uncertain, Malformed):
            self._bind_results.expect_confirmation(late)
        else:
            self._bind_results.on_pod_looked_up(pod)
            if pod.metadata.uid == late.uid and not pod.spec.node_name:
                self._never_bound(pod)

    def _never_bound(self, pod: Pod) -> None:
        """It is counted on a node that it does not have: it waits again. Not while a bind of it is on its way, and not
        if the watch has told more meanwhile."""
        handlers, known = self._handlers, self._handlers.cache.pods.get(pod.key)
        if handlers.queue.state(handlers.assembler.job_key(pod.key)) is QueueState.IN_FLIGHT:
            return
        if known is not None and known.metadata.uid == pod.metadata.uid and not known.spec.node_name:
            self._bind_results.never_bound(pod)
            handlers.on_pod_update(pod)

    def _gone(self, late: UnconfirmedBind) -> None:
        """Unless another has its name by now, of which the watch has told."""
        record = self._handlers.ledger.pods.get(late.key)
        if record is not None and record.uid == late.uid:
            self._handlers.on_pod_delete(late.key)

    async def _examine(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            body = await self._api.send(get(PODS, meta.namespace, meta.name))
            ended, found = from_json(body, _Ended), decode_pod(body)
        except (ApiError, Unreachable, Uncertain, Malformed):
            return  # deleted by now, most likely; nothing depends on it
        reason = ended.status.reason
        if found.metadata.uid == meta.uid and ended.status.phase == "Failed" and is_kubelet_rejection(reason):
            self._refused(found, reason)

    def _refused(self, pod: Pod, reason: str) -> None:
        node = pod.spec.node_name
        waiting = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        class_cache = self._planners[pod.spec.scheduler_name].class_cache
        try:
            signature = class_cache.signature(waiting, self._handlers.ledger.nodes)
        except Malformed:
            return
        self._node_backoff.add(pod.metadata.namespace, signature, node)
        log.warning("Kubelet refused pod; its like stay away for a while", pod=pod, node=node, reason=reason)
