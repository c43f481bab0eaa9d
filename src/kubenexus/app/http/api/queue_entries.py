"""The scheduling queue in its order, as forecasts of starts read it. Called in a copy of the process."""

import msgspec

from kubenexus.app.http.api.pages import job_document
from kubenexus.framework.queue_limits import is_rejection
from kubenexus.plan.eta.forecast import WaitingEntry
from kubenexus.queue.queued_job import QueuedJob, QueueState
from kubenexus.queue.scheduling_queue import SchedulingQueue

BEING_PLACED = "it is being placed"


class QueuedEntry(msgspec.Struct, frozen=True):
    """A job in the order of the queue, and what a reader of its namespace sees of it."""

    entry: WaitingEntry
    state: str
    since: str
    why: str = ""


def queue_entries(queue: SchedulingQueue, now: float) -> list[QueuedEntry]:
    """Returns all jobs, the first one first."""
    return [_entry(each) for each in queue.in_order(now)]


def _entry(queued: QueuedJob) -> QueuedEntry:
    shown = job_document(queued)
    decision = None if queued.job_class is None else queued.job_class.decision
    held = limit = ""
    if queued.state is QueueState.IN_FLIGHT:
        held = BEING_PLACED
    elif queued.gate_verdict is not None or queued.hold is not None:
        held = shown.why or "it is not tried yet"
    elif decision is not None and is_rejection(decision):
        limit = decision.sentence(queued.job.namespace)
    waits = queued.state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF)
    refused = waits and decision is not None and not (decision.diagnosis.held_back or decision.alone)
    return QueuedEntry(WaitingEntry(queued.job, held, refused, limit), shown.state, shown.since, shown.why)
