"""The gang of a pod, gathered from all pods there are: what `queue.assembly` has at hand while it follows a cluster,
found out once for an explanation."""

from collections.abc import Iterator, Mapping

import msgspec

from kubenexus.api.core import Pod
from kubenexus.api.gangs.claim import Claim
from kubenexus.api.gangs.resolver import Groups, claim_of, merged, settle
from kubenexus.base.errors import Malformed
from kubenexus.framework.job import Job
from kubenexus.queue.formation import Member, formed
from kubenexus.state.pods import finished


class Gathered(msgspec.Struct, frozen=True, gc=False):
    """The job that a pod waits in. `held` says why it is not tried yet, "" if it is; `gang` names it to people and is
    empty for a pod by itself."""

    job: Job
    gang: str = ""
    held: str = ""


def gather(pod: Pod, pods: Mapping[str, Pod], groups: Groups) -> Gathered:
    """`pod` counts as one that waits, whatever its namesake among `pods` does."""
    try:
        claim = claim_of(pod)
    except Malformed as problem:
        return Gathered(Job.of(pod), held=str(problem))
    if claim is None:
        return Gathered(Job.of(pod))
    others = {key: other for key, other in pods.items() if key != pod.key and _lives(other)}
    found = [(pod, claim), *_members(claim.key, others)]
    try:
        gang = merged([settle(each, groups) for _, each in found])
    except Malformed as problem:
        return Gathered(Job.of(pod), claim.title, str(problem))
    if gang.loose:
        return Gathered(Job.of(pod))
    seated = [(Member.of(each, said, None), each.spec.node_name) for each, said in sorted(found, key=_order)]
    formation = formed(gang, seated)
    return Gathered(formation.jobs[gang.key], gang.title, formation.hold.reasons[0] if formation.hold else "")


def _members(gang: str, pods: Mapping[str, Pod]) -> Iterator[tuple[Pod, Claim]]:
    for pod in pods.values():
        try:
            claim = claim_of(pod)
        except Malformed:
            continue  # it waits by itself, until it can be read
        if claim is not None and claim.key == gang:
            yield pod, claim


def _lives(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and not finished(pod)


def _order(found: tuple[Pod, Claim]) -> tuple[int, str, str]:
    """As in the queue: the most urgent first, then the oldest."""
    pod = found[0]
    return -pod.spec.priority, pod.metadata.creation_timestamp, pod.metadata.name
