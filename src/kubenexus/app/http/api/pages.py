"""Pages of what is known: jobs, queues and nodes. Called in a copy of the process (`state_copies`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kubenexus.api.gangs.levels import TopologyLevel
from kubenexus.app.http.api.documents import (
    JobDocument,
    JobPage,
    NodeDocument,
    NodePage,
    QueueDocument,
    QueuePage,
    ResourceDocument,
    as_time,
)
from kubenexus.queue.queued_job import QueuedJob
from kubenexus.state.ledger import Ledger

if TYPE_CHECKING:
    from kubenexus.app.scheduler import Scheduler

MAX_ITEMS = 500  # of a page
_FIELDS = {"in flight": "in_flight"}
T = TypeVar("T")


class PageQuery(msgspec.Struct, frozen=True):
    """`namespace`: only what is in it, "" for all. `after` is the name that the page before ended with."""

    namespace: str = ""
    after: str = ""
    limit: int = 100


def jobs_page(scheduler: "Scheduler", query: PageQuery) -> bytes:
    """Returns the jobs in the queue, by name."""
    jobs = [each for each in scheduler.queue.jobs() if query.namespace in ("", each.job.namespace)]
    some, after = page_of(jobs, lambda each: each.job.key, query)
    reservations = [scheduler.loop.reservations.held(name) for name in scheduler.planners]
    starts = {held.gang: held.starts_at for held in reservations if held is not None and held.is_timed}
    return msgspec.json.encode(JobPage(tuple([job_document(each, starts) for each in some]), after))


def queues_page(scheduler: "Scheduler", query: PageQuery) -> bytes:
    """Returns the namespaces that have jobs in the queue."""
    by_namespace: dict[str, list[QueuedJob]] = {}
    for each in scheduler.queue.jobs():
        if query.namespace in ("", each.job.namespace):
            by_namespace.setdefault(each.job.namespace, []).append(each)
    some, after = page_of(by_namespace, str, query)
    return msgspec.json.encode(QueuePage(tuple([_queue(scheduler, name, by_namespace[name]) for name in some]), after))


def nodes_page(scheduler: "Scheduler", query: PageQuery) -> bytes:
    """Returns the nodes, by name."""
    some, after = page_of(scheduler.ledger.nodes.row_of, str, query)
    levels = levels_of(scheduler)
    return msgspec.json.encode(NodePage(tuple([node_document(scheduler.ledger, name, levels) for name in some]), after))


def levels_of(scheduler: "Scheduler") -> Sequence[TopologyLevel]:
    """Returns the topology levels of the first profile, from the inside out."""
    return next(iter(scheduler.planners.values())).levels


def page_of(things: Iterable[T], name: Callable[[T], str], query: PageQuery) -> tuple[list[T], str]:
    """Returns the things of a page, and the name that it ends with if there are more."""
    left = sorted([each for each in things if name(each) > query.after], key=name)
    some = left[: query.limit]
    return some, name(some[-1]) if len(left) > len(some) else ""


def job_document(queued: QueuedJob, starts: Mapping[str, float] = MappingProxyType({})) -> JobDocument:
    """Returns the document of a job. `starts` has by key when jobs are expected to start."""
    job, state = queued.job, queued.state
    refusal = None if queued.job_class is None else queued.job_class.decision
    verdict = queued.gate_verdict or queued.hold
    why = ", ".join(verdict.reasons) if verdict is not None else ""
    if not why and refusal is not None and state.value in ("unschedulable", "backoff"):
        why = refusal.sentence(job.namespace)
    return JobDocument(
        job.display_name,
        job.namespace,
        job.profile,
        job.priority,
        len(job.pods),
        job.minimum,
        job.is_gang,
        state.value,
        queued.attempts,
        as_time(queued.added_at),
        why,
        as_time(starts[job.key]) if job.key in starts else "",
    )


def _queue(scheduler: "Scheduler", namespace: str, jobs: list[QueuedJob]) -> QueueDocument:
    counts: dict[str, int] = {}
    for each in jobs:
        state = _FIELDS.get(each.state.value, each.state.value)
        counts[state] = counts.get(state, 0) + 1
    counts.pop("gone", None)
    tenant, queues = scheduler.ledger.nodes.tenants.of(jobs[0].job.pods[0]), scheduler.ledger.queues
    return QueueDocument(
        namespace=namespace,
        tenant=tenant.name,
        tier=str(tenant.tier),
        pods=sum(len(each.job.pods) for each in jobs),
        queue=queues.queue_of(namespace).name if queues.is_active else "",
        **counts,
    )


def node_document(ledger: Ledger, name: str, levels: Iterable[TopologyLevel]) -> NodeDocument:
    columns = ledger.nodes
    row, table = columns.row_of[name], columns.resources
    labels = columns.labels.of_row(row)
    amounts = [
        ResourceDocument(resource, int(table.alloc[index, row]), int(table.used[index, row]))
        for resource, index in sorted(table.index.items())
        if table.alloc[index, row] or table.used[index, row]
    ]
    domains = {
        level.name: next(labels[key] for key in level.keys if labels.get(key))
        for level in levels
        if any(labels.get(key) for key in level.keys)
    }
    return NodeDocument(
        name,
        bool(columns.cordoned[row]),
        ledger.is_blocked(name),
        len(ledger.on_node(name)),
        tuple(amounts),
        domains,
    )
