"""What the ledger remembers of a pod: enough to count it, to explain it and to take it off again."""

import enum
from typing import NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.state.affinity_terms import AffinityTerm, affinity_terms
from kubenexus.state.devices import DeviceShare
from kubenexus.state.footprint import Footprint
from kubenexus.state.volumes.pod_volumes import PodVolumes, VolumeChoice, pod_volumes


class PodStage(enum.IntEnum):
    """Where a pod stands between our decision and the API server's word. Not in the ledger: Unknown, or Gone."""

    NOMINATED = 0  # waits for a node where room is being made; does not count there
    ASSUMED = 1
    BOUND = 2


# Controllers that keep their pods running. Those of other kinds (a Job, a PyTorchJob, a RayCluster) come to an end.
_SERVING = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Node"})


class PodRecord(msgspec.Struct, gc=False):
    """Much less than the decoded pod. Pods of one template share footprint and terms. `endless`: see `endless`."""

    namespace: str
    name: str
    uid: str
    node: str
    stage: PodStage
    footprint: Footprint
    priority: int = 0
    labels: dict[str, str] = {}
    device_shares: tuple[DeviceShare, ...] = ()
    terms: tuple[AffinityTerm, ...] = ()
    mounts: PodVolumes | None = None
    volume_choices: tuple[VolumeChoice, ...] = ()
    terminating: bool = False
    endless: bool = False
    assumed_at: float = 0.0
    slot: int = -1  # its place among the pods' columns while it counts on a row

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodHoldings(NamedTuple):
    """The node where a pod counts, what it is nominated to, the node that it fences. Before and after a transition
    they tell what became free."""

    node: str = ""
    nominated: PodRecord | None = None
    blocked: str = ""


def pod_record(pod: Pod, node: str, stage: PodStage, footprint: Footprint) -> PodRecord:
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
        terms=affinity_terms(pod),
        mounts=pod_volumes(pod),
        terminating=bool(meta.deletion_timestamp),
        endless=endless(pod),
    )


def is_finished(pod: Pod) -> bool:
    """Whether it has stopped for good and holds nothing any more."""
    return pod.status.phase in ("Succeeded", "Failed")


def endless(pod: Pod) -> bool:
    """Whether nothing says that the pod will ever stop by itself: its containers are always restarted, it has no
    deadline, no controller whose work is done some day, and it is not being deleted. A pod that does not name a restart
    policy has not been through an API server, and counts as one that ends."""
    spec, meta = pod.spec, pod.metadata
    if spec.restart_policy != "Always" or spec.active_deadline_seconds is not None or meta.deletion_timestamp:
        return False
    controller = _controller(pod)
    return not controller or controller in _SERVING


def of_daemon_set(pod: Pod) -> bool:
    """Whether it says that a DaemonSet made it."""
    return _controller(pod) == "DaemonSet"


def _controller(pod: Pod) -> str:
    """The kind of its controller, "" if it has none."""
    return next((each.kind for each in pod.metadata.owner_references if each.controller), "")
