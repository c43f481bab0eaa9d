"""What the ledger remembers of a pod: enough to count it, to explain it and to take it off again."""

import enum

import msgspec

from kubenexus.api.core import Pod
from kubenexus.state.devices import Take
from kubenexus.state.footprint import Footprint
from kubenexus.state.podterms import Carried, carried_terms
from kubenexus.state.volumes.mounts import Mounts, Pick, mounts_of


class Stage(enum.IntEnum):
    """Where a pod stands between our decision and the API server's word. Not in the ledger: Unknown, or Gone."""

    NOMINATED = 0  # waits for a node where room is being made; does not count there
    ASSUMED = 1
    BOUND = 2


class PodRecord(msgspec.Struct, gc=False):
    """Much less than the decoded pod. Pods of one template share footprint and terms."""

    namespace: str
    name: str
    uid: str
    node: str
    stage: Stage
    footprint: Footprint
    priority: int = 0
    labels: dict[str, str] = {}
    takes: tuple[Take, ...] = ()
    terms: tuple[Carried, ...] = ()
    mounts: Mounts | None = None
    picks: tuple[Pick, ...] = ()
    terminating: bool = False
    since: float = 0.0
    slot: int = -1  # its place among the pods' columns while it counts on a row

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


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
        terms=carried_terms(pod),
        mounts=mounts_of(pod),
        terminating=bool(meta.deletion_timestamp),
    )


def finished(pod: Pod) -> bool:
    """Whether it has stopped for good and holds nothing any more."""
    return pod.status.phase in ("Succeeded", "Failed")
