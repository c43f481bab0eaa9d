"""The ledger's record of a pod: what is needed to count the pod, to explain it and to remove it again."""

import enum
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod, PodStatus
from kubenexus.api.devices.device_share import DeviceShare, held_shares
from kubenexus.api.keys.gang import KUEUE_WORKLOAD
from kubenexus.api.meta import OwnerReference
from kubenexus.api.numa.pod_demand import PodDemand, numa_demand
from kubenexus.api.runtimes import DeclaredRuntime, WorkloadIdentity, declared_runtime, workload_identity
from kubenexus.base.errors import Malformed, truncated
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.state.affinity_terms import AffinityTerm, affinity_terms
from kubenexus.state.claims.store import ClaimAllocation
from kubenexus.state.footprint import Footprint
from kubenexus.state.numa.kept_zones import kept_from
from kubenexus.state.victim_traits import NO_TRAITS, VictimTraits, saved_at, victim_traits
from kubenexus.state.volumes.pod_volumes import PodVolumes, VolumeChoice, pod_volumes

# The label of a record that has the UID of the pod's controller, so that pods of one controller are counted as those
# with one label are. No pod has such a label: it is no valid key.
CONTROLLER: Final = "(controller)"
# The condition of a pod that is about to be disrupted, and its reason if a scheduler preempts the pod.
DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
MAX_NAME: Final = 253  # characters of the name of an object
MAX_UID: Final = 64  # characters of a UID, which has 36; a longer one is no controller's


class PodStage(enum.IntEnum):
    """The stage of a pod from our decision to the API server's confirmation. Unknown and Gone pods have no record."""

    NOMINATED = 0  # waits for a node where capacity is being freed; does not count there
    ASSUMED = 1
    BOUND = 2


# Controllers that keep their pods running. Those of other kinds (a Job, a PyTorchJob, a RayCluster) come to an end.
_SERVING = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Node"})


class PodRecord(msgspec.Struct, gc=False):
    """A pod's record, much smaller than the decoded pod. Pods of one template share footprint and terms. For `endless`
    see the function of that name. `labels` are the pod's, and `CONTROLLER`."""

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
    numa: PodDemand | None = None  # what it wants of the managers of its kubelet
    numa_kept_from: str = ""  # the pods that it keeps off its NUMA nodes (`numa.kept_zones`)
    claims: tuple[ClaimAllocation, ...] = ()  # that were allocated with it; others are in the status of their claim
    terminating: bool = False
    endless: bool = False
    started_at: float = math.inf  # by its status; a pod that has not started yet counts as younger than all others
    preempted: bool = False  # a scheduler preempts it: it is terminating for that reason
    assumed_at: float = 0.0
    saved_at: float = 0.0  # when it last saved its work, by its own account
    traits: VictimTraits = NO_TRAITS
    identity: WorkloadIdentity | None = None  # whose earlier runs tell how long it runs; None: it never ends
    declared: DeclaredRuntime | None = None
    kueue_workload: str = ""  # the Workload that it names, or named when it was placed
    pod: Pod | None = None  # without its status: of a movable pod, in a ledger that keeps these
    slot: int = -1  # its index in the pods' columns while it counts on a row, else -1

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodHoldings(NamedTuple):
    """What a pod occupies: the node where it counts and whether it has devices by name there, its nomination, the node
    that it blocks. The difference before and after a transition is what became free."""

    node: str = ""
    nominated: PodRecord | None = None
    blocked: str = ""
    devices: bool = False


def pod_record(pod: Pod, node: str, stage: PodStage, footprint: Footprint) -> PodRecord:
    """Returns the record of a pod. Raises Malformed if a part of the pod cannot be read."""
    bound = stage is PodStage.BOUND
    devices = held_shares(pod) if bound and pod.metadata.annotations else ()
    return _record(pod, node, stage, footprint, affinity_terms(pod), pod_volumes(pod), endless(pod), devices)


def readable_pod_record(
    pod: Pod, node: str, stage: PodStage, footprint: Footprint, *, keeps_movable: bool = False
) -> tuple[PodRecord, str]:
    """Returns the record of a pod of any content, and why parts of it cannot be read ("" if all can). The record is
    without such a part: the pod counts with its requests all the same. A bound pod cannot be refused, and other pods
    must not wait because its volumes or terms are invalid. `keeps_movable`: a pod that may move is in its record."""
    try:
        record = pod_record(pod, node, stage, footprint)
        if keeps_movable and record.traits.movable:
            record.pod = _without_status(pod)
        return record, ""
    except Exception:
        terms, bad_terms = _read(affinity_terms, pod, ())
        mounts, bad_mounts = _read(pod_volumes, pod, None)
        serving, bad_owner = _read(endless, pod, False)
        devices, bad_devices = _read(held_shares, pod, ()) if stage is PodStage.BOUND else ((), "")
        problems = filter(None, (bad_terms, bad_mounts, bad_owner, bad_devices))
        return _record(pod, node, stage, footprint, terms, mounts, serving, devices), "; ".join(problems)


def _without_status(pod: Pod) -> Pod:
    """Returns the pod as its controller makes it again: without a node and a status."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""), status=PodStatus())


def _read(part: Callable[[Pod], Any], pod: Pod, without: Any) -> tuple[Any, str]:
    """Returns a part of a pod and "", or `without` and why the part cannot be read."""
    try:
        return part(pod), ""
    except Exception as error:
        kind = "" if isinstance(error, Malformed) else f"{part.__name__}: {type(error).__name__}: "
        return without, kind + truncated(str(error))


def _record(pod: Pod, node: str, stage: PodStage, footprint: Footprint, *parts: Any) -> PodRecord:
    meta, (terms, mounts, serving, devices) = pod.metadata, parts
    traits = victim_traits(pod)
    declared = declared_runtime(pod)
    return PodRecord(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=node,
        stage=stage,
        footprint=footprint,
        priority=pod.spec.priority,
        labels=_counted_labels(pod),
        device_shares=devices,
        terms=terms,
        mounts=mounts,
        numa=_read(numa_demand, pod, None)[0],
        numa_kept_from=kept_from(pod, traits.gang.key if traits.gang else ""),
        terminating=bool(meta.deletion_timestamp),
        endless=serving,
        started_at=parse_timestamp(pod.status.start_time, math.inf) if pod.status.start_time else math.inf,
        preempted=bool(meta.deletion_timestamp) and _is_preempted(pod),
        saved_at=saved_at(pod) if meta.annotations else 0.0,
        traits=traits,
        identity=None if serving and declared is None else workload_identity(pod),
        declared=declared,
        kueue_workload=_kueue_workload(pod) if meta.annotations else "",
    )


def _kueue_workload(pod: Pod) -> str:
    name = pod.metadata.annotations.get(KUEUE_WORKLOAD.key, "")
    return name if len(name) <= MAX_NAME else ""


def _is_preempted(pod: Pod) -> bool:
    """Returns whether a scheduler chose the pod as a victim. Of several conditions of the type the first counts."""
    for each in pod.status.conditions:
        if each.type == DISRUPTION_TARGET:
            return each.status == "True" and each.reason == PREEMPTION_BY_SCHEDULER
    return False


def _counted_labels(pod: Pod) -> dict[str, str]:
    controller = controller_of(pod)
    if controller is None or not 0 < len(controller.uid) <= MAX_UID:
        return pod.metadata.labels
    return {**pod.metadata.labels, CONTROLLER: controller.uid}


def is_finished(pod: Pod) -> bool:
    """Returns whether the pod has ended and holds no resources."""
    return pod.status.phase in ("Succeeded", "Failed")


def endless(pod: Pod) -> bool:
    """Returns whether nothing indicates that the pod will end by itself. Such a pod always restarts its containers, is
    not being deleted, and has no deadline and no controller whose work ends. A pod without a restart policy did not
    come from an API server, and counts as one that ends."""
    spec, meta = pod.spec, pod.metadata
    if spec.restart_policy != "Always" or spec.active_deadline_seconds is not None or meta.deletion_timestamp:
        return False
    controller = controller_of(pod)
    return controller is None or not controller.kind or controller.kind in _SERVING


def of_daemon_set(pod: Pod) -> bool:
    """Returns whether the pod's controller is a DaemonSet."""
    controller = controller_of(pod)
    return controller is not None and controller.kind == "DaemonSet"


def controller_of(pod: Pod) -> OwnerReference | None:
    """Returns the reference to the pod's controller, or None. A loop: each event of a pod takes two of these."""
    for each in pod.metadata.owner_references:
        if each.controller:
            return each
    return None


def counts_alike(one: PodRecord, other: PodRecord) -> bool:
    """Returns whether two records of a pod count the same on its node, labels aside."""
    return _counted(one) == _counted(other)


def _counted(each: PodRecord) -> tuple[object, ...]:
    parts = each.footprint, each.device_shares, each.terms, each.mounts, each.numa_kept_from
    return (each.priority, each.terminating, each.endless, *parts)
