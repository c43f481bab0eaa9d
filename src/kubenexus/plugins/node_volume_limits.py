"""NodeVolumeLimits: a driver attaches a limited number of volumes to a node, and none where it is not installed.

A volume counts once on a node, however many pods use it there. It counts while it is attached, even if no pod uses it
any more. Of volumes that no pod uses yet only the number matters, not their identity.

A volume of a running pod that is invalid is not counted. kube-scheduler ends the attempts of other pods with its error,
so any tenant could refuse the volumes of all.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn, IntColumn, any_true
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import Depends
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip
from kubenexus.plugins.volume_hints import detached, driver_yields, limit_rose, own_claim, volume_left
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes, OneNode
from kubenexus.state.volumes.claim_users import not_owned_by
from kubenexus.state.volumes.csi_translation import AttachedVolume
from kubenexus.state.volumes.pod_volumes import PodVolumes
from kubenexus.state.volumes.store import VolumeStore


class _Load(msgspec.Struct, frozen=True, array_like=True):
    """What a pod adds to a node: for each driver a number of volumes of its own, and volumes that other pods use.
    `in_tree` drivers attach only on nodes with a CSINode. `problem` is why the pod cannot be placed at all,
    `unreadable` why it cannot be placed on nodes with a CSINode."""

    drivers: tuple[str, ...] = ()
    in_tree: tuple[str, ...] = ()
    own: tuple[tuple[str, int], ...] = ()
    shared: tuple[AttachedVolume, ...] = ()
    unreadable: str = ""
    problem: str = ""
    code: int = Code.ERROR


class NodeVolumeLimits:
    name = "NodeVolumeLimits"
    volumes_only = True  # pods without volumes need no signature
    reads = ()
    depends = Depends.USAGE
    supports_one_node = True
    FULL = Reason("node(s) exceed max volume count", Code.UNSCHEDULABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        pass

    def sign(self, pod: Pod, nodes: NodeColumns) -> _Load | None:
        mounts = nodes.volumes.mounts(pod)
        return None if mounts is None or not mounts.drivers else _load(pod, mounts, nodes)

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | None:
        return None if pod.signed.get(self.name) is not None else SKIP

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        load: _Load | None = pod.signed.get(self.name)
        if load is None:
            return
        if isinstance(nodes, OneNode):
            reason = self._reason_at(nodes.row, load, nodes.columns.volumes)
            verdict.reject(reason is not None, reason or self.FULL)
            return
        refused = self._refuse_unreadable(load, nodes, verdict)
        if load.drivers and not load.problem:
            refused |= self._refuse_missing(load, nodes, verdict, refused)
            for driver in load.drivers:
                over = _over(load, driver, nodes)
                if any_true(over):
                    verdict.reject(over & ~refused, self.FULL)
                    refused |= over

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits the number of pods: each further one adds its own volumes; volumes in use are shared with the
        first."""
        load: _Load | None = pod.signed.get(self.name)
        if load is None or load.problem:
            return
        for driver in load.drivers:
            column, own = nodes.columns.volumes.drivers.of(driver), dict(load.own).get(driver, 0)
            new = _new(load, driver, nodes)
            left = column.limit[nodes.where] - column.count[nodes.where] - (new - own)
            fits = left // own if own else np.where((left >= 0) | (new == 0), capacity, 0)
            np.minimum(capacity, np.maximum(fits, 0), out=capacity)

    def _reason_at(self, row: int, load: _Load, store: VolumeStore) -> Reason | None:
        """Applies the whole rule to a single row, with plain numbers."""
        columns, described = store.drivers, bool(store.drivers.described[row])
        if load.problem or (load.unreadable and described):
            return Reason(load.problem or load.unreadable, Code(load.code))
        for driver in load.drivers:
            attaches = described or driver not in load.in_tree
            if attaches and _heeded(driver, store) and not columns.of(driver).installed[row]:
                return _missing(driver)
        new = dict(load.own)
        for attachment in load.shared:
            if row not in columns.mounted.get(attachment, ()):
                new[attachment.driver] = new.get(attachment.driver, 0) + 1
        counted = [(columns.of(driver), number) for driver, number in new.items()]
        return self.FULL if any(c.count.item(row) + n > c.limit.item(row) for c, n in counted) else None

    def _refuse_unreadable(self, load: _Load, nodes: Nodes, verdict: NodeVerdict) -> BoolColumn:
        refused: BoolColumn = np.zeros(nodes.width, np.bool_)
        if load.problem:
            refused = np.ones(nodes.width, np.bool_)
            verdict.reject(refused, Reason(load.problem, Code(load.code)))
        elif load.unreadable:
            refused = nodes.columns.volumes.drivers.described[nodes.where].copy()
            verdict.reject(refused, Reason(load.unreadable, Code.ERROR))
        return refused

    def _refuse_missing(self, load: _Load, nodes: Nodes, verdict: NodeVerdict, refused: BoolColumn) -> BoolColumn:
        """Rejects rows without a driver that requires to be installed. Returns these rows."""
        store, missing = nodes.columns.volumes, np.zeros(nodes.width, np.bool_)
        for driver in load.drivers:
            if _heeded(driver, store):
                lacks = ~store.drivers.of(driver).installed[nodes.where] & ~refused & ~missing
                if driver in load.in_tree:
                    lacks &= store.drivers.described[nodes.where]
                verdict.reject(lacks, _missing(driver))
                missing |= lacks
        return missing

    events_to_register = (
        ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ADD | ActionType.UPDATE, limit_rose),
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, volume_left),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, own_claim),
        ClusterEventWithHint(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, detached),
        ClusterEventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE | ActionType.DELETE, driver_yields),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
    )


def _load(pod: Pod, mounts: PodVolumes, nodes: NodeColumns) -> _Load:
    """Returns the load of a pod's volumes as of now."""
    store = nodes.volumes
    volumes: dict[AttachedVolume, bool] = {}  # the value: whether it belongs to an in-tree plugin
    for use in mounts.claims:
        key = f"{pod.metadata.namespace}/{use.claim}"
        claim = store.claims.get(key)
        if not use.claim:
            return _Load(problem="PersistentVolumeClaim had no name")
        if claim is None:
            problem = f'looking up PVC {key}: persistentvolumeclaim "{use.claim}" not found'
            return _Load(problem=problem, code=Code.UNRESOLVABLE)
        if use.ephemeral and claim.owner != pod.metadata.uid:
            return _Load(problem=not_owned_by(claim, pod.key))
        attachment = store.attachment_of(claim)
        if attachment is not None:
            volumes[attachment] = store.in_tree(claim)
    volumes.update(dict.fromkeys(mounts.inline, True))
    own: dict[str, int] = {}
    for attachment in volumes:
        if attachment not in store.drivers.mounted:
            own[attachment.driver] = own.get(attachment.driver, 0) + 1
    return _Load(
        drivers=tuple(dict.fromkeys(attachment.driver for attachment in volumes)),
        in_tree=tuple({a.driver for a in volumes} - {a.driver for a, in_tree in volumes.items() if not in_tree}),
        own=tuple(own.items()),
        shared=tuple(attachment for attachment in volumes if attachment in store.drivers.mounted),
        unreadable=mounts.problem,
    )


def _heeded(driver: str, store: VolumeStore) -> bool:
    """Returns whether pods with the driver's volumes must not run on nodes without the driver."""
    known = store.csi_drivers.get(driver)
    return known is not None and known.prevent_pod_scheduling_if_missing


def _missing(driver: str) -> Reason:
    return Reason(f"{driver} CSI driver is not installed on the node", Code.UNSCHEDULABLE)


def _new(load: _Load, driver: str, nodes: Nodes) -> Any:
    """Returns how many volumes of a driver the pod adds to each row: its own, and the shared ones that no pod uses
    there. A plain number if it has no shared ones."""
    new: Any = dict(load.own).get(driver, 0)
    for attachment in load.shared:
        if attachment.driver == driver:
            new = new + ~nodes.at(nodes.columns.volumes.drivers.mounted.get(attachment, {}))
    return new


def _over(load: _Load, driver: str, nodes: Nodes) -> BoolColumn:
    column, new = nodes.columns.volumes.drivers.of(driver), _new(load, driver, nodes)
    over: BoolColumn = column.count[nodes.where] + new > column.limit[nodes.where]
    return over if isinstance(new, int) and new else over & np.asarray(new > 0)
