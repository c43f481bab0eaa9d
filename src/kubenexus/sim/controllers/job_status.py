"""The status of a Job and its outcome: complete, failed, or past its deadline."""

from collections.abc import Sequence
from typing import NamedTuple

from kubenexus.base.timestamps import format_time, parse_timestamp
from kubenexus.sim.controllers import job_indexes
from kubenexus.sim.controllers.reconcile_result import WorkloadEvent, condition, without_zero_fields
from kubenexus.sim.controllers.types import Item, Pod


class JobPodCounts(NamedTuple):
    """The pods of a job. `news` have ended and are not in the status yet; the numbers include them."""

    active: Sequence[Pod]
    news: Sequence[Pod]
    succeeded: int
    failed: int
    terminating: int
    completed: set[int] | None  # indexes, for an indexed job


class JobOutcome(NamedTuple):
    type: str
    reason: str
    message: str
    notes: Sequence[WorkloadEvent] = ()


def is_over(item: Item) -> bool:
    return ended_at(item) is not None


def ended_at(item: Item) -> str | None:
    for each in item.get("status", {}).get("conditions", ()):
        if each["type"] in {"Complete", "Failed"} and each["status"] == "True":
            return str(each["lastTransitionTime"])
    return None


def begun(item: Item, tally: JobPodCounts, now: float) -> Item:
    """Returns the status of a job that is running or suspended."""
    old, suspended = item.get("status", {}), bool(item["spec"].get("suspend"))
    status = _counted(old, tally)
    if suspended:
        status.pop("startTime", None)
    else:
        status.setdefault("startTime", format_time(now))
    known = any(each["type"] == "Suspended" for each in old.get("conditions", ()))
    if suspended or known:
        status["conditions"] = [_suspended(old, suspended, now)]
    return status


def _suspended(old: Item, suspended: bool, now: float) -> Item:
    told = ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
    return _probed(condition(old, "Suspended", *told, now))


def _probed(said: Item) -> Item:
    """Adds `lastProbeTime`, which only conditions of jobs have."""
    return said | {"lastProbeTime": said["lastTransitionTime"]}


def _counted(old: Item, tally: JobPodCounts) -> Item:
    kept: Item = {key: old[key] for key in ("startTime", "completionTime", "conditions") if key in old}
    counts = {
        "active": len(tally.active),
        "succeeded": tally.succeeded,
        "failed": tally.failed,
        "completedIndexes": job_indexes.text(tally.completed or ()),
    }
    status = without_zero_fields({**kept, **counts})
    status["ready"] = sum(pod.ready for pod in tally.active)
    status["terminating"] = tally.terminating
    status["uncountedTerminatedPods"] = {}
    return status


def quiet(old: Item, tally: JobPodCounts) -> Item:
    """Returns the status of a finished job, in which only the terminating pods change."""
    return {**old, "ready": 0, "terminating": tally.terminating}


def verdict(item: Item, status: Item, tally: JobPodCounts, now: float) -> JobOutcome | None:
    """Returns the outcome, or None while the job runs."""
    spec = item["spec"]
    if tally.failed > spec.get("backoffLimit", 6):
        text = "Job has reached the specified backoff limit"
        return _failed("BackoffLimitExceeded", text)
    until = deadline(item, status)
    if until is not None and until <= now:
        return _failed("DeadlineExceeded", "Job was active longer than specified deadline")
    wanted = spec.get("completions")
    enough = (tally.succeeded and not tally.active) if wanted is None else tally.succeeded >= wanted
    if enough and not spec.get("suspend"):
        text = "Reached expected number of succeeded pods"
        return JobOutcome("Complete", "CompletionsReached", text, [WorkloadEvent("Completed", "Job completed")])
    return None


def _failed(reason: str, text: str) -> JobOutcome:
    return JobOutcome("Failed", reason, text, [WorkloadEvent(reason, text, "Warning")])


def deadline(item: Item, status: Item) -> float | None:
    seconds, since = item["spec"].get("activeDeadlineSeconds"), status.get("startTime")
    return None if seconds is None or since is None else parse_timestamp(since, 0.0) + seconds


def ended(status: Item, tally: JobPodCounts, verdict: JobOutcome, now: float) -> Item:
    """Returns the final status. Pods that still run are being deleted: they count as terminating, not as active."""
    target = "SuccessCriteriaMet" if verdict.type == "Complete" else "FailureTarget"
    told = ("True", verdict.reason, verdict.message)
    conditions = [_probed(condition({}, type, *told, now)) for type in (target, verdict.type)]
    last = {**status, "conditions": [*status.get("conditions", ()), *conditions], "ready": 0}
    last.pop("active", None)
    if verdict.type == "Complete":
        last["completionTime"] = format_time(now)
    return last
