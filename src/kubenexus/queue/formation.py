"""A gang as jobs for the waiting room: what its members come to, given who of them has a node. Pure.

Members without a node wait as one job, however many they are. Those behind scheduling gates do not count as there, and
wait as a job of their own. The members of a gang that is none (one is enough, anywhere) are jobs each by itself.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import Claim
from kubenexus.api.gangs.resolver import Gang
from kubenexus.framework.job import Job, Topology
from kubenexus.framework.verdict import Code, Verdict

PLUGIN: Final = "Coscheduling"  # who holds jobs back: the planner's name in a configuration
BEHIND_GATES: Final = "+gated"  # no name has a plus


class Member(msgspec.Struct, frozen=True, gc=False):
    """A live pod that belongs to a gang. `node` is the API server's word; `since` when the pod was made."""

    pod: Pod
    claim: Claim
    since: float | None
    node: str = ""


class Seated(NamedTuple):
    """A member, and the node it has by anybody's word: the API server's, or our own decision's."""

    member: Member
    node: str


class Formation(NamedTuple):
    """The jobs by key, and why the gang may not be tried yet. `since` is the age of the oldest member."""

    jobs: dict[str, Job]
    hold: Verdict | None = None
    since: float | None = None


def formed(gang: Gang, seated: Iterable[Seated]) -> Formation:
    everybody = sorted(seated, key=_order)
    waiting = [each.member.pod for each in everybody if not each.node]
    if gang.loose:
        return Formation({pod.key: Job.of(pod) for pod in waiting})
    ready = tuple([pod for pod in waiting if not pod.spec.scheduling_gates])
    anchors = tuple([each.node for each in everybody if each.node])
    topology = Topology(gang.nearness.required, gang.nearness.preferred)
    jobs = {}
    if ready:
        jobs[gang.key] = Job(gang.key, ready, max(1, gang.minimum - len(anchors)), topology, anchors)
    if len(ready) < len(waiting):
        gated = tuple([pod for pod in waiting if pod.spec.scheduling_gates])
        jobs[gang.key + BEHIND_GATES] = Job(gang.key + BEHIND_GATES, gated)
    return Formation(jobs, _hold(gang, len(ready) + len(anchors)), _oldest(everybody))


def broken(key: str, seated: Iterable[Seated], problem: str) -> Formation:
    """A gang of which nobody can tell how many it needs: it waits, with the reason."""
    everybody = sorted(seated, key=_order)
    waiting = tuple([each.member.pod for each in everybody if not each.node])
    return Formation({key: Job(key, waiting)} if waiting else {}, held(problem), _oldest(everybody))


def held(sentence: str) -> Verdict:
    return Verdict(Code.UNRESOLVABLE, (sentence,), PLUGIN)


def _hold(gang: Gang, live: int) -> Verdict | None:
    if gang.awaits:
        return held(f"waiting for {gang.awaits} to appear")
    if live < gang.minimum:
        short = "waiting for minCount pods from a gang to appear in scheduling queue"
        return held(f"{short}: gang {gang.title} has {live} of at least {gang.minimum}")
    return None


def _order(each: Seated) -> tuple[int, float, str]:
    """The most urgent first, then the oldest."""
    pod, since = each.member.pod, each.member.since
    return (-pod.spec.priority, float("inf") if since is None else since, pod.metadata.name)


def _oldest(everybody: Iterable[Seated]) -> float | None:
    return min((each.member.since for each in everybody if each.member.since is not None), default=None)
