"""A gang as jobs for the waiting room: what its members come to, given who of them has a node. Pure.

Members without a node wait as one job, however many they are. Those behind scheduling gates do not count as there, and
wait as a job of their own. The members of a gang that is none (one is enough, anywhere) are jobs each by itself.
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

COSCHEDULING: Final = "Coscheduling"  # who holds jobs back: the planner's name in a configuration
INCOMPLETE: Final = "waiting for minCount pods from a gang to appear in scheduling queue"  # in kube-scheduler's words
NAMED: Final = 3  # schedulers in a sentence
MOST_MEMBERS: Final = 10_000  # to form a gang takes 8 us for each, in one go


class GangMember(msgspec.Struct, frozen=True, gc=False):
    """A live pod that belongs to a gang. `node` and `bound` are the API server's word; `since` when the pod was made;
    `order` its place among the others; `ours` whether one of our profiles is to place it."""

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
        """The most urgent stand first, then the oldest."""
        order = (-pod.spec.priority, math.inf if since is None else since, pod.metadata.name)
        return GangMember(pod, claim, since, "" if bound is None else bound.pod.spec.node_name, order, bound, ours)


# Members in order, and for each the node it has by anybody's word: the API server's, or our own decision's.
MemberNodes = Sequence[tuple[GangMember, str]]


class GangJobs(NamedTuple):
    """The jobs by key, and why the gang may not be tried yet. `since` is the age of the oldest member that waits: what
    the others have run does not count as waiting. `ready` is the age of the member that made it complete."""

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
    """What a configuration says of the namespace goes for gangs that say nothing of their own."""
    return gang if gang.topology.explicit or gang.is_trivial else msgspec.structs.replace(gang, topology=usual)


def incomplete_gang(
    gang: Gang, claim: GangDeclaration, seated: MemberNodes, *, was_complete: bool, noticed: float
) -> IncompleteGang | None:
    """The gang, if only some of those it needs have a node. Members on their way to one count as there. Who placed them
    does not matter, but only our own are named."""
    bound = [member.bound for member, _ in seated if member.bound is not None and member.ours]
    if not bound or sum(bool(node) for _, node in seated) >= gang.minimum:
        return None
    waits = any(member.ours and not node for member, node in seated)
    return IncompleteGang(
        gang.key, gang.title, gang.minimum, tuple(bound), claim.completion_timeout, was_complete, noticed, waits
    )


def invalid_gang_jobs(key: str, seated: MemberNodes, problem: str) -> GangJobs:
    """A gang of which nobody can tell how many it needs: it waits, with the reason."""
    waiting = tuple([member.pod for member, node in seated if member.ours and not node])
    return GangJobs({key: Job(key, waiting)} if waiting else {}, hold_verdict(problem), _oldest(seated))


def too_many(key: str, members: Iterable[GangMember]) -> GangJobs:
    """A gang that is larger than any may be. The first member that waits stands for all: they are not gone through."""
    first = next((member for member in members if member.ours and not member.node), None)
    jobs = {} if first is None else {key: Job(key, (first.pod,))}
    said = hold_verdict(f"gang has more than {MOST_MEMBERS} members, which is the limit")
    return GangJobs(jobs, said, None if first is None else first.since)


def hold_verdict(sentence: str) -> Verdict:
    return Verdict(Code.UNRESOLVABLE, (sentence,), COSCHEDULING)


def _apart(gang: Gang, seated: MemberNodes) -> Verdict | None:
    """Members of several schedulers, or of several profiles of ours, are no gang: each has rules of its own, and none
    of them could place all."""
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
    """When the last one was made of as many as are needed, the oldest first; None if that is not known."""
    known = sorted(age for age in ages if age is not None)
    return known[max(needed, 1) - 1] if len(known) == len(ages) and len(known) >= max(needed, 1) else None
