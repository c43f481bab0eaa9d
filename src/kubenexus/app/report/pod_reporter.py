"""Reports to pods why they wait: a FailedScheduling event and the PodScheduled condition, once per message.

A refusal holds for all jobs of the class, and the pods of each are reported; there may be a hundred thousand, so the
reports are made in portions. A gang that waits for members is reported when no further member has come for a moment:
most gangs are complete by then. The first member of a gang gets the whole message, the others what they wait for
(`gang_report_pacing`).
"""

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.report.gang_report_pacing import GangReportPacing, LastReport
from kubenexus.app.report.pod_group_reporter import PodGroupReporter
from kubenexus.base.clock import Clock
from kubenexus.base.errors import truncated
from kubenexus.client.kinds import PODS
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.plugin_results import PluginError
from kubenexus.framework.queue_limits import is_rejection, limit_name
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.observe import conditions, events
from kubenexus.observe.recorder import EventRecorder
from kubenexus.observe.status_patcher import StatusPatcher
from kubenexus.queue.gangs.gang_jobs import COSCHEDULING, INCOMPLETE
from kubenexus.queue.gangs.waiting_pods import WaitingPods
from kubenexus.queue.job_dependencies import DEPENDENCIES
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

PORTION = 256
MEMBERS = 1000  # of one gang that get a report in one turn of the event loop: 15 ms
MOMENT = 1.0  # seconds without a new member until a gang is reported as incomplete
PATIENCE = 10.0  # seconds until that is reported although members still come


class HeldSince(msgspec.Struct, frozen=True, gc=False):
    """Since when a job is held, and when a report of that is due."""

    since: float
    due: float


class PodReporter:
    """Reports to pods. `waiting` has the newest version of each pod: a condition that its status has already is not
    patched again. `pod_group_reporter` reports what concerns a job as a whole."""

    def __init__(
        self,
        queue: SchedulingQueue,
        recorder: EventRecorder,
        status_patcher: StatusPatcher[Pod],
        pod_group_reporter: PodGroupReporter,
        waiting: WaitingPods,
        clock: Clock,
    ) -> None:
        self._queue, self._recorder, self._status_patcher, self._clock = queue, recorder, status_patcher, clock
        self._pod_group_reporter, self._pods = pod_group_reporter, waiting
        self._gangs = GangReportPacing(clock, lambda key: key in queue)
        self._last_report: dict[str, LastReport] = {}
        self._waiting: dict[str, None] = {}  # keys of jobs that share a refusal not yet reported to them, in order
        self._held: dict[str, HeldSince] = {}  # held jobs of which that is not yet reported
        self._endings: dict[str, str] = {}  # by pod: how the message of its condition ends

    @property
    def busy(self) -> bool:
        due = self.due
        return bool(self._waiting) or (due is not None and due <= self._clock.now())

    @property
    def due(self) -> float | None:
        """Returns when the next report about a gang is due, None for never."""
        times = [each.due for each in self._held.values()]
        if self._gangs.due is not None:
            times.append(self._gangs.due)
        return min(times, default=None)

    # --- what is reported ---------------------------------------------------------------------------------------------

    def report_unschedulable(self, key: str, decision: Decision) -> None:
        """Reports that the job was tried and has no node. All jobs of its class are reported in later portions."""
        job = self._queue.job(key)
        if job is not None and self._report_job(
            job,
            decision.code,
            decision.sentence(job.namespace),
            again=True,
            held=decision.waits_its_turn,
            most=PORTION,
        ):
            self._waiting[key] = None
        self._waiting.update(dict.fromkeys(other for other in self._queue.same_class(key) if other != key))

    def report_rejected(self, keys: list[str]) -> None:
        """Reports that limits of queues are reached, to these jobs and all of their classes, in later portions."""
        for key in keys:
            self._waiting.update(dict.fromkeys((key, *self._queue.same_class(key))))

    def report_error(self, job: Job, message: str) -> None:
        """Reports that the decision failed with an error."""
        self._report_job(job, Code.ERROR, message, again=True)

    def held(self, job: Job, message: str) -> None:
        """Reports that the job is set aside because binds of its namespace hang or fail."""
        self._report_job(job, Code.ERROR, message, again=False)

    def report_bind_failure(self, pod: Pod, message: str) -> None:
        """Reports that the pod was placed, but could not be bound."""
        self._report_pod(pod, Code.ERROR, LastReport(pod.metadata.uid, message), again=True)

    def on_pod_queued(self, pod: Pod, state: QueueState) -> None:
        """Handles a pod that is its own job and was queued or updated."""
        if state is QueueState.GATED:
            self.report_gate(pod.key)
        elif state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF) and pod.key not in self._last_report:
            self._waiting[pod.key] = None  # its class was refused, and that still holds: it is not tried itself

    def on_gang_queued(self, key: str, state: QueueState) -> None:
        """Handles a gang that was queued or updated, or a job that is held."""
        verdict, now = self._queue.gate_verdict(key), self._clock.now()
        if state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF):
            self._waiting[key] = None
        elif verdict is not None and verdict.plugin == COSCHEDULING:
            since = self._held[key].since if key in self._held else now
            self._held[key] = HeldSince(since, min(now + MOMENT, since + PATIENCE))
        elif state is QueueState.GATED:
            self.report_gate(key)

    def report_gate(self, key: str) -> None:
        """Reports why a job is gated: to a job that waits for others with the reason."""
        job, verdict = self._queue.job(key), self._queue.gate_verdict(key)
        if job is not None and verdict is not None and verdict.plugin == DEPENDENCIES:
            self._report_job(job, verdict.code, verdict.reasons[0], again=False, held=True, most=MEMBERS)
        elif verdict is not None:
            self._gated(key, verdict)

    def set_ending(self, key: str, ending: str) -> bool:
        """Sets how the condition's message ends of a job's first pod, "" for no ending, and patches the condition.
        Returns False if the pod has no such condition yet: then a later call may."""
        job = self._queue.job(key)
        pod = None if job is None else self._pods.latest_pod(job.pods[0])
        last = None if pod is None else self._last_report.get(pod.key)
        if pod is None or last is None or last.uid != pod.metadata.uid:
            return False
        old = next((each for each in pod.status.conditions if each.type == conditions.POD_SCHEDULED), None)
        if old is None or old.status != "False" or old.reason == conditions.ERROR:
            return False
        self._set_ending(pod.key, ending)
        message = last.sentence + ending
        wanted = conditions.Condition(conditions.POD_SCHEDULED, old.status, old.reason, message)
        call = conditions.patch(pod, wanted, PODS, self._clock.now())
        if call is not None:
            self._status_patcher.submit(pod, call)
        return True

    def _set_ending(self, pod: str, ending: str) -> None:
        if ending:
            self._endings[pod] = ending
        else:
            self._endings.pop(pod, None)

    def forget(self, pod: Pod) -> None:
        """Drops the last report of a pod that was placed or is gone, and its patch if that waits."""
        self._last_report.pop(pod.key, None)
        self._endings.pop(pod.key, None)
        self._status_patcher.cancel(pod.metadata.uid)

    def report_some(self, most: int = PORTION) -> None:
        """Makes waiting reports until they concern `most` pods."""
        reported = 0
        while self._waiting and reported < most:
            key = next(iter(self._waiting))
            del self._waiting[key]
            job, decision = self._queue.job(key), self._queue.last_decision(key)
            if job is None or decision is None or self._queue.state(key) is QueueState.IN_FLIGHT:
                continue
            reported += min(len(job.pods), MEMBERS)
            held = is_rejection(decision)
            limit = limit_name(decision) if held else ""
            if held and self._knows_limit(job, limit):
                continue
            sentence, held = decision.sentence(job.namespace), held or decision.waits_its_turn
            if self._report_job(job, decision.code, sentence, again=False, held=held, most=MEMBERS, limit=limit):
                self._waiting[key] = None
        self._report_held(most - reported)

    def _knows_limit(self, job: Job, limit: str) -> bool:
        """Whether the job was told that it waits for this limit. What is used of it changes with each pod that ends."""
        last = self._last_report.get(job.pods[0].key)
        return last is not None and last.uid == job.pods[0].metadata.uid and last.kind == limit

    def on_patch_failed(self, pod: Pod) -> None:
        """Forgets the last report, because its status patch could not be written: the next report writes it again."""
        self._last_report.pop(pod.key, None)

    def _report_held(self, most: int) -> None:
        now, reported = self._clock.now(), 0
        for key in self._gangs.take_due():
            if self._queue.gate_verdict(key) is not None:
                self._held.setdefault(key, HeldSince(now, now))
            else:
                self._waiting[key] = None
        for key, held in [each for each in self._held.items() if each[1].due <= now]:
            if reported >= most:
                return
            if now < held.since + PATIENCE and self._pods.is_changing(key):  # it may be complete: it is counted soon
                self._held[key] = HeldSince(held.since, now + MOMENT)
                continue
            del self._held[key]
            job, verdict = self._queue.job(key), self._queue.gate_verdict(key)
            if job is not None and verdict is not None and verdict.plugin == COSCHEDULING:
                reported += min(len(job.pods), MEMBERS)
                if self._report_job(job, verdict.code, verdict.reasons[0], again=False, held=True, most=MEMBERS):
                    self._held[key] = HeldSince(now, now)

    # --- how it is reported -------------------------------------------------------------------------------------------

    def _report_job(
        self,
        job: Job,
        code: Code,
        sentence: str,
        *,
        again: bool,
        held: bool = False,
        most: int | None = None,
        limit: str = "",
    ) -> bool:
        """Reports to the members of a job that are due, to `most` at once. Returns whether others are due. `held` means
        that the job was not tried, or waits its turn: autoscalers must not see it as unschedulable. `limit` names the
        limit that it waits for, if it does."""
        if len(job.pods) == 1 and not job.is_gang:
            self._report_in_full(job, job.pods[0], code, sentence, again=again, held=held, kind=limit)
            return False
        kind = conditions.reason_of(code)
        common = f"its gang was refused as a whole: pod {truncated(job.pods[0].metadata.name)} says why"
        if limit:
            kind = common = limit
        elif held:
            kind = common = INCOMPLETE if sentence.startswith(INCOMPLETE) else sentence
        due = self._gangs.members_to_report(job, kind, sentence, self._last_report)
        for pod, in_full in due[:most]:
            if in_full:
                self._report_in_full(job, pod, code, sentence, again=again, held=held, kind=kind)
            else:
                last_report = LastReport(pod.metadata.uid, common, kind, full=False)
                self._report_pod(pod, code, last_report, again=False, held=held)
        return most is not None and len(due) > most

    def _report_in_full(
        self, job: Job, pod: Pod, code: Code, sentence: str, *, again: bool, held: bool, kind: str = ""
    ) -> None:
        """Reports to a pod that is its own job, or to the first member of a gang."""
        if not held:
            self._pod_group_reporter.refused(job, code, sentence)
        self._report_pod(pod, code, LastReport(pod.metadata.uid, sentence, kind), again=again, held=held)

    def _report_pod(self, pod: Pod, code: Code, last_report: LastReport, *, again: bool, held: bool = False) -> None:
        pod, sentence = self._pods.latest_pod(pod), last_report.sentence
        earlier = self._last_report.get(pod.key)
        known = earlier == last_report
        if known and not again:
            return
        rejected = held and code is Code.PENDING
        event = events.rejected(pod, sentence) if rejected else events.failed_scheduling(pod, sentence)
        self._recorder.record(event, pod.spec.scheduler_name)
        if known:
            return
        self._last_report[pod.key] = last_report
        now = self._clock.now()
        if earlier is not None or pod.metadata.uid in self._status_patcher:
            # An earlier patch has yet to be written or seen: what the pod says here is not what it will say.
            pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[]))
        if code is not Code.ERROR:
            sentence += self._endings.get(pod.key, "")
        call = (
            conditions.held_patch(pod, sentence, now)
            if held
            else conditions.unschedulable_patch(pod, code, sentence, now)
        )
        if call is not None:
            self._status_patcher.submit(pod, call)

    def _gated(self, key: str, verdict: Verdict | None) -> None:
        """Records an event for a gate that failed; patches the condition alone for one that is closed on purpose."""
        job = self._queue.job(key)
        if job is not None and verdict is not None and verdict.code is Code.ERROR:
            failure = PluginError(verdict.plugin, ", ".join(verdict.reasons))
            self._report_job(job, Code.ERROR, failure.sentence, again=False)
            return
        for pod in () if job is None else job.pods:
            has_condition = any(each.type == conditions.POD_SCHEDULED for each in pod.status.conditions)
            call = None if has_condition else conditions.gated_patch(pod, self._clock.now())
            if call is not None:
                self._status_patcher.submit(pod, call)
