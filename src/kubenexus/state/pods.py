"""What the ledger remembers of a pod: enough to count it, to explain it and to take it off again."""

import enum

import msgspec

from kubenexus.api.core import Pod
from kubenexus.state.devices import Take
from kubenexus.state.footprint import Footprint


class Stage(enum.IntEnum):
    """Where a pod stands between our decision and the API server's word. Not in the ledger: Unknown, or Gone."""

    ASSUMED = 1
    BOUND = 2


class PodRecord(msgspec.Struct, gc=False):
    """About a kilobyte less than the decoded pod. Pods of one template share the footprint."""

    namespace: str
    name: str
    uid: str
    node: str
    stage: Stage
    footprint: Footprint
    priority: int = 0
    labels: dict[str, str] = {}
    takes: tuple[Take, ...] = ()
    terminating: bool = False
    since: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Nominee(msgspec.Struct, frozen=True, gc=False):
    """A pending pod that waits for a node: others of no higher priority leave its room alone."""

    key: str
    uid: str
    priority: int
    footprint: Footprint


def record_of(pod: Pod, node: str, stage: Stage, footprint: Footprint) -> PodRecord:
    meta = pod.metadata
    return PodRecord(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=node,
        stage=stage,
        footprint=footprint,
        priority=pod.spec.priority,
        labels=meta.labels,
        terminating=bool(meta.deletion_timestamp),
    )


def finished(pod: Pod) -> bool:
    """Whether it has stopped for good and holds nothing any more."""
    return pod.status.phase in ("Succeeded", "Failed")
