"""Writes decisions that placed a job into the ledger, and submits the binds. A large job takes several turns of the
event loop; the loop makes no decision until the last of them."""

from contextlib import nullcontext

import msgspec

from kubenexus.app.gangs.reservations import GangReservations
from kubenexus.app.preemption.executor import PreemptionExecutor
from kubenexus.app.recording.recorder import FlightRecorder
from kubenexus.app.report.decision_metrics import DecisionMetrics
from kubenexus.app.report.pod_reporter import PodReporter
from kubenexus.app.reservations.drivers import DriverReservations
from kubenexus.bind.dispatcher import Dispatcher
from kubenexus.bind.job_binding import job_binding
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.observe import logs
from kubenexus.observe.metrics import Metrics
from kubenexus.plan.decide import commit
from kubenexus.plan.demand_learner import DemandLearner
from kubenexus.plan.device_outcomes import DeviceResults
from kubenexus.plan.portioned_commit import PortionedCommit
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.queue.object_events import nomination_ended
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.queue.scheduling_queue import SchedulingQueue
from kubenexus.state.ledger import Ledger

PORTION = 500  # members that one turn enters: 30 ms

log = logs.get("job_committer")


class PlacedJob(msgspec.Struct, frozen=True):
    """An attempt whose decision placed the job. `job` is the attempt's, without nodes that it keeps away from."""

    attempt: SchedulingAttempt
    job: Job
    decision: Decision
    began: float
    devices: DeviceResults


class JobCommitter:
    """Commits one job at a time. `portion`: how many members one turn enters."""

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        ledger: Ledger,
        queue: SchedulingQueue,
        assembler: JobAssembler,
        dispatcher: Dispatcher,
        *,
        reservations: GangReservations,
        drivers: DriverReservations,
        preemption: PreemptionExecutor,
        demand: DemandLearner,
        pod_reporter: PodReporter,
        metrics: Metrics,
        decision_metrics: DecisionMetrics,
        recorder: FlightRecorder | None = None,
        portion: int = PORTION,
    ) -> None:
        self._ledger, self._queue, self._assembler, self._dispatcher = ledger, queue, assembler, dispatcher
        self._reservations, self._drivers, self._preemption, self._demand = reservations, drivers, preemption, demand
        self._pod_reporter, self._metrics, self._recorder = pod_reporter, metrics, recorder
        self._decision_metrics = decision_metrics
        self.portion = portion
        self._under_way: tuple[PlacedJob, PortionedCommit] | None = None

    @property
    def under_way(self) -> bool:
        """Whether a job is in the ledger in part. No decision may be made until `step` has entered the rest."""
        return self._under_way is not None

    @property
    def attempt(self) -> tuple[SchedulingAttempt, float]:
        """The attempt of the job that is under way, and when it began."""
        assert self._under_way is not None
        placed, _ = self._under_way
        return placed.attempt, placed.began

    def begin(self, attempt: SchedulingAttempt, job: Job, decision: Decision, began: float) -> None:
        """Writes the placements into the ledger and submits the binds; of a large job, the next calls of `step` do."""
        placed = PlacedJob(attempt, job, decision, began, self._decision_metrics.device_results(decision, job))
        if len(decision.placements) > self.portion:
            self._under_way = placed, PortionedCommit(decision, job, self._ledger, began)
            return
        with nullcontext() if self._recorder is None else self._recorder.commit(job, decision, began):
            commit(decision, job, self._ledger, began)
        self._submit(placed)

    def step(self) -> None:
        """Enters the next portion of the job that is under way, and submits the binds after the last one."""
        if self._under_way is None:
            return
        placed, portioned = self._under_way
        try:
            self._enter_some(portioned, placed.began)
        except Exception as error:  # members without a record are not bound: see PortionedCommit
            log.error("Failed to assume members of a gang", error, job=placed.job.key)  # noqa: PLE1205 - our own log
        if portioned.ended:
            self._under_way = None
            self._submit(placed)

    def enter_rest(self) -> None:
        """Enters the rest of the job that is under way. Called in a copy of the process, which submits no binds."""
        while self._under_way is not None and not self._under_way[1].ended:
            self._enter_some(self._under_way[1], self._under_way[0].began)

    def _enter_some(self, portioned: PortionedCommit, began: float) -> None:
        some = portioned.next(self.portion, self._assembler.still_waits)
        portioned.enter(some)
        if self._recorder is not None:
            self._recorder.assumed(some, began)
        if portioned.ended:
            portioned.claim()

    def _submit(self, placed: PlacedJob) -> None:
        """Starts the binds of a job that is in the ledger."""
        attempt, job, decision, began = placed.attempt, placed.job, placed.decision, placed.began
        # First of all: what is assumed in the ledger and not submitted would keep its capacity for good.
        self._dispatcher.submit(job_binding(attempt.job, decision, attempt, began))
        self._decision_metrics.placed(placed.devices, decision, job)
        self._wake_for_unclaimed(attempt.job, decision)
        if self._reservations.placed(job, decision):
            self._metrics.backfilled_jobs.labels(job.profile).add()
        self._preemption.placed(job, decision)
        self._drivers.placed(attempt.job)
        for pod in attempt.job.pods:
            self._pod_reporter.forget(pod)
        if job.is_gang:
            self._decision_metrics.gang_placed(attempt, decision, began)
        self._demand.decided(job, self._ledger, placed=True, placements=decision.placements)

    def _wake_for_unclaimed(self, job: Job, decision: Decision) -> None:
        """Wakes jobs that wait for capacity which members were nominated to and did not take: that of another node, or
        devices. Those of a nominated pod have no names yet, so each may be any card of the node."""
        nominated_node = self._ledger.nominated_node
        nominated = [(each, node) for each in decision.placements if (node := nominated_node(each.pod))]
        pods = {pod.key: pod for pod in job.pods} if nominated else {}
        for each, node in nominated:
            if node != each.node or each.assignment.device_shares:
                self._queue.on_event(nomination_ended(pods[each.pod], node))
