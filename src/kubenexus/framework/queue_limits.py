"""The decision about a job that is not tried, since a limit of its queue or namespace is reached."""

from typing import Final

from kubenexus.framework.decision import Decision, Diagnosis, Shortage
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code
from kubenexus.state.queues.limits import ReachedLimit

TIER_LIMIT: Final = "QueueTier"  # stands for a plugin that refused nodes of a hardware tier
QUEUE_LIMIT: Final = "Queue"  # stands for a plugin among those that refused a job


def rejection(job: Job, limit: ReachedLimit, now: float) -> Decision:
    """Returns the decision for a job that would exceed a limit."""
    diagnosis = Diagnosis(nodes=0, refused_by=(QUEUE_LIMIT,))
    return Decision(job.key, Code.PENDING, 0, now, diagnosis=diagnosis, error=sentence(limit))


def is_rejection(decision: Decision) -> bool:
    """Whether the job was not tried because of a limit. More nodes would not help it."""
    return decision.diagnosis.refused_by == (QUEUE_LIMIT,)


def limit_name(decision: Decision) -> str:
    """Returns which limit the job waits for, without amounts: while it is equal, the job need not be told again."""
    return decision.error.partition(":")[0]


def sentence(limit: ReachedLimit) -> str:
    """Returns why the job waits. It names the job's own namespace and the queues above it, and no other tenant."""
    node, (resource, _, tier) = limit.node, limit.resource.partition("@")
    where = f" on {tier} nodes" if tier else ""
    asked, used, most = (Shortage(resource, amount).text() for amount in (limit.asked, limit.used, limit.most))
    if limit.asked > limit.most:
        return f"{_owner(limit)} may use {most} at most{where}, and the job asks for {asked}"
    if node.parent is None:
        held = Shortage(resource, limit.held).text()
        return f"waits for {asked}: {used} of {most} are in use{where}, and other queues do not lend {held}"
    held = f", and {Shortage(resource, limit.held).text()} kept for queues below it" if limit.held else ""
    return f"{_owner(limit)} is at its limit{where}: {used} of {most} in use{held}, and the job asks for {asked}"


def _owner(limit: ReachedLimit) -> str:
    if limit.node.is_namespace:
        return f"namespace {limit.node.name}"
    return f"queue {limit.node.name}" if limit.node.name else "the cluster"
