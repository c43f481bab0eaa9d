"""Reports what the job assembler observes: to pods, to gangs, to the log."""

from kubenexus.api.core import Pod
from kubenexus.api.gangs.resolver import Gang
from kubenexus.api.workloads import PodGroup
from kubenexus.app.gangs.completion_markers import CompletionMarkers
from kubenexus.app.report.key_warnings import KeyWarnings
from kubenexus.app.report.pod_group_reporter import PodGroupReporter
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.observe import events, logs
from kubenexus.observe.recorder import EventRecorder
from kubenexus.queue.gangs.bound_members import BoundMember
from kubenexus.queue.queued_job import QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

log = logs.get("gangs")


class AssemblyReporter:
    """An `AssemblyObserver` (`queue.gangs.job_assembler`)."""

    def __init__(
        self,
        pod_reporter: PodReporter,
        pod_group_reporter: PodGroupReporter,
        markers: CompletionMarkers,
        recorder: EventRecorder,
        queue: SchedulingQueue,
    ) -> None:
        self._pod_reporter, self._pod_group_reporter, self._markers = pod_reporter, pod_group_reporter, markers
        self._recorder, self._queue = recorder, queue
        self._key_warnings = KeyWarnings(recorder)

    def pod_queued(self, pod: Pod, state: QueueState) -> None:
        self._pod_reporter.on_pod_queued(pod, state)
        self._key_warnings.report((pod,))

    def gang_queued(self, key: str, state: QueueState) -> None:
        self._pod_reporter.on_gang_queued(key, state)
        job = self._queue.job(key) if state is QueueState.ACTIVE else None
        if job is not None:
            self._key_warnings.report(job.pods)

    def gang_warning(self, pod: Pod, text: str) -> None:
        log.warning("Pod is not clear about its gang", why=text, pod=pod)
        self._recorder.record(events.gang_unclear(pod, text), pod.spec.scheduler_name)

    def group_complete(self, group: PodGroup, at: float) -> bool:
        return self._pod_group_reporter.complete(group, at)

    def gang_complete(self, gang: Gang, member: BoundMember) -> None:
        self._markers.mark_complete(gang, member)

    def build_failed(self, gang: str, error: Exception) -> None:
        log.error("Failed to form a gang; it waits until it changes", error, gang=gang)  # noqa: PLE1205 - our own log
