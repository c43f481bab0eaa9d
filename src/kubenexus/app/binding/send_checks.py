"""What is checked right before a bind is sent."""

from collections.abc import Callable

from kubenexus.app.watch.object_cache import ObjectCache
from kubenexus.bind.job_binding import JobBinding, PodBinding
from kubenexus.bind.job_progress import SendChecks
from kubenexus.observe import logs
from kubenexus.queue.gangs.job_assembler import JobAssembler
from kubenexus.state.ledger import Ledger

log = logs.get("binding")


def send_checks(
    ledger: Ledger, cache: ObjectCache, assembler: JobAssembler, delay: Callable[[], float], wake: Callable[[], None]
) -> SendChecks:
    """Returns the checks by what the ledger and the watches know."""

    def still_wanted(pod_binding: PodBinding) -> str:
        record = ledger.pods.get(pod_binding.key)
        if record is None or record.uid != pod_binding.uid or record.node != pod_binding.node:
            return "the pod is gone, or another scheduler has bound it"
        known = cache.pods.get(pod_binding.key)
        if known is not None and known.metadata.deletion_timestamp:
            return "the pod is being deleted"
        return "" if pod_binding.node in ledger.nodes.row_of else f"node {pod_binding.node} is gone"

    def needed(job_binding: JobBinding) -> int:
        return assembler.needed(job_binding.attempt.job)

    def problem(doing: str, error: Exception) -> None:
        log.error("Something unexpected happened to a bind", error, doing=doing)  # noqa: PLE1205 - our own log

    return SendChecks(still_wanted, needed, problem, delay, wake)
