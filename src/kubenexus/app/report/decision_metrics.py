"""`DecisionMetrics`: counts decisions and the attempts that end with them, by result, tenant, kind of work and device.

A placed decision is counted after its binds were submitted. What metrics read of devices, NUMA nodes and tenants may
fail: that is logged, and changes neither the decision nor the attempt.
"""

from kubenexus.base.clock import Clock
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.observe import logs
from kubenexus.observe.metrics import SCHEDULED, Metrics
from kubenexus.plan.device_outcomes import DeviceResults, device_refusal, device_results
from kubenexus.plan.numa_outcomes import gang_shares, numa_outcomes
from kubenexus.plugins.devices.tenant_tier import tier_of
from kubenexus.queue.queued_job import SchedulingAttempt
from kubenexus.state.ledger import Ledger

log = logs.get("decision_metrics")


class DecisionMetrics:
    """Counts the decisions of the scheduling loop. `began` is the time at which the attempt began."""

    def __init__(self, metrics: Metrics, ledger: Ledger, clock: Clock) -> None:
        self._metrics, self._ledger, self._clock = metrics, ledger, clock

    def device_results(self, decision: Decision, job: Job) -> DeviceResults:
        """Returns what the decision gives of devices, for `placed`. Called before the decision is committed."""
        try:
            return device_results(decision, job, self._ledger.nodes)
        except Exception as error:
            log.error("Failed to count devices for metrics; going on", error, job=job.key)  # noqa: PLE1205 - our own log
            return DeviceResults()

    def placed(self, results: DeviceResults, decision: Decision, job: Job) -> None:
        """Counts a decision whose binds were submitted. The attempt is counted when the pods are bound."""
        try:
            self._metrics.devices.placed(results)
            nodes = self._ledger.nodes
            outcomes, shares = numa_outcomes(decision, job, nodes), gang_shares(decision, job, nodes)
            self._metrics.numa.placed(outcomes, shares, decision.workload)
        except Exception as error:
            log.error("Failed to count devices for metrics; going on", error)  # noqa: PLE1205 - our own log
        self._decided(decision, job, SCHEDULED)

    def gang_placed(self, attempt: SchedulingAttempt, decision: Decision, began: float) -> None:
        """Counts the attempt of a gang, or of the rest of one, that was placed."""
        now, profile = self._clock.now(), attempt.job.profile
        self._metrics.group_attempt(SCHEDULED, profile, now - began)
        if not attempt.job.bound_nodes:
            self._metrics.gang_started(len(decision.placements), now - attempt.since)

    def refused(self, decision: Decision, job: Job, result: str) -> None:
        """Counts a decision that places nothing. `attempt_failed` counts its attempt."""
        self._metrics.devices.refused(device_refusal(decision), decision.workload)
        self._decided(decision, job, result)

    def attempt_failed(self, job: Job, result: str, began: float) -> None:
        """Counts an attempt that ends without a node."""
        seconds, profile = self._clock.now() - began, job.profile
        self._metrics.attempt(result, profile, seconds, len(job.pods))
        if job.is_gang:
            self._metrics.group_attempt(result, profile, seconds)

    def _decided(self, decision: Decision, job: Job, result: str) -> None:
        """Counts a decision by the kind of work and the tier of the tenant."""
        try:
            self._metrics.decided(decision.workload, tier_of(job.pods[0], self._ledger.nodes), result)
        except Exception as error:
            log.error("Failed to count a decision for metrics; going on", error)  # noqa: PLE1205 - our own log
