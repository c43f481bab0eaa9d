"""Who comes before a job and keeps room, as far as a dump tells: a scheduler that runs knows it from its queue.

Nothing of a reservation is written to the cluster. The first gang in line that lacks room has one, and it is found out
by asking each that comes before the job. For how long it has been kept nobody can tell afterwards.
"""

from collections.abc import Collection, Mapping

from kubenexus.api.core import Pod
from kubenexus.base.moments import moment
from kubenexus.config.gangs import GangSettings
from kubenexus.observe.gathering import Gathered, waiting
from kubenexus.plan.decide import Planner
from kubenexus.plan.gang.stake import Reservation, lacks_room
from kubenexus.queue.reception import priority_of
from kubenexus.queue.rules import Rules
from kubenexus.state.ledger import Ledger


def kept_before(
    found: Gathered, pods: Mapping[str, Pod], ledger: Ledger, planner: Planner, gangs: GangSettings
) -> Reservation | None:
    """What the job has to respect, if anything."""
    job = found.job
    if job.anchors or not gangs.reservation:
        return None
    now, profile = _latest(pods.values()), job.pods[0].spec.scheduler_name
    rules = Rules.of(planner.lineup, lambda pod: planner.bench.signature(pod, ledger.nodes), aging=gangs.aging)
    all_gangs = waiting(pods, ledger.groups, lambda pod: gangs.usual(pod.metadata.namespace))
    others = [each for each in all_gangs if each.job.gang and not each.held and each.job.key != job.key]
    ours = [each for each in others if each.job.pods[0].spec.scheduler_name == profile]
    own = rank(found, rules, now)
    for first in sorted(ours, key=lambda each: rank(each, rules, now)):
        if rank(first, rules, now) >= own:
            return None
        certificate = planner.decide(first.job, ledger.snapshot(), now).certificate
        if certificate is not None and lacks_room(certificate):
            return planner.reserve(first.job, certificate, ledger.snapshot())
    return None


def place(found: Gathered, rules: Rules, now: float) -> tuple[float, ...]:
    """Its place in the queue, the first the least; as there, who does not say its age has just come. Which of two that
    are alike in this comes first is settled by who was heard of first, and no dump tells."""
    priority, since = priority_of(found.job), now if found.since is None else found.since
    ready = since if found.ready is None else min(found.ready, now)
    return rules.order(rules.urgency(priority, ready, now), since)


def rank(found: Gathered, rules: Rules, now: float) -> tuple[float, tuple[float, ...]]:
    """Its place by its own priority, as `WaitingRoom.rank` has it: who may keep room from whom."""
    priority, since = priority_of(found.job), now if found.since is None else found.since
    return -priority, rules.order(priority, since)


def _latest(pods: Collection[Pod]) -> float:
    """When the dump was made, or a little before."""
    said = [pod.metadata.creation_timestamp for pod in pods]
    said += [each.last_transition_time for pod in pods for each in pod.status.conditions]
    return max((moment(text, 0.0) for text in said), default=0.0)
