"""VolumeRestrictions: one pod of a node mounts an inline disk, or readers only; and one pod of the whole cluster uses a
ReadWriteOncePod claim."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.volume_hints import disk_left, own_claim
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode
from kubenexus.state.volumes.pod_volumes import InlineDisk


class _Restricted(msgspec.Struct, frozen=True, array_like=True):
    """The parts of a pod's volumes that the results depend on. `exclusive` claims are listed only if a nominated pod
    may start to use them while the filter runs."""

    disks: tuple[InlineDisk, ...] = ()
    taken: bool = False
    exclusive: tuple[str, ...] = ()
    problem: str = ""


class VolumeRestrictions:
    name = "VolumeRestrictions"
    volumes_only = True  # pods without volumes need no signature
    reads = ()
    depends = Depends.USAGE
    supports_one_node = True
    MOUNTED = Reason("node(s) had no available disk", Code.UNSCHEDULABLE)
    TAKEN = Reason(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another "
        "pod",
        Code.UNSCHEDULABLE,
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> _Restricted | None:
        mounts = nodes.volumes.mounts(pod)
        if mounts is None:
            return None
        store, exclusive = nodes.volumes, []
        for use in mounts.claims:
            claim = store.claims.get(f"{pod.metadata.namespace}/{use.claim}")
            if claim is None and not use.ephemeral:
                return _Restricted(problem=f'persistentvolumeclaim "{use.claim}" not found')
            if claim is not None and not use.ephemeral and claim.exclusive:
                exclusive.append(claim.key)
        taken = any(store.users.using(claim) for claim in exclusive)
        if not mounts.disks:
            return _Restricted(taken=True) if taken else None
        return _Restricted(mounts.disks, taken, tuple(exclusive))

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        restricted = self._restricted(pod)
        if restricted is None:
            return SKIP
        return Verdict(Code.UNRESOLVABLE, (restricted.problem,)) if restricted.problem else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        restricted = self._restricted(pod)
        if restricted is None:
            return
        if restricted.problem:  # `pre_filter` has rejected the pod, unless the configuration disabled it
            verdict.reject(nodes.single or nodes.alive, Reason(restricted.problem, Code.UNRESOLVABLE))
            return
        users = nodes.columns.volumes.users
        mounted = {row for disk in restricted.disks for row in users.disks.clashing(disk)}
        here = _on(mounted, nodes)
        verdict.reject(here, self.MOUNTED)
        if restricted.taken or any(users.using(claim) for claim in restricted.exclusive):
            verdict.reject(not here if nodes.single else ~here, self.TAKEN)  # a node reports the first reason only

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits the class to one pod a node if a disk cannot be shared: a second pod needs the same disks."""
        restricted = self._restricted(pod)
        if restricted is not None and not all(disk.shareable for disk in restricted.disks):
            np.minimum(capacity, 1, out=capacity)

    def _restricted(self, pod: PodClass) -> _Restricted | None:
        signed: _Restricted | None = pod.signed.get(self.name)
        return signed

    events_to_register = (
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, disk_left),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, own_claim),
    )


def _on(rows: Collection[int], nodes: Nodes) -> Any:
    return nodes.row in rows if isinstance(nodes, OneNode) else nodes.at(rows)
