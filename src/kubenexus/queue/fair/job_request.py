"""What a waiting job asks for in sum, as the ledger will count it."""

from collections import Counter
from typing import Any, NamedTuple

from kubenexus.api.resource_names import Amounts
from kubenexus.framework.job import Job
from kubenexus.state.footprint import footprint_of


class JobRequest(NamedTuple):
    """Amounts by resource, in scheduler units, and the number of pods."""

    amounts: Amounts
    pods: int

    def of(self, resource: str) -> int:
        plain = resource.partition("@")[0]  # of a hardware tier
        return next((amount for name, amount in self.amounts if name == plain), self.pods)


_last: list[Any] = [None, None]  # the job that was asked for last, and its request


def job_request(job: Job) -> JobRequest:
    """Returns the request of a job. One decision asks several times, and a gang of thousands of pods with a spec each
    takes a tenth of a second."""
    if _last[0] is not job:
        _last[:] = job, _request(job)
    found: JobRequest = _last[1]
    return found


def _request(job: Job) -> JobRequest:
    """Pods of one template are counted together. A job whose requests cannot be read asks for nothing: its decision
    says why it fails."""
    try:
        if len(job.pods) == 1:
            return JobRequest(footprint_of(job.pods[0]).amounts, 1)
        counts = Counter([id(pod.spec) for pod in job.pods])
        sums: Counter[str] = Counter()
        for pod in {id(pod.spec): pod for pod in job.pods}.values():
            for name, amount in footprint_of(pod).amounts:
                sums[name] += counts[id(pod.spec)] * amount
        return JobRequest(tuple(sorted(sums.items())), len(job.pods))
    except Exception:
        return JobRequest((), len(job.pods))
