"""The Job controller: runs pods until enough have succeeded or too many have failed.

Each pod is counted once. A finalizer keeps a finished pod until the status includes it, so that deleting pods loses no
results. Pods with the finalizer are not counted yet.
"""

from collections.abc import Sequence

from kubenexus.base.timestamps import parse_timestamp
from kubenexus.client import kinds, verbs
from kubenexus.client.calls import Call
from kubenexus.sim.controllers import job_indexes, job_status, owner_refs
from kubenexus.sim.controllers.job_status import JobPodCounts
from kubenexus.sim.controllers.object_cache import ControllerCache
from kubenexus.sim.controllers.reconcile_result import MAX_PODS_PER_STEP, ReconcileResult, earliest
from kubenexus.sim.controllers.types import JOBS, Item, Pod

TRACKING = "batch.kubernetes.io/job-tracking"
BACKOFF, LONGEST_BACKOFF = 10.0, 600.0  # seconds after the first failure, and at most


def reconcile(item: Item, pods: Sequence[Pod], _: ControllerCache, now: float) -> ReconcileResult:
    if "deletionTimestamp" in item["metadata"]:
        return ReconcileResult(None, orphaned_pods(pods))
    tally = _tallied(item, pods)
    if job_status.is_over(item):
        return _afterwards(item, pods, tally, now)
    status = job_status.begun(item, tally, now)
    verdict = job_status.verdict(item, status, tally, now)
    counted = [remove_finalizer(pod) for pod in tally.news]
    if verdict is not None:
        status = job_status.ended(status, tally, verdict, now)
        return ReconcileResult(
            status,
            [*counted, *(owner_refs.delete_child(pod) for pod in tally.active)],
            _deletion_time(item, now),
            verdict.notes,
        )
    if item["spec"].get("suspend"):
        return ReconcileResult(status, [*counted, *(owner_refs.delete_child(pod) for pod in tally.active)])
    calls, again = _sized(item, tally, pods, now)
    return ReconcileResult(status, [*counted, *calls], earliest(again, job_status.deadline(item, status)))


def remove_finalizer(pod: Pod) -> Call:
    """Returns the call that releases a counted pod for deletion."""
    left = [each for each in pod.metadata.finalizers if each != TRACKING]
    meta = pod.metadata
    return verbs.patch(
        kinds.PODS, meta.namespace, meta.name, {"metadata": {"uid": meta.uid, "finalizers": left or None}}
    )


def orphaned_pods(pods: Sequence[Pod]) -> list[Call]:
    """Returns the calls that release the pods of a deleted job, which are not counted any more."""
    return [remove_finalizer(pod) for pod in pods if TRACKING in pod.metadata.finalizers]


def _tallied(item: Item, pods: Sequence[Pod]) -> JobPodCounts:
    news = [pod for pod in pods if TRACKING in pod.metadata.finalizers and (pod.finished or pod.terminating)]
    good = [pod for pod in news if pod.status.phase == "Succeeded"]
    before = item.get("status", {})
    done = job_indexes.parse(before.get("completedIndexes", "")) | job_indexes.of(good)
    indexed = item["spec"].get("completionMode") == "Indexed"
    if indexed:
        done &= set(range(item["spec"]["completions"]))
    return JobPodCounts(
        active=[pod for pod in pods if pod.active],
        news=news,
        succeeded=len(done) if indexed else before.get("succeeded", 0) + len(good),
        failed=before.get("failed", 0) + len(news) - len(good),
        terminating=sum(pod.terminating and not pod.finished for pod in pods),
        completed=done if indexed else None,
    )


# ---- number of pods --------------------------------------------------------------------------------------------------


def _sized(item: Item, tally: JobPodCounts, pods: Sequence[Pod], now: float) -> tuple[list[Call], float | None]:
    """Returns the calls that create missing or delete surplus pods. After each failure the next pod starts later."""
    wanted = _parallel(item, tally)
    lacking = wanted - len(tally.active)
    if lacking < 0:
        newest = sorted(tally.active, key=lambda pod: (pod.ready, pod.metadata.creation_timestamp, pod.metadata.name))
        return [owner_refs.delete_child(pod) for pod in newest[:-lacking]], None
    pause = _pause(pods, now)
    if not lacking or pause is not None:
        return [], pause
    return [owner_refs.create_child(item, pod) for pod in _more(item, tally, min(lacking, MAX_PODS_PER_STEP))], None


def _parallel(item: Item, tally: JobPodCounts) -> int:
    spec = item["spec"]
    parallel: int = spec.get("parallelism", 1)
    completions: int | None = spec.get("completions")
    if completions is None:  # a work queue: after the first success no further pod is started
        return len(tally.active) if tally.succeeded else parallel
    return max(min(parallel, completions - tally.succeeded), 0)


def _pause(pods: Sequence[Pod], now: float) -> float | None:
    """Returns until when no pod is started, or None. Computed from the failed pods that still exist."""
    failed = [pod.last_word for pod in pods if pod.status.phase == "Failed"]
    if not failed:
        return None
    until = max(failed) + min(BACKOFF * 2.0 ** min(len(failed) - 1, 10), LONGEST_BACKOFF)
    return until if until > now else None


def _more(item: Item, tally: JobPodCounts, count: int) -> list[Item]:
    if tally.completed is None:
        return [owner_refs.pod_of(JOBS, item, labels={}, finalizers=[TRACKING]) for _ in range(count)]
    taken = tally.completed | job_indexes.of(tally.active)
    free = [number for number in range(item["spec"]["completions"]) if number not in taken]
    return [job_indexes.pod(item, number, TRACKING) for number in free[:count]]


# ---- afterwards ------------------------------------------------------------------------------------------------------


def _afterwards(item: Item, pods: Sequence[Pod], tally: JobPodCounts, now: float) -> ReconcileResult:
    """Handles a finished job: deletes running pods, and the job itself after its time to live."""
    calls = [remove_finalizer(pod) for pod in pods if TRACKING in pod.metadata.finalizers]
    calls += [owner_refs.delete_child(pod) for pod in tally.active]
    until = _deletion_time(item, now)
    if until is not None and until <= now:
        meta = item["metadata"]
        body = verbs.delete(owner_refs.RESOURCES[JOBS], meta["namespace"], meta["name"], meta["uid"])
        return ReconcileResult(None, [*calls, Call("DELETE", f"{body.path}?propagationPolicy=Background", body.body)])
    return ReconcileResult(job_status.quiet(item["status"], tally), calls, until)


def _deletion_time(item: Item, now: float) -> float | None:
    """Returns when a finished job is to be deleted, or None."""
    seconds = item["spec"].get("ttlSecondsAfterFinished")
    if seconds is None:
        return None
    over = job_status.ended_at(item)
    return (now if over is None else parse_timestamp(over, 0.0)) + float(seconds)
