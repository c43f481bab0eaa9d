"""Nodes of hardware tiers of which a job's queue is at its limit: the job is planned without them.

A limit of a tier counts for a job as a whole: a gang uses nodes of a tier only if all its members could be there within
the limit. So wherever it is placed, no limit is exceeded.
"""

from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from kubenexus.framework.aging import CRITICAL
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.decision import Decision
from kubenexus.framework.job import Job
from kubenexus.framework.queue_limits import TIER_LIMIT, sentence
from kubenexus.framework.verdict import Code
from kubenexus.queue.fair.job_request import job_request
from kubenexus.state.devices.hardware_tiers import hardware_tiers, tier_codes
from kubenexus.state.queues.limits import ReachedLimit
from kubenexus.state.snapshot import Snapshot
from kubenexus.state.view import Nodes

# What helps besides less use, which the queue itself waits for: other nodes, or another request.
EVENTS_TO_REGISTER: Final = {
    TIER_LIMIT: (
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.TARGET_POD, ActionType.UPDATE),
    )
}


class OpenRows(NamedTuple):
    """The rows of tiers that are open to a job, and the limits of the closed ones."""

    rows: Any
    limits: tuple[ReachedLimit, ...]

    def explained(self, decision: Decision) -> Decision:
        """Returns a refusal with the limits among its reasons."""
        if decision.placed or decision.code is not Code.UNSCHEDULABLE:
            return decision
        diagnosis = decision.diagnosis
        text = diagnosis.message or ", ".join(sorted(f"{count} {reason}" for reason, count in diagnosis.counts))
        parts = [text] if text else []
        return msgspec.structs.replace(
            decision,
            diagnosis=msgspec.structs.replace(
                diagnosis,
                message="; ".join([*parts, *map(sentence, self.limits)]),
                refused_by=tuple(sorted({*diagnosis.refused_by, TIER_LIMIT})),
            ),
        )


def open_rows(job: Job, snapshot: Snapshot) -> OpenRows | None:
    """Returns where the job may be by the limits of tiers; None if no limit keeps it from any node."""
    tree = snapshot.queues
    if not tree.is_active or not tree.has_tiers:
        return None
    if job.priority >= CRITICAL and not tree.is_mapped(job.namespace):
        return None
    closed = tree.closed_tiers(job.namespace, *tree.beyond_admitted(job.pods[0], *job_request(job)))
    if not closed:
        return None
    tiers = hardware_tiers(Nodes(snapshot.nodes))
    return OpenRows(~np.isin(tiers, tier_codes(closed)), tuple(closed.values()))


def both(one: Any, other: Any) -> Any:
    """Returns the rows of two masks, each of which may be None for all rows."""
    return other if one is None else one if other is None else one & other
