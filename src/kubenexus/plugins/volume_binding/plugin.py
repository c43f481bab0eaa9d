"""VolumeBinding: places a pod on nodes that can reach its volumes, or where they can be provisioned.

A bound claim's volume must be reachable from the node. A claim that waits for its pod gets the smallest existing volume
that fits, or a new one if the class can provision it (`matching`). Nodes where the volumes fit tightly, or where most
storage stays free, score higher, along the line given by `shape`.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kubenexus.api.core import Pod
from kubenexus.base.arrays import BoolColumn, IntColumn
from kubenexus.framework.cluster_events import ActionType, ClusterEventWithHint, EventResource
from kubenexus.framework.extension_points import AS_IS, Depends
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment, JobView
from kubenexus.framework.pod_class import PodClass
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.label_rows import rows_matching
from kubenexus.plugins.volume_binding.claims import BoundClaim, PodClaims, pod_claims
from kubenexus.plugins.volume_binding.matching import NO_SPACE, NO_VOLUME
from kubenexus.plugins.volume_binding.node_groups import ClaimOutcomes
from kubenexus.plugins.volume_hints import (
    capacity_rose,
    class_opened,
    driver_took_over,
    driver_yields,
    own_claim,
    volume_left,
)
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes
from kubenexus.state.volumes.volume_topology import VolumeTopology

_EMPTIER_IS_BETTER = ({"utilization": 0, "score": 10}, {"utilization": 100, "score": 0})


class VolumeBinding:
    name = "VolumeBinding"
    default_score = 0
    volumes_only = True  # pods without volumes need no signature
    reads = ()
    depends = Depends.NODE
    normalize = AS_IS
    AWAY = Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE)
    NONE = Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE)
    SPACE = Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE)
    GONE = Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE)

    def __init__(self, args: Mapping[str, Any]) -> None:
        shape = args.get("shape") or _EMPTIER_IS_BETTER
        points = [(int(point.get("utilization") or 0), int(point.get("score") or 0) * 10) for point in shape]
        self._line = [_height(points, used) for used in range(101)]

    # --- signature -------------------------------------------------------------------------------------------------

    def sign(self, pod: Pod, nodes: NodeColumns) -> PodClaims | None:
        mounts = nodes.volumes.mounts(pod)
        return None if mounts is None or not mounts.claims else pod_claims(pod, mounts.claims, nodes.volumes)

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        claims = self._claims(pod)
        if claims is None or (point == "score" and not claims.wanted):
            return 0
        shelves = [nodes.volumes.stock.pool(each.class_name) for each in claims.wanted]
        return nodes.node_changes.mark, tuple([shelf.version for shelf in shelves])

    # --- filter ----------------------------------------------------------------------------------------------------

    def pre_filter(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        claims = self._claims(pod)
        if claims is None:
            return SKIP
        return Verdict(Code(claims.code), (claims.problem,)) if claims.problem else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        claims = self._claims(pod)
        if claims is None:
            return
        if claims.problem:  # `pre_filter` has rejected the pod, unless the configuration disabled it
            verdict.reject(nodes.alive, Reason(claims.problem, Code(claims.code)))
            return
        failed = self._refuse_away(claims.held, nodes, verdict) if claims.held else _NOWHERE
        if claims.wanted:
            self._refuse_unmade(pod, claims, nodes, verdict, failed)

    def _refuse_unmade(
        self, pod: PodClass, claims: PodClaims, nodes: Nodes, verdict: NodeVerdict, failed: BoolColumn
    ) -> None:
        """Rejects rows that have no volume for an unbound claim."""
        selected = [each.selected for each in claims.wanted if each.selected is not None]
        outcomes = self._outcomes(pod, claims)
        if not selected and not outcomes.refused_somewhere(nodes.columns):
            return
        elsewhere: BoolColumn = np.zeros(nodes.width, np.bool_)  # than where a volume is being provisioned already
        for name in selected:
            elsewhere |= ~nodes.named([name])
        refused = outcomes.refused_at(nodes)
        verdict.reject((elsewhere | (refused == NO_VOLUME)) & ~failed, self.NONE)
        verdict.reject((refused == NO_SPACE) & ~elsewhere & ~failed, self.SPACE)

    def _refuse_away(self, held: Sequence[BoundClaim], nodes: Nodes, verdict: NodeVerdict) -> BoolColumn:
        """Rejects rows that cannot reach the volume of a bound claim, each for the first such claim only. Returns the
        rows where the attempt fails with an error."""
        pending: BoolColumn = np.ones(nodes.width, np.bool_)
        failed: BoolColumn = np.zeros(nodes.width, np.bool_)
        for each in held:
            if each.missing:
                verdict.reject(pending, self.GONE)
                break
            near = _within(each.reach, nodes)
            if each.plugin:
                moved = nodes.columns.volumes.drivers.migrated(each.plugin)[nodes.where]
                near = np.where(moved, _within(each.moved, nodes), near)
                if each.problem:
                    verdict.reject(pending & moved, Reason(each.problem, Code.ERROR))
                    failed |= pending & moved
                    pending &= ~moved
            verdict.reject(pending & ~near, self.AWAY)
            pending &= near
        return failed

    def capacity(self, pod: PodClass, nodes: Nodes, capacity: IntColumn) -> None:
        """Limits the number of pods to those that find volumes of their own."""
        claims = self._claims(pod)
        if claims is not None and claims.wanted and not claims.problem:
            np.minimum(
                capacity, self._outcomes(pod, claims).capacity_at(nodes, int(capacity.max(initial=0))), out=capacity
            )

    def assign(self, pod: PodClass, row: int, nodes: Nodes) -> Assignment | Verdict:
        claims = self._claims(pod)
        if claims is None or not claims.wanted:
            return NO_ASSIGNMENT
        outcome = self._outcomes(pod, claims).at(row, nodes.columns)
        if outcome.refused:
            return Verdict(Code.UNRESOLVABLE, ((self.NONE if outcome.refused == NO_VOLUME else self.SPACE).text,))
        return Assignment(volumes=outcome.picks)

    # --- score -----------------------------------------------------------------------------------------------------

    def score(self, pod: PodClass, nodes: Nodes, job: JobView) -> IntColumn | int:
        claims = self._claims(pod)
        if claims is None or not claims.wanted or claims.problem:
            return 0
        return self._outcomes(pod, claims).scores_at(nodes)

    def _claims(self, pod: PodClass) -> PodClaims | None:
        signed: PodClaims | None = pod.signed.get(self.name)
        return signed

    def _outcomes(self, pod: PodClass, claims: PodClaims) -> ClaimOutcomes:
        return pod.cached(self.name, lambda: ClaimOutcomes(claims.wanted, self._line))

    events_to_register = (
        ClusterEventWithHint(EventResource.STORAGE_CLASS, ActionType.ADD | ActionType.UPDATE, class_opened),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE, own_claim),
        ClusterEventWithHint(EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE),
        ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ADD | ActionType.UPDATE, driver_took_over),
        ClusterEventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE | ActionType.DELETE, driver_yields),
        ClusterEventWithHint(EventResource.CSI_STORAGE_CAPACITY, ActionType.ADD | ActionType.UPDATE, capacity_rose),
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, volume_left),
    )


_NOWHERE: BoolColumn = np.zeros(1, np.bool_)


def _within(reach: VolumeTopology | None, nodes: Nodes) -> BoolColumn:
    if reach is None:
        return np.ones(nodes.width, np.bool_)
    found: BoolColumn = np.zeros(nodes.width, np.bool_)
    for term in reach.terms:
        found |= rows_matching(term, nodes)
    return found


def _height(points: list[tuple[int, int]], used: int) -> int:
    """Returns the line's value at `used`; between two points Go's division rounds towards zero."""
    if used <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if used <= x1:
            return y0 + int((y1 - y0) * (used - x0) / (x1 - x0))
    return points[-1][1]
