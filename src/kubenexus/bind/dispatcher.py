"""`Dispatcher`: sends the binds of jobs that were placed, and reports one result for each bind.

    submit ──▶ PreBind (volumes, claims) ──▶ wait for a slot ──▶ Bind ──▶ PostBind ──▶ results
                                                          │ ▲
                                                 CONFLICT │ │ UNKNOWN: the same bind again
                                                          ▼ │
                                                      GET the pod

`submit` never blocks. At most `limit` binds are in flight, repeated ones included. Namespaces share these slots
(`client.fair_queue`); binds of one job follow each other in the queue of its namespace. All binds of a job are sent,
however large the job is. Before each write the guard is checked. A write ends within the guard's timeout, so no write
is under way when another process may lead.

Namespaces whose binds hang, since their admission webhooks do not answer, leave half of the slots to the others. A
namespace whose binds fail has one slot. `backlog` bounds how far decisions may be ahead of the answers.

While no bind of a job is in flight or done, the whole job is checked before each of its binds. If fewer members than
the job needs can still be bound, or the process ends, no bind is sent. From its first bind on a job is carried through.

A bind without an answer may have happened. The dispatcher reads the pod, and if the pod has no node sends *the same*
bind again: either of the two gives the pod the node on which it is counted. An error that no answer explains counts as
a lost answer.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from random import Random

from kubenexus.base.clock import Sleep
from kubenexus.bind.backlog import NamespaceBacklog
from kubenexus.bind.bind_result import BOUND, BindResult, BindStatus, result_of_error, result_of_pod
from kubenexus.bind.job_binding import (
    NO_HOOKS,
    NOT_LEADING,
    BindHooks,
    JobBinding,
    JobBoundCallback,
    PodBinding,
    WriteGuard,
)
from kubenexus.bind.job_progress import JobProgress, SendChecks
from kubenexus.bind.prebind_runner import ENDING, PreBindRunner
from kubenexus.client.backoff import Backoff
from kubenexus.client.calls import Api, ApiError, Call, NoConnection, Uncertain, Unreachable
from kubenexus.client.fair_slots import FairSlots, Slot
from kubenexus.client.kinds import PODS
from kubenexus.client.verbs import get

LIMIT = 64  # binds in flight
TRIES = 4  # binds without an answer before a GET that shows no node is final
LOOK = 5.0  # seconds that a GET of a pod may take
AFTER_AN_ERROR = 1.0  # seconds until that GET after an unexpected error, which may come again at once
PATIENCE = 1.0  # seconds for which less urgent calls wait at most while binds do
MIN_PAUSE = 0.08  # seconds between them afterwards: four or eight calls each time, so 50 or 100 a second
OUTAGE_PAUSE = 1.0  # seconds without decisions after the server could not be reached: binds would only pile up


class Dispatcher:
    """Carries out `JobBinding`s and calls `on_results` with the results of each. `hooks` are PreBind and PostBind;
    `checks` run before a bind is sent."""

    def __init__(
        self,
        api: Api,
        guard: WriteGuard,
        on_results: JobBoundCallback,
        rng: Random,
        *,
        limit: int = LIMIT,
        hooks: BindHooks = NO_HOOKS,
        checks: SendChecks,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._api, self._guard, self._on_results, self._rng, self._sleep = api, guard, on_results, rng, sleep
        self._limit, self._post_binds, self._checks = limit, hooks.post_binds, checks
        self._slots = FairSlots(limit, delay=checks.delay, changed=self._moved, speed_changed=self._speed_changed)
        self._open: set[asyncio.Task[None]] = set()
        self.backlog = NamespaceBacklog(self._slots.queue, self._go_on)
        self.prebind_runner = PreBindRunner(hooks.pre_binds, checks.problem, self.backlog.set_apart)
        self._binding = 0  # in flight, or waiting for a slot
        self._calm = asyncio.Event()  # no bind waits for a slot
        self._calm.set()
        self._busy_since = 0.0
        self._closing = self._resting = False
        self._pause: asyncio.Task[None] | None = None
        self.rest = OUTAGE_PAUSE

    @property
    def resting(self) -> bool:
        """Whether the loop should wait before it decides more: the API server is away, or as many binds are under way
        as may be. `wake` is called when the loop may go on."""
        return self._resting or self.backlog.full

    @property
    def open_count(self) -> int:
        """How many jobs have binds without a result."""
        return len(self._open)

    @property
    def calm(self) -> bool:
        """Whether no bind waits for a slot."""
        return self._calm.is_set()

    async def wait_for_quiet(self, patience: float = PATIENCE) -> None:
        """For less urgent calls: returns when no bind waits for a slot, or after `patience` seconds. Once binds have
        waited for that long it returns after `MIN_PAUSE`: binds of one tenant may wait for minutes, and events and
        status patches of all others must not."""
        if not self._calm.is_set():
            waited = asyncio.get_running_loop().time() - self._busy_since
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(min(patience, MIN_PAUSE), patience - waited)):
                    await self._calm.wait()

    def submit(self, job_binding: JobBinding) -> None:
        """Begins to carry out a job in a task of its own. The task calls `on_results` at the end."""
        self.backlog.begun(_namespace(job_binding.pod_bindings), len(job_binding.pod_bindings))
        task = asyncio.get_running_loop().create_task(self._carry_out(job_binding))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def close(self, patience: float) -> int:
        """Begins no further job, and waits up to `patience` seconds for those whose binds have begun. Returns how many
        were cancelled then."""
        self._closing = True
        self.prebind_runner.close()
        if not self._open:
            return 0
        _, left = await asyncio.wait(self._open, timeout=patience)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return len(left)

    # --- one job --------------------------------------------------------------------------------------------------

    async def _carry_out(self, job_binding: JobBinding) -> None:
        try:
            results = await self._outcomes(job_binding)
        except Exception as error:  # before the first bind: a bug here or in a plugin loses no pod
            self._checks.problem("preparing a bind", error)
            results = [BindResult(BindStatus.REJECTED, _described(error))] * len(job_binding.pod_bindings)
        finally:
            self.backlog.ended(_namespace(job_binding.pod_bindings), len(job_binding.pod_bindings))
        await self.prebind_runner.take_back(job_binding.pod_bindings, results)
        try:
            for _ in self._on_results(job_binding, results) or ():
                await asyncio.sleep(0)
        except Exception as error:
            self._checks.problem("applying the results of a bind", error)

    async def _outcomes(self, job_binding: JobBinding) -> list[BindResult]:
        pod_bindings, progress = job_binding.pod_bindings, JobProgress(job_binding)
        result = await self.prebind_runner.run(pod_bindings)
        if result is not None:
            if result.status is BindStatus.REJECTED:
                self._slots.queue.failed(_namespace(pod_bindings), result.message)
            return [result] * len(pod_bindings)
        problem = self._unwanted(progress) if len(pod_bindings) > 1 else ""
        if problem:  # no need to wait for a slot
            return [BindResult(BindStatus.NOT_SENT, problem)] * len(pod_bindings)
        self._begin(len(pod_bindings))
        if len(pod_bindings) == 1:
            return [await self._bind(pod_bindings[0], progress)]
        return await asyncio.gather(*(self._bind(each, progress) for each in pod_bindings))

    async def _bind(self, pod_binding: PodBinding, progress: JobProgress) -> BindResult:
        result = await self._sure(self._in_turn(pod_binding, progress))
        while result.status.is_unresolved:
            result = await self._sure(self._settle(pod_binding, progress, result))
        progress.ended(pod_binding, result)
        if result.status is BindStatus.BOUND:
            self._post_bind(pod_binding)
        return result

    async def _sure(self, asking: Awaitable[BindResult]) -> BindResult:
        """Returns the result of a bind, UNKNOWN for an unexpected error: it must not end the other binds of the job."""
        try:
            return await asking
        except Exception as error:
            self._checks.problem("sending a bind", error)
            await self._sleep(AFTER_AN_ERROR)
            return BindResult(BindStatus.UNKNOWN, _described(error))

    def _post_bind(self, pod_binding: PodBinding) -> None:
        for point in self._post_binds:
            try:
                point.post_bind(pod_binding)
            except Exception as error:  # the pod is bound even if a plugin fails
                self._checks.problem("after a bind", error)

    async def _in_turn(self, pod_binding: PodBinding, progress: JobProgress) -> BindResult:
        """Waits for a slot and sends the bind. `_begin` has counted it before."""
        try:
            slot, answered = await self._slots.acquire(pod_binding.pod.metadata.namespace), False
            try:
                result = await self._send(pod_binding, progress, slot)
                answered = result.status not in (BindStatus.UNKNOWN, BindStatus.NOT_SENT)
                return result
            finally:
                self._slots.release(slot, answered=answered)
        finally:
            self._answered()

    def _begin(self, binds: int) -> None:
        """Counts all binds of a job at once, before their tasks run."""
        self._binding += binds
        self._moved()

    def _answered(self) -> None:
        """Counts one bind less. Not per job: the last bind of a large one may take long, and the loop need not wait."""
        self._binding -= 1
        self._moved()

    def _go_on(self) -> None:
        self._checks.wake()

    def _speed_changed(self, namespace: str) -> None:
        self.backlog.speed_changed(namespace)

    def _moved(self) -> None:
        """Updates `calm` after binds were begun or answered, or a namespace became slow."""
        if self._binding - self._slots.queue.late - self._slots.queue.held > self._limit:
            if self._calm.is_set():
                self._busy_since = asyncio.get_running_loop().time()
            self._calm.clear()
        else:
            self._calm.set()

    # --- one bind -------------------------------------------------------------------------------------------------

    def _unwanted(self, progress: JobProgress) -> str:
        """Why none of a job's binds is to be sent, "" if they are. Called while none was sent."""
        if self._closing:
            return ENDING
        if not self._guard.may_write():
            return NOT_LEADING
        return progress.short(self._checks)

    def _why_not(self, pod_binding: PodBinding, progress: JobProgress) -> str:
        """Why this bind is not to be sent, "" if it is."""
        try:
            if progress.stopped:
                return progress.stopped
            if not progress.under_way:
                namespace = pod_binding.pod.metadata.namespace
                progress.stopped = self._unwanted(progress) or self.backlog.reason_not_to_send(namespace)
                return progress.stopped or self._checks.still_wanted(pod_binding)
            return self._checks.still_wanted(pod_binding) if self._guard.may_write() else NOT_LEADING
        except Exception as error:  # nothing was sent
            self._checks.problem("checking a bind", error)
            return _described(error)

    async def _send(self, pod_binding: PodBinding, progress: JobProgress, slot: Slot) -> BindResult:
        problem = self._why_not(pod_binding, progress)
        if problem:
            return BindResult(BindStatus.NOT_SENT, problem)
        progress.sent(pod_binding)
        try:
            # Read last: a process that was stopped since the guard was checked has no time left, and sends nothing.
            await self._ask(pod_binding.call, slot.timeout(self._guard.write_timeout))
        except (ApiError, Unreachable, Uncertain) as error:
            if isinstance(error, Unreachable) and not isinstance(error, NoConnection):
                self._take_a_rest()
            result = _with_prefix(result_of_error(error))
            if result.status in (BindStatus.REJECTED, BindStatus.THROTTLED):
                self._slots.queue.failed(pod_binding.pod.metadata.namespace, result.message)
            return result
        self._slots.queue.passed(pod_binding.pod.metadata.namespace)
        return BOUND

    async def _ask(self, call: Call, timeout: float) -> bytes:
        try:
            return await self._api.send(call, timeout=timeout)
        except (ApiError, Unreachable, Uncertain):
            raise
        except Exception as error:  # the call may have gone out before that
            self._checks.problem(f"sending {call}", error)
            raise Uncertain(_described(error)) from error

    def _take_a_rest(self) -> None:
        if self.rest and not self._resting:
            self._resting = True
            self._pause = asyncio.get_running_loop().create_task(self._go_on_later())

    async def _go_on_later(self) -> None:
        await self._sleep(self.rest)
        self._resting = False
        self._checks.wake()

    # --- unknown results ------------------------------------------------------------------------------------------

    async def _settle(self, pod_binding: PodBinding, progress: JobProgress, result: BindResult) -> BindResult:
        """Reads the pod until the result is known, however long that takes. Until then the pod keeps its capacity."""
        backoff, tries = Backoff(self._rng, 0.1, 5.0), 1
        while True:
            seen = await self._look(pod_binding)
            if seen is not None and not seen.status.is_unresolved:
                return seen
            if seen is None:
                self._slots.queue.failed(pod_binding.pod.metadata.namespace, result.message)
                if result.status is BindStatus.CONFLICT:
                    return BindResult(BindStatus.REJECTED, result.message)
                if tries >= TRIES:
                    return BindResult(BindStatus.THROTTLED, result.message)
                tries += 1
                self._begin(1)
                again = await self._in_turn(pod_binding, progress)
                if again.status in (BindStatus.BOUND, BindStatus.POD_GONE, BindStatus.REJECTED):
                    return again
                result = again if again.status is BindStatus.CONFLICT else result
            await self._sleep(backoff.next())

    async def _look(self, pod_binding: PodBinding) -> BindResult | None:
        """Reads the pod. None: the pod has no node, or reads are forbidden. UNKNOWN: the server did not answer."""
        meta = pod_binding.pod.metadata
        try:
            body = await self._ask(get(PODS, meta.namespace, meta.name), LOOK)
        except ApiError as error:
            if error.code == 403:
                return None
            return BindResult(BindStatus.POD_GONE if error.code == 404 else BindStatus.UNKNOWN, str(error))
        except (Unreachable, Uncertain) as error:
            return BindResult(BindStatus.UNKNOWN, str(error))
        return result_of_pod(body, pod_binding.uid, pod_binding.node)


def _namespace(pod_bindings: tuple[PodBinding, ...]) -> str:
    return pod_bindings[0].pod.metadata.namespace if pod_bindings else ""


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _with_prefix(result: BindResult) -> BindResult:
    """Adds the prefix that kube-scheduler's messages have."""
    message = f'running Bind plugin "DefaultBinder": {result.message}'
    return BindResult(result.status, message, result.pod, result.dropped)
