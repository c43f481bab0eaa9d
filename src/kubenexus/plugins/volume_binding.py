"""VolumeBinding: a pod goes where its volumes are, or where they can be had.

A bound claim's volume must be reachable from the node. A claim that waits for its pod gets the smallest existing volume
that fits, or a new one where the class can provision it (`volume_matching`). Nodes where the volumes fit snugly, or
where most storage stays free, score higher, along the line that `shape` draws.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from kubenexus.api.core import Pod
from kubenexus.api.storage import WAIT_FOR_FIRST_CONSUMER
from kubenexus.base.numbers import BoolColumn, IntColumn
from kubenexus.framework.job import NOTHING, Assignment, JobView
from kubenexus.framework.podclass import PodClass
from kubenexus.framework.points import KEEP, Depends
from kubenexus.framework.verdict import SKIP, Code, NodeVerdict, Reason, Skip, Verdict
from kubenexus.plugins.terms import where
from kubenexus.plugins.volume_matching import NO_SPACE, NO_VOLUME, Matching, Wanted, wanted
from kubenexus.plugins.volume_rows import Outcomes
from kubenexus.state.nodes import NodeColumns
from kubenexus.state.view import Nodes
from kubenexus.state.volumes.mounts import Use
from kubenexus.state.volumes.reach import Reach
from kubenexus.state.volumes.records import ClaimRecord
from kubenexus.state.volumes.store import VolumeStore
from kubenexus.state.volumes.users import not_made_for

_MOST = 1024  # more pods of one class than any node takes
_EMPTIER_IS_BETTER = ({"utilization": 0, "score": 10}, {"utilization": 100, "score": 0})


class _Held(msgspec.Struct, frozen=True, array_like=True):
    """From where a bound claim's volume can be used; if it belongs to an in-tree plugin, from where else on nodes
    where a driver took that over."""

    missing: bool = False
    reach: Reach | None = None
    plugin: str = ""
    moved: Reach | None = None
    problem: str = ""


class _Claims(msgspec.Struct, frozen=True, array_like=True):
    """A pod's claims as far as any answer depends on them; or why it cannot be judged."""

    held: tuple[_Held, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    problem: str = ""
    code: int = Code.UNRESOLVABLE


class VolumeBinding:
    name = "VolumeBinding"
    reads = ()
    depends = Depends.NODE
    normalize = KEEP
    AWAY = Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE)
    NONE = Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE)
    SPACE = Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE)
    GONE = Reason(
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        shape = args.get("shape") or _EMPTIER_IS_BETTER
        points = [(int(point.get("utilization") or 0), int(point.get("score") or 0) * 10) for point in shape]
        self._line = [_height(points, used) for used in range(101)]

    # --- which pods are alike --------------------------------------------------------------------------------------

    def sign(self, pod: Pod, nodes: NodeColumns) -> _Claims | None:
        mounts = nodes.volumes.mounts(pod)
        return None if mounts is None or not mounts.claims else _claims(pod, mounts.claims, nodes.volumes)

    def stamp(self, pod: PodClass, nodes: NodeColumns, point: str) -> Hashable:
        claims = self._claims(pod)
        if claims is None or (point == "score" and not claims.wanted):
            return 0
        shelves = [nodes.volumes.stock.shelf(name) for name in {each.class_name for each in claims.wanted}]
        return nodes.node_changes.mark, tuple(shelf.version for shelf in shelves)

    # --- where the pod may run -------------------------------------------------------------------------------------

    def prepare(self, pod: PodClass, nodes: Nodes) -> Skip | Verdict | None:
        claims = self._claims(pod)
        if claims is None:
            return SKIP
        return Verdict(Code(claims.code), (claims.problem,)) if claims.problem else None

    def filter(self, pod: PodClass, nodes: Nodes, verdict: NodeVerdict) -> None:
        claims = self._claims(pod)
        if claims is None or claims.problem:
            return
        failed = self._refuse_away(claims.held, nodes, verdict)
        if not claims.wanted:
            return
        elsewhere: BoolColumn = np.zeros(nodes.width, np.bool_)
        for each in claims.wanted:
            if each.selected is not None:
                elsewhere |= ~nodes.named([each.selected])
        verdict.reject(elsewhere & ~failed, self.NONE)
        judged = ~elsewhere & ~failed
        unreadable = [each.problem for each in claims.wanted if each.problem and each.selected is None]
        if unreadable:
            verdict.reject(judged, Reason(unreadable[0], Code.ERROR))
            return
        outcomes, groups = self._outcomes(pod, nodes.columns)
        refused = outcomes.refused[groups.of[nodes.where]]
        verdict.reject(judged & (refused == NO_VOLUME), self.NONE)
        verdict.reject(judged & (refused == NO_SPACE), self.SPACE)
