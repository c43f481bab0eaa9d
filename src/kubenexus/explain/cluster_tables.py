"""Tables of nodes, jobs and queues: from the live API, or from a cluster that was read with its objects."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kubenexus.api.gangs.levels import DEFAULT_LEVELS
from kubenexus.app.http.api.documents import JobDocument, NodeDocument, QueueDocument, as_time
from kubenexus.app.http.api.pages import node_document
from kubenexus.explain.cluster_dump import ClusterDump
from kubenexus.explain.explanation import gate_reason, last_refusal
from kubenexus.explain.gather_job import waiting_jobs
from kubenexus.explain.text_table import text_table
from kubenexus.explain.what_if import waiting_pods

WAITS, GATED = "waiting", "gated"  # the states of a job where no queue is known: it may be tried, or not
_GIB = 1 << 30
_FIRST = ("cpu", "memory", "pods", "ephemeral-storage")


def nodes_of(dump: ClusterDump) -> list[NodeDocument]:
    """Returns all nodes, by name."""
    return [node_document(dump.ledger, name, DEFAULT_LEVELS) for name in sorted(dump.ledger.nodes.row_of)]


def jobs_of(dump: ClusterDump, namespace: str) -> list[JobDocument]:
    """Returns the jobs whose pods wait, in a namespace or ("") in all."""
    found: dict[str, JobDocument] = {}
    waiting = (pod for pod in waiting_pods(dump) if namespace in ("", pod.metadata.namespace))
    for pod, gathered in waiting_jobs(waiting, dump.pods, dump.ledger.groups):
        job, held = gathered.job, gathered.held or gate_reason(pod)
        found[job.key] = JobDocument(
            gathered.gang or job.display_name,
            job.namespace,
            job.profile,
            job.priority,
            len(job.pods),
            job.minimum,
            job.is_gang,
            GATED if held else WAITS,
            0,
            as_time(gathered.since or 0.0),
            held or last_refusal(pod),
        )
    return [found[key] for key in sorted(found)]


def queues_of(dump: ClusterDump, namespace: str) -> list[QueueDocument]:
    """Returns the namespaces whose pods wait. Without a queue, only jobs that may not be tried are distinguished."""
    by_namespace: dict[str, list[JobDocument]] = {}
    for job in jobs_of(dump, namespace):
        by_namespace.setdefault(job.namespace, []).append(job)
    tenants, queues = dump.ledger.nodes.tenants, dump.ledger.queues
    found = []
    for name, jobs in sorted(by_namespace.items()):
        pod = next(each for each in dump.pods.values() if each.metadata.namespace == name)
        tenant, gated = tenants.of(pod), sum(job.state == GATED for job in jobs)
        found.append(
            QueueDocument(
                namespace=name,
                tenant=tenant.name,
                tier=str(tenant.tier),
                pods=sum(job.pods for job in jobs),
                active=len(jobs) - gated,
                gated=gated,
                queue=queues.queue_of(name).name if queues.is_active else "",
            )
        )
    return found


# --- as text ----------------------------------------------------------------------------------------------------------


def render_nodes(nodes: Sequence[NodeDocument]) -> str:
    """Returns a table: cpu, memory and pods of each node, and other resources that some node has."""
    others = sorted({each.name for node in nodes for each in node.resources} - set(_FIRST))
    head = ("NODE", "STATE", "CPU", "MEMORY GI", "PODS", *others)
    rows = []
    for node in nodes:
        amounts = {each.name: (each.used, each.allocatable) for each in node.resources}
        state = "Blocked" if node.blocked else "Cordoned" if node.cordoned else "Ready"
        more = ["/".join(map(str, amounts[name])) if name in amounts else "-" for name in others]
        rows.append((node.name, state, _cores(amounts), _memory(amounts), _plain(amounts, "pods"), *more))
    return _table([head, *rows], "No node is known.\n")


def render_jobs(
    jobs: Sequence[JobDocument], *, wide: bool = False, starts: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Returns a table; only with `wide` a long reason is shown in full. `starts`: when jobs are expected to start, by
    name."""
    head = ("JOB", "STATE", "PRIORITY", "PODS", "ATTEMPTS", "SINCE", *(("EXPECTED",) if starts else ()), "WHY")
    rows = [
        (
            each.name,
            each.state,
            str(each.priority),
            f"{each.pods} (at least {each.minimum})" if each.gang else str(each.pods),
            str(each.attempts),
            each.since or "-",
            *((starts.get(each.name, "-"),) if starts else ()),
            each.why if wide or len(each.why) < 100 else f"{each.why[:97]}...",
        )
        for each in jobs
    ]
    return _table([head, *rows], "No job waits.\n")


def render_queues(queues: Sequence[QueueDocument]) -> str:
    head = ("NAMESPACE", "QUEUE", "TENANT", "TIER", "PODS", "ACTIVE", "BACKOFF", "UNSCHEDULABLE", "GATED", "IN FLIGHT")
    rows = [
        (
            each.namespace,
            each.queue or "-",
            each.tenant,
            each.tier,
            *map(str, (each.pods, each.active, each.backoff, each.unschedulable, each.gated, each.in_flight)),
        )
        for each in queues
    ]
    return _table([head, *rows], "No job waits.\n")


def _table(rows: list[tuple[str, ...]], empty: str) -> str:
    return "\n".join(_cleaned(text_table(rows))) + "\n" if len(rows) > 1 else empty


def _cleaned(lines: Iterable[str]) -> list[str]:
    """Replaces control characters, which a name or a label cannot have, but a message may."""
    return ["".join(each if each.isprintable() else "?" for each in line) for line in lines]


def _cores(amounts: dict[str, tuple[int, int]]) -> str:
    used, offered = amounts.get("cpu", (0, 0))
    return f"{used / 1000:g}/{offered / 1000:g}"


def _memory(amounts: dict[str, tuple[int, int]]) -> str:
    used, offered = amounts.get("memory", (0, 0))
    return f"{used / _GIB:.1f}/{offered / _GIB:.1f}"


def _plain(amounts: dict[str, tuple[int, int]], name: str) -> str:
    used, offered = amounts.get(name, (0, 0))
    return f"{used}/{offered}"
