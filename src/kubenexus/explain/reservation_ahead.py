"""Finds the reservation that a job must respect, from a dump. A running scheduler knows it from its queue.

Reservations are not written to the cluster. The first gang in the queue that lacks capacity has one, so each gang
before the job is decided in turn to find it. How long the reservation has existed cannot be known from a dump.
"""

from collections.abc import Collection, Mapping

from kubenexus.api.core import Pod
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.config.gang_settings import GangSettings
from kubenexus.config.tenant_settings import TenantSettings
from kubenexus.explain.gather_job import GatheredJob, waiting_gangs
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.reservation import Reservation, is_capacity_shortage
from kubenexus.queue.queue_profile import QueueProfile
from kubenexus.state.ledger import Ledger


def reservation_ahead_of(
    found: GatheredJob,
    pods: Mapping[str, Pod],
    ledger: Ledger,
    planner: Planner,
    gangs: GangSettings,
    settings: TenantSettings,
) -> Reservation | None:
    """Returns the reservation that the job must respect, or None."""
    job = found.job
    if job.bound_nodes or not gangs.reservation_seconds:
        return None
    now, profile = _latest(pods.values()), job.profile
    rules = QueueProfile.of(
        planner.profile_plugins,
        lambda pod: planner.class_cache.signature(pod, ledger.nodes),
        boost=lambda pod: settings.boost(ledger.nodes.tenants.of(pod).tier, pod.metadata.namespace),
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


def rank(found: GatheredJob, profile: QueueProfile, now: float) -> tuple[float, tuple[float, ...]]:
    """Returns the job's sort key by its own priority, as `SchedulingQueue.rank`: which gang may reserve against which
    job."""
    priority, since = found.job.priority, now if found.since is None else found.since
    return -priority, profile.order(priority, since, profile.boost(found.job))


def _latest(pods: Collection[Pod]) -> float:
    """Returns the latest timestamp of any pod: when the dump was made, or a little before."""
    said = [pod.metadata.creation_timestamp for pod in pods]
    said += [each.last_transition_time for pod in pods for each in pod.status.conditions]
    return max((parse_timestamp(text, 0.0) for text in said), default=0.0)
