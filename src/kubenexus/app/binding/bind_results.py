"""Applies bind results: updates the ledger, ends the queue attempt, records events and metrics."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.binding.recent_binds import RecentBinds, UnconfirmedBind
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.wakeup import Wakeup
from kubenexus.app.watch.event_handlers import EventHandlers
from kubenexus.base.clock import Clock
from kubenexus.bind.bind_result import BindResult, BindStatus
from kubenexus.bind.job_binding import JobBinding, PodBinding
from kubenexus.framework.decision import Decision
from kubenexus.observe import events, logs
from kubenexus.observe.log_throttle import LogThrottle
from kubenexus.observe.metrics import ERROR, SCHEDULED, Metrics
from kubenexus.observe.recorder import EventRecorder
from kubenexus.queue.object_events import pod_forgotten
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger
from kubenexus.state.pods import PodStage

PORTION = 1_000  # members whose results are reported in one turn of the event loop: 15 ms

log = logs.get("bind")


class BindResultHandler:
    """Applies the results of one job's binds. A `bind.job_binding.JobBoundCallback`, called once all of them have an
    answer."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        handlers: EventHandlers,
        *,
        pod_reporter: PodReporter,
        recorder: EventRecorder,
        recent_binds: RecentBinds,
        metrics: Metrics,
        clock: Clock,
        wakeup: Wakeup,
    ) -> None:
        self._ledger, self._queue, self._handlers, self._recent_binds = ledger, queue, handlers, recent_binds
        self._pod_reporter, self._recorder, self._metrics = pod_reporter, recorder, metrics
        self._clock, self._wakeup = clock, wakeup
        self._failures = LogThrottle(clock)
        self._dropping = False  # no bind could be sent since the last one that was answered

    def __call__(self, job_binding: JobBinding, results: Sequence[BindResult]) -> Iterator[None]:
        """Applies all results, and returns the reports of them in portions. Each step fails alone: the attempt always
        ends, and a pod whose result could not be applied is looked up later."""
        job, pairs = job_binding.attempt.job, list(zip(job_binding.pod_bindings, results, strict=True))
        for pod_binding, result in pairs:
            if not self._done(self._settled, pod_binding, result):
                self._recent_binds.expect_confirmation(UnconfirmedBind.of(pod_binding.pod))
        again = {pod_binding.uid for pod_binding, result in pairs if result.status.should_retry}
        if not self._done(self._requeue, job_binding, again):
            self._done(self._add_again, job_binding.attempt, again)
        self._done(self._handlers.assembler.attempt_finished, job.key)
        if sum(result.status is BindStatus.BOUND for result in results) >= job.minimum:
            self._done(self._complete, job_binding.attempt)
        self._done(self._wakeup.set)
        return self._reports(job_binding, pairs)

    def _reports(self, job_binding: JobBinding, pairs: list[tuple[PodBinding, BindResult]]) -> Iterator[None]:
        for first in range(0, len(pairs), PORTION):
            if first:
                yield
            for pod_binding, result in pairs[first : first + PORTION]:
                self._done(self._report, job_binding, pod_binding, result)

    def _done(self, step: Callable[..., None], *arguments: Any) -> bool:
        """Returns whether the step ended without an error."""
        try:
            step(*arguments)
        except Exception as error:
            log.error("Failed to draw the consequences of a bind", error, step=step.__name__)  # noqa: PLE1205 - our own log
            return False
        return True

    # --- one member -----------------------------------------------------------------------------------------------

    def _settled(self, pod_binding: PodBinding, result: BindResult) -> None:
        """Keeps or gives back the capacity that the pod was assumed on."""
        if result.status is not BindStatus.BOUND:
            self._forget(pod_binding.pod)
        if result.pod is not None:
            self._handlers.on_pod_looked_up(result.pod)
        elif result.status is BindStatus.BOUND:
            self._recent_binds.expect_confirmation(UnconfirmedBind.of(pod_binding.pod))
        if result.status is BindStatus.BOUND:
            self._recent_binds.add(pod_binding.uid)

    def _report(self, job_binding: JobBinding, pod_binding: PodBinding, result: BindResult) -> None:
        if result.status is BindStatus.BOUND:
            self._bound(job_binding, pod_binding)
        else:
            self._not_bound(job_binding, pod_binding, result)

    def _bound(self, job_binding: JobBinding, pod_binding: PodBinding) -> None:
        pod, now = pod_binding.pod, self._clock.now()
        attempt: SchedulingAttempt = job_binding.attempt
        self._dropping = False
        self._recorder.record(events.scheduled(pod, pod_binding.node), pod.spec.scheduler_name)
        self._metrics.attempt(SCHEDULED, pod.spec.scheduler_name, now - job_binding.began)
        self._metrics.bound(attempt.attempt_number, max(0.0, now - attempt.since))
        if attempt.after_timeout:
            self._metrics.after_flush.labels().add()
        if log.enabled(2):
            log.v(2, "Successfully bound pod to node", pod=pod, node=pod_binding.node, cycle=str(attempt.id))

    def _not_bound(self, job_binding: JobBinding, pod_binding: PodBinding, result: BindResult) -> None:
        pod, number = pod_binding.pod, str(job_binding.attempt.id)
        if not result.status.should_retry:
            log.v(2, "Pod is no longer ours to bind", pod=pod, why=result.status.value, cycle=number)
            return
        self._metrics.attempt(ERROR, pod.spec.scheduler_name, self._clock.now() - job_binding.began)
        if result.status is BindStatus.NOT_SENT:  # no failure, and at the end of a process there may be hundreds
            if result.dropped and not self._dropping:
                self._dropping = True  # one line without -v for a leader that can send nothing
                log.error("Failed to send a bind; later ones are logged with -v 2", err=result.message, pod=pod)
            log.v(2, "Pod was not bound", why=result.message, pod=pod, node=pod_binding.node, cycle=number)
            return
        self._log_failed(pod_binding, result.message, number)
        if pod.key in self._handlers.assembler:
            self._pod_reporter.report_bind_failure(pod, result.message)

    def _log_failed(self, pod_binding: PodBinding, why: str, number: str) -> None:
        """Logs one error a minute for each namespace, with the number left out: a tenant may cause any number of them.
        All are logged with -v 2, and all are in events and `schedule_attempts_total`."""
        more = self._failures.left_out(pod_binding.pod.metadata.namespace)
        if more is not None:
            message = "Failed to bind pod; trying again; others of its namespace are logged with -v 2 for a minute"
            log.error(message, err=why, pod=pod_binding.pod, node=pod_binding.node, cycle=number, leftOut=more)
        else:
            log.v(
                2, "Failed to bind pod; trying again", err=why, pod=pod_binding.pod, node=pod_binding.node, cycle=number
            )

    def _forget(self, pod: Pod) -> bool:
        """Removes the pod from the node it was assumed on. Returns whether it was."""
        record = self._ledger.pods.get(pod.key)
        if record is None or record.uid != pod.metadata.uid or record.stage is not PodStage.ASSUMED:
            return False
        self._ledger.forget(pod.key)
        self._queue.on_event(pod_forgotten(pod, record.node, held_devices=bool(record.device_shares)))
        return True

    # --- the job --------------------------------------------------------------------------------------------------

    def _complete(self, attempt: SchedulingAttempt) -> None:
        """Counts a job that has its minimum of members bound."""
        if attempt.job.is_gang and not attempt.job.bound_nodes:
            self._metrics.gang_completion.labels().observe(max(0.0, self._clock.now() - attempt.since))

    def _requeue(self, job_binding: JobBinding, again: set[str]) -> None:
        """Queues the members that still need a node; if that is all of them, the job as it is."""
        attempt: SchedulingAttempt = job_binding.attempt
        if len(again) == len(job_binding.pod_bindings):
            self._queue.bind_failed(attempt)
            return
        self._queue.done(attempt, _without(job_binding.decision, again) if again else job_binding.decision)

    def _add_again(self, attempt: SchedulingAttempt, again: set[str]) -> None:
        """Removes the job and adds it again, because the queue failed to take it back. The assembler builds gangs
        again."""
        pods, there = attempt.job.pods, self._queue.job(attempt.job.key)
        if there is None or there.pods[0].metadata.uid != pods[0].metadata.uid:
            return  # another pod has its name by now
        self._queue.delete(attempt.job.key)
        if not attempt.job.is_gang and again:
            self._queue.add(attempt.job, attempt.since)

    def never_bound(self, pod: Pod) -> None:
        """Removes the pod from the node it is counted on: a GET showed that it does not have that node."""
        if self._forget(pod):
            self._handlers.assembler.attempt_finished(pod.key)


def _without(decision: Decision, uids: set[str]) -> Decision:
    kept = tuple(each for each in decision.placements if each.uid not in uids)
    return msgspec.structs.replace(decision, placements=kept)
