"""The kind of work of the pod that is being signed. Several plugins sign it, one after the other."""

from typing import Any

from kubenexus.api.classification.workload import Workload, classify
from kubenexus.api.core import Pod

_last: list[Any] = [None, None]  # the pod that was signed last, and its kind of work


def workload_of(pod: Pod) -> Workload:
    """Returns the kind of work of a pod."""
    if _last[0] is not pod:
        _last[:] = pod, classify(pod)
    found: Workload = _last[1]
    return found
