"""Who comes before a job and keeps room, as far as a dump tells: a scheduler that runs knows it from its queue.

Nothing of a reservation is written to the cluster. The first gang in line that lacks room has one, and it is found out
by asking each that comes before the job. For how long it has been kept nobody can tell afterwards.
"""

from collections.abc import Collection, Mapping

from kubenexus.api.core import Pod
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.config.gang_settings import GangSettings
from kubenexus.explain.gather_job import GatheredJob, waiting_gangs
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import Reservation, is_capacity_shortage
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.state.ledger import Ledger


def reservation_ahead_of(
    found: GatheredJob, pods: Mapping[str, Pod], ledger: Ledger, planner: Planner, gangs: GangSettings
) -> Reservation | None:
    """What the job has to respect, if anything."""
    job = found.job
    if job.bound_nodes or not gangs.reservation_seconds:
        return None
    now, profile = _latest(pods.values()), job.profile
    rules = QueueProfile.of(
        planner.profile_plugins, lambda pod: planner.class_cache.signature(pod, ledger.nodes), aging=gangs.aging
    )
    all_gangs = waiting_gangs(pods, ledger.groups, lambda pod: gangs.default_topology(pod.metadata.namespace))
    others = [each for each in all_gangs if each.job.is_gang and not each.held and each.job.key != job.key]
    ours = [each for each in others if each.job.profile == profile]
    own = rank(found, rules, now)
    for first in sorted(ours, key=lambda each: rank(each, rules, now)):
        if rank(first, rules, now) >= own:
            return None
        gang_diagnosis = planner.decide(first.job, ledger.snapshot(), now).gang_diagnosis
        if gang_diagnosis is not None and is_capacity_shortage(gang_diagnosis):
            return planner.reserve(first.job, gang_diagnosis, ledger.snapshot())
    return None


def queue_order(found: GatheredJob, profile: QueueProfile, now: float) -> tuple[float, ...]:
    """Its place in the queue, the first the least; as there, who does not say its age has just come. Which of two that
    are alike in this comes first is settled by who was heard of first, and no dump tells."""
    priority, since = found.job.priority, now if found.since is None else found.since
    ready = since if found.ready is None else min(found.ready, now)
    return profile.order(profile.effective_priority(priority, ready, now), since)


def rank(found: GatheredJob, profile: QueueProfile, now: float) -> tuple[float, tuple[float, ...]]:
    """Its place by its own priority, as `SchedulingQueue.rank` has it: who may keep room from whom."""
    priority, since = found.job.priority, now if found.since is None else found.since
    return -priority, profile.order(priority, since)


def _latest(pods: Collection[Pod]) -> float:
    """When the dump was made, or a little before."""
    said = [pod.metadata.creation_timestamp for pod in pods]
    said += [each.last_transition_time for pod in pods for each in pod.status.conditions]
    return max((parse_timestamp(text, 0.0) for text in said), default=0.0)
