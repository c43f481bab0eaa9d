"""A decision as a value: where the job goes, or why not, and what an explanation needs."""

import msgspec

from kubenexus.base.errors import shown
from kubenexus.framework.job import NOTHING, Assignment
from kubenexus.framework.verdict import Code
from kubenexus.state.footprint import Footprint

NO_NODES = "no nodes available to schedule pods"


class PluginScore(msgspec.Struct, frozen=True, gc=False):
    """One plugin's part in a node's total: `weight * normalized`."""

    plugin: str
    raw: int
    normalized: int
    weight: int


class Standing(msgspec.Struct, frozen=True, gc=False):
    """A node and its total score."""

    node: str
    total: int


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """What a node lacks of a resource for this pod."""

    resource: str
    lacking: int


class NearestMiss(msgspec.Struct, frozen=True, gc=False):
    """The node that came closest, why it was refused, and what it lacks if that is resources."""

    node: str
    reasons: tuple[str, ...]
    shortages: tuple[Shortage, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, gc=False):
    """Why nodes were refused. `counts`: how many nodes for each reason; a node may have several.

    `refused_by` are the plugins whose events may wake the job. `message` replaces the counts when the pod was refused
    as a whole, before any node was looked at.
    """

    nodes: int
    counts: tuple[tuple[str, int], ...] = ()
    refused_by: tuple[str, ...] = ()
    message: str = ""
    nearest: NearestMiss | None = None

    def sentence(self) -> str:
        """`0/5 nodes are available: 1 Insufficient cpu, 4 node(s) were unschedulable.`, as kube-scheduler says it."""
        if not self.nodes:
            return NO_NODES
        said = self.message or ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts))
        return f"0/{self.nodes} nodes are available:" + (f" {said}." if said else "")


class Placement(msgspec.Struct, frozen=True, gc=False):
    """A member and its node. `scores` are those of the chosen node; none were needed if it was the only one."""

    pod: str
    uid: str
    node: str
    footprint: Footprint
    assignment: Assignment = NOTHING
    scores: tuple[PluginScore, ...] = ()
    total: int = 0
    runner_up: Standing | None = None
    feasible: int = 0


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The answer for a whole job. Either all of `placements` (at least the job's minimum), or none and a reason.

    `diagnosis` speaks of the member that could not be placed, or of the last one that was; `error` is set when the
    attempt failed rather than being refused.
    """

    job: str
    code: Code
    generation: int
    decided_at: float
    placements: tuple[Placement, ...] = ()
    diagnosis: Diagnosis = Diagnosis(nodes=0)
    error: str = ""

    @property
    def placed(self) -> bool:
        return self.code is Code.SUCCESS

    def sentence(self) -> str:
        """What goes into the event and the condition."""
        if self.placed:
            return ", ".join(f"{shown(p.pod)} to {shown(p.node)}" for p in self.placements)
        return self.error or self.diagnosis.sentence()
