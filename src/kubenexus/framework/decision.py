"""The decision about a job as a value: its placements, or the reasons against them. `explain` prints it as JSON."""

import msgspec

from kubenexus.base.errors import truncated
from kubenexus.framework.cluster_events import ClassBackoff
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
    """How much of a resource a node lacks for a pod."""

    resource: str
    lacking: int

    def text(self) -> str:
        """Returns the amount as users write it: `1500m cpu`, `64Gi memory`, `8 nvidia.com/gpu`."""
        amount = str(self.lacking)
        if self.resource == "cpu":
            amount = f"{self.lacking}m" if self.lacking % 1000 else str(self.lacking // 1000)
        elif self.resource in ("memory", "ephemeral-storage") or self.resource.startswith("hugepages-"):
            amount = next((f"{self.lacking // unit}{sign}" for sign, unit in _UNITS if not self.lacking % unit), amount)
        return f"{amount} {truncated(self.resource)}"


class NearestMiss(msgspec.Struct, frozen=True, gc=False):
    """The node that came closest, why plugins refused it, and the resources that it lacks, if any."""

    node: str
    reasons: tuple[str, ...]
    shortages: tuple[Shortage, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, gc=False):
    """Why plugins refused the nodes. `counts` has the number of nodes for each reason; a node may have several.

    `refused_by` are the plugins whose registered events make the queue try the job again. `message` replaces the counts
    when the pod was refused as a whole, before any node was filtered. `detail` replaces the message for readers of the
    namespace `detail_for`, since it names objects of that namespace; jobs of many namespaces may share one diagnosis.
    `held_back`: the capacity is reserved for a job before this one, so the diagnosis does not hold for earlier jobs.
    `post_filter` is what preemption found out; kube-scheduler ends the sentence with it.
    """

    nodes: int
    counts: tuple[tuple[str, int], ...] = ()
    refused_by: tuple[str, ...] = ()
    message: str = ""
    nearest: NearestMiss | None = None
    detail: str = ""
    detail_for: str = ""
    held_back: bool = False
    post_filter: str = ""

    def sentence(self, namespace: str = "") -> str:
        """Returns kube-scheduler's sentence, for readers of this namespace:
        `0/5 nodes are available: 1 Insufficient cpu, 4 node(s) were unschedulable.`"""
        if not self.nodes:
            return NO_NODES
        own = self.detail if namespace and namespace == self.detail_for else ""
        text = own or self.message or ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts))
        ending = f" {self.post_filter}" if self.post_filter else ""
        return f"0/{self.nodes} nodes are available:" + (f" {text}." if text else "") + ending


class PodPlacement(msgspec.Struct, frozen=True, gc=False):
    """A member and its node. `scores` are those of the chosen node; they are empty if it was the only feasible one."""

    pod: str
    uid: str
    node: str
    footprint: Footprint
    assignment: Assignment = NO_ASSIGNMENT
    scores: tuple[PluginScore, ...] = ()
    total: int = 0
    runner_up: NodeScore | None = None
    feasible: int = 0


class Victim(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to go for another one, by key and UID."""

    pod: str
    uid: str


class Nomination(msgspec.Struct, frozen=True, gc=False):
    """The node that a pod will get once the victims are gone. The pod is named by its key."""

    pod: str
    node: str


class VictimCost(msgspec.Struct, frozen=True, gc=False, order=True):
    """What the loss of some pods costs, in the order in which costs are compared: disruption budgets violated, the
    highest priority hurt, the number of jobs hurt, the rank of the highest tier among their tenants, the seconds of
    work lost, the number of pods."""

    pdb_violations: int
    priority: int
    jobs: int
    tier: int
    work: float
    pods: int


class Preemption(msgspec.Struct, frozen=True, gc=False):
    """What makes a job fit: its members' nodes, and the victims that have to go first.

    `evicts`: the victims go through the Eviction API, which keeps disruption budgets. Else they are deleted, as
    kube-scheduler does, and `pdb_violations` of them violate a budget. `cost` is what the loss of the victims costs;
    `alternatives` are the costs of a few other sets of victims, none of which is cheaper. `taken_back` has the queue of
    each victim that goes only because its queue borrows, and for this job alone.
    """

    nominations: tuple[Nomination, ...]
    victims: tuple[Victim, ...]
    pdb_violations: int = 0
    evicts: bool = False
    cost: VictimCost | None = None
    alternatives: tuple[VictimCost, ...] = ()
    taken_back: tuple[str, ...] = ()


class DomainShortage(msgspec.Struct, frozen=True, gc=False):
    """A domain of a label that members are spread over, and for how many of them it lacks capacity."""

    domain: str
    members: int


class GangDiagnosis(
    msgspec.Struct, frozen=True, gc=False, rename={"exceeds_cluster": "never", "short_domains": "spots"}
):
    """Why a gang waits: the domain that came closest, how many of its members fit there, and what that domain lacks.

    The diagnosis is exact: with capacity for the `missing` members in that domain the gang would be placed, with
    capacity for one less it would not.

        level, domain    empty when members may use the whole cluster
        constraint       what limits the members besides capacity
        exhausted        the search ended before all was tried, so more members may fit than `fit`
        exceeds_cluster  even empty nodes would not hold the gang
        endless          empty nodes would hold it, but not beside their pods that never end by themselves. No capacity
                         is reserved for such a gang
        spread           the label that members are spread over
        short_domains    the domains of `spread` that lack capacity: with so much more the gang is placed, with less in
                         sum it is not. None: no capacity would do
        node_need        what each member, or some of them, need of one node besides amounts of resources
        unlabelled       no node has a label of the level that all members must share: no capacity would do either
        refused_nodes    why nodes do not take members even if they are empty, besides amounts of resources, with the
                         number of nodes
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
    node_need: str = ""
    refused_nodes: tuple[tuple[str, int], ...] = ()

    @property
    def missing(self) -> int:
        return self.needed - self.fit

    def sentence(self) -> str:
        """Returns `5 of at least 8 members fit in rack r12, which comes closest; 3 more need 24 nvidia.com/gpu`."""
        if self.unlabelled:
            return f"no node has a label of the level {self.level}, which all {self.needed} members must share"
        where = (
            f"in {self.level} {truncated(self.domain)}, which comes closest" if self.domain else "in the whole cluster"
        )
        if self.level and not self.domain:
            where = f"in any one {self.level}"
        text = f"{self.fit} of at least {self.needed} members fit {where}"
        wanted = ", ".join(each.text() for each in self.lacking[:MAX_NAMED])
        wanted += f" and {len(self.lacking) - MAX_NAMED} resources more" if len(self.lacking) > MAX_NAMED else ""
        need = "needs" if self.missing == 1 else "need"
        if self.spread:
            text += f"; {self._spread_sentence(wanted)}"
        else:
            text += f"; {self.missing} more {need} {wanted}" if wanted else f"; room for {self.missing} more is missing"
        limits = "; ".join(each for each in (self.constraint, self.node_need) if each)
        if limits:
            text += f" ({limits})"
        if self.exceeds_cluster:
            nodes = "the nodes that accept members" if self.refused_nodes else "the nodes there are"
            return f"{text}; more than {nodes} would hold if they were empty{self._refused_sentence()}"
        if self.endless:
            text += "; pods that do not end by themselves hold that room"
        return text + (" (not everything was tried)" if self.exhausted else "") + self._refused_sentence()

    def _refused_sentence(self) -> str:
        """Returns `; 2 node(s) had untolerated taint(s)`, or "" if no node was refused."""
        named = [f"{number} {truncated(reason)}" for reason, number in self.refused_nodes[:MAX_NAMED]]
        return f"; {', '.join(named)}" if named else ""

    def _spread_sentence(self, wanted: str) -> str:
        """Returns `room is missing for 2 in zone b, for 1 in zone c: 3 cpu`."""
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
    """The result for a whole job: `placements` for at least the job's minimum, or none and the reasons.

    `diagnosis` is that of the member that could not be placed, or of the last one that was. `error` is set when the
    attempt failed, rather than finding no nodes. A gang that does not fit has a `gang_diagnosis`. `backoffs` are the
    node backoffs (`plan.node_backoff`) whose nodes were left out. `workload` is the kind of work of the first member
    (`api.classification`), "" if the profile does not classify pods. `preemption` is what makes the pod fit, if it is
    executed. `alone`: the refusal is about this pod alone, such as one that waits for the end of its victims. It is
    tried again after a backoff, and others of its class are not refused with it. `clears_nomination`: no preemption
    helps, so an earlier nomination of the pod is void.
    """

    job: str
    code: Code
    generation: int
    decided_at: float
    placements: tuple[PodPlacement, ...] = ()
    diagnosis: Diagnosis = Diagnosis(nodes=0)
    error: str = ""
    gang_diagnosis: GangDiagnosis | None = None
    backoffs: frozenset[ClassBackoff] = frozenset()
    workload: str = ""
    preemption: Preemption | None = None
    alone: bool = False
    clears_nomination: bool = False

    @property
    def placed(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def waits_its_turn(self) -> bool:
        """Whether the job would fit, and what is free is reserved for a job before it."""
        return self.diagnosis.held_back

    def sentence(self, namespace: str = "") -> str:
        """Returns the text for events and conditions of pods in this namespace. It names no objects of other ones."""
        if self.placed:
            return ", ".join(f"{truncated(p.pod)} to {truncated(p.node)}" for p in self.placements)
        return self.error or self.diagnosis.sentence(namespace)

    def full_sentence(self) -> str:
        """Returns the text for operators, who may read all names: in logs, and in `explain`."""
        return self.sentence(self.diagnosis.detail_for)
