"""The herald tells pods why they wait: an event and a condition, and neither again while nothing has changed.

A refusal of one job is a refusal of all that are alike, and each of them is told; there may be a hundred thousand, so
telling is work that is done in portions. A gang that waits for its members is told when no more have come for a moment:
most are complete by then, and nothing need be said. Of a gang the first member is told everything, the others what they
wait for (`gang_notices`).
"""

from collections.abc import Callable

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.report.gang_report_pacing import GangReportPacing, LastReport
from kubenexus.app.report.pod_group_reporter import PodGroupReporter
from kubenexus.base.clock import Clock
from kubenexus.base.errors import truncated
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.plugin_results import PluginError
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.observe import conditions, events
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.queue.gangs.gang_jobs import COSCHEDULING, INCOMPLETE
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

PORTION = 256
MOMENT = 1.0  # seconds without a new member, until a gang is told that it waits for others
PATIENCE = 10.0  # seconds; it is told by then, whoever comes


class HeldSince(msgspec.Struct, frozen=True, gc=False):
    """Since when a job is held back, and when its pods are to be told."""

    since: float
    due: float


class PodReporter:
    """`latest_pod` is a pod as it was last seen: what its status says already is not said again. The
    `pod_group_reporter` is told what concerns a job as a whole."""

    def __init__(
        self,
        queue: SchedulingQueue,
        recorder: EventRecorder,
        status_patcher: StatusPatcher[Pod],
        pod_group_reporter: PodGroupReporter,
        clock: Clock,
    ) -> None:
        self._queue, self._recorder, self._status_patcher, self._clock = queue, recorder, status_patcher, clock
        self._pod_group_reporter = pod_group_reporter
        self._gangs = GangReportPacing(clock, lambda key: key in queue)
        self._last_report: dict[str, LastReport] = {}
        self._waiting: dict[str, None] = {}  # keys of jobs that share a refusal and have yet to hear of it, in order
        self._held: dict[str, HeldSince] = {}  # jobs that are held back, and have yet to hear of it
        self.latest_pod: Callable[[Pod], Pod] = lambda pod: pod

    @property
    def busy(self) -> bool:
        due = self.due
        return bool(self._waiting) or (due is not None and due <= self._clock.now())

    @property
    def due(self) -> float | None:
        """When the next gang is to be told what it waits for."""
        times = [each.due for each in self._held.values()]
        if self._gangs.due is not None:
            times.append(self._gangs.due)
        return min(times, default=None)

    # --- what is said ---------------------------------------------------------------------------------------------

    def report_unschedulable(self, key: str, decision: Decision) -> None:
        """A job was tried and has no node. Those like it hear of it in time."""
        job = self._queue.job(key)
        if job is not None:
            self._tell(job, decision.code, decision.sentence(_namespace(job)), again=True)
        self._waiting.update(dict.fromkeys(other for other in self._queue.same_class(key) if other != key))

    def report_error(self, job: Job, message: str) -> None:
        """Deciding about it came to no end."""
        self._tell(job, Code.ERROR, message, again=True)

    def held(self, job: Job, message: str) -> None:
        """It is not tried for a while, because of what became of others of its namespace."""
        self._tell(job, Code.ERROR, message, again=False)

    def report_bind_failure(self, pod: Pod, message: str) -> None:
        """It was placed, but that could not be carried out."""
        self._say(pod, Code.ERROR, LastReport(pod.metadata.uid, message), again=True)

    def on_pod_queued(self, pod: Pod, state: QueueState) -> None:
        """A pod waits by itself, or was changed while it waits."""
        if state is QueueState.GATED:
            self._gated(pod.key, self._queue.gate_verdict(pod.key))
        elif state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF) and pod.key not in self._last_report:
            self._waiting[pod.key] = None  # it shares a refusal that stands, and will not be tried itself

    def on_gang_queued(self, key: str, state: QueueState) -> None:
        """A gang waits, or has changed while it waits; or a job is held back."""
        verdict, now = self._queue.gate_verdict(key), self._clock.now()
        if state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF):
            self._waiting[key] = None
        elif verdict is not None and verdict.plugin == COSCHEDULING:
            since = self._held[key].since if key in self._held else now
            self._held[key] = HeldSince(since, min(now + MOMENT, since + PATIENCE))
        elif state is QueueState.GATED:
            self._gated(key, verdict)

    def on_job_scheduled(self, job: Job) -> None:
        """As many of its members as it needs are bound."""
        self._pod_group_reporter.scheduled(job)

    def forget(self, pod: Pod) -> None:
        """It goes to a node, or is gone: what it was told is over."""
        self._last_report.pop(pod.key, None)
        self._status_patcher.cancel(pod.metadata.uid)

    def report_some(self, most: int = PORTION) -> None:
        """Tell some of those who have yet to hear: jobs, until that were so many pods."""
        told = 0
        while self._waiting and told < most:
            key = next(iter(self._waiting))
            del self._waiting[key]
            job, decision = self._queue.job(key), self._queue.last_decision(key)
            if job is None or decision is None or self._queue.state(key) is QueueState.IN_FLIGHT:
                continue
            told += len(job.pods)
            self._tell(job, decision.code, decision.sentence(_namespace(job)), again=False)
        self._tell_held(most - told)

    def on_patch_failed(self, pod: Pod) -> None:
        """A note could not be written: it is to be written again, when there is something to say."""
        self._last_report.pop(pod.key, None)

    def _tell_held(self, most: int) -> None:
        now, told = self._clock.now(), 0
        for key in self._gangs.take_due():
            if self._queue.gate_verdict(key) is not None:
                self._held.setdefault(key, HeldSince(now, now))
            else:
                self._waiting[key] = None
        for key in [key for key, each in self._held.items() if each.due <= now]:
            if told >= most:
                return
            del self._held[key]
            job, verdict = self._queue.job(key), self._queue.gate_verdict(key)
            if job is not None and verdict is not None and verdict.plugin == COSCHEDULING:
                told += len(job.pods)
                self._tell(job, verdict.code, verdict.reasons[0], again=False, held=True)

    # --- how it is said -------------------------------------------------------------------------------------------

    def _tell(self, job: Job, code: Code, sentence: str, *, again: bool, held: bool = False) -> None:
        """`held`: it was not tried, so more nodes would not help it, and no autoscaler shall think so."""
        if len(job.pods) == 1 and not job.is_gang:
            self._tell_in_full(job, job.pods[0], code, sentence, again=again, held=held)
            return
        kind = conditions.reason_of(code)
        common = f"its gang was refused as a whole: pod {truncated(job.pods[0].metadata.name)} says why"
        if held:
            kind = common = INCOMPLETE if sentence.startswith(INCOMPLETE) else sentence
        for pod, in_full in self._gangs.members_to_report(job, kind, sentence, self._last_report):
            if in_full:
                self._tell_in_full(job, pod, code, sentence, again=again, held=held, kind=kind)
            else:
                last_report = LastReport(pod.metadata.uid, common, kind, full=False)
                self._say(pod, code, last_report, again=False, held=held)

    def _tell_in_full(
        self, job: Job, pod: Pod, code: Code, sentence: str, *, again: bool, held: bool, kind: str = ""
    ) -> None:
        """To a pod by itself, or to the first of a gang."""
        if not held:
            self._pod_group_reporter.refused(job, code, sentence)
        self._say(pod, code, LastReport(pod.metadata.uid, sentence, kind), again=again, held=held)

    def _say(self, pod: Pod, code: Code, last_report: LastReport, *, again: bool, held: bool = False) -> None:
        pod, sentence = self.latest_pod(pod), last_report.sentence
        known = self._last_report.get(pod.key) == last_report
        if known and not again:
            return
        self._recorder.record(events.failed_scheduling(pod, sentence), pod.spec.scheduler_name)
        if known:
            return
        self._last_report[pod.key] = last_report
        now = self._clock.now()
        call = (
            conditions.held_patch(pod, sentence, now)
            if held
            else conditions.unschedulable_patch(pod, code, sentence, now)
        )
        if call is not None:
            self._status_patcher.submit(pod, call)

    def _gated(self, key: str, verdict: Verdict | None) -> None:
        """A gate that failed says so in an event; one that is shut on purpose, in a condition alone."""
        job = self._queue.job(key)
        if job is not None and verdict is not None and verdict.code is Code.ERROR:
            failure = PluginError(verdict.plugin, ", ".join(verdict.reasons))
            self._tell(job, Code.ERROR, failure.sentence, again=False)
            return
        for pod in () if job is None else job.pods:
            said = any(each.type == conditions.POD_SCHEDULED for each in pod.status.conditions)
            call = None if said else conditions.gated_patch(pod, self._clock.now())
            if call is not None:
                self._status_patcher.submit(pod, call)


def _namespace(job: Job) -> str:
    return job.pods[0].metadata.namespace
