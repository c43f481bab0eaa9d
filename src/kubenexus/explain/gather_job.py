"""Builds gang jobs once from all pods of a dump. `queue.gangs.job_assembler` does the same incrementally in a running
scheduler."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST, GangDeclaration, TopologyRequest
from kubenexus.api.gangs.resolver import GroupLookup, declared_gang, merge_gangs, resolve_gang
from kubenexus.base.errors import Malformed
from kubenexus.base.timestamps import parse_timestamp
from kubenexus.framework.job import Job
from kubenexus.queue.gangs.gang_jobs import GangMember, build_gang_jobs, with_default_topology
from kubenexus.state.pods import is_finished

DeclaredPod = tuple[Pod, GangDeclaration]
Usual = Callable[[Pod], TopologyRequest]  # the topology of a gang that requests none


class GatheredJob(msgspec.Struct, frozen=True, gc=False):
    """The job of a pod. `since` is the creation time of its oldest waiting pod.

    `held` is the reason why the job is not tried yet, or "". `gang` is its name for people, "" for a single pod.
    """

    job: Job
    since: float | None
    gang: str = ""
    held: str = ""


def _no_default(pod: Pod) -> TopologyRequest:
    return NO_TOPOLOGY_REQUEST


def job_of_pod(pod: Pod, pods: Mapping[str, Pod], groups: GroupLookup, usual: Usual = _no_default) -> GatheredJob:
    """Returns the job of `pod`, which counts as waiting; a pod with the same key in `pods` is ignored."""
    try:
        claim = declared_gang(pod)
    except Malformed as problem:
        return GatheredJob(Job.of(pod), _since(pod), held=str(problem))
    if claim is None:
        return GatheredJob(Job.of(pod), _since(pod))
    others = (other for key, other in pods.items() if key != pod.key)
    return _gathered([(pod, claim), *(each for each in _members(others) if each[1].key == claim.key)], groups, usual)


def waiting_jobs(
    waiting: Iterable[Pod], pods: Mapping[str, Pod], groups: GroupLookup
) -> Iterator[tuple[Pod, GatheredJob]]:
    """Yields the jobs of these pods, each once, with its first pod. Reads all pods once, where `job_of_pod` would read
    them for each of these."""
    gangs: dict[str, list[DeclaredPod]] = {}
    claims: dict[str, GangDeclaration] = {}
    for pod, claim in _members(pods.values()):
        gangs.setdefault(claim.key, []).append((pod, claim))
        claims[pod.key] = claim
    whole, trivial = set[str](), set[str]()
    for pod in waiting:
        own = claims.get(pod.key)
        if own is None or own.key in trivial:
            yield pod, job_of_pod(pod, {}, groups)
        elif own.key not in whole:
            others = (each for each in gangs[own.key] if each[0].key != pod.key)
            found = _gathered([(pod, own), *others], groups, _no_default)
            (whole if found.gang else trivial).add(own.key)
            yield pod, found


def waiting_gangs(pods: Mapping[str, Pod], groups: GroupLookup, usual: Usual = _no_default) -> Iterator[GatheredJob]:
    """Yields all gangs with at least one waiting member."""
    gangs: dict[str, list[DeclaredPod]] = {}
    for pod, claim in _members(pods.values()):
        gangs.setdefault(claim.key, []).append((pod, claim))
    for members in gangs.values():
        first = next((each for each in members if not each[0].spec.node_name), None)
        if first is not None:
            yield _gathered([first, *(each for each in members if each is not first)], groups, usual)


def _gathered(found: list[DeclaredPod], groups: GroupLookup, usual: Usual) -> GatheredJob:
    """Builds the gang of the first of these members."""
    pod, claim = found[0]
    try:
        gang = with_default_topology(merge_gangs([resolve_gang(each, groups) for _, each in found]), usual(pod))
    except Malformed as problem:
        return GatheredJob(Job.of(pod), _since(pod), claim.display_name, str(problem))
    if gang.is_trivial:
        return GatheredJob(Job.of(pod), _since(pod))
    members = sorted(
        (GangMember.of(each, claim, _since(each)) for each, claim in found), key=lambda member: member.order
    )
    seated = [(member, member.pod.spec.node_name) for member in members]
    formation = build_gang_jobs(gang, seated)
    job = formation.jobs.get(gang.key, Job.of(pod))  # without a job if all waiting members have gates
    held = formation.hold.reasons[0] if formation.hold else ""
    return GatheredJob(job, formation.since, gang.title, held)


def _members(pods: Iterable[Pod]) -> Iterator[DeclaredPod]:
    for pod in pods:
        try:
            claim = declared_gang(pod) if _lives(pod) else None
        except Malformed:
            continue  # a pod with an unreadable gang waits as a single pod
        if claim is not None:
            yield pod, claim


def _lives(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and not is_finished(pod)


def _since(pod: Pod) -> float | None:
    return parse_timestamp(pod.metadata.creation_timestamp, None)
