"""A gang as jobs for the waiting room: what its members come to, given who of them has a node. Pure.

Members without a node wait as one job, however many they are. Those behind scheduling gates do not count as there, and
wait as a job of their own. The members of a gang that is none (one is enough, anywhere) are jobs each by itself.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import Claim, Nearness
from kubenexus.api.gangs.resolver import Gang
from kubenexus.framework.job import Job
from kubenexus.framework.verdict import Code, Verdict
from kubenexus.queue.standing import Bound, Incomplete

PLUGIN: Final = "Coscheduling"  # who holds jobs back: the planner's name in a configuration
INCOMPLETE: Final = "waiting for minCount pods from a gang to appear in scheduling queue"  # in kube-scheduler's words
BEHIND_GATES: Final = "+gated"  # no name has a plus
NAMED: Final = 3  # schedulers in a sentence
MOST_MEMBERS: Final = 10_000  # to form a gang takes 8 us for each, in one go


class Member(msgspec.Struct, frozen=True, gc=False):
    """A live pod that belongs to a gang. `node` and `bound` are the API server's word; `since` when the pod was made;
    `order` its place among the others; `ours` whether one of our profiles is to place it."""

    pod: Pod
    claim: Claim
    since: float | None
    node: str
    order: tuple[int, float, str]
    bound: Bound | None = None
    ours: bool = True

    @staticmethod
    def of(pod: Pod, claim: Claim, since: float | None, bound: Bound | None = None, *, ours: bool = True) -> "Member":
        """The most urgent stand first, then the oldest."""
        order = (-pod.spec.priority, math.inf if since is None else since, pod.metadata.name)
        return Member(pod, claim, since, "" if bound is None else bound.pod.spec.node_name, order, bound, ours)


# Members in order, and for each the node it has by anybody's word: the API server's, or our own decision's.
Seated = Sequence[tuple[Member, str]]


class Formation(NamedTuple):
    """The jobs by key, and why the gang may not be tried yet. `since` is the age of the oldest member that waits: what
    the others have run does not count as waiting. `ready` is the age of the member that made it complete."""

    jobs: dict[str, Job]
    hold: Verdict | None = None
    since: float | None = None
    ready: float | None = None


def formed(gang: Gang, seated: Seated, holes: tuple[str, ...] = ()) -> Formation:
    waiting = [member.pod for member, node in seated if member.ours and not node]
    if gang.loose:
        return Formation({pod.key: Job.of(pod) for pod in waiting})
    ready = tuple([pod for pod in waiting if not pod.spec.scheduling_gates])
    ages = [
        member.since for member, node in seated if member.ours and not node and not member.pod.spec.scheduling_gates
    ]
    anchors = tuple([node for _, node in seated if node])
    topology = Nearness(gang.nearness.required, gang.nearness.preferred)
    jobs = {}
    if ready:
        jobs[gang.key] = Job(gang.key, ready, max(1, gang.minimum - len(anchors)), topology, anchors, holes)
    if len(ready) < len(waiting):
        gated = tuple([pod for pod in waiting if pod.spec.scheduling_gates])
        jobs[gang.key + BEHIND_GATES] = Job(gang.key + BEHIND_GATES, gated)
    hold = _apart(gang, seated) or _hold(gang, len(ready) + len(anchors))
    completed = _completed(ages, gang.minimum - len(anchors))
    return Formation(jobs, hold, _oldest(seated), completed)


def with_usual(gang: Gang, usual: Nearness) -> Gang:
    """What a configuration says of the namespace goes for gangs that say nothing of their own."""
    return gang if gang.nearness.said or gang.loose else msgspec.structs.replace(gang, nearness=usual)


def lacking(gang: Gang, claim: Claim, seated: Seated, *, was_complete: bool, noticed: float) -> Incomplete | None:
    """The gang, if only some of those it needs have a node. Members on their way to one count as there. Who placed them
    does not matter, but only our own are named."""
    bound = [member.bound for member, _ in seated if member.bound is not None and member.ours]
    if not bound or sum(bool(node) for _, node in seated) >= gang.minimum:
        return None
    waits = any(member.ours and not node for member, node in seated)
    return Incomplete(gang.key, gang.title, gang.minimum, tuple(bound), claim.patience, was_complete, noticed, waits)


def broken(key: str, seated: Seated, problem: str) -> Formation:
    """A gang of which nobody can tell how many it needs: it waits, with the reason."""
    waiting = tuple([member.pod for member, node in seated if member.ours and not node])
    return Formation({key: Job(key, waiting)} if waiting else {}, held(problem), _oldest(seated))


def too_many(key: str, members: Iterable[Member]) -> Formation:
    """A gang that is larger than any may be. The first member that waits stands for all: they are not gone through."""
    first = next((member for member in members if member.ours and not member.node), None)
    jobs = {} if first is None else {key: Job(key, (first.pod,))}
    said = held(f"gang has more than {MOST_MEMBERS} members, which is the limit")
    return Formation(jobs, said, None if first is None else first.since)


def held(sentence: str) -> Verdict:
    return Verdict(Code.UNRESOLVABLE, (sentence,), PLUGIN)


def _apart(gang: Gang, seated: Seated) -> Verdict | None:
    """Members of several schedulers, or of several profiles of ours, are no gang: each has rules of its own, and none
    of them could place all."""
    names = sorted({member.pod.spec.scheduler_name for member, _ in seated})
    if len(names) < 2:
        return None
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    text = f"the members of gang {gang.title} name different schedulers ({', '.join(names[:NAMED])}{more})"
    return held(f"{text}: a gang has one")


def _hold(gang: Gang, live: int) -> Verdict | None:
    if gang.awaits:
        return held(f"waiting for {gang.awaits}")
    if live < gang.minimum:
        return held(f"{INCOMPLETE}: gang {gang.title} has {live} of at least {gang.minimum}")
    return None


def _oldest(seated: Seated) -> float | None:
    waiting = (member.since for member, node in seated if member.ours and not node)
    return min((since for since in waiting if since is not None), default=None)


def _completed(ages: list[float | None], needed: int) -> float | None:
    """When the last one was made of as many as are needed, the oldest first; None if that is not known."""
    known = sorted(age for age in ages if age is not None)
    return known[max(needed, 1) - 1] if len(known) == len(ages) and len(known) >= max(needed, 1) else None
