"""Which waiting jobs are alike: a refusal of one is a refusal of all, as long as nothing changes for them.

That needs more than a pod class. The class leaves out what concerns one pod alone, since a table over all nodes can be
shared without it; but a pod made for node A is not refused because its sibling for node B was. So here a pod is signed
with its pins, and with whatever else a decision looks at besides: its profile, its priority (pods nominated elsewhere
yield to it or not), its own nomination, the claims it names, and whether it is a daemon.
"""

from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from kubenexus.api.core import Pod, Volume
from kubenexus.api.gangs.declaration import NO_TOPOLOGY_REQUEST
from kubenexus.framework.job import Job
from kubenexus.state.pods import of_daemon_set

# A pod's class as bytes, its pins included (`PodSigner.sign` without `affinity_without_node_names`).
Sign = Callable[[Pod], bytes]

SIZE: Final = 16  # bytes of a signature
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class JobSignature(NamedTuple):
    """What a job is like, in sixteen bytes; and one pod of each sort it has, for the hints to look at."""

    digest: bytes
    sample_pods: tuple[Pod, ...]


def sign_job(job: Job, sign: Sign) -> JobSignature:
    """A gang is like another one if it has as many members of each sort, needs as many of them, as close to each other,
    and has the others where that one has them. One for which room is held is like no other."""
    if len(job.pods) == 1 and job.topology == NO_TOPOLOGY_REQUEST and not job.hold_keys:
        return JobSignature(_digest(_member(job.pods[0], sign)), job.pods)
    sorts: dict[bytes, Pod] = {}
    counts: Counter[bytes] = Counter()
    for pod in job.pods:
        signature = _digest(_member(pod, sign))
        sorts.setdefault(signature, pod)
        counts[signature] += 1
    topology = None if job.topology == NO_TOPOLOGY_REQUEST else (job.topology, sorted(job.bound_nodes))
    return JobSignature(_digest((job.minimum, sorted(counts.items()), topology, job.hold_keys)), tuple(sorts.values()))


def _member(pod: Pod, sign: Sign) -> tuple[Any, ...]:
    own = (pod.status.nominated_node_name, _claims(pod) if pod.spec.volumes else ())
    # What is kept for others does not stand in a daemon's way (`plan.decide`): no other pod's refusal is its own.
    return (pod.spec.scheduler_name, pod.spec.priority, sign(pod), own, of_daemon_set(pod))


def _claims(pod: Pod) -> list[Any]:
    """What the volumes ask for, whichever kinds of them scheduling knows. Their names are made up by the API server,
    images are part of the class, and the claim of an ephemeral one is named after its pod."""
    asking = [v for v in pod.spec.volumes if v != Volume(name=v.name, image=v.image)]
    if not asking:
        return []
    asked = [msgspec.structs.replace(volume, name="") for volume in asking]
    own = any([volume.ephemeral is not None for volume in asked])  # noqa: C419
    return [pod.key if own else pod.metadata.namespace, *asked]


def _digest(thing: Any) -> bytes:
    return blake2b(_encode(thing), digest_size=SIZE).digest()
