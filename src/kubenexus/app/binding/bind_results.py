"""What follows when a commitment has landed: the ledger, the waiting room and people are told, fate by fate."""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.report.pod_reporter import PodReporter
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

CONFIRMATION_TIMEOUT = 30.0  # seconds; then we look ourselves
BOUND = 16_384  # pods that we bound last; a kubelet that refuses one does so within seconds

log = logs.get("bind")


class UnconfirmedBind(NamedTuple):
    """A pod that was bound, as far as the API server's answer goes. No more than its name: there may be thousands."""

    namespace: str
    name: str
    uid: str

    @staticmethod
    def of(pod: Pod) -> "UnconfirmedBind":
        return UnconfirmedBind(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class BindResultHandler:
    """A `bind.job_binding.JobBoundCallback`. `on_pod_looked_up` takes a pod that a look found, newer than the watch;
    `on_attempt_finished` hears of jobs that are no longer in flight; `is_waiting` says whether a pod still is in
    one."""

    def __init__(
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        pod_reporter: PodReporter,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._ledger, self._queue, self._pod_reporter, self._recorder = ledger, queue, pod_reporter, recorder
        self._metrics, self._clock = metrics, clock
        self.on_pod_looked_up: Callable[[Pod], None] = lambda pod: None
        self.on_attempt_finished: Callable[[str], None] = lambda job: None
        self.is_waiting: Callable[[Pod], bool] = lambda pod: self._queue.job(pod.key) is not None
        self.wake: Callable[[], None] = lambda: None
        self._unconfirmed: deque[tuple[float, UnconfirmedBind]] = deque()
        self._bound_here: OrderedDict[str, None] = OrderedDict()  # UIDs
        self._failures = LogThrottle(clock)
        self._dropping = False  # no bind could be sent since the last one that was answered

    def __call__(self, job_binding: JobBinding, results: Sequence[BindResult]) -> None:
        """Each step fails alone: a job that has landed is no longer in flight, and a pod of which it could not be said
        what became of it is looked up."""
        job, pairs = job_binding.attempt.job, list(zip(job_binding.pod_bindings, results, strict=True))
        for pod_binding, result in pairs:
            if not self._done(self._settled, pod_binding, result):
                self.expect_confirmation(UnconfirmedBind.of(pod_binding.pod))
        again = {pod_binding.uid for pod_binding, result in pairs if result.status.should_retry}
        if not self._done(self._requeue, job_binding, again):
            self._done(self._enter_anew, job_binding.attempt, again)
        self._done(self.on_attempt_finished, job.key)
        for pod_binding, result in pairs:
            self._done(self._told, job_binding, pod_binding, result)
        if sum(result.status is BindStatus.BOUND for result in results) >= job.minimum:
            self._done(self._complete, job_binding.attempt)
        self._done(self.wake)

    def _done(self, step: Callable[..., None], *arguments: Any) -> bool:
        """Whether a step was taken to its end."""
        try:
            step(*arguments)
        except Exception as error:
            log.error("Failed to draw the consequences of a bind", error, step=step.__name__)  # noqa: PLE1205 - our own log
            return False
        return True

    # --- one member -----------------------------------------------------------------------------------------------

    def _settled(self, pod_binding: PodBinding, result: BindResult) -> None:
        """Whether its room stays taken."""
        if result.status is not BindStatus.BOUND:
            self._forget(pod_binding.pod)
        if result.pod is not None:
            self.on_pod_looked_up(result.pod)
        elif result.status is BindStatus.BOUND:
            self.expect_confirmation(UnconfirmedBind.of(pod_binding.pod))
        if result.status is BindStatus.BOUND:
            self._remember(pod_binding.uid)

    def _remember(self, uid: str) -> None:
        self._bound_here[uid] = None
        if len(self._bound_here) > BOUND:
            self._bound_here.popitem(last=False)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._bound_here.pop(uid, None)

    def bound_here(self, uid: str) -> bool:
        """Whether this process bound the pod, as far as it remembers."""
        return uid in self._bound_here

    def _told(self, job_binding: JobBinding, pod_binding: PodBinding, result: BindResult) -> None:
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
        if (
            result.status is BindStatus.NOT_SENT
        ):  # nothing was asked, so nothing has failed: at the end there may be hundreds
            if result.dropped and not self._dropping:
                self._dropping = True  # of a leader that can send nothing there has to be one line without -v
                log.error("Failed to send a bind; later ones are logged with -v 2", err=result.message, pod=pod)
            log.v(2, "Pod was not bound", why=result.message, pod=pod, node=pod_binding.node, cycle=number)
            return
        self._log_failed(pod_binding, result.message, number)
        if self.is_waiting(pod):
            self._pod_reporter.report_bind_failure(pod, result.message)

    def _log_failed(self, pod_binding: PodBinding, why: str, number: str) -> None:
        """One error a minute for each namespace, with how many there were besides: what the server refuses is often the
        doing of a tenant. All of them with -v 2; events and `schedule_attempts_total` have all of them anyhow."""
        more = self._failures.left_out(pod_binding.pod.metadata.namespace)
        if more is not None:
            message = "Failed to bind pod; trying again; others of its namespace are logged with -v 2 for a minute"
            log.error(message, err=why, pod=pod_binding.pod, node=pod_binding.node, cycle=number, leftOut=more)
        else:
            log.v(
                2, "Failed to bind pod; trying again", err=why, pod=pod_binding.pod, node=pod_binding.node, cycle=number
            )

    def _forget(self, pod: Pod) -> bool:
        """Whether it was counted on a node by our own word alone, and is no longer."""
        record = self._ledger.pods.get(pod.key)
        if record is None or record.uid != pod.metadata.uid or record.stage is not PodStage.ASSUMED:
            return False
        self._ledger.forget(pod.key)
        self._queue.on_event(pod_forgotten(pod, record.node))
        return True

    # --- the job --------------------------------------------------------------------------------------------------

    def _complete(self, attempt: SchedulingAttempt) -> None:
        """As many as it needs are bound."""
        self._pod_reporter.on_job_scheduled(attempt.job)
        if attempt.job.is_gang and not attempt.job.bound_nodes:
            self._metrics.gang_completion.labels().observe(max(0.0, self._clock.now() - attempt.since))

    def _requeue(self, job_binding: JobBinding, again: set[str]) -> None:
        """Members that still need a node go back; if that is all of them, so does the job as it is."""
        attempt: SchedulingAttempt = job_binding.attempt
        if len(again) == len(job_binding.pod_bindings):
            self._queue.bind_failed(attempt)
            return
        self._queue.done(attempt, _without(job_binding.decision, again) if again else job_binding.decision)

    def _enter_anew(self, attempt: SchedulingAttempt, again: set[str]) -> None:
        """The waiting room failed: the job leaves it, and comes in as a new one. Gangs do so when they have landed."""
        pods, there = attempt.job.pods, self._queue.job(attempt.job.key)
        if there is None or there.pods[0].metadata.uid != pods[0].metadata.uid:
            return  # another has its name by now
        self._queue.delete(attempt.job.key)
        if not attempt.job.is_gang and again:
            self._queue.add(attempt.job, attempt.since)

    # --- what the watch has yet to say ----------------------------------------------------------------------------

    def unconfirmed_too_long(self) -> list[UnconfirmedBind]:
        """Pods that were bound, but of which the watch has not spoken for too long; each is named once."""
        now, late = self._clock.now(), []
        while self._unconfirmed and self._unconfirmed[0][0] <= now:
            _, pod = self._unconfirmed.popleft()
            record = self._ledger.pods.get(pod.key)
            if record is not None and record.uid == pod.uid and record.stage is PodStage.ASSUMED:
                late.append(pod)
        return late

    def never_bound(self, pod: Pod) -> None:
        """A look found that a pod does not have the node on which it is counted."""
        if self._forget(pod):
            self.on_attempt_finished(pod.key)

    def expect_confirmation(self, pod: UnconfirmedBind) -> None:
        """Nobody could say yet: ask again later."""
        self._unconfirmed.append((self._clock.now() + CONFIRMATION_TIMEOUT, pod))


def _without(decision: Decision, uids: set[str]) -> Decision:
    kept = tuple(each for each in decision.placements if each.uid not in uids)
    return msgspec.structs.replace(decision, placements=kept)
