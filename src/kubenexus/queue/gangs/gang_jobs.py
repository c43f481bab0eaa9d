"""Builds the jobs of a gang from its members and their nodes. Pure functions.

All members without a node are one job. Members with scheduling gates do not count as present, and are a job of their
own. The members of a trivial gang (minimum 1, no topology) are one job each.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import GangDeclaration, TopologyRequest
from kubenexus.api.gangs.job_key import gated_key
from kubenexus.api.gangs.resolver import Gang
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.queue.gangs.bound_members import BoundMember, IncompleteGang

COSCHEDULING: Final = "Coscheduling"  # the plugin of verdicts that hold jobs: the planner's name in a configuration
INCOMPLETE: Final = "waiting for minCount pods from a gang to appear in scheduling queue"  # in kube-scheduler's words
NAMED: Final = 3  # schedulers in a sentence
MAX_MEMBERS: Final = 10_000  # building a gang takes 8 us for each, in one go


class GangMember(msgspec.Struct, frozen=True, gc=False):
    """A live pod that belongs to a gang. `node` and `bound` are from the API server. `since`: when the pod was created.
    `order`: its sort key among the members. `ours`: whether one of our profiles schedules it."""

    pod: Pod
    claim: GangDeclaration
    since: float | None
    node: str
    order: tuple[int, float, str]
    bound: BoundMember | None = None
    ours: bool = True

    @staticmethod
    def of(
        pod: Pod, claim: GangDeclaration, since: float | None, bound: BoundMember | None = None, *, ours: bool = True
    ) -> "GangMember":
        """Returns a member; members sort by priority, then by age."""
        order = (-pod.spec.priority, math.inf if since is None else since, pod.metadata.name)
        return GangMember(pod, claim, since, "" if bound is None else bound.pod.spec.node_name, order, bound, ours)


# Members in order, each with its node from the API server or from our own decision.
MemberNodes = Sequence[tuple[GangMember, str]]


class GangJobs(NamedTuple):
    """The jobs by key, and why the gang may not be tried yet. `since`: the age of the oldest waiting member; the run
    time of others does not count. `ready`: the age of the member that made the gang complete."""

    jobs: dict[str, Job]
    hold: Verdict | None = None
    since: float | None = None
    ready: float | None = None


def build_gang_jobs(gang: Gang, seated: MemberNodes, holes: tuple[str, ...] = ()) -> GangJobs:
    waiting = [member.pod for member, node in seated if member.ours and not node]
    if gang.is_trivial:
        return GangJobs({pod.key: Job.of(pod) for pod in waiting})
    ready = tuple([pod for pod in waiting if not pod.spec.scheduling_gates])
    ages = [
        member.since for member, node in seated if member.ours and not node and not member.pod.spec.scheduling_gates
    ]
    anchors = tuple([node for _, node in seated if node])
    topology = TopologyRequest(gang.topology.required, gang.topology.preferred)
    jobs = {}
    if ready:
        jobs[gang.key] = Job(gang.key, ready, max(1, gang.minimum - len(anchors)), topology, anchors, holes)
    if len(ready) < len(waiting):
        gated = tuple([pod for pod in waiting if pod.spec.scheduling_gates])
        key = gated_key(gang.key)
        jobs[key] = Job(key, gated)
    hold = _apart(gang, seated) or _hold(gang, len(ready) + len(anchors))
    completed = _completed(ages, gang.minimum - len(anchors))
    return GangJobs(jobs, hold, _oldest(seated), completed)


def with_default_topology(gang: Gang, usual: TopologyRequest) -> Gang:
    """Returns the gang with the configured topology of its namespace, unless the gang declares its own."""
    return gang if gang.topology.explicit or gang.is_trivial else msgspec.structs.replace(gang, topology=usual)


def incomplete_gang(
    gang: Gang, claim: GangDeclaration, seated: MemberNodes, *, was_complete: bool, noticed: float
) -> IncompleteGang | None:
    """Returns the gang if only some of the members it needs have a node. Assumed members count as bound. Members of
    other schedulers count, too, but only our own are listed."""
    bound = [member.bound for member, _ in seated if member.bound is not None and member.ours]
    if not bound or sum(bool(node) for _, node in seated) >= gang.minimum:
        return None
    waits = any(member.ours and not node for member, node in seated)
    return IncompleteGang(
        gang.key, gang.title, gang.minimum, tuple(bound), claim.completion_timeout, was_complete, noticed, waits
    )


def invalid_gang_jobs(key: str, seated: MemberNodes, problem: str) -> GangJobs:
    """Returns the job of a gang whose minimum cannot be read: it is held, with the reason."""
    waiting = tuple([member.pod for member, node in seated if member.ours and not node])
    return GangJobs({key: Job(key, waiting)} if waiting else {}, hold_verdict(problem), _oldest(seated))


def too_many(key: str, members: Iterable[GangMember]) -> GangJobs:
    """Returns the job of a gang that has too many members. Its first waiting member represents all, so that the others
    are not read."""
    first = next((member for member in members if member.ours and not member.node), None)
    jobs = {} if first is None else {key: Job(key, (first.pod,))}
    said = hold_verdict(f"gang has more than {MAX_MEMBERS} members, which is the limit")
    return GangJobs(jobs, said, None if first is None else first.since)


def hold_verdict(sentence: str) -> Verdict:
    return Verdict(Code.UNRESOLVABLE, (sentence,), COSCHEDULING)


def _apart(gang: Gang, seated: MemberNodes) -> Verdict | None:
    """Holds a gang whose members name several schedulers or profiles: none of these could place all members."""
    names = sorted({member.pod.spec.scheduler_name for member, _ in seated})
    if len(names) < 2:
        return None
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    text = f"the members of gang {gang.title} name different schedulers ({', '.join(names[:NAMED])}{more})"
    return hold_verdict(f"{text}: a gang has one")


def _hold(gang: Gang, live: int) -> Verdict | None:
    if gang.missing_object:
        return hold_verdict(f"waiting for {gang.missing_object}")
    if live < gang.minimum:
        return hold_verdict(f"{INCOMPLETE}: gang {gang.title} has {live} of at least {gang.minimum}")
    return None


def _oldest(seated: MemberNodes) -> float | None:
    waiting = (member.since for member, node in seated if member.ours and not node)
    return min((since for since in waiting if since is not None), default=None)


def _completed(ages: list[float | None], needed: int) -> float | None:
    """Returns when as many members as needed had been created; None if that is not known."""
    known = sorted(age for age in ages if age is not None)
    return known[max(needed, 1) - 1] if len(known) == len(ages) and len(known) >= max(needed, 1) else None
