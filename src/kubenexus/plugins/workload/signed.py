"""The kind of work of the pod that is being signed. Several plugins sign it, one after the other."""

from typing import Any

from kubenexus.api.classification.workload import SpecMarks, Workload, classify, spec_marks
from kubenexus.api.core import Pod, PodSpec
from kubenexus.base.identity_memo import IdentityMemo

_last: list[Any] = [None, None]  # the pod that was signed last, and its kind of work
# What the images and requests of a spec show. By containers: a spec may have ten thousand, and take 7 MB.
_specs: IdentityMemo[SpecMarks] = IdentityMemo(most=256)


def workload_of(pod: Pod) -> Workload:
    """Returns the kind of work of a pod. Pods of one template share their spec, so its images are read once."""
    if _last[0] is not pod:
        spec = pod.spec
        marks = _specs.get(spec)
        if marks is None:
            marks = _specs.put(spec, spec_marks(spec), _containers(spec))
        _last[:] = pod, classify(pod, marks)
    found: Workload = _last[1]
    return found


def _containers(spec: PodSpec) -> int:
    return max(len(spec.containers) + len(spec.init_containers), 1)
