"""When jobs are expected to start, as the live API and `kubenexus eta` answer it.

A reader sees the jobs of one namespace, or of all. Jobs of other namespaces count in the places and in the simulation,
and have no name in any answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kubenexus.api.core import Pod
from kubenexus.app.http.api.documents import EtaDocument, EtaPage, as_time
from kubenexus.app.http.api.pages import page_of
from kubenexus.app.http.api.questions import EtaQuery
from kubenexus.app.http.api.queue_entries import QueuedEntry
from kubenexus.app.http.api.request_problem import not_found
from kubenexus.base.errors import KubeNexusError
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.cluster_tables import WAITS
from kubenexus.explain.explanation import gate_reason
from kubenexus.explain.find_pod import Target, look_up
from kubenexus.explain.gather_job import waiting_jobs
from kubenexus.explain.text_table import text_table
from kubenexus.explain.what_if import waiting_pods
from kubenexus.framework.job import Job
from kubenexus.plan.decide import Planner
from kubenexus.plan.eta.forecast import StartForecast, WaitingEntry, forecast_starts
from kubenexus.state.ledger import Ledger
from kubenexus.state.runtimes.estimate import span

SCHEDULED = "scheduled"


def dump_queue(
    dump: ClusterDump, profiles: Callable[[Pod], tuple[Any, ...]]
) -> tuple[list[QueuedEntry], Mapping[str, Planner]]:
    """Returns the jobs of a cluster that was read, by priority and age, and the planners of their profiles. Jobs whose
    profile is not known are left out."""
    found: list[tuple[tuple[float, ...], QueuedEntry]] = []
    planners: dict[str, Planner] = {}
    for pod, gathered in waiting_jobs(waiting_pods(dump), dump.pods, dump.ledger.groups):
        job, since = gathered.job, gathered.since or 0.0
        if job.profile not in planners:
            try:
                planners[job.profile] = profiles(pod)[0]
            except KubeNexusError:
                continue
        held = gathered.held or gate_reason(pod)
        shown = QueuedEntry(WaitingEntry(job, held), WAITS, as_time(since), held)
        found.append(((-job.priority, since), shown))
    return [entry for _, entry in sorted(found, key=lambda each: each[0])], planners


def find_key(query: EtaQuery, pods: Mapping[str, Pod]) -> str:
    """Returns the key of the pod that a reader means. Raises RequestProblem."""
    namespace = query.page.namespace
    pod = look_up(Target(query.kind.lower(), "", query.name), namespace, pods)
    if pod is None:  # no similar names: the reader may not see them
        what = query.kind or "pod or job"
        raise not_found(f"{what} {query.name} does not exist in namespace {namespace}")
    return pod.key


def eta_page(
    queue: Sequence[QueuedEntry],
    planners: Mapping[str, Planner],
    ledger: Ledger,
    query: EtaQuery,
    wanted: str,
    now: float,
) -> bytes:
    """Returns the page of a reader: the job of the pod `wanted`, or ("") those of the query."""
    namespace = query.page.namespace
    chosen = [place for place, each in enumerate(queue) if _is_wanted(each.entry.job, namespace, wanted)]
    if not chosen:
        return msgspec.json.encode(EtaPage(as_time(now), (_scheduled(wanted, namespace),) if wanted else ()))
    found = forecast_starts([each.entry for each in queue], planners, ledger.nodes, now, ledger.queues)
    waiting = sum(each.place > 0 for each in found)
    some, after = page_of(chosen, lambda place: queue[place].entry.job.key, query.page)
    items = tuple([_document(queue[place], found[place], waiting) for place in some])
    return msgspec.json.encode(EtaPage(as_time(now), items, after))


def _is_wanted(job: Job, namespace: str, wanted: str) -> bool:
    if namespace not in ("", job.namespace):
        return False
    return not wanted or any(pod.key == wanted for pod in job.pods)


def _scheduled(key: str, namespace: str) -> EtaDocument:
    return EtaDocument(key, namespace, 0, 0, SCHEDULED, "", basis="it does not wait in the queue")


def _document(queued: QueuedEntry, found: StartForecast, waiting: int) -> EtaDocument:
    job, expected = queued.entry.job, found.expected
    return EtaDocument(
        job.display_name,
        job.namespace,
        found.place,
        waiting,
        queued.state,
        queued.since,
        as_time(expected.early),
        as_time(expected.likely),
        as_time(expected.late),
        found.basis,
        queued.why,
    )


# --- as text ----------------------------------------------------------------------------------------------------------


def render_eta(page: EtaPage, *, wide: bool = False) -> str:
    """Returns the lines of one job, or a table of several."""
    now = parse_timestamp(page.time, 0.0) or 0.0
    if len(page.items) == 1:
        return _one(page.items[0], now)
    head = ("JOB", "PLACE", "STATE", "EARLY", "LIKELY", "LATE", *(("BASIS",) if wide else ()))
    rows = [
        (
            each.name,
            str(each.place) if each.place else "-",
            each.state,
            *(_in(time, now) for time in (each.early, each.likely, each.late)),
            *((each.basis,) if wide else ()),
        )
        for each in page.items
    ]
    return "".join(f"{_cleaned(line)}\n" for line in text_table([head, *rows])) if rows else "No job waits.\n"


def start_texts(page: EtaPage) -> dict[str, str]:
    """Returns `12m-1h20m` for each job that has a range, by name."""
    now = parse_timestamp(page.time, 0.0) or 0.0
    known = (each for each in page.items if each.late)
    return {each.name: f"{_in(each.early, now)}-{_in(each.late, now)}" for each in known}


def _one(each: EtaDocument, now: float) -> str:
    lines = [each.name, ""]
    if each.place:
        lines.append(f"PLACE    {each.place} of {each.waiting} jobs that are tried")
    if each.waits_for:
        lines.append(f"WAITS    {each.waits_for}")
    if each.likely:
        late = f"{_in(each.late, now)} ({each.late})" if each.late else "not known"
        lines += [
            f"STARTS   in {_in(each.likely, now)} ({each.likely}), as likely before as after",
            f"RANGE    eight times of ten from {_in(each.early, now)} ({each.early}) to {late}",
        ]
    elif each.early:
        lines.append(f"STARTS   in {_in(each.early, now)} at the earliest ({each.early})")
    elif each.state != SCHEDULED:
        lines.append("STARTS   not known")
    lines.append(f"BASIS    {each.basis}")
    return "".join(f"{_cleaned(line)}\n" for line in lines)


def _in(time: str, now: float) -> str:
    at = parse_timestamp(time, None) if time else None
    return "-" if at is None else span(max(at - now, 0.0))


def _cleaned(line: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in line)
