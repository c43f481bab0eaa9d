"""A decision as a value: where the job goes, or why not, and what an explanation needs."""

import msgspec

from kubenexus.base.errors import truncated
from kubenexus.framework.job import NO_ASSIGNMENT, Assignment
from kubenexus.framework.verdict import Code
from kubenexus.state.footprint import Footprint

_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
MAX_NAMED = 5  # resources that a sentence names
NO_NODES = "no nodes available to schedule pods"


class PluginScore(msgspec.Struct, frozen=True, gc=False):
    """One plugin's part in a node's total: `weight * normalized`."""

    plugin: str
    raw: int
    normalized: int
    weight: int


class NodeScore(msgspec.Struct, frozen=True, gc=False):
    """A node and its total score."""

    node: str
    total: int


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """What a node lacks of a resource for this pod."""

    resource: str
    lacking: int

    def text(self) -> str:
        """As people write it: `1500m cpu`, `64Gi memory`, `8 nvidia.com/gpu`."""
        amount = str(self.lacking)
        if self.resource == "cpu":
            amount = f"{self.lacking}m" if self.lacking % 1000 else str(self.lacking // 1000)
        elif self.resource in ("memory", "ephemeral-storage") or self.resource.startswith("hugepages-"):
            amount = next((f"{self.lacking // unit}{sign}" for sign, unit in _UNITS if not self.lacking % unit), amount)
        return f"{amount} {truncated(self.resource)}"


class NearestMiss(msgspec.Struct, frozen=True, gc=False):
    """The node that came closest, why it was refused, and what it lacks if that is resources."""

    node: str
    reasons: tuple[str, ...]
    shortages: tuple[Shortage, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, gc=False):
    """Why nodes were refused. `counts`: how many nodes for each reason; a node may have several.

    `refused_by` are the plugins whose events may wake the job. `message` replaces the counts when the pod was refused
    as a whole, before any node was looked at. `detail` replaces the message for readers of the namespace `detail_for`,
    whose objects it names; one refusal may be shared by jobs of many namespaces. `held_back`: the room is kept for a
    job that comes before this one, so that nothing is said of jobs that come earlier.
    """

    nodes: int
    counts: tuple[tuple[str, int], ...] = ()
    refused_by: tuple[str, ...] = ()
    message: str = ""
    nearest: NearestMiss | None = None
    detail: str = ""
    detail_for: str = ""
    held_back: bool = False

    def sentence(self, namespace: str = "") -> str:
        """`0/5 nodes are available: 1 Insufficient cpu, 4 node(s) were unschedulable.`, as kube-scheduler says it, for
        readers of this namespace."""
        if not self.nodes:
            return NO_NODES
        own = self.detail if namespace and namespace == self.detail_for else ""
        said = own or self.message or ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts))
        return f"0/{self.nodes} nodes are available:" + (f" {said}." if said else "")


class PodPlacement(msgspec.Struct, frozen=True, gc=False):
    """A member and its node. `scores` are those of the chosen node; none were needed if it was the only one."""

    pod: str
    uid: str
    node: str
    footprint: Footprint
    assignment: Assignment = NO_ASSIGNMENT
    scores: tuple[PluginScore, ...] = ()
    total: int = 0
    runner_up: NodeScore | None = None
    feasible: int = 0


class DomainShortage(msgspec.Struct, frozen=True, gc=False):
    """A domain of a label that members are spread over, and for how many of them it lacks room."""

    domain: str
    members: int


class GangDiagnosis(
    msgspec.Struct, frozen=True, gc=False, rename={"exceeds_cluster": "never", "short_domains": "spots"}
):
    """Why a gang waits: the domain that came closest, how many of its members that holds, and what it lacks.

    Exact: with room for the `missing` members in that domain, and nothing else, the gang would be placed; with room for
    one less it would not. `level` and `domain` are empty when the whole cluster may be used. `constraint` is what
    limits the members besides room. `exhausted`: the search was ended before everything was tried, so that more may fit
    than is said here. `exceeds_cluster`: the nodes there are would not hold the gang if they were empty. `endless`:
    they would, but not beside their pods that never end by themselves, so that no room is kept for the gang. Where
    members are spread over the domains of a label (`spread`), `short_domains` are those that lack room: more there and
    the gang is placed, less in sum and it is not; no spots: no room would do. `unlabelled`: no node has a label of the
    level that all members must share, so that no room would do either.
    """

    needed: int
    fit: int
    level: str = ""
    domain: str = ""
    lacking: tuple[Shortage, ...] = ()
    constraint: str = ""
    exhausted: bool = False
    exceeds_cluster: bool = False
    endless: bool = False
    spread: str = ""
    short_domains: tuple[DomainShortage, ...] = ()
    unlabelled: bool = False

    @property
    def missing(self) -> int:
        return self.needed - self.fit

    def sentence(self) -> str:
        """`5 of at least 8 members fit in rack r12, which comes closest; 3 more need 24 nvidia.com/gpu there`."""
        if self.unlabelled:
            return f"no node has a label of the level {self.level}, which all {self.needed} members must share"
        where = (
            f"in {self.level} {truncated(self.domain)}, which comes closest" if self.domain else "in the whole cluster"
        )
        if self.level and not self.domain:
            where = f"in any one {self.level}"
        said = f"{self.fit} of at least {self.needed} members fit {where}"
        wanted = ", ".join(each.text() for each in self.lacking[:MAX_NAMED])
        wanted += f" and {len(self.lacking) - MAX_NAMED} resources more" if len(self.lacking) > MAX_NAMED else ""
        need = "needs" if self.missing == 1 else "need"
        if self.spread:
            said += f"; {self._spread_sentence(wanted)}"
        else:
            said += f"; {self.missing} more {need} {wanted}" if wanted else f"; room for {self.missing} more is missing"
        if self.constraint:
            said += f" ({self.constraint})"
        if self.exceeds_cluster:
            return said + "; more than the nodes there are would hold if they were empty"
        if self.endless:
            said += "; pods that do not end by themselves hold that room"
        return said + (" (not everything was tried)" if self.exhausted else "")

    def _spread_sentence(self, wanted: str) -> str:
        """`room is missing for 2 in zone b, for 1 in zone c: 3 cpu`."""
        if not self.short_domains:
            return "more room on these nodes would not help"
        named = [
            f"for {shortage.members} in {self.spread} {truncated(shortage.domain)}"
            for shortage in self.short_domains[:MAX_NAMED]
        ]
        named += (
            [f"for others in {len(self.short_domains) - MAX_NAMED} more"] if len(self.short_domains) > MAX_NAMED else []
        )
        return f"room is missing {', '.join(named)}" + (f": {wanted}" if wanted else "")


class Decision(msgspec.Struct, frozen=True, gc=False, rename={"gang_diagnosis": "certificate"}):
    """The answer for a whole job. Either all of `placements` (at least the job's minimum), or none and a reason.

    `diagnosis` speaks of the member that could not be placed, or of the last one that was; `error` is set when the
    attempt failed rather than being refused. A gang that is refused has a certificate.
    """

    job: str
    code: Code
    generation: int
    decided_at: float
    placements: tuple[PodPlacement, ...] = ()
    diagnosis: Diagnosis = Diagnosis(nodes=0)
    error: str = ""
    gang_diagnosis: GangDiagnosis | None = None

    @property
    def placed(self) -> bool:
        return self.code is Code.SUCCESS

    def sentence(self, namespace: str = "") -> str:
        """What goes into the event and the condition of a pod of this namespace: objects of others are not named."""
        if self.placed:
            return ", ".join(f"{truncated(p.pod)} to {truncated(p.node)}" for p in self.placements)
        return self.error or self.diagnosis.sentence(namespace)

    def full_sentence(self) -> str:
        """The same for operators, who may read all names: logs, and explanations from a dump of the cluster."""
        return self.sentence(self.diagnosis.detail_for)
