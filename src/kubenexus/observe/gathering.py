"""Gangs gathered from all pods there are: what `queue.assembly` has at hand while it follows a cluster, found out once
for an explanation."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import UNSAID, Claim, Nearness
from kubenexus.api.gangs.resolver import Groups, claim_of, merged, settle
from kubenexus.base.errors import Malformed
from kubenexus.base.moments import moment
from kubenexus.framework.job import Job
from kubenexus.queue.formation import Member, formed, with_usual
from kubenexus.state.pods import finished

Said = tuple[Pod, Claim]
Usual = Callable[[Pod], Nearness]  # how close members shall be when nobody says so


class Gathered(msgspec.Struct, frozen=True, gc=False):
    """The job that a pod waits in, since when, and from when it may be tried (`ready`), if that is later. `held` says
    why it is not tried yet, "" if it is; `gang` names it to people and is empty for a pod by itself."""

    job: Job
    since: float | None
    gang: str = ""
    held: str = ""
    ready: float | None = None


def _unsaid(pod: Pod) -> Nearness:
    return UNSAID


def gather(pod: Pod, pods: Mapping[str, Pod], groups: Groups, usual: Usual = _unsaid) -> Gathered:
    """`pod` counts as one that waits, whatever its namesake among `pods` does."""
    try:
        claim = claim_of(pod)
    except Malformed as problem:
        return Gathered(Job.of(pod), _since(pod), held=str(problem))
    if claim is None:
        return Gathered(Job.of(pod), _since(pod))
    others = (other for key, other in pods.items() if key != pod.key)
    return _gathered([(pod, claim), *(each for each in _members(others) if each[1].key == claim.key)], groups, usual)


def waiting(pods: Mapping[str, Pod], groups: Groups, usual: Usual = _unsaid) -> Iterator[Gathered]:
    """All gangs of which somebody waits."""
    gangs: dict[str, list[Said]] = {}
    for pod, claim in _members(pods.values()):
        gangs.setdefault(claim.key, []).append((pod, claim))
    for members in gangs.values():
        first = next((each for each in members if not each[0].spec.node_name), None)
        if first is not None:
            yield _gathered([first, *(each for each in members if each is not first)], groups, usual)


def _gathered(found: list[Said], groups: Groups, usual: Usual) -> Gathered:
    """The gang of the first of these."""
    pod, claim = found[0]
    try:
        gang = with_usual(merged([settle(each, groups) for _, each in found]), usual(pod))
    except Malformed as problem:
        return Gathered(Job.of(pod), _since(pod), claim.title, str(problem))
    if gang.loose:
        return Gathered(Job.of(pod), _since(pod))
    members = sorted((Member.of(each, said, _since(each)) for each, said in found), key=lambda member: member.order)
    seated = [(member, member.pod.spec.node_name) for member in members]
    formation = formed(gang, seated)
    job = formation.jobs.get(gang.key, Job.of(pod))  # nobody is ready who waits behind gates
    held = formation.hold.reasons[0] if formation.hold else ""
    return Gathered(job, formation.since, gang.title, held, formation.ready)


def _members(pods: Iterable[Pod]) -> Iterator[Said]:
    for pod in pods:
        try:
            claim = claim_of(pod) if _lives(pod) else None
        except Malformed:
            continue  # it waits by itself, until it can be read
        if claim is not None:
            yield pod, claim


def _lives(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and not finished(pod)


def _since(pod: Pod) -> float | None:
    return moment(pod.metadata.creation_timestamp, None)
