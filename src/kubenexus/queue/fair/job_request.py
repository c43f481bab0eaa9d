"""What a waiting job asks for in sum, as the ledger will count it."""

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod, PodSpec
from kubenexus.api.resize import is_resized
from kubenexus.api.resource_names import Amounts
from kubenexus.framework.job import Job
from kubenexus.state.footprint import footprint_of

MAX_DIFFERENT: Final = 1_000  # requests of one gang that are added up: 15 to 30 ms
_encode = msgspec.msgpack.encode


class JobRequest(NamedTuple):
    """Amounts by resource, in scheduler units, and the number of pods."""

    amounts: Amounts
    pods: int

    def of(self, resource: str) -> int:
        plain = resource.partition("@")[0]  # of a hardware tier
        return next((amount for name, amount in self.amounts if name == plain), self.pods)


class _Counted(NamedTuple):
    """What was computed last, for one job. `whole`: all pods are in it."""

    job: Job | None
    request: JobRequest
    whole: bool


_last = [_Counted(None, JobRequest((), 0), whole=True)]


def job_request(job: Job) -> JobRequest:
    """Returns the request of a job. One decision asks several times, and a gang of ten thousand pods takes 40 ms."""
    return _counted(job).request


def is_counted(job: Job) -> bool:
    """Whether the request of a job has all its pods. If not, the job must not be placed (`plan.gang.planner`)."""
    return _counted(job).whole


def _counted(job: Job) -> _Counted:
    if _last[0].job is not job:
        _last[0] = _count(job)
    return _last[0]


def _count(job: Job) -> _Counted:
    """Pods that ask for the same are counted together. A job whose requests cannot be read asks for nothing: its
    decision says why it fails."""
    pods = job.pods
    try:
        if len(pods) == 1:
            return _Counted(job, JobRequest(footprint_of(pods[0]).amounts, 1), whole=True)
        counts, samples = Counter[Hashable](), dict[Hashable, Pod]()
        by_spec: dict[int, Hashable] = {}
        for pod in pods:
            asked = by_spec.get(id(pod.spec)) or by_spec.setdefault(id(pod.spec), _asked(pod.spec))
            what = id(pod) if is_resized(pod) else asked
            if what not in samples:
                if len(samples) == MAX_DIFFERENT:
                    continue
                samples[what] = pod
            counts[what] += 1
        sums: Counter[str] = Counter()
        for what, pod in samples.items():
            for name, amount in footprint_of(pod).amounts:
                sums[name] += counts[what] * amount
        return _Counted(job, JobRequest(tuple(sorted(sums.items())), len(pods)), whole=counts.total() == len(pods))
    except Exception:
        return _Counted(job, JobRequest((), len(pods)), whole=True)


def _asked(spec: PodSpec) -> bytes:
    """Returns all that the footprint of a pod depends on, but for its status: 2 us, where a footprint takes 15 to 30.
    The pods of a Job have a host name each, and so a spec each."""
    containers = [each.resources for each in spec.containers]
    first = [(each.resources, each.restart_policy) for each in spec.init_containers]
    return _encode((containers, first, spec.overhead, spec.resources))
