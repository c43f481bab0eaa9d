"""Signatures of jobs: a refusal of one job is a refusal of all jobs with its signature, until something changes.

A pod class is not enough. It leaves out what concerns one pod alone, since a table over all nodes can be shared without
that; but a pod made for node A is not refused because its sibling for node B was. So a pod is signed with its pins, and
with all else that a decision depends on: its profile, its priority (pods nominated elsewhere yield to it or not), its
own nomination, the claims it names, and whether it belongs to a DaemonSet.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

from kubenexus.api.core import Pod
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST
from kubenexus.framework.job import Job
from kubenexus.queue.member_signatures import (
    MemberSignatures,
    Sign,
    SignatureRule,
    digest,
    has_own_claim,
    member_values,
)

MAX_TEMPLATES: Final = 500  # of the members of one gang; the planner refuses gangs of more kinds on any larger cluster


class JobSignature(NamedTuple):
    """A digest of sixteen bytes, and one pod of each sort that the job has, for which hints are called."""

    digest: bytes
    sample_pods: tuple[Pod, ...]


def sign_job(
    job: Job,
    rule: SignatureRule | Sign,
    boost: int = 0,
    owned: tuple[str, ...] = (),
    members: MemberSignatures | None = None,
    context: Hashable = None,
) -> JobSignature:
    """Returns the signature of a job with this boost that owns these reservations (`QueueProfile`). `members` has the
    signatures of its members from the last call, which hold while `context` is equal.

    Gangs are alike if they have as many members of each sort, the same minimum and topology request, and their bound
    members on the same nodes. A gang with held capacity is like no other, and so is one of very many templates, or
    whose many members have claims of their own: to sign each takes 50 us.
    """
    rule = rule if isinstance(rule, SignatureRule) else SignatureRule(rule)
    if len(job.pods) == 1 and job.topology == NO_TOPOLOGY_REQUEST and not job.hold_keys:
        return JobSignature(_with(digest(member_values(job.pods[0], rule.sign)), boost, owned), job.pods)
    if len(job.pods) > MAX_TEMPLATES and _differ(job.pods):
        versions = [(pod.metadata.uid, pod.metadata.resource_version) for pod in job.pods]
        return JobSignature(_with(digest((job.key, versions)), boost, owned), job.pods)
    digests = (members or MemberSignatures()).digests(job.pods, rule, context)
    firsts = dict(zip(reversed(digests), reversed(job.pods), strict=True))
    topology = None if job.topology == NO_TOPOLOGY_REQUEST else (job.topology, sorted(job.bound_nodes))
    signed = digest((job.minimum, sorted(Counter(digests).items()), topology, job.hold_keys))
    return JobSignature(_with(signed, boost, owned), tuple([firsts[each] for each in dict.fromkeys(digests)]))


def _differ(pods: tuple[Pod, ...]) -> bool:
    """Whether there are too many sorts of pods to sign each."""
    specs = {id(pod.spec): pod.spec for pod in pods}
    return len(specs) > MAX_TEMPLATES or any([has_own_claim(spec) for spec in specs.values()])  # noqa: C419


def _with(signed: bytes, boost: int, owned: tuple[str, ...]) -> bytes:
    return digest((signed, boost, owned)) if boost or owned else signed
