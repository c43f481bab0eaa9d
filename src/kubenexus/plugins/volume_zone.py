"""VolumeZone: a volume whose labels name a zone or a region is used only there.

These labels are older than the node affinity of volumes, and still count. If a node has any label of this kind, it must
match each of the volume's. A node without any counts as part of a cluster of one zone.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.selectors import Operator, Requirement
from kubenexus.api.storage import WAIT_FOR_FIRST_CONSUMER
from kubenexus.base.arrays import BoolColumn
from kubenexus.base.intern import ABSENT
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.volume_hints import class_came, own_claim, volume_moved
from kubenexus.state.labels import matching
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes
from kubenexus.state.volumes.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubenexus.state.volumes.records import Zones
from kubenexus.state.volumes.store import VolumeStore

_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class _Zoned(msgspec.Struct, frozen=True, array_like=True):
    """The zones and regions of all the volumes together, or why the pod cannot be placed."""

    zones: tuple[Zones, ...] = ()
    problem: str = ""


class VolumeZone:
    name = "VolumeZone"
    volumes_only = True  # pods without volumes need no signature
    reads = ()
    depends = Depends.NODE
    ELSEWHERE = Reason("node(s) had no available volume zone", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> _Zoned | None:
        mounts = nodes.volumes.mounts(pod)
        if mounts is None:
            return None
        zones: dict[Zones, None] = {}
        for use in mounts.claims:
            if use.ephemeral:
                continue
            found = _zones(f"{pod.metadata.namespace}/{use.claim}", use.claim, nodes.volumes)
            if isinstance(found, str):
                return _Zoned(problem=found)
            zones.update(dict.fromkeys(found))
        return _Zoned(tuple(zones)) if zones else None

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        zoned: _Zoned | None = pod.signed.get(self.name)
        if zoned is None:
            return SKIP
        return Verdict(Code.UNRESOLVABLE, (zoned.problem,)) if zoned.problem else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        zoned: _Zoned | None = pod.signed.get(self.name)
        if zoned is None:
            return
        if zoned.problem:  # `pre_filter` has rejected the pod, unless the configuration disabled it
            verdict.reject(nodes.alive, Reason(zoned.problem, Code.UNRESOLVABLE))
            return
        agreed: BoolColumn = np.ones(nodes.width, np.bool_)
        for key, names in zoned.zones:
            agreed &= _named(key, names, nodes)
        anywhere: BoolColumn = np.zeros(nodes.width, np.bool_)
        for key in (ZONE, REGION, BETA_ZONE, BETA_REGION):
            anywhere |= nodes.label(key)[0] != ABSENT
        verdict.reject(anywhere & ~agreed, self.ELSEWHERE)

    events_to_register = (
        ClusterEventWithHint(EventResource.STORAGE_CLASS, ActionType.ADD, class_came),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE, own_claim),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE, volume_moved),
    )


def _zones(key: str, name: str, store: VolumeStore) -> tuple[Zones, ...] | str:
    """Returns the zones of a claim's volume; none for a claim that waits for its pod. A text is the reason of a
    rejection."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = store.claims.get(key)
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.volume:
        volume = store.volumes.get(claim.volume)
        return volume.zones if volume is not None else f'persistentvolume "{claim.volume}" not found'
    if not claim.class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    known = store.classes.get(claim.class_name)
    if known is None:
        return f'storageclass.storage.k8s.io "{claim.class_name}" not found'
    if known.mode is None:
        return f'VolumeBindingMode not set for StorageClass "{claim.class_name}"'
    return () if known.mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def _named(key: str, names: tuple[str, ...], nodes: Nodes) -> Any:
    """Returns the rows whose label is one of `names`; a node without the old label is matched by its newer one."""
    codes, column = nodes.label(key)
    agrees = matching(Requirement(key, Operator.IN, names), codes, column)
    if key not in _NEWER:
        return agrees
    newer, newer_column = nodes.label(_NEWER[key])
    return np.where(codes != ABSENT, agrees, matching(Requirement(key, Operator.IN, names), newer, newer_column))
