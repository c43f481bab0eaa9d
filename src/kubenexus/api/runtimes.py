"""How long a pod runs: by its own account, by the deadline that its kubelet enforces, and how long it ran in fact."""

import math
import re
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.keys.reading import read_key
from kubenexus.api.keys.workload import MAX_RUNTIME
from kubenexus.base.timestamps import parse_timestamp

DEADLINE: Final = "spec.activeDeadlineSeconds"
MAX_DEADLINE: Final = 2**31 - 1  # seconds; the API server accepts no more
MAX_STEM: Final = 128  # characters of an identity's name
_SUFFIXES: Final = 3  # parts of a name that are cut off at most
# A number, or five letters as the API server appends them to generateName: it uses no vowels, so words stay.
_SUFFIX: Final = re.compile(r"-(?:[0-9]{1,16}|[bcdfghjklmnpqrstvwxz2456789]{5}|[0-9a-f]{8,10})$", re.ASCII)
_ENDED: Final = frozenset({"Ready", "ContainersReady"})
_DISRUPTED: Final = "DisruptionTarget"


class DeclaredRuntime(NamedTuple):
    """The seconds that a pod runs at most, and the field or key that states it. `enforced`: its kubelet stops it then;
    `limit`: when its kubelet stops it."""

    seconds: float
    source: str
    enforced: bool = False
    limit: float = math.inf


class WorkloadIdentity(NamedTuple):
    """Pods whose runs are compared with each other: of one namespace, one kind of owner, and one stem of its name."""

    namespace: str
    kind: str
    stem: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.stem}"


def declared_runtime(pod: Pod) -> DeclaredRuntime | None:
    """Returns what the pod declares, the shorter if it has a deadline and the key; None if nothing valid is set."""
    meta, deadline = pod.metadata, pod.spec.active_deadline_seconds
    declared = None
    if not (MAX_RUNTIME.keys.isdisjoint(meta.annotations) and MAX_RUNTIME.keys.isdisjoint(meta.labels)):
        reading = read_key(MAX_RUNTIME, meta.labels, meta.annotations)
        if reading.value is not None:
            declared = DeclaredRuntime(float(reading.value), reading.source_key)
    if deadline is None or not 1 <= deadline <= MAX_DEADLINE:
        return declared
    if declared is not None and declared.seconds < deadline:
        return declared._replace(limit=float(deadline))
    return DeclaredRuntime(float(deadline), DEADLINE, enforced=True, limit=float(deadline))


def runtime_class(pod: Pod) -> int:
    """Returns the declared runtime in quarters of a doubling, rounded up; 0 if nothing is declared. A job that is
    refused since it runs for too long must not stand for shorter ones."""
    declared = declared_runtime(pod)
    return 0 if declared is None else math.ceil(4 * math.log2(declared.seconds)) + 1


def workload_identity(pod: Pod) -> WorkloadIdentity:
    """Returns the identity of a pod: its controller's kind and name without numbers and generated endings, or its own
    name if it has no controller. Never raises."""
    meta = pod.metadata
    for owner in meta.owner_references:
        if owner.controller and owner.kind:
            return WorkloadIdentity(meta.namespace, owner.kind[:MAX_STEM], name_stem(owner.name))
    return WorkloadIdentity(meta.namespace, "Pod", name_stem(meta.name))


def name_stem(name: str) -> str:
    """Returns `nightly` for `nightly-28391234` and `train` for `train-x7k2p-0`. A name that is all endings stays."""
    stem = name[-MAX_STEM:] if len(name) > MAX_STEM else name
    for _ in range(_SUFFIXES):
        shorter = _SUFFIX.sub("", stem)
        if not shorter or shorter == stem:
            break
        stem = shorter
    return stem


def seconds_run(pod: Pod) -> float | None:
    """Returns for how long a pod ran that has ended by itself; None if that is not known, or if it was disrupted."""
    started = parse_timestamp(pod.status.start_time, None) if pod.status.start_time else None
    if started is None or pod.metadata.deletion_timestamp:
        return None
    ended = None
    for each in pod.status.conditions:
        if each.type == _DISRUPTED and each.status == "True":
            return None
        if each.type in _ENDED and each.status == "False":
            ended = parse_timestamp(each.last_transition_time, ended)
    return None if ended is None or ended < started else ended - started
