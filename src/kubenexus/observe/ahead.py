"""Who comes before a job and keeps room, as far as a dump tells: a scheduler that runs knows it from its queue.

Nothing of a reservation is written to the cluster. The first gang in line that lacks room has one, and it is found out
by asking each that comes before the job. For how long it has been kept nobody can tell afterwards.
"""

from collections.abc import Collection, Mapping

from kubenexus.api.core import Pod
from kubenexus.base.moments import moment
from kubenexus.config.gangs import GangSettings
from kubenexus.framework.job import Job
from kubenexus.observe.gathering import waiting
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.stake import Reservation, lacks_room
from kubenexus.state.ledger import Ledger


def kept_before(
    job: Job, pods: Mapping[str, Pod], ledger: Ledger, planner: Planner, gangs: GangSettings
) -> Reservation | None:
    """What the job has to respect, if anything."""
    if job.anchors or not gangs.reservation:
        return None
    now, profile = _latest(pods.values()), job.pods[0].spec.scheduler_name
    found = waiting(pods, ledger.groups, lambda pod: gangs.usual(pod.metadata.namespace))
    others = [each.job for each in found if each.job.gang and not each.held and each.job.key != job.key]
    ours = [each for each in others if each.pods[0].spec.scheduler_name == profile]
    own = _place(job, planner, gangs, now)
    for first in sorted(ours, key=lambda each: _place(each, planner, gangs, now)):
        if _place(first, planner, gangs, now) >= own:
            return None
        certificate = planner.decide(first, ledger.snapshot(), now).certificate
        if certificate is not None and lacks_room(certificate):
            return planner.reserve(first, certificate, ledger.snapshot())
    return None


def _place(job: Job, planner: Planner, gangs: GangSettings, now: float) -> tuple[float, ...]:
    """Its place in the queue, the first the least: by its most urgent member, then by the age of the oldest."""
    priority = max(pod.spec.priority for pod in job.pods)
    since = min(moment(pod.metadata.creation_timestamp, 0.0) for pod in job.pods)
    urgency = priority if gangs.aging is None else gangs.aging.urgency(priority, since, now)
    sorts = planner.lineup.sorts
    return sorts[0].order(urgency, since) if sorts else (-urgency, since)


def _latest(pods: Collection[Pod]) -> float:
    """When the dump was made, or a little before."""
    said = [pod.metadata.creation_timestamp for pod in pods]
    said += [each.last_transition_time for pod in pods for each in pod.status.conditions]
    return max((moment(text, 0.0) for text in said), default=0.0)
